//! Handles failures of threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headrace_protocol::ErrorCode;
use headrace_sys::Clock;

use super::version::VERSION;
use crate::errors::ErrorRecorder;
use crate::event_recorder::{EventRecorder, Reason, Subject};
use crate::processors::ProcessorLimit;
use crate::runner::Supervisor;
use crate::states::states;

states! {
    /// The driver itself. The event log of a killed driver ends without a last state.
    pub(crate) enum DriverState, "driver" {
        /// Its agents run.
        Running => [Failed, Closed];
        /// An agent failed, or another driver has the directory; the other agents run until the driver is closed.
        Failed => [Closed];
        /// It has stopped in order.
        Closed => [];
    }
}

/// Records what threads report, and remembers the first failure.
pub(super) struct DriverSupervisor {
    errors: ErrorRecorder,
    recorder: EventRecorder,
    state: Mutex<DriverState>,
    clock: Arc<dyn Clock>,
    failure: Mutex<Option<String>>,
    /// Set when the driver should be closed.
    pub(super) termination: Arc<AtomicBool>,
}

impl DriverSupervisor {
    /// Of a driver that is launched. Records in `errors`, at the time of `clock`.
    pub(super) fn new(
        errors: ErrorRecorder,
        recorder: EventRecorder,
        clock: Arc<dyn Clock>,
        limit: Option<ProcessorLimit>,
    ) -> Arc<Self> {
        let reason = limit.map_or_else(|| "launched".to_owned(), |limit| format!("launched as {limit}"));
        Arc::new(Self {
            errors,
            state: Mutex::new(recorder.begin(reason.as_str(), &subject())),
            recorder,
            clock,
            failure: Mutex::new(None),
            termination: Arc::new(AtomicBool::new(false)),
        })
    }

    /// The one place where the driver's state changes.
    pub(super) fn enter<'a>(&self, new: DriverState, reason: impl Into<Reason<'a>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A second agent may fail.
        if *state != new {
            self.recorder.change(&mut *state, new, reason, &subject());
        }
    }

    /// Why an agent stopped by itself, if one did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn subject() -> Subject<'static> {
    Subject {
        id: i64::from(std::process::id()),
        detail: VERSION,
        ..Subject::default()
    }
}

impl Supervisor for DriverSupervisor {
    fn on_pin_failure(&self, role_name: &str, cpu: usize, error: &io::Error) {
        let text = format!("cannot keep {role_name} on cpu={cpu}: {error}");
        self.errors.warn(&text, self.clock.epoch_ms());
    }

    fn on_panic(&self, role_name: &str, message: &str) {
        self.fail(&format!("agent {role_name} stopped: {message}"));
    }

    fn on_dispossessed(&self, reason: &str) {
        self.fail(reason);
    }
}

impl DriverSupervisor {
    /// The error log has code and standard text of each error; a person who reads why the driver ended needs neither.
    fn fail(&self, reason: &str) {
        let code = ErrorCode::GenericError;
        self.errors
            .record(code.value(), &code.describe(reason), self.clock.epoch_ms());
        self.enter(DriverState::Failed, Reason::fault(reason));
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| reason.to_owned());
        self.termination.store(true, Ordering::Release);
    }
}
