//! Waiting for the driver's replies.

use std::time::Duration;

use headrace_buffers::doorbell::{Awaited, Bell, Doorbells, Interests};

use super::context::Services;

/// Longest sleep of a waiting thread: how late it notices events without a doorbell, such as the end of its client.
pub const PARK_MAX: Duration = Duration::from_millis(20);

/// The driver's replies to the requests of a client, for threads of the program that wait for them.
pub struct Replies<'a>(pub(crate) &'a Services);

impl Awaited for Replies<'_> {
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
