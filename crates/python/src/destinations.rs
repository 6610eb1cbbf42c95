//! What a program changes in the destinations of a publication.

use headrace_client::{ClientError, PublicationHandle};
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::asking::ask;
use crate::exit::detach;
use crate::kept_client::KeptClient;
use crate::{arguments, errors};

/// One change.
pub(crate) enum Change {
    Add(String),
    Remove(String),
    RemoveById(i64),
}

impl Change {
    fn request(&self, publication: &PublicationHandle) -> Result<i64, ClientError> {
        match self {
            Self::Add(channel) => publication.async_add_destination(channel),
            Self::Remove(channel) => publication.async_remove_destination(channel),
            Self::RemoveById(registration_id) => publication.async_remove_destination_by_id(*registration_id),
        }
    }

    /// Waits until the driver has made it; returns the id of the request, which is that of an added destination.
    pub(crate) fn make(
        &self,
        py: Python<'_>,
        kept: &KeptClient,
        publication: &PublicationHandle,
    ) -> PyResult<i64> {
        ask(
            py,
            kept,
            |_| self.request(publication),
            |client, id| Ok(client.find_operation(id)?.then_some(id)),
        )
    }

    /// A coroutine that waits for the same.
    pub(crate) fn make_async<'py>(
        &self,
        py: Python<'py>,
        kept: &KeptClient,
        publication: &PublicationHandle,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = detach(py, || self.request(publication)).map_err(errors::client)?;
        let answer = Bound::new(py, Answer::new(kept.clone(), id))?;
        let awaits = match self {
            Self::Add(_) => "added",
            Self::Remove(_) | Self::RemoveById(_) => "removed",
        };
        py.import("headrace.client._pending")?
            .call_method1(awaits, (answer,))
    }
}

/// The channel of a destination, whose doubts are told as those of a publication's channel.
pub(crate) fn channel(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let channel = arguments::channel(object)?;
    object
        .py()
        .import("headrace.client._channels")?
        .call_method1("check_channel", (channel,))?;
    Ok(channel.to_owned())
}
