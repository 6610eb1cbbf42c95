//! One time for the world, and a clock for each node.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use headrace_sys::Clock;

/// Where monotonic time starts, so that subtracting a time-out never goes below zero.
const NANO_TIME_START: i64 = 3_600_000_000_000;
/// Wall time at the start: 2026-01-01 UTC.
pub(crate) const EPOCH_START_NS: i64 = 1_767_225_600_000_000_000;

/// Nanoseconds since the world began. Only the world moves them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldTime(Arc<AtomicI64>);

impl WorldTime {
    pub(crate) fn now_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn advance_ns(&self, duration_ns: i64) {
        self.0.fetch_add(duration_ns, Ordering::Relaxed);
    }
}

/// Has time pass, and all that happens meanwhile.
pub(crate) trait PassesTime: Send + Sync {
    /// Moves time, at most to `end_ns`, and gives each node a turn. Returns the work done.
    fn step(&self, end_ns: i64) -> usize;
}

/// The clock of a node: the time of the world, and a wall clock that may be wrong.
pub struct NodeClock {
    time: WorldTime,
    skew_ns: AtomicI64,
    world: Weak<dyn PassesTime>,
}

impl NodeClock {
    pub(crate) fn new(time: WorldTime, world: Weak<dyn PassesTime>) -> Self {
        Self {
            time,
            skew_ns: AtomicI64::new(0),
            world,
        }
    }

    /// Nanoseconds since the world began.
    pub(crate) fn since_start_ns(&self) -> i64 {
        self.time.now_ns()
    }

    /// Sets how far the wall clock is ahead of the world's.
    pub(crate) fn set_skew_ns(&self, skew_ns: i64) {
        self.skew_ns.store(skew_ns, Ordering::Relaxed);
    }

    /// Moves the wall clock against the world's.
    pub(crate) fn jump_ns(&self, by_ns: i64) {
        self.skew_ns.fetch_add(by_ns, Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn nano_time(&self) -> i64 {
        NANO_TIME_START + self.time.now_ns()
    }

    fn epoch_ns(&self) -> i64 {
        EPOCH_START_NS + self.time.now_ns() + self.skew_ns.load(Ordering::Relaxed)
    }

    /// The world goes on meanwhile.
    fn sleep(&self, duration: Duration) {
        if let Some(world) = self.world.upgrade() {
            let duration_ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
            let end_ns = self.time.now_ns().saturating_add(duration_ns);
            while self.time.now_ns() < end_ns {
                world.step(end_ns);
            }
        }
    }
}
