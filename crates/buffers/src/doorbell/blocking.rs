//! An idle strategy that is woken where that is possible.

use std::cell::Cell;
use std::time::{Duration, Instant};

use headrace_sys::idle::IdleStrategy;
use headrace_sys::park;

use super::{Doorbells, Interests, Parker};

/// A sleep this short shows that spinning a little longer would have met its end.
const SHORT_SLEEP_MAX: Duration = Duration::from_micros(50);
/// Sleeps in a row that are longer, after which a thread that finds nothing sleeps at once.
pub(super) const LONG_SLEEPS_MIN: u32 = 4;

/// A yield this long shows that other threads want the processor: the kernel makes a thread that yields wait until each
/// of them has had its slice, of milliseconds, and one that a doorbell wakes comes before them.
const SHORT_YIELD_MAX: Duration = Duration::from_micros(50);
/// After a long yield, the time in which a thread that finds nothing sleeps at once.
const CROWDED: Duration = Duration::from_secs(1);

thread_local! {
    // Of the thread and not of the strategy, since each blocking call makes one. A thread that is woken a few hundred
    // times a second would spend most of its time on turns that find nothing.
    static LONG_SLEEPS: Cell<u32> = const { Cell::new(0) };
    static LONG_YIELD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether spins and yields would not help this thread: it sleeps for long, or others want its processor.
fn sleeps_at_once() -> bool {
    LONG_SLEEPS.get() >= LONG_SLEEPS_MIN || LONG_YIELD.get().is_some_and(|at| at.elapsed() < CROWDED)
}

/// Notes when a yield that began at `start` was long.
pub(super) fn note_yield(start: Instant) {
    let end = Instant::now();
    if end - start > SHORT_YIELD_MAX {
        LONG_YIELD.set(Some(end));
    }
}

pub(super) fn note_sleep(length: Duration) {
    LONG_SLEEPS.with(|sleeps| {
        sleeps.set(if length > SHORT_SLEEP_MAX {
            sleeps.get().saturating_add(1)
        } else {
            0
        });
    });
}

/// Something that a thread can wait for.
pub trait Awaited {
    /// The doorbells of the driver it belongs to.
    fn doorbells(&self) -> Doorbells;

    /// Names what rings when it may have happened.
    fn describe(&self, interests: &mut Interests);
}

/// An idle strategy that blocks, if it is [`IdleStrategy::Blocking`], until what is waited for may have happened. One
/// made with [`Self::woken`] sleeps as its strategy says, and is woken from these sleeps.
///
/// A slot to be woken through is taken when the thread first comes to sleep, and given back when this is dropped. A
/// thread whose last sleeps were long, or that has lately waited long for the end of a yield, neither spins nor yields before
/// the next one.
pub struct BlockingIdle {
    strategy: IdleStrategy,
    is_woken: bool,
    interests: Interests,
    parker: Slot,
}

enum Slot {
    NotAsked,
    None,
    Taken(Box<Parker>),
}

impl BlockingIdle {
    /// Idles as `strategy` says, and sleeps for at most `park_max` where all that is waited for rings.
    pub fn new(strategy: IdleStrategy, park_max: Duration) -> Self {
        Self {
            is_woken: matches!(strategy, IdleStrategy::Blocking(_)),
            strategy,
            interests: Interests::new(park_max),
            parker: Slot::NotAsked,
        }
    }

    /// As [`Self::new`], and a sleep of [`IdleStrategy::Backoff`] ends early too when what is waited for may have
    /// happened. For a thread that also has to look at what does not ring, or must not ring.
    pub fn woken(strategy: IdleStrategy, park_max: Duration) -> Self {
        let is_woken = matches!(strategy, IdleStrategy::Blocking(_) | IdleStrategy::Backoff(_));
        Self {
            is_woken,
            ..Self::new(strategy, park_max)
        }
    }

    /// Takes the slot now. None where this never blocks.
    pub fn parker(&mut self, doorbells: &Doorbells) -> Option<&Parker> {
        if self.is_woken && matches!(self.parker, Slot::NotAsked) {
            let taken = doorbells.parker();
            self.parker = taken.map_or(Slot::None, |taken| Slot::Taken(Box::new(taken)));
        }
        match &self.parker {
            Slot::Taken(parker) => Some(parker),
            Slot::NotAsked | Slot::None => None,
        }
    }

    /// Changes the longest sleep.
    pub fn set_park_max(&mut self, park_max: Duration) {
        self.interests.set_park_max(park_max);
    }

    /// The strategy.
    pub fn strategy(&self) -> &IdleStrategy {
        &self.strategy
    }

    /// Call after each look with the work it found; when that is 0, passes some time.
    ///
    /// Returns how long the thread slept for want of work: until a doorbell woke it, or as long as it may sleep. The
    /// result leaves out the time after that in which it waited for a processor.
    pub fn idle(&mut self, work_count: usize, awaited: &dyn Awaited) -> Duration {
        if work_count > 0 {
            self.reset();
            return Duration::ZERO;
        }
        if sleeps_at_once() && !matches!(self.parker, Slot::None) {
            self.strategy.skip_to_block();
        }
        let yields_at = self.strategy.is_about_to_yield().then(Instant::now);
        if matches!(self.parker, Slot::NotAsked) && self.strategy.is_about_to_sleep() {
            self.parker(&awaited.doorbells());
        }
        let Self {
            strategy,
            interests,
            parker,
            ..
        } = self;
        let mut rested = Duration::ZERO;
        let is_bounded = matches!(strategy, IdleStrategy::Backoff(_));
        strategy.idle_or_block(0, |sleep| match parker {
            Slot::Taken(parker) => {
                interests.clear();
                awaited.describe(interests);
                if is_bounded {
                    interests.limit_park(sleep);
                }
                let start = Instant::now();
                if parker.park(interests, sleep) {
                    let slept = start.elapsed();
                    note_sleep(slept);
                    rested = slept.min(interests.park_max());
                }
            }
            Slot::NotAsked | Slot::None => park::park(sleep),
        });
        if let Some(start) = yields_at {
            note_yield(start);
        }
        rested
    }

    /// Sleeps after a look that took all that was there, for `longest` at most, until something comes.
    ///
    /// [`Self::idle`] looks twice more after a look that found something: once since more may have come, and once with
    /// its doorbells armed. Here they are armed again as soon as the thread wakes, so that the look that follows is all
    /// that is needed where nothing rings during it. `found` says whether the look did find something.
    pub fn rest(&mut self, found: bool, longest: Duration, awaited: &dyn Awaited) {
        self.parker(&awaited.doorbells());
        let Slot::Taken(parker) = &mut self.parker else {
            return park::park(longest);
        };
        let interests = &mut self.interests;
        interests.clear();
        awaited.describe(interests);
        interests.limit_park(longest);
        if found {
            parker.note_found();
        }
        if parker.park(interests, longest) {
            parker.arm(interests);
        }
    }

    /// Begins again, as after work was done. No doorbell wakes this thread until it idles again.
    pub fn reset(&mut self) {
        self.strategy.reset();
        if let Slot::Taken(parker) = &mut self.parker {
            parker.disarm();
        }
    }
}
