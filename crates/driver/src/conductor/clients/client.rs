//! One client: what it holds, and whether it is still there.
//!
//! | state | leaves when |
//! |---|---|
//! | Heard | it closes: Closed |
//! | Watched | its process ends: Ended. It closes: Closed |
//! | Ended | a close is among the commands that it wrote before: Closed |
//!
//! From each it is gone, with all it holds: Heard and Watched when it was not heard from for the time-out, Ended when its
//! commands were read, Closed at once.

use headrace_buffers::counters::Counter;

/// One client's hold on a publication, possibly shared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicationHandle {
    /// Correlation id of this client's own add.
    pub(crate) registration_id: i64,
    /// Registration id of the publication: the first add's.
    pub(crate) publication_id: i64,
}

/// A counter a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedCounter {
    pub(crate) registration_id: i64,
    pub(crate) counter_id: i32,
}

/// How a client is known to live, or not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// By its heartbeat alone.
    Heard,
    /// By its heartbeat and its process.
    Watched,
    /// Its process has ended; its commands end before this position of the ring.
    Ended { written: i64 },
    /// It said that it is done.
    Closed,
}

/// A client that has added something.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: i64,
    pub(crate) heartbeat: Counter,
    pub(crate) publications: Vec<PublicationHandle>,
    pub(crate) counters: Vec<OwnedCounter>,
    state: ClientState,
}

impl Client {
    /// A client that holds nothing; `is_alive` when its process shows that it lives.
    pub(crate) fn new(id: i64, heartbeat: Counter, is_alive: bool) -> Self {
        Self {
            id,
            heartbeat,
            publications: Vec::new(),
            counters: Vec::new(),
            state: if is_alive {
                ClientState::Watched
            } else {
                ClientState::Heard
            },
        }
    }

    pub(crate) fn state(&self) -> ClientState {
        self.state
    }

    /// The one place where the state changes.
    pub(crate) fn enter(&mut self, state: ClientState, reason: &'static str) {
        debug_assert!(!reason.is_empty());
        self.state = state;
    }

    /// True when nothing it wrote is left to read, up to `read`, and nothing will come.
    pub(crate) fn is_over(&self, read: i64) -> bool {
        match self.state {
            ClientState::Heard | ClientState::Watched => false,
            ClientState::Ended { written } => written <= read,
            ClientState::Closed => true,
        }
    }

    /// True when it is over, or was not heard from for the time-out.
    pub(crate) fn is_gone(&self, now_ms: i64, liveness_timeout_ms: i64, read: i64) -> bool {
        let timeout_ms = liveness_timeout_ms.max(1);
        let heartbeat_ms = self.heartbeat.get_acquire();
        if heartbeat_ms > now_ms.saturating_add(timeout_ms) {
            // The clock was set back. A client that lives writes another time; that of a dead one counts from now.
            self.heartbeat.set_release(now_ms);
        }
        self.is_over(read) || now_ms > heartbeat_ms.saturating_add(timeout_ms)
    }
}
