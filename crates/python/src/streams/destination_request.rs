//! Changes of destinations that no thread waits for.

use headrace_client::Client;
use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::errors;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::streams::destination_change::ChangeRequest;

/// A request for one, which a coroutine of `headrace.client._pending` asks. Python has no name for the class.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct DestinationRequest {
    request: ChangeRequest,
    client: ForkGuard<ClientRef>,
}

impl DestinationRequest {
    pub(crate) fn new(client: ClientRef, request: ChangeRequest) -> Self {
        Self {
            request,
            client: ForkGuard::new(client),
        }
    }
}

#[pymethods]
impl DestinationRequest {
    /// The id of the request, once; nothing while the driver has not answered.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let client: &Client = self.client.get()?;
        detach(py, || self.request.find(client)).map_err(errors::client)
    }

    /// No longer wait for it. What was asked for may happen all the same.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let client: &Client = self.client.get()?;
        detach(py, || client.requests().cancel(self.request.id()))
            .map(|_| ())
            .map_err(errors::client)
    }

    fn __repr__(&self) -> String {
        format!("DestinationRequest(correlation_id={})", self.request.id())
    }
}
