//! Clients whose process has ended: given up at once, instead of after the liveness timeout.
//!
//! Only clients that showed that they live when they became known are watched; of the others the heartbeat tells. A
//! client wrote its commands before it ended, so it is given up when those are read: a close among them is a close.

use headrace_buffers::liveness::Liveness;

use super::Conductor;

/// Time between two looks at clients.
const CHECK_INTERVAL_NS: i64 = 20_000_000;
/// Clients looked at in one go; each costs a system call. More take turns.
const CHECKS_MAX: usize = 64;

/// Whether the processes of clients live; a seam, so that tests need no processes.
pub(crate) trait ProcessWatch: Send {
    /// True while the client shows that it lives. False also when it never showed it, or that cannot be told.
    fn is_alive(&self, client_id: i64) -> bool;
}

/// Asks the kernel. Without a lock file no client is watched.
impl ProcessWatch for Option<std::sync::Arc<Liveness>> {
    fn is_alive(&self, client_id: i64) -> bool {
        self.as_ref()
            .is_some_and(|liveness| liveness.is_client_alive(client_id).unwrap_or(false))
    }
}

/// When and where the watch goes on.
#[derive(Debug, Default)]
pub(crate) struct WatchRound {
    next_ns: i64,
    next_index: usize,
}

impl Conductor {
    /// Looks for clients that have ended, when it is time to, and frees what they held.
    pub(crate) fn check_processes(&mut self) -> usize {
        if self.cx.now_ns < self.watch_round.next_ns {
            return 0;
        }
        self.watch_round.next_ns = self.cx.now_ns.saturating_add(CHECK_INTERVAL_NS);
        let (processes, written) = (&self.processes, self.ring.producer_position());
        self.watch_round.next_index =
            self.clients
                .note_ended(self.watch_round.next_index, CHECKS_MAX, written, |client_id| {
                    processes.is_alive(client_id)
                });
        if !self.clients.has_ended(self.ring.consumer_position()) {
            return 0;
        }
        self.check_clients();
        1
    }
}
