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
use headrace_buffers::pulse::Pulse;

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

/// When clients are looked at, and what they are held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) now_ns: i64,
    pub(crate) now_ms: i64,
    /// How long a client may be silent.
    pub(crate) timeout_ns: i64,
    /// How far the commands of clients were read.
    pub(crate) read: i64,
}

/// A client that has added something.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: i64,
    pub(crate) heartbeat: Counter,
    pub(crate) publications: Vec<PublicationHandle>,
    pub(crate) counters: Vec<OwnedCounter>,
    pulse: Pulse,
    state: ClientState,
}

impl Client {
    /// A client that holds nothing; `is_alive` when its process shows that it lives.
    pub(crate) fn new(id: i64, heartbeat: Counter, is_alive: bool, now_ns: i64) -> Self {
        Self {
            id,
            pulse: Pulse::new(heartbeat.get(), now_ns),
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
    pub(crate) fn is_gone(&mut self, look: Look) -> bool {
        let heartbeat_ms = self.heartbeat.get_acquire();
        let silent_ns = self.pulse.look(heartbeat_ms, look.now_ms, look.now_ns);
        self.is_over(look.read) || silent_ns > look.timeout_ns
    }
}
