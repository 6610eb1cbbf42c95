//! Clients whose process has ended: removed at once, instead of after the liveness timeout.
//!
//! Only clients that have shown their process when they became known are watched; for others the heartbeat counts. A
//! client wrote its commands before it ended, so it is removed when those are read: a close among them counts as a
//! close.

use std::ops::Range;
use std::sync::Arc;

use headrace_buffers::liveness::Liveness;

/// Time between two looks at clients.
const CHECK_INTERVAL_NS: i64 = 20_000_000;
/// Clients looked at in one go; each costs a system call. More take turns.
const CHECKS_MAX: usize = 64;

/// Asks the kernel whether the processes of clients live. Without a lock file no client is watched.
pub(crate) struct ProcessWatch(pub(crate) Option<Arc<Liveness>>);

impl ProcessWatch {
    /// True while the client shows that it lives. False also when it never showed it, or that cannot be told.
    pub(crate) fn is_alive(&self, client_id: i64) -> bool {
        let liveness = self.0.as_ref();
        liveness.is_some_and(|liveness| liveness.is_client_alive(client_id).unwrap_or(false))
    }
}

/// When and where the watch goes on.
#[derive(Debug, Default)]
pub(crate) struct WatchRound {
    next_ns: i64,
    next_index: usize,
}

impl WatchRound {
    /// Which of `count` clients to look at now; none before it is time to.
    pub(crate) fn next(&mut self, now_ns: i64, count: usize) -> Option<Range<usize>> {
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns.saturating_add(CHECK_INTERVAL_NS);
        let first = if self.next_index < count {
            self.next_index
        } else {
            0
        };
        self.next_index = first + CHECKS_MAX;
        Some(first..self.next_index.min(count))
    }
}
