//! Requests to the driver that no thread waits for, and that give nothing but their answer.

use headrace_client::Client;
use pyo3::prelude::*;

use crate::changes::Asked;
use crate::errors;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::kept_client::KeptClient;

/// One of them, which a coroutine of `headrace.client._pending` asks. Python has no name for the class.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct Answer {
    asked: Asked,
    client: ForkGuard<KeptClient>,
}

impl Answer {
    pub(crate) fn new(client: KeptClient, asked: Asked) -> Self {
        Self {
            asked,
            client: ForkGuard::new(client),
        }
    }
}

#[pymethods]
impl Answer {
    /// The id of the request, once; nothing while the driver has not answered.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let client: &Client = self.client.get()?;
        detach(py, || self.asked.find(client)).map_err(errors::client)
    }

    /// No longer wait for it. What was asked for may happen all the same.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let client: &Client = self.client.get()?;
        detach(py, || client.cancel(self.asked.id()))
            .map(|_| ())
            .map_err(errors::client)
    }

    fn __repr__(&self) -> String {
        format!("Answer(correlation_id={})", self.asked.id())
    }
}
