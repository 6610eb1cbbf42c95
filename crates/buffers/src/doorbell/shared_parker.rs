//! One slot for many waits at once, for an event loop that watches the slot's descriptor itself.
//!
//! Each wait names its doorbells when it begins and when it ends; the slot's bit in a doorbell stays set while a wait
//! needs it. The bits show which doorbells rang: a writer takes those that it finds.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::time::Duration;

use super::parker::{IDLE_WAKES_MAX, UNRUNG_PARK_MAX};
use super::{Awaited, HeldSlot, Interests};

/// A slot that many waits share. They and its owner are on one thread.
pub struct SharedParker {
    slot: HeldSlot,
    descriptor: RawFd,
    // For each doorbell that is armed, how many waits need it.
    counts: HashMap<usize, usize>,
    // Doorbells that rang and were armed anew before the owner looked at what rang.
    rang: Vec<usize>,
    // Kept between waits, so that describing allocates nothing.
    interests: Interests,
    park_max: Duration,
    // Waits for something that may come unrung.
    unrung_count: usize,
    is_ordered: bool,
    idle_wakes: u32,
}

/// The doorbells of one wait. To be given back with [`SharedParker::disarm`].
#[derive(Debug)]
pub struct Armed {
    bells: Vec<usize>,
    is_complete: bool,
}

impl SharedParker {
    /// None for a slot without a descriptor.
    pub(super) fn new(mut slot: HeldSlot, park_max: Duration) -> Option<Self> {
        let descriptor = slot.descriptor()?;
        Some(Self {
            slot,
            descriptor,
            counts: HashMap::new(),
            rang: Vec::new(),
            interests: Interests::new(park_max),
            park_max,
            unrung_count: 0,
            is_ordered: true,
            idle_wakes: 0,
        })
    }

    /// A descriptor that is readable after a doorbell rang, until [`Self::take_rung`].
    pub fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// A wait begins. The caller looks for what it waits for after this, and only waits when there is nothing.
    pub fn arm(&mut self, awaited: &dyn Awaited) -> Armed {
        self.interests.clear();
        awaited.describe(&mut self.interests);
        let is_deaf = self.is_deaf();
        let mut is_new = false;
        for index in self.interests.bells.iter().copied() {
            let count = self.counts.entry(index).or_insert(0);
            *count += 1;
            if !is_deaf && self.slot.arm(index) {
                is_new = true;
                if *count > 1 {
                    self.rang.push(index);
                }
            }
        }
        if is_new {
            self.is_ordered = self.slot.heavy_fence();
        }
        if let Some(asked) = &self.interests.asked {
            asked.ring();
        }
        self.unrung_count += usize::from(!self.interests.is_complete);
        Armed {
            bells: self.interests.bells.clone(),
            is_complete: self.interests.is_complete,
        }
    }

    /// A wait ends.
    pub fn disarm(&mut self, armed: Armed) {
        for index in armed.bells {
            if let Some(count) = self.counts.get_mut(&index) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&index);
                    self.slot.disarm(index);
                }
            }
        }
        self.unrung_count -= usize::from(!armed.is_complete);
    }

    /// Drains the descriptor, and returns those of `waits` whose doorbells rang since the last call.
    pub fn take_rung<'a, K>(&mut self, waits: impl Iterator<Item = (K, &'a Armed)>) -> Vec<K> {
        // Before the bits are looked at: a writer that takes one after that makes the descriptor readable again.
        self.slot.drain();
        let rung = waits
            .filter(|(_, armed)| self.has_rung(armed))
            .map(|(wait, _)| wait)
            .collect();
        self.rang.clear();
        rung
    }

    fn has_rung(&self, armed: &Armed) -> bool {
        let rang = |index: &usize| !self.slot.is_armed(*index) || self.rang.contains(index);
        !self.is_deaf() && armed.bells.iter().any(rang)
    }

    /// The owner was woken and has looked at every wait whose doorbell rang; `found` says whether one is over.
    ///
    /// Woken for nothing again and again, it stops listening until [`Self::listen`]: strangers, or a busy stream that
    /// shares a word, do not get to keep an event loop busy.
    pub fn on_looked(&mut self, found: bool) {
        self.idle_wakes = if found || self.counts.is_empty() {
            0
        } else {
            self.idle_wakes + 1
        };
        if self.is_deaf() {
            self.counts.keys().for_each(|index| self.slot.disarm(*index));
        }
    }

    fn is_deaf(&self) -> bool {
        self.idle_wakes >= IDLE_WAKES_MAX
    }

    /// Listens again, if it had stopped. The caller looks at every wait next.
    pub fn listen(&mut self) {
        if self.is_deaf() {
            self.idle_wakes = 0;
            self.counts.keys().for_each(|index| {
                self.slot.arm(*index);
            });
            self.is_ordered = self.slot.heavy_fence();
        }
    }

    /// How long the owner may wait at most until it looks at every wait, rung or not.
    pub fn look_after(&self) -> Duration {
        if self.unrung_count > 0 || !self.is_ordered || self.is_deaf() {
            UNRUNG_PARK_MAX
        } else {
            self.park_max
        }
    }
}

impl Drop for SharedParker {
    fn drop(&mut self) {
        self.counts.keys().for_each(|index| self.slot.disarm(*index));
    }
}
