//! A clock that a program brings, for a client that runs on the program's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headrace_client::ClientConfig;
use headrace_sys::idle::IdleStrategy;
use headrace_sys::{Clock, SystemClock};
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

/// Calls an object of ``headrace.clock.Clock`` for all time-outs.
///
/// Its time of day is that of the machine all the same: by it client and driver tell each other that they live, and the
/// driver has that of the machine. A clock that raises is told to ``sys.unraisablehook``, and stands still.
struct ProgramClock {
    object: Py<PyAny>,
    nano_time: AtomicI64,
    machine: SystemClock,
}

impl ProgramClock {
    fn new(object: Py<PyAny>) -> Self {
        Self {
            object,
            nano_time: AtomicI64::new(0),
            machine: SystemClock::new(),
        }
    }
}

impl Clock for ProgramClock {
    fn nano_time(&self) -> i64 {
        // What it gave last when it raises, or when there is no interpreter any more.
        Python::try_attach(|py| {
            let given = self.object.bind(py).call_method0("monotonic_ns");
            match given.and_then(|given| given.extract::<i64>()) {
                Ok(now) => self.nano_time.store(now, Ordering::Relaxed),
                Err(error) => error.write_unraisable(py, Some(self.object.bind(py))),
            }
        });
        self.nano_time.load(Ordering::Relaxed)
    }

    fn epoch_ns(&self) -> i64 {
        self.machine.epoch_ns()
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
