//! Waiting without the GIL, in steps short enough that Ctrl-C is seen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headrace_client::{Awaited, BlockingIdle, Client};
use headrace_sys::idle::IdleStrategy as Idle;
use headrace_sys::{Clock, SystemClock};
use pyo3::prelude::*;

use crate::boundary::errors;
use crate::boundary::interpreter_exit::detach;
use crate::waiting::deferred_error;
use crate::waiting::doorbells::{NoDoorbell, warn_unwoken};
use crate::waiting::idle_strategy::IdleStrategy;

/// Longest time between two looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// Turns between two looks at the clock while an idle strategy returns at once.
const TURNS_PER_CLOCK_READ: u32 = 32;

/// How a blocking call waits: until when, and how it passes the time.
///
/// It goes by the clock of its client. Where the client runs its driver itself, each turn of the wait does so: on a node
/// of a simulated world that is a step of the world, which also makes time pass.
pub(crate) struct Waiter<'a> {
    limit: Option<Limit>,
    idle: BlockingIdle,
    /// The client whose turns, and whose driver's, each look makes.
    stepped: Option<&'a Client>,
}

/// A moment on a clock, in its nanoseconds.
struct Limit {
    clock: Arc<dyn Clock>,
    deadline_ns: i64,
}

impl Limit {
    fn after(timeout_s: Option<f64>, clock: &Arc<dyn Clock>) -> PyResult<Option<Self>> {
        let Some(seconds) = timeout_s else {
            return Ok(None);
        };
        let timeout = match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) => timeout,
            // More than a clock counts, infinity too: never over.
            Err(_) if seconds > 0.0 => return Ok(None),
            Err(_) => {
                return Err(errors::config(
                    "timeout_s",
                    &seconds.to_string(),
                    "must be a number of seconds of at least 0, or None to wait without end",
                ));
            }
        };
        let timeout_ns = i64::try_from(timeout.as_nanos()).ok();
        let deadline_ns = timeout_ns.and_then(|timeout_ns| clock.nano_time().checked_add(timeout_ns));
        Ok(deadline_ns.map(|deadline_ns| Self {
            clock: Arc::clone(clock),
            deadline_ns,
        }))
    }

    fn left(&self) -> Duration {
        let left_ns = self.deadline_ns.saturating_sub(self.clock.nano_time());
        Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0))
    }
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(
        client: &'a Client,
        timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let given = IdleStrategy::extract(idle)?;
        let config = client.config();
        Ok(Self {
            limit: Limit::after(timeout_s, &config.clock)?,
            idle: idle_of(match config.awaiting_idle {
                // Each look makes time pass on the client's clock.
                Idle::NoOp => Idle::NoOp,
                _ => given,
            }),
            stepped: config.driver_invoker.as_ref().map(|_| client),
        })
    }

    /// For what has no client, such as files: it goes by the clock of the machine.
    pub(crate) fn without_client(timeout_s: Option<f64>) -> PyResult<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Ok(Self {
            limit: Limit::after(timeout_s, &clock)?,
            idle: idle_of(Idle::default()),
            stepped: None,
        })
    }

    /// Waits for as long as it takes. The `step` that is repeated makes the turns of client and driver, if need be.
    pub(crate) fn without_end(idle: Idle) -> Self {
        Self {
            limit: None,
            idle: idle_of(idle),
            stepped: None,
        }
    }

    /// Repeats `step` without the GIL until it gives something; `None` when the time is over. Raises what a
    /// signal handler raises, such as `KeyboardInterrupt`, and what a program of a simulated world does. Between two
    /// steps the thread sleeps until `awaited` rings, for 20 ms at most.
    pub(crate) fn wait_for<T: Send>(
        mut self,
        py: Python<'_>,
        awaited: &(dyn Awaited + Sync),
        mut step: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        // A driver that the waiting thread runs itself cannot wake it.
        let awaited = if self.stepped.is_some() {
            &NoDoorbell
        } else {
            awaited
        };
        loop {
            match detach(py, || self.run(awaited, &mut step)) {
                Turn::Done(value) => return Ok(Some(value)),
                Turn::TimedOut => return Ok(None),
                Turn::LookForSignals => {
                    py.check_signals()?;
                    deferred_error::raise()?;
                    warn_unwoken(py, &awaited.doorbells());
                }
            }
        }
    }

    fn run<T>(&mut self, awaited: &dyn Awaited, step: &mut impl FnMut() -> Option<T>) -> Turn<T> {
        let begun = Instant::now();
        loop {
            let looked_for = begun.elapsed();
            let park_max = SIGNAL_INTERVAL.saturating_sub(looked_for);
            let left = self.limit.as_ref().map(Limit::left);
            self.idle
                .set_park_max(left.map_or(park_max, |left| left.min(park_max)));
            for _ in 0..TURNS_PER_CLOCK_READ {
                if let Some(value) = step() {
                    self.idle.reset();
                    return Turn::Done(value);
                }
                if self.pass_time(awaited) {
                    break;
                }
            }
            if deferred_error::is_pending() {
                return Turn::LookForSignals;
            }
            if self.limit.as_ref().is_some_and(|limit| limit.left().is_zero()) {
                return Turn::TimedOut;
            }
            if begun.elapsed() >= SIGNAL_INTERVAL {
                return Turn::LookForSignals;
            }
        }
    }

    /// Between two looks. True when time may have passed: look at the clock now.
    fn pass_time(&mut self, awaited: &dyn Awaited) -> bool {
        if let Some(client) = self.stepped {
            client.step();
        }
        self.idle.idle(0, awaited);
        self.stepped.is_some()
            || matches!(
                self.idle.strategy(),
                Idle::Sleep(_) | Idle::Backoff(_) | Idle::Blocking(_)
            )
    }
}

fn idle_of(strategy: Idle) -> BlockingIdle {
    BlockingIdle::new(strategy, SIGNAL_INTERVAL)
}

enum Turn<T> {
    Done(T),
    TimedOut,
    LookForSignals,
}
