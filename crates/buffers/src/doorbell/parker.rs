//! The waiter's end: arm, look once more, block.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use headrace_sys::park;
use headrace_sys::poll::Poll;

use super::shared::Shared;
use super::table::Bell;
use super::{Doorbell, HeldSlot};

/// Longest sleep where something that does not ring may be what is waited for.
pub(super) const UNRUNG_PARK_MAX: Duration = Duration::from_millis(1);
/// Times in a row that a thread is woken for nothing before it sleeps without a doorbell.
pub(super) const IDLE_WAKES_MAX: u32 = 4;

/// What a thread waits for. Kept between waits, so that waiting allocates nothing.
#[derive(Debug)]
pub struct Interests {
    pub(super) bells: Vec<usize>,
    descriptors: Vec<RawFd>,
    pub(super) asked: Option<Doorbell>,
    pub(super) is_complete: bool,
    // Of the thread, and with what it waits for now.
    longest: Duration,
    park_max: Duration,
}

impl Interests {
    /// Nothing, with sleeps of at most `park_max`.
    pub fn new(park_max: Duration) -> Self {
        Self {
            bells: Vec::new(),
            descriptors: Vec::new(),
            asked: None,
            is_complete: true,
            longest: park_max,
            park_max,
        }
    }

    /// Forgets everything but the longest sleep.
    pub fn clear(&mut self) {
        self.bells.clear();
        self.descriptors.clear();
        self.asked = None;
        self.is_complete = true;
        self.park_max = self.longest;
    }

    /// Waits for a doorbell.
    pub fn bell(&mut self, bell: Bell) {
        self.bells.push(bell.index());
    }

    /// As [`Self::bell`], heeding that a writer may not ring it.
    pub fn doorbell(&mut self, doorbell: &Doorbell) {
        self.bells.push(doorbell.index);
        self.is_complete &= !doorbell.word().may_be_foreign();
    }

    /// Waits for a descriptor to become readable.
    pub fn descriptor(&mut self, descriptor: RawFd) {
        self.descriptors.push(descriptor);
    }

    /// The awaited work may come without a ring.
    pub fn may_come_unrung(&mut self) {
        self.is_complete = false;
    }

    /// Rings a doorbell once the own ones are armed: it is its owner that will ring those.
    pub fn ask(&mut self, doorbell: &Doorbell) {
        self.asked = Some(doorbell.clone());
    }

    /// Changes the longest sleep of the thread.
    pub fn set_park_max(&mut self, park_max: Duration) {
        self.longest = park_max;
        self.park_max = park_max;
    }

    /// The longest sleep with what is waited for now.
    pub fn park_max(&self) -> Duration {
        self.park_max
    }

    /// There is something to look at without a sign, but not before `park_max` is over.
    pub fn limit_park(&mut self, park_max: Duration) {
        self.park_max = self.park_max.min(park_max);
    }
}

/// One thread's slot. Dropped, it disarms and leaves the slot to the next waiter of the process.
pub struct Parker {
    slot: HeldSlot,
    armed: Vec<usize>,
    // False once the kernel refused the fence that lets a waiter rely on its doorbells.
    is_ordered: bool,
    idle_wakes: u32,
    poll: Poll,
}

/// Wakes one parker from its own process.
#[derive(Clone, Debug)]
pub struct Alarm {
    shared: Arc<Shared>,
    slot: usize,
}

impl Alarm {
    /// Ends the sleep of now, or the next one.
    pub fn wake(&self) {
        self.shared.wake(self.slot);
    }
}

impl Parker {
    pub(super) fn new(slot: HeldSlot) -> Self {
        Self {
            slot,
            armed: Vec::new(),
            is_ordered: true,
            idle_wakes: 0,
            poll: Poll::default(),
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn slot(&self) -> &HeldSlot {
        &self.slot
    }

    /// Wakes this parker.
    pub fn alarm(&self) -> Alarm {
        Alarm {
            shared: Arc::clone(self.slot.shared()),
            slot: self.slot.number(),
        }
    }

    /// Passes the time of a thread that found nothing to do.
    ///
    /// The first call arms the doorbells and returns, so that the thread looks once more; the next blocks until one
    /// rings, a descriptor is readable, a signal comes or the time is over. That is `park`, at most a millisecond,
    /// where something may come unrung, else the longest sleep of the interests. A thread that found something says so
    /// with [`Self::disarm`]. True when it blocked.
    pub fn park(&mut self, interests: &Interests, park: Duration) -> bool {
        if self.slot.is_inherited() {
            park::park(park.min(UNRUNG_PARK_MAX));
            return true;
        }
        if self.idle_wakes >= IDLE_WAKES_MAX {
            // Strangers, or a busy stream that shares a word, do not get to keep this thread and themselves busy.
            self.disarm();
            self.poll
                .wait(interests.descriptors.iter().copied(), UNRUNG_PARK_MAX);
            return true;
        }
        if self.arm(interests) {
            return false;
        }
        let timeout = if interests.is_complete && self.is_ordered {
            interests.park_max
        } else {
            park.min(UNRUNG_PARK_MAX)
        };
        if interests.descriptors.is_empty() {
            self.slot.sleep(timeout);
        } else {
            self.wait_for_descriptors(interests, timeout);
        }
        if self.slot.drain() {
            self.idle_wakes += 1;
        }
        true
    }

    fn wait_for_descriptors(&mut self, interests: &Interests, timeout: Duration) {
        let own = self.slot.descriptor();
        let timeout = match own {
            Some(_) if self.slot.is_woken() => Duration::ZERO,
            Some(_) => timeout,
            None => timeout.min(UNRUNG_PARK_MAX),
        };
        let descriptors = own.into_iter().chain(interests.descriptors.iter().copied());
        self.poll.wait(descriptors, timeout);
    }

    /// Arms what is not armed. True when something was not, and the caller has to look once more.
    pub fn arm(&mut self, interests: &Interests) -> bool {
        // A bit that is set already may be what the slot's owner before left: that is no reason not to look.
        let mut is_new = self.armed != interests.bells;
        if is_new {
            self.clear_bits();
            self.armed.clone_from(&interests.bells);
        }
        for index in &self.armed {
            is_new |= self.slot.arm(*index);
        }
        if is_new {
            self.is_ordered = self.slot.heavy_fence();
            if let Some(asked) = &interests.asked {
                asked.ring();
            }
        }
        is_new
    }

    /// The thread found what it waited for.
    #[inline]
    pub(super) fn note_found(&mut self) {
        self.idle_wakes = 0;
    }

    /// The thread found what it waited for: no writer needs to wake it.
    #[inline]
    pub fn disarm(&mut self) {
        self.note_found();
        if !self.armed.is_empty() {
            self.clear_bits();
        }
    }

    fn clear_bits(&mut self) {
        for index in self.armed.drain(..) {
            self.slot.disarm(index);
        }
    }
}

impl Drop for Parker {
    fn drop(&mut self) {
        self.clear_bits();
    }
}
