//! Time as an argument: the agents read a [`Clock`] once per duty cycle and pass the value down.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of time. `nano_time` only ever grows and has no meaning beyond differences; `epoch_*` is wall time.
pub trait Clock: Send + Sync {
    /// Monotonic nanoseconds.
    fn nano_time(&self) -> i64;
    /// Nanoseconds since 1970-01-01 UTC.
    fn epoch_ns(&self) -> i64;
    /// Milliseconds since 1970-01-01 UTC.
    fn epoch_ms(&self) -> i64 {
        self.epoch_ns() / 1_000_000
    }
    /// Returns when `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose `nano_time` starts near one hour, so that subtracting a timeout never goes below zero.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

const NANO_TIME_START: i64 = 3_600_000_000_000;

impl Clock for SystemClock {
    #[inline]
    fn nano_time(&self) -> i64 {
        NANO_TIME_START + self.origin.elapsed().as_nanos() as i64
    }

    #[inline]
    fn epoch_ns(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_nanos() as i64
    }
}

/// A clock that stands still until told to move; for tests and simulations.
#[derive(Debug)]
pub struct ManualClock {
    nano_time: AtomicI64,
    epoch_ns: AtomicI64,
}

impl ManualClock {
    /// Starts both clocks at the given values.
    pub fn new(nano_time: i64, epoch_ns: i64) -> Self {
        Self {
            nano_time: AtomicI64::new(nano_time),
            epoch_ns: AtomicI64::new(epoch_ns),
        }
    }

    /// Moves both clocks forward.
    pub fn advance_ns(&self, duration_ns: i64) {
        self.nano_time.fetch_add(duration_ns, Ordering::SeqCst);
        self.epoch_ns.fetch_add(duration_ns, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn nano_time(&self) -> i64 {
        self.nano_time.load(Ordering::SeqCst)
    }

    fn epoch_ns(&self) -> i64 {
        self.epoch_ns.load(Ordering::SeqCst)
    }

    /// Moves the clock: nothing else would.
    fn sleep(&self, duration: Duration) {
        self.advance_ns(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(5, 1_000_000);
        clock.advance_ns(2_000_000);
        assert_eq!((clock.nano_time(), clock.epoch_ms()), (2_000_005, 3));
        clock.sleep(Duration::from_millis(1));
        assert_eq!((clock.nano_time(), clock.epoch_ms()), (3_000_005, 4));
    }

    #[test]
    fn the_system_clock_never_steps_back() {
        let clock = SystemClock::new();
        let first = clock.nano_time();
        assert!(clock.nano_time() >= first && clock.epoch_ms() > 0);
    }
}
