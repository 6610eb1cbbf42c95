//! A clock that a program brings, for a client that runs on the program's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headrace_client::ClientConfig;
use headrace_sys::Clock;
use headrace_sys::idle::IdleStrategy;
use pyo3::prelude::*;

/// How much time passes, on a clock of the program, between two looks of a call that waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Changes the settings of a client so that it goes by a clock of the program, also where it waits: then nothing else
/// would move a clock that a test moves.
pub(crate) fn place(config: &mut ClientConfig, object: Py<PyAny>) {
    let clock: Arc<dyn Clock> = Arc::new(ProgramClock::new(object));
    let (invoke_driver, waiting) = (config.driver_invoker.take(), Arc::clone(&clock));
    config.driver_invoker = Some(Arc::new(move || {
        if let Some(invoke) = &invoke_driver {
            invoke();
        }
        waiting.sleep(LOOK_INTERVAL);
    }));
    config.awaiting_idle = IdleStrategy::NoOp;
    config.clock = clock;
}

/// Calls an object of ``headrace.clock.Clock``.
///
/// A clock that raises is told to ``sys.unraisablehook``, and stands still.
struct ProgramClock {
    object: Py<PyAny>,
    nano_time: AtomicI64,
    epoch_ns: AtomicI64,
}

impl ProgramClock {
    fn new(object: Py<PyAny>) -> Self {
        Self {
            object,
            nano_time: AtomicI64::new(0),
            epoch_ns: AtomicI64::new(0),
        }
    }

    /// What a method gives, or what it gave last when it raises or when there is no interpreter any more.
    fn ask(&self, method: &str, last: &AtomicI64) -> i64 {
        Python::try_attach(|py| {
            let given = self.object.bind(py).call_method0(method);
            match given.and_then(|given| given.extract::<i64>()) {
                Ok(now) => last.store(now, Ordering::Relaxed),
                Err(error) => error.write_unraisable(py, Some(self.object.bind(py))),
            }
        });
        last.load(Ordering::Relaxed)
    }
}

impl Clock for ProgramClock {
    fn nano_time(&self) -> i64 {
        self.ask("monotonic_ns", &self.nano_time)
    }

    fn epoch_ns(&self) -> i64 {
        self.ask("epoch_ns", &self.epoch_ns)
    }

    fn sleep(&self, duration: Duration) {
        Python::try_attach(|py| {
            let slept = self
                .object
                .bind(py)
                .call_method1("sleep", (duration.as_secs_f64(),));
            if let Err(error) = slept {
                error.write_unraisable(py, Some(self.object.bind(py)));
            }
        });
    }
}
