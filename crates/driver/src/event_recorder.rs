//! Checks every change of state in a driver against its table, and records it in the event log.

use std::fmt;
use std::sync::Arc;

use headrace_buffers::event_log::{Event, EventLog};
use headrace_sys::Clock;

use crate::errors::ErrorRecorder;
use crate::states::State;

/// Which thing changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'a> {
    /// Its id among those of its kind.
    pub(crate) id: i64,
    /// Id of what it belongs to.
    pub(crate) parent_id: Option<i64>,
    /// Its stream.
    pub(crate) stream_id: Option<i32>,
    /// Its session.
    pub(crate) session_id: Option<i32>,
    /// What tells it from others, such as its channel.
    pub(crate) detail: &'a str,
}

/// Why a thing changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason<'a> {
    text: &'a str,
    is_fault: bool,
}

impl<'a> Reason<'a> {
    /// Not the normal course of things: a person may want to look.
    pub(crate) const fn fault(text: &'a str) -> Self {
        Self { text, is_fault: true }
    }
}

impl<'a> From<&'a str> for Reason<'a> {
    fn from(text: &'a str) -> Self {
        Self {
            text,
            is_fault: false,
        }
    }
}

/// Called with each change as it happens, on the thread that makes it. Must not wait.
pub trait EventListener: Send + Sync {
    /// A thing went from one state to another, or began in one.
    fn on_event(&self, event: &Event<&str>);
}

/// Checks and records changes of state. Any thread may; clones share the log. Nothing here is done for a message.
#[derive(Clone, Default)]
pub(crate) struct EventRecorder {
    parts: Option<Arc<Parts>>,
}

struct Parts {
    log: Option<EventLog>,
    listener: Option<Arc<dyn EventListener>>,
    clock: Arc<dyn Clock>,
    errors: ErrorRecorder,
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").finish_non_exhaustive()
    }
}

impl EventRecorder {
    /// Records into `log` and tells `listener`, if there are any, with times of `clock`. Defects go to `errors`.
    pub(crate) fn new(
        log: Option<EventLog>,
        listener: Option<Arc<dyn EventListener>>,
        clock: Arc<dyn Clock>,
        errors: ErrorRecorder,
    ) -> Self {
        let parts = Parts {
            log,
            listener,
            clock,
            errors,
        };
        Self {
            parts: Some(Arc::new(parts)),
        }
    }

    /// Records that a thing begins, in the first state of its kind, and returns that state.
    pub(crate) fn begin<S: State>(&self, reason: &str, subject: &Subject<'_>) -> S {
        let state = S::ALL[0];
        self.record(None, state, reason.into(), subject);
        state
    }

    /// Moves a thing from one state to another. False, and nothing is done, for a transition that the table does not
    /// have: that is a defect.
    pub(crate) fn change<'a, S: State>(
        &self,
        state: &mut S,
        new: S,
        reason: impl Into<Reason<'a>>,
        subject: &Subject<'_>,
    ) -> bool {
        let old = *state;
        if !self.allows(old, new, subject.id) {
            return false;
        }
        *state = new;
        self.record(Some(old), new, reason.into(), subject);
        true
    }

    /// Whether the table has a transition. If not, the error log says so, and a debug build stops.
    pub(crate) fn allows<S: State>(&self, old: S, new: S, id: i64) -> bool {
        if old.may_become(new) {
            return true;
        }
        let text = format!(
            "defect: {} id={id} must not go from {} to {}",
            S::KIND,
            old.name(),
            new.name()
        );
        if let Some(parts) = &self.parts {
            parts.errors.warn(&text, parts.clock.epoch_ms());
        }
        debug_assert!(false, "{text}");
        false
    }

    /// Tells of a transition that was made.
    pub(crate) fn record<S: State>(&self, old: Option<S>, new: S, reason: Reason<'_>, subject: &Subject<'_>) {
        let Some(parts) = &self.parts else { return };
        if parts.log.is_none() && parts.listener.is_none() {
            return;
        }
        let event = Event {
            time_ns: parts.clock.epoch_ns(),
            kind: S::KIND,
            id: subject.id,
            parent_id: subject.parent_id,
            stream_id: subject.stream_id,
            session_id: subject.session_id,
            old: old.map_or("", State::name),
            new: new.name(),
            reason: reason.text,
            detail: subject.detail,
            is_fault: reason.is_fault,
        };
        if let Some(log) = &parts.log {
            // The file counts what was dropped.
            log.append(&event);
        }
        if let Some(listener) = &parts.listener {
            listener.on_event(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;
    use headrace_buffers::error_log::{self, DistinctErrorLog};
    use headrace_buffers::event_log::{EventReader, Polled, SLOT_LENGTH};
    use headrace_sys::clock::ManualClock;

    use super::*;
    use crate::shared::ImageState;

    struct Fixture {
        log: AtomicBuffer,
        errors: AtomicBuffer,
        recorder: EventRecorder,
    }

    fn fixture() -> Fixture {
        let (log, errors) = (
            AtomicBuffer::allocate(128 + 4 * SLOT_LENGTH),
            AtomicBuffer::allocate(1024),
        );
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let id = counters.allocate(0, &[], "", 0).unwrap();
        let recorder = ErrorRecorder::new(DistinctErrorLog::new(errors.clone()), counters.counter(id));
        let clock = Arc::new(ManualClock::new(0, 7_000_000));
        let recorder = EventRecorder::new(EventLog::over(log.clone()), None, clock, recorder);
        Fixture {
            log,
            errors,
            recorder,
        }
    }

    const SUBJECT: Subject<'_> = Subject {
        id: 5,
        parent_id: None,
        stream_id: Some(1001),
        session_id: Some(-3),
        detail: "127.0.0.1:4000",
    };

    #[test]
    fn a_beginning_and_a_change_become_events() {
        let fixture = fixture();
        let mut state: ImageState = fixture.recorder.begin("SETUP", &SUBJECT);
        assert!(
            fixture
                .recorder
                .change(&mut state, ImageState::Active, "taken", &SUBJECT)
        );
        assert_eq!(state, ImageState::Active);
        let mut reader = EventReader::over(fixture.log).unwrap();
        let (events, _) = reader.drain().unwrap();
        let told: Vec<_> = events
            .iter()
            .map(|(_, event)| {
                (
                    &event.kind[..],
                    &event.old[..],
                    &event.new[..],
                    &event.reason[..],
                    event.time_ns,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("image", "", "Init", "SETUP", 7_000_000),
                ("image", "Init", "Active", "taken", 7_000_000)
            ]
        );
        assert_eq!(reader.poll(), Polled::None);
    }

    #[test]
    fn a_transition_that_the_table_does_not_have_changes_nothing_and_is_a_defect() {
        let fixture = fixture();
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut state = ImageState::Done;
            let is_changed = fixture
                .recorder
                .change(&mut state, ImageState::Active, "?", &SUBJECT);
            (is_changed, state)
        }));
        assert_eq!(changed.is_err(), cfg!(debug_assertions));
        assert!(changed.is_err() || changed.is_ok_and(|changed| changed == (false, ImageState::Done)));
        assert_eq!(EventReader::over(fixture.log).unwrap().poll(), Polled::None);
        let told = &error_log::read(&fixture.errors, 0)[0].text;
        assert!(
            told.contains("image id=5 must not go from Done to Active"),
            "{told}"
        );
    }
}
