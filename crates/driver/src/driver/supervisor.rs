//! What is done about the troubles of threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headrace_protocol::ErrorCode;
use headrace_sys::Clock;

use crate::errors::ErrorRecorder;
use crate::runner::Supervisor;

/// Records what threads report, and remembers the first failure.
pub(super) struct DriverSupervisor {
    errors: ErrorRecorder,
    clock: Arc<dyn Clock>,
    failure: Mutex<Option<String>>,
    /// Set when the driver should be closed.
    pub(super) termination: Arc<AtomicBool>,
}

impl DriverSupervisor {
    /// Records in `errors`, at the time of `clock`.
    pub(super) fn new(errors: ErrorRecorder, clock: Arc<dyn Clock>) -> Self {
        Self {
            errors,
            clock,
            failure: Mutex::new(None),
            termination: Arc::new(AtomicBool::new(false)),
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

impl Supervisor for DriverSupervisor {
    fn on_pin_failure(&self, role_name: &str, cpu: i32, error: &io::Error) {
        let text = format!("cannot keep {role_name} on cpu={cpu}: {error}");
        self.errors.warn(&text, self.clock.epoch_ms());
    }

    fn on_panic(&self, role_name: &str, message: &str) {
        let text = ErrorCode::GenericError.describe(format_args!("agent {role_name} stopped: {message}"));
        self.errors
            .record(ErrorCode::GenericError.value(), &text, self.clock.epoch_ms());
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(text);
        self.termination.store(true, Ordering::Release);
    }
}
