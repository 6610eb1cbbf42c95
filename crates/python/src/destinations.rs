//! What a program changes in the destinations of a publication or of a subscription.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::answer::Answer;
use crate::asking;
use crate::changes::{Asked, Change, HasDestinations};
use crate::exit::detach;
use crate::kept_client::KeptClient;
use crate::{arguments, errors};

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
