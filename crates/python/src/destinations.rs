//! What a program changes in the destinations of a publication or of a subscription.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headrace_client::{ClientError, ErrorCode, PublicationHandle, Subscription};
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::asking::ask;
use crate::exit::detach;
use crate::kept_client::KeptClient;
use crate::{arguments, errors};

/// For how long a port that is being closed is asked for again.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// What has destinations. Each call asks the driver, and returns the id of the request.
pub(crate) trait HasDestinations: Sync {
    fn add(&self, channel: &str) -> Result<i64, ClientError>;
    fn remove(&self, channel: &str) -> Result<i64, ClientError>;
    fn remove_by_id(&self, registration_id: i64) -> Result<i64, ClientError>;
}

impl HasDestinations for PublicationHandle {
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

impl Change {
    fn request(&self, stream: &impl HasDestinations) -> Result<i64, ClientError> {
        match self {
            Self::Add(channel) => stream.add(channel),
            Self::Remove(channel) => stream.remove(channel),
            Self::RemoveById(registration_id) => stream.remove_by_id(*registration_id),
        }
    }

    /// Waits until the driver has made it; returns the id of the request, which is that of an added destination.
    pub(crate) fn make(
        &self,
        py: Python<'_>,
        kept: &KeptClient,
        stream: &impl HasDestinations,
    ) -> PyResult<i64> {
        let asked = AtomicI64::new(0);
        let request = || -> Result<i64, ClientError> {
            let id = self.request(stream)?;
            asked.store(id, Ordering::Relaxed);
            Ok(id)
        };
        let retries_until = Instant::now() + CLOSING_TIMEOUT;
        ask(
            py,
            kept,
            |_| request(),
            |client, _| {
                let id = asked.load(Ordering::Relaxed);
                match client.find_operation(id) {
                    // The driver has no event for the moment at which it has closed what held the port.
                    Err(ClientError::Registration { code, .. })
                        if code == ErrorCode::ResourceTemporarilyUnavailable
                            && Instant::now() < retries_until =>
                    {
                        request().map(|_| None)
                    }
                    found => Ok(found?.then_some(id)),
                }
            },
        )
    }

    /// Asks for it without waiting; the answer is polled.
    pub(crate) fn ask<'py>(
        &self,
        py: Python<'py>,
        kept: &KeptClient,
        stream: &impl HasDestinations,
    ) -> PyResult<Bound<'py, Answer>> {
        let id = detach(py, || self.request(stream)).map_err(errors::client)?;
        Bound::new(py, Answer::new(kept.clone(), id))
    }

    /// A coroutine that waits for the same.
    pub(crate) fn make_async<'py>(
        &self,
        py: Python<'py>,
        kept: &KeptClient,
        stream: &impl HasDestinations,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.ask(py, kept, stream)?;
        let awaits = match self {
            Self::Add(_) => "added",
            Self::Remove(_) | Self::RemoveById(_) => "removed",
        };
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
