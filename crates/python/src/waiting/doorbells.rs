//! Waits that nothing wakes.

use headrace_client::{Awaited, Doorbells, Interests};
use pyo3::prelude::*;

/// Nothing that could wake a thread.
pub(crate) struct NoDoorbell;

impl Awaited for NoDoorbell {
    fn doorbells(&self) -> Doorbells {
        Doorbells::none()
    }

    fn describe(&self, interests: &mut Interests) {
        interests.may_come_unrung();
    }
}

/// Warns the program, once, that its waits are not woken for lack of a slot.
pub(crate) fn warn_unwoken(py: Python<'_>, doorbells: &Doorbells) {
    if let Some(reason) = doorbells.take_refusal() {
        let told = py
            .import("headrace.client._events")
            .and_then(|events| events.call_method1("no_slot", (reason,)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }
}
