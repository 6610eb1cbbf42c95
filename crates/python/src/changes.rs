//! Requests to add and remove destinations, and when they are repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headrace_client::{Client, ClientError, ErrorCode, PublicationHandle, Subscription};

use crate::inner::Inner;

/// For how long a port that is being closed is asked for again.
const CLOSING_TIMEOUT_NS: i64 = 1_000_000_000;

/// What has destinations. Each call asks the driver, and returns the id of the request.
pub(crate) trait HasDestinations: Send + Sync {
    fn add(&self, channel: &str) -> Result<i64, ClientError>;
    fn remove(&self, channel: &str) -> Result<i64, ClientError>;
    fn remove_by_id(&self, registration_id: i64) -> Result<i64, ClientError>;
}

impl HasDestinations for Inner {
    fn add(&self, channel: &str) -> Result<i64, ClientError> {
        PublicationHandle::async_add_destination(self.handle(), channel)
    }

    fn remove(&self, channel: &str) -> Result<i64, ClientError> {
        PublicationHandle::async_remove_destination(self.handle(), channel)
    }

    fn remove_by_id(&self, registration_id: i64) -> Result<i64, ClientError> {
        PublicationHandle::async_remove_destination_by_id(self.handle(), registration_id)
    }
}

impl HasDestinations for Subscription {
    fn add(&self, channel: &str) -> Result<i64, ClientError> {
        self.async_add_destination(channel)
    }

    fn remove(&self, channel: &str) -> Result<i64, ClientError> {
        self.async_remove_destination(channel)
    }

    fn remove_by_id(&self, registration_id: i64) -> Result<i64, ClientError> {
        self.async_remove_destination_by_id(registration_id)
    }
}

/// One change.
pub(crate) enum Change {
    Add(String),
    Remove(String),
    RemoveById(i64),
}

/// A change that the driver was asked for. It is asked again while it still closes what held the port.
pub(crate) struct Asked {
    change: Change,
    stream: Arc<dyn HasDestinations>,
    /// Of the last request.
    id: AtomicI64,
    retries_until_ns: i64,
}

impl Asked {
    pub(crate) fn new(
        client: &Client,
        change: Change,
        stream: Arc<dyn HasDestinations>,
    ) -> Result<Self, ClientError> {
        let now_ns = client.config().clock.nano_time();
        let asked = Self {
            change,
            stream,
            id: AtomicI64::new(0),
            retries_until_ns: now_ns.saturating_add(CLOSING_TIMEOUT_NS),
        };
        asked.request()?;
        Ok(asked)
    }

    fn request(&self) -> Result<(), ClientError> {
        let id = match &self.change {
            Change::Add(channel) => self.stream.add(channel),
            Change::Remove(channel) => self.stream.remove(channel),
            Change::RemoveById(registration_id) => self.stream.remove_by_id(*registration_id),
        }?;
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
        match client.find_operation(id) {
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
