//! One client: its resources, and whether it is alive.
//!
//! | state | leaves when |
//! |---|---|
//! | Heard | it closes: Closed |
//! | Watched | its process ends: Ended. It closes: Closed |
//! | Ended | a close is among the commands that it wrote before: Closed |
//!
//! From each state the client is removed, with all its resources: from Heard and Watched after the time-out without a
//! sign of life, from Ended when its commands were read, from Closed at once.

use headrace_buffers::counters::Counter;
use headrace_buffers::pulse::Pulse;

use crate::event_recorder::{EventRecorder, Reason, Subject};
use crate::states::states;

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

states! {
    /// A client that has added something.
    pub(crate) enum ClientState, "client" {
        /// Only its heartbeat shows that it lives.
        Heard => [Watched, Closed, Gone];
        /// Its heartbeat and its process show that it lives.
        Watched => [Ended, Closed, Gone];
        /// Its process has ended, or closes it; the driver reads its last commands.
        Ended => [Closed, Gone];
        /// It has said that it is done.
        Closed => [Gone];
        /// The driver has released all that it held.
        Gone => [];
    }
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
    /// Where in the ring the commands of a client end whose process has ended.
    written: i64,
}

impl Client {
    /// A client that holds nothing; `is_alive` when its process shows that it lives.
    pub(crate) fn new(
        recorder: &EventRecorder,
        id: i64,
        heartbeat: Counter,
        is_alive: bool,
        now_ns: i64,
    ) -> Self {
        let mut client = Self {
            id,
            pulse: Pulse::new(heartbeat.get(), now_ns),
            heartbeat,
            publications: Vec::new(),
            counters: Vec::new(),
            state: recorder.begin("its first command came", &subject(id)),
            written: i64::MAX,
        };
        if is_alive {
            client.enter(recorder, ClientState::Watched, "its process shows that it lives");
        }
        client
    }

    pub(crate) fn state(&self) -> ClientState {
        self.state
    }

    /// The one place where the state changes.
    pub(crate) fn enter(
        &mut self,
        recorder: &EventRecorder,
        new: ClientState,
        reason: impl Into<Reason<'static>>,
    ) {
        self.change(recorder, new, reason, "");
    }

    fn change(
        &mut self,
        recorder: &EventRecorder,
        new: ClientState,
        reason: impl Into<Reason<'static>>,
        name: &str,
    ) {
        if self.state != new {
            let subject = Subject {
                detail: name,
                ..subject(self.id)
            };
            recorder.change(&mut self.state, new, reason, &subject);
        }
    }

    /// Its process has ended; it wrote nothing from position `written` of the ring.
    pub(crate) fn end(&mut self, recorder: &EventRecorder, written: i64) {
        self.written = written;
        self.enter(recorder, ClientState::Ended, "its process shows no life any more");
    }

    /// All it held was released. `name` is what it called itself.
    pub(crate) fn leave(&mut self, recorder: &EventRecorder, name: &str) {
        let reason = match self.state {
            ClientState::Heard | ClientState::Watched => {
                Reason::fault("not heard from for the client liveness time-out")
            }
            ClientState::Ended => Reason::fault("its process ended"),
            ClientState::Closed | ClientState::Gone => "it closed".into(),
        };
        self.change(recorder, ClientState::Gone, reason, name);
    }

    /// True when nothing it wrote is left to read, up to `read`, and nothing will come.
    pub(crate) fn is_over(&self, read: i64) -> bool {
        match self.state {
            ClientState::Heard | ClientState::Watched => false,
            ClientState::Ended => self.written <= read,
            ClientState::Closed | ClientState::Gone => true,
        }
    }

    /// True when it is over, or was not heard from for the time-out.
    pub(crate) fn is_gone(&mut self, look: Look) -> bool {
        let heartbeat_ms = self.heartbeat.get_acquire();
        let silent_ns = self.pulse.look(heartbeat_ms, look.now_ms, look.now_ns);
        self.is_over(look.read) || silent_ns > look.timeout_ns
    }
}

fn subject(id: i64) -> Subject<'static> {
    Subject {
        id,
        ..Subject::default()
    }
}
