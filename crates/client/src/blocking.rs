//! What a thread of the program can wait for.

use std::time::Duration;

use headrace_buffers::doorbell::{Awaited, Bell, Doorbells, Interests};

use crate::core::Core;

/// Longest sleep of a waiting thread: how late it sees what no doorbell tells, as the end of its client.
pub const PARK_MAX: Duration = Duration::from_millis(20);

/// Answers of the driver to the requests of a client.
pub struct Answers<'a>(pub(crate) &'a Core);

impl Awaited for Answers<'_> {
    fn doorbells(&self) -> Doorbells {
        // A driver that the waiting thread runs itself cannot wake it.
        if self.0.config.driver_invoker.is_some() {
            return Doorbells::none();
        }
        self.0.doorbells.clone()
    }

    fn describe(&self, interests: &mut Interests) {
        interests.bell(Bell::Events);
    }
}
