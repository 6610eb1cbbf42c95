//! What a program changes in the destinations of a publication or of a subscription.

use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::errors;
use crate::boundary::interpreter_exit::detach;
use crate::streams::destination_change::{Ask, Change, ChangeRequest};
use crate::streams::destination_request::DestinationRequest;
use crate::waiting::request::await_answer;

/// Those of one stream.
pub(crate) struct Destinations<'a> {
    client: &'a ClientRef,
    ask: Ask,
}

impl<'a> Destinations<'a> {
    pub(crate) fn new(client: &'a ClientRef, ask: Ask) -> Self {
        Self { client, ask }
    }

    fn begin(self, py: Python<'_>, change: Change) -> PyResult<ChangeRequest> {
        detach(py, || ChangeRequest::new(self.client, change, self.ask)).map_err(errors::client)
    }

    /// Waits until the driver has made a change; returns the id of the request, which is that of an added destination.
    pub(crate) fn change(self, py: Python<'_>, change: Change) -> PyResult<i64> {
        let client = self.client;
        let request = self.begin(py, change)?;
        await_answer(py, client, || request.id(), |client| request.find(client))
    }

    /// Asks for a change without waiting; the answer is polled.
    pub(crate) fn request(self, py: Python<'_>, change: Change) -> PyResult<Bound<'_, DestinationRequest>> {
        let client = self.client.clone();
        let request = self.begin(py, change)?;
        Bound::new(py, DestinationRequest::new(client, request))
    }

    /// A coroutine that waits for a change.
    pub(crate) fn change_async(self, py: Python<'_>, change: Change) -> PyResult<Bound<'_, PyAny>> {
        let awaits = match change {
            Change::Add(_) => "added",
            Change::Remove(_) | Change::RemoveById(_) => "removed",
        };
        let request = self.request(py, change)?;
        py.import("headrace.client._pending")?
            .call_method1(awaits, (request,))
    }
}
