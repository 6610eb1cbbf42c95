//! What a thread waits for that nothing wakes.

use headrace_client::{Awaited, Doorbells, Interests};

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
