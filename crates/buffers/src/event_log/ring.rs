//! A ring of slots of one length that many threads write and any process reads; old entries are overwritten.
//!
//! ```text
//! 0                       64                   128
//! | the file's own header | +0 last +8 dropped | slot 0 | slot 1 | ..
//!
//! slot: | stamp | payload |
//! ```
//!
//! Entries are numbered from 1; entry `n` lies in slot `(n - 1) % slots`. A stamp is `2n - 1` while entry `n` is being
//! written, `2n` once it is whole, and only grows. A writer claims number and slot together, by one compare-and-set of
//! the stamp from that of the whole entry of the lap before. `last` follows: the claimer moves it on, and so does every
//! writer that meets the claim, so that no writer waits for another. `last` never passes a number that was not claimed.
//!
//! A reader copies a slot, then looks whether the stamp is still the same; if not, the copy is worthless and the entry
//! lost.

use std::io;

use super::source::Source;
use crate::memory::Memory;

/// Bytes before the first slot.
pub(super) const SLOTS_OFFSET: usize = 128;
/// Length of a stamp.
pub(super) const STAMP_LENGTH: usize = 8;

const LAST_OFFSET: usize = 64;
const DROPPED_OFFSET: usize = 72;
/// Each lost race is another writer's entry, so that more in a row mean damaged memory.
const ATTEMPTS_MAX: usize = 64;

/// Both sides of the ring; writing needs memory, reading any source.
#[derive(Clone, Debug)]
pub(super) struct Ring<M> {
    memory: M,
    slot_length: usize,
    slot_count: i64,
}

/// What became of a look at one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It was copied.
    Whole,
    /// There is none yet.
    None,
    /// Its writer has not finished, or has died.
    Unfinished,
    /// It was overwritten, or was never written as it should be.
    Lost,
}

const fn claimed(number: i64) -> i64 {
    whole(number).wrapping_sub(1)
}

const fn whole(number: i64) -> i64 {
    number.wrapping_mul(2)
}

impl<S: Source> Ring<S> {
    /// Lays the ring over memory; slots have a length that is a multiple of 8. None without room for one slot.
    pub(super) fn new(memory: S, slot_length: usize) -> Option<Self> {
        let room = memory.length().checked_sub(SLOTS_OFFSET)?;
        let slot_count = i64::try_from(room / slot_length)
            .ok()
            .filter(|count| *count > 0)?;
        Some(Self {
            memory,
            slot_length,
            slot_count,
        })
    }

    pub(super) fn slot_count(&self) -> i64 {
        self.slot_count
    }

    /// Number of the newest entry; 0 before the first.
    pub(super) fn last(&self) -> i64 {
        // Pairs with the compare-and-set in `append`: the claim of that number is visible.
        self.memory.word(LAST_OFFSET)
    }

    /// Number of the oldest entry that may still be there.
    pub(super) fn oldest(&self) -> i64 {
        self.last().saturating_sub(self.slot_count - 1).max(1)
    }

    /// How many entries were dropped instead of written.
    pub(super) fn dropped_count(&self) -> i64 {
        self.memory.word(DROPPED_OFFSET)
    }

    /// Fails when what is read is not whole any more.
    pub(super) fn check(&self) -> io::Result<()> {
        self.memory.check()
    }

    fn slot(&self, number: i64) -> usize {
        SLOTS_OFFSET + number.wrapping_sub(1).rem_euclid(self.slot_count) as usize * self.slot_length
    }

    /// Copies the payload of entry `number`.
    pub(super) fn read(&self, number: i64, into: &mut [u8]) -> Look {
        if number > self.last() {
            return Look::None;
        }
        let slot = self.slot(number);
        // Pairs with the release of the stamp in `append`.
        let stamp = self.memory.word(slot);
        if stamp == claimed(number) {
            return Look::Unfinished;
        }
        if stamp != whole(number) {
            return Look::Lost;
        }
        self.memory.copy(slot + STAMP_LENGTH, into);
        // Pairs with the release fence in `append`.
        self.memory.fence();
        if self.memory.word(slot) == stamp {
            Look::Whole
        } else {
            Look::Lost
        }
    }
}

impl<M: Memory> Ring<M> {
    /// Writes an entry, whose length is the slot's without the stamp. False if it was dropped, and counted as such.
    pub(super) fn append(&self, payload: &[u8]) -> bool {
        for _ in 0..ATTEMPTS_MAX {
            let last = self.last();
            let number = last.wrapping_add(1);
            let slot = self.slot(number);
            let before = whole(number.wrapping_sub(self.slot_count)).max(0);
            let stamp = self.memory.get_i64_acquire(slot);
            if stamp < before {
                // Its writer stands still since the lap before, and must not be waited for.
                break;
            }
            let is_own = stamp == before && self.memory.compare_and_set_i64(slot, before, claimed(number));
            self.memory.compare_and_set_i64(LAST_OFFSET, last, number);
            if is_own {
                // Pairs with the acquire fence in `read`: a reader of a word stored below also sees the claim.
                self.memory.release_fence();
                self.memory.put_bytes_relaxed(slot + STAMP_LENGTH, payload);
                // Pairs with the acquire of the stamp in `read`.
                self.memory.put_i64_release(slot, whole(number));
                return true;
            }
        }
        self.memory.get_and_add_i64(DROPPED_OFFSET, 1);
        false
    }
}
