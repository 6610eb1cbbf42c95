//! Waiting without the GIL, in steps short enough that Ctrl-C is seen.

use std::time::{Duration, Instant};

use headrace_sys::idle::IdleStrategy as Idle;
use pyo3::prelude::*;

use crate::errors;
use crate::idle::IdleStrategy;

/// Longest time between two looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// Turns between two looks at the clock while an idle strategy returns at once.
const TURNS_PER_CLOCK_READ: u32 = 32;

/// How a blocking call waits: until when, and how it passes the time.
pub(crate) struct Waiter {
    deadline: Option<Instant>,
    idle: Idle,
}

impl Waiter {
    pub(crate) fn new(timeout_s: Option<f64>, idle: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let deadline = match timeout_s {
            None => None,
            Some(seconds) => {
                let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| {
                    errors::config(
                        "timeout_s",
                        &seconds.to_string(),
                        "must be a number of seconds of at least 0, or None to wait without end",
                    )
                })?;
                Instant::now().checked_add(timeout)
            }
        };
        let idle = IdleStrategy::extract(idle)?;
        Ok(Self { deadline, idle })
    }

    pub(crate) fn with(deadline: Option<Instant>, idle: Idle) -> Self {
        Self { deadline, idle }
    }

    /// Repeats `step` without the GIL until it gives something; `None` when the time is over. Raises what a
    /// signal handler raises, such as `KeyboardInterrupt`.
    pub(crate) fn wait_for<T: Send>(
        mut self,
        py: Python<'_>,
        mut step: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        loop {
            match py.detach(|| self.run(&mut step)) {
                Turn::Done(value) => return Ok(Some(value)),
                Turn::TimedOut => return Ok(None),
                Turn::LookForSignals => py.check_signals()?,
            }
        }
    }

    fn run<T>(&mut self, step: &mut impl FnMut() -> Option<T>) -> Turn<T> {
        let look_at = Instant::now() + SIGNAL_INTERVAL;
        loop {
            for _ in 0..TURNS_PER_CLOCK_READ {
                if let Some(value) = step() {
                    self.idle.reset();
                    return Turn::Done(value);
                }
                self.idle.idle(0);
                if matches!(self.idle, Idle::Sleep(_) | Idle::Backoff(_)) {
                    // These may have slept: look at the clock now.
                    break;
                }
            }
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return Turn::TimedOut;
            }
            if now >= look_at {
                return Turn::LookForSignals;
            }
        }
    }
}

enum Turn<T> {
    Done(T),
    TimedOut,
    LookForSignals,
}
