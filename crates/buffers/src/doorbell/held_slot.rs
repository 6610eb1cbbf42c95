//! A slot that one waiter has.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use headrace_sys::fork;

use super::shared::{Shared, Slot};
use super::table;
use crate::Memory;

/// Slots kept by a process for its next waiters.
const SPARE_SLOTS_MAX: usize = 8;

/// A slot that one waiter has. Dropped, it goes to the next waiter of the process, unless that has closed its client.
#[derive(Debug)]
pub(super) struct HeldSlot {
    shared: Arc<Shared>,
    slot: Option<Slot>,
    // The count of wake-ups as this waiter has seen it.
    seen: i32,
    // Number of forks when it was taken: a child must not touch what belongs to its parent.
    generation: u64,
}

impl HeldSlot {
    pub(super) fn new(shared: Arc<Shared>, slot: Slot) -> Self {
        Self {
            seen: shared.slot(slot.number).count(),
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

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn count(&self) -> i32 {
        self.shared.slot(self.number()).count()
    }

    /// True when it was woken since the last [`Self::drain`].
    pub(super) fn is_woken(&self) -> bool {
        self.count() != self.seen
    }

    /// Sleeps until it is woken, a signal comes or `timeout` is over.
    pub(super) fn sleep(&self, timeout: Duration) {
        let offset = table::slot_offset(self.number());
        self.shared.file.sleep(offset, self.seen, timeout);
    }

    /// A descriptor that a wake-up makes readable from now on, until [`Self::drain`]; what woke before is in
    /// [`Self::is_woken`] alone. None where the system has none left for it.
    pub(super) fn descriptor(&mut self) -> Option<RawFd> {
        let slot = self.slot.as_mut()?;
        self.shared.watch_if_due(slot)
    }

    /// Takes what woke it. True when something did.
    pub(super) fn drain(&mut self) -> bool {
        // Before the count: a writer that counts after it is seen makes the descriptor readable again.
        if let Some(watch) = &self.slot().watch {
            watch.take();
        }
        let count = self.count();
        std::mem::replace(&mut self.seen, count) != count
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
        let Some(mut slot) = self.slot.take() else { return };
        self.shared.unwatch(&mut slot);
        if let Some(spare) = &mut *self.shared.spare()
            && spare.len() < SPARE_SLOTS_MAX
        {
            spare.push(slot);
        }
    }
}
