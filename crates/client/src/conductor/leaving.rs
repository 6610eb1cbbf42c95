//! Values that are moved out of the rooms before they are dropped.

use std::sync::MutexGuard;

/// Something that must not be dropped while the rooms are locked: its destructor locks them, takes long, or is the program's.
/// It is had for the lock.
#[must_use = "it leaves the rooms before it is dropped"]
pub(crate) struct Leaving<T>(T);

impl<T> Leaving<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    pub(crate) fn and<U>(self, other: Leaving<U>) -> Leaving<(T, U)> {
        Leaving((self.0, other.0))
    }

    /// Gives back the lock of the rooms that it comes from.
    pub(crate) fn unlock<L>(self, lock: MutexGuard<'_, L>) -> T {
        drop(lock);
        self.0
    }
}
