//! Requests to the driver that no thread waits for, and that give nothing but their answer.

use headrace_client::Client;
use pyo3::prelude::*;

use crate::errors;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::kept_client::KeptClient;

/// One of them, which a coroutine of `headrace.client._pending` asks. Python has no name for the class.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct Answer {
    correlation_id: i64,
    client: ForkGuard<KeptClient>,
}

impl Answer {
    pub(crate) fn new(client: KeptClient, correlation_id: i64) -> Self {
        Self {
            correlation_id,
            client: ForkGuard::new(client),
        }
    }
}

#[pymethods]
impl Answer {
    /// The id of the request, once; nothing while the driver has not answered.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let client: &Client = self.client.get()?;
        let id = self.correlation_id;
        let is_answered = detach(py, || client.find_operation(id)).map_err(errors::client)?;
        Ok(is_answered.then_some(id))
    }

    /// No longer wait for it. What was asked for may happen all the same.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let client: &Client = self.client.get()?;
        detach(py, || client.cancel(self.correlation_id))
            .map(|_| ())
            .map_err(errors::client)
    }

    fn __repr__(&self) -> String {
        format!("Answer(correlation_id={})", self.correlation_id)
    }
}
