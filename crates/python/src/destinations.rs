//! What a program changes in the destinations of a publication or of a subscription.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headrace_client::{Client, ClientError, ErrorCode, PublicationHandle, Subscription};
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::asking;
use crate::exit::detach;
use crate::inner::Inner;
use crate::kept_client::KeptClient;
use crate::{arguments, errors};

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
    fn new(client: &Client, change: Change, stream: Arc<dyn HasDestinations>) -> Result<Self, ClientError> {
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

impl Change {
    /// Waits until the driver has made it; returns the id of the request, which is that of an added destination.
    pub(crate) fn make(
        self,
        py: Python<'_>,
        kept: &KeptClient,
        stream: Arc<dyn HasDestinations>,
    ) -> PyResult<i64> {
        let asked = detach(py, || Asked::new(kept, self, stream)).map_err(errors::client)?;
        asking::wait(py, kept, || asked.id(), |client| asked.find(client))
    }

    /// Asks for it without waiting; the answer is polled.
    pub(crate) fn ask<'py>(
        self,
        py: Python<'py>,
        kept: &KeptClient,
        stream: Arc<dyn HasDestinations>,
    ) -> PyResult<Bound<'py, Answer>> {
        let asked = detach(py, || Asked::new(kept, self, stream)).map_err(errors::client)?;
        Bound::new(py, Answer::new(kept.clone(), asked))
    }

    /// A coroutine that waits for the same.
    pub(crate) fn make_async<'py>(
        self,
        py: Python<'py>,
        kept: &KeptClient,
        stream: Arc<dyn HasDestinations>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let awaits = match self {
            Self::Add(_) => "added",
            Self::Remove(_) | Self::RemoveById(_) => "removed",
        };
        let answer = self.ask(py, kept, stream)?;
        py.import("headrace.client._pending")?
            .call_method1(awaits, (answer,))
    }
}

/// The channel of a publication's destination, whose doubts are told as those of any other channel.
pub(crate) fn sent(object: &Bound<'_, PyAny>) -> PyResult<String> {
    checked(object, "send destination")
}

/// The same of a subscription's destination.
pub(crate) fn received(object: &Bound<'_, PyAny>) -> PyResult<String> {
    checked(object, "receive destination")
}

fn checked(object: &Bound<'_, PyAny>, role: &str) -> PyResult<String> {
    let channel = arguments::channel(object)?;
    object
        .py()
        .import("headrace.client._channels")?
        .call_method1("check_channel", (channel, role))?;
    Ok(channel.to_owned())
}
