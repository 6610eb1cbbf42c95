//! The client's conductor as its publications, subscriptions, images and counters see it.

use std::sync::{Arc, Weak};

use headrace_buffers::counters::CountersReader;
use headrace_buffers::doorbell::Doorbells;
use headrace_protocol::command::Command;

use crate::error::ClientError;

/// What a resource asks of the client that it belongs to.
pub(crate) trait ConductorProxy: Send + Sync {
    fn counters(&self) -> &CountersReader;

    fn doorbells(&self) -> Doorbells;

    /// Why the client ended, once it has.
    fn ended_by(&self) -> Option<ClientError>;

    /// Sends a request whose answer is success or an error; returns its correlation id. `command` makes the command
    /// from the client's id and the correlation id.
    fn request<'a>(
        &self,
        operation: &'static str,
        command: &dyn Fn(i64, i64) -> Command<'a>,
    ) -> Result<i64, ClientError>;

    /// Services the client until the request is answered or its deadline has passed.
    fn wait_for(&self, correlation_id: i64) -> Result<(), ClientError>;

    /// Forgets a handle of the publication with this log, and tells the driver.
    fn forget_publication(&self, registration_id: i64, log_id: i64, revoke: bool);

    /// Forgets a subscription, closes it with its images, and tells the driver. False when it is not there.
    fn forget_subscription(&self, registration_id: i64) -> bool;

    /// Forgets a counter, and tells the driver.
    fn forget_counter(&self, registration_id: i64);

    /// Calls the handlers that a close has queued, waiting for the thread that services the client; inside a handler,
    /// leaves them to the handler's thread.
    fn run_handlers_now(&self);

    /// The same, unless another thread services the client and so calls them.
    fn run_handlers_if_free(&self);
}

/// The conductor of a resource that is open; an error says that `what` is closed, or why its client ended.
pub(crate) fn open(
    conductor: &Weak<dyn ConductorProxy>,
    is_open: bool,
    what: &'static str,
) -> Result<Arc<dyn ConductorProxy>, ClientError> {
    let conductor = conductor.upgrade().ok_or(ClientError::Closed { what })?;
    if is_open {
        return Ok(conductor);
    }
    Err(conductor.ended_by().unwrap_or(ClientError::Closed { what }))
}
