//! Taking locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks without regard to what happened to the last holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
