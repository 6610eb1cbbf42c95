//! Waiting without the GIL, in steps short enough that Ctrl-C is seen.

use std::time::{Duration, Instant};

use headrace_client::{Awaited, BlockingIdle, Doorbells};
use headrace_sys::idle::IdleStrategy as Idle;
use pyo3::prelude::*;

use crate::errors;
use crate::exit::detach;
use crate::idle::IdleStrategy;

/// Longest time between two looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// Turns between two looks at the clock while an idle strategy returns at once.
const TURNS_PER_CLOCK_READ: u32 = 32;

/// How a blocking call waits: until when, and how it passes the time.
pub(crate) struct Waiter {
    deadline: Option<Instant>,
    idle: BlockingIdle,
}

impl Waiter {
    pub(crate) fn new(timeout_s: Option<f64>, idle: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let deadline = match timeout_s {
            None => None,
            Some(seconds) => match Duration::try_from_secs_f64(seconds) {
                Ok(timeout) => Instant::now().checked_add(timeout),
                // More than a clock counts, infinity too: never over.
                Err(_) if seconds > 0.0 => None,
                Err(_) => {
                    return Err(errors::config(
                        "timeout_s",
                        &seconds.to_string(),
                        "must be a number of seconds of at least 0, or None to wait without end",
                    ));
                }
            },
        };
        Ok(Self::with(deadline, IdleStrategy::extract(idle)?))
    }

    pub(crate) fn with(deadline: Option<Instant>, idle: Idle) -> Self {
        let idle = BlockingIdle::new(idle, SIGNAL_INTERVAL);
        Self { deadline, idle }
    }

    /// Repeats `step` without the GIL until it gives something; `None` when the time is over. Raises what a
    /// signal handler raises, such as `KeyboardInterrupt`. Between two steps the thread sleeps until `awaited` rings,
    /// for 20 ms at most.
    pub(crate) fn wait_for<T: Send>(
        mut self,
        py: Python<'_>,
        awaited: &(dyn Awaited + Sync),
        mut step: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        loop {
            match detach(py, || self.run(awaited, &mut step)) {
                Turn::Done(value) => return Ok(Some(value)),
                Turn::TimedOut => return Ok(None),
                Turn::LookForSignals => {
                    py.check_signals()?;
                    tell_refusal(py, &awaited.doorbells());
                }
            }
        }
    }

    fn run<T>(&mut self, awaited: &dyn Awaited, step: &mut impl FnMut() -> Option<T>) -> Turn<T> {
        let mut now = Instant::now();
        let look_at = now + SIGNAL_INTERVAL;
        loop {
            let wake_at = self.deadline.map_or(look_at, |deadline| deadline.min(look_at));
            self.idle.set_park_max(wake_at.saturating_duration_since(now));
            for _ in 0..TURNS_PER_CLOCK_READ {
                if let Some(value) = step() {
                    self.idle.reset();
                    return Turn::Done(value);
                }
                self.idle.idle(0, awaited);
                if matches!(
                    self.idle.strategy(),
                    Idle::Sleep(_) | Idle::Backoff(_) | Idle::Blocking(_)
                ) {
                    // These may have slept: look at the clock now.
                    break;
                }
            }
            now = Instant::now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return Turn::TimedOut;
            }
            if now >= look_at {
                return Turn::LookForSignals;
            }
        }
    }
}

/// Warns the program, once, that its waits are not woken for lack of a slot.
pub(crate) fn tell_refusal(py: Python<'_>, doorbells: &Doorbells) {
    if let Some(reason) = doorbells.take_refusal() {
        let told = py
            .import("headrace.client._events")
            .and_then(|events| events.call_method1("no_slot", (reason,)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }
}

enum Turn<T> {
    Done(T),
    TimedOut,
    LookForSignals,
}
