//! A slot that one waiter has.

use std::sync::Arc;

use headrace_sys::fifo::Fifo;
use headrace_sys::fork;

use super::shared::{Shared, Slot};
use crate::Memory;

/// Slots kept by a process for its next waiters.
const SPARE_SLOTS_MAX: usize = 8;

/// A slot that one waiter has. Dropped, it goes to the next waiter of the process.
#[derive(Debug)]
pub(super) struct HeldSlot {
    shared: Arc<Shared>,
    slot: Option<Slot>,
    // Number of forks when it was taken: a child must not touch what belongs to its parent.
    generation: u64,
}

impl HeldSlot {
    pub(super) fn new(shared: Arc<Shared>, slot: Slot) -> Self {
        Self {
            shared,
            slot: Some(slot),
            generation: fork::generation(),
        }
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    fn slot(&self) -> &Slot {
        self.slot.as_ref().expect("taken by drop only")
    }

    pub(super) fn number(&self) -> usize {
        self.slot().number
    }

    pub(super) fn fifo(&self) -> &Arc<Fifo> {
        &self.slot().fifo
    }

    /// True when the bit was not set before.
    pub(super) fn arm(&self, index: usize) -> bool {
        self.shared.word(index).arm(self.number())
    }

    pub(super) fn disarm(&self, index: usize) {
        if !self.is_inherited() {
            self.shared.word(index).disarm(self.number());
        }
    }

    /// False once a writer took the bit.
    pub(super) fn is_armed(&self, index: usize) -> bool {
        self.shared.word(index).is_armed_by(self.number())
    }

    /// Orders what was armed before the look that follows. False when the kernel refused.
    pub(super) fn heavy_fence(&self) -> bool {
        self.shared.file.heavy_fence()
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        let mut spare = self.shared.spare();
        if spare.len() < SPARE_SLOTS_MAX {
            spare.extend(self.slot.take());
        }
    }
}
