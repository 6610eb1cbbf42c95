//! Objects that belong to the process that made them.

use headrace_sys::fork;
use pyo3::prelude::*;

use crate::boundary::errors;

/// Holds a value that must not be used, nor dropped, in a forked child: closing it there would speak to the
/// driver in the parent's name, and wait for threads that do not exist.
pub(crate) struct ForkGuard<T> {
    // None only while being dropped.
    value: Option<T>,
    generation: u64,
}

impl<T> ForkGuard<T> {
    pub(crate) fn new(value: T) -> Self {
        fork::watch();
        Self {
            value: Some(value),
            generation: fork::generation(),
        }
    }

    /// The value, or `ForkError` in a child.
    #[inline]
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.generation == fork::generation() => Ok(value),
            _ => Err(errors::forked()),
        }
    }

    /// The value if this is the process that made it.
    pub(crate) fn get_if_own(&self) -> Option<&T> {
        self.get_raw().filter(|_| self.generation == fork::generation())
    }

    fn get_raw(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T> Drop for ForkGuard<T> {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            std::mem::forget(self.value.take());
        }
    }
}
