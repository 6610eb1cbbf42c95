//! Requests to add and remove destinations, and when they are repeated.

use std::sync::atomic::{AtomicI64, Ordering};

use headrace_client::{Client, ClientError, ErrorCode};

/// For how long a port that is being closed is asked for again.
const CLOSING_TIMEOUT_NS: i64 = 1_000_000_000;

/// One change.
pub(crate) enum Change {
    Add(String),
    Remove(String),
    RemoveById(i64),
}

/// Asks the driver for a change of a stream's destinations, and returns the id of the request.
pub(crate) type Ask = Box<dyn Fn(&Change) -> Result<i64, ClientError> + Send + Sync>;

/// A change that the driver was asked for. It is asked again while it still closes what held the port.
pub(crate) struct ChangeRequest {
    change: Change,
    ask: Ask,
    /// Of the last request.
    id: AtomicI64,
    retries_until_ns: i64,
}

impl ChangeRequest {
    pub(crate) fn new(client: &Client, change: Change, ask: Ask) -> Result<Self, ClientError> {
        let now_ns = client.config().clock.nano_time();
        let made = Self {
            change,
            ask,
            id: AtomicI64::new(0),
            retries_until_ns: now_ns.saturating_add(CLOSING_TIMEOUT_NS),
        };
        made.request()?;
        Ok(made)
    }

    fn request(&self) -> Result<(), ClientError> {
        let id = (self.ask)(&self.change)?;
        self.id.store(id, Ordering::Relaxed);
        Ok(())
    }

    /// The id of the request, which is that of an added destination.
    pub(crate) fn id(&self) -> i64 {
        self.id.load(Ordering::Relaxed)
    }

    /// The id once the change is made; nothing while the driver has not answered.
    pub(crate) fn find(&self, client: &Client) -> Result<Option<i64>, ClientError> {
        let id = self.id();
        match client.requests().find_operation(id) {
            // The driver has no event for the moment at which it has closed what held the port.
            Err(ClientError::Registration { code, .. })
                if code == ErrorCode::ResourceTemporarilyUnavailable
                    && client.config().clock.nano_time() < self.retries_until_ns =>
            {
                self.request().map(|()| None)
            }
            found => Ok(found?.then_some(id)),
        }
    }
}
