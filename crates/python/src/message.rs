//! A message that was received whole.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::header::HeaderValues;

/// A message that was received whole. Immutable.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct Message {
    /// The bytes of the message.
    #[pyo3(get)]
    payload: Py<PyBytes>,
    header: HeaderValues,
}

impl Message {
    pub(crate) fn new(py: Python<'_>, payload: &[u8], header: HeaderValues) -> Self {
        Self {
            payload: PyBytes::new(py, payload).unbind(),
            header,
        }
    }
}

#[pymethods]
impl Message {
    /// Stream position after the message, in bytes since the stream began.
    #[getter]
    fn position(&self) -> i64 {
        self.header.position
    }

    /// Which publisher.
    #[getter]
    fn session_id(&self) -> i32 {
        self.header.session_id
    }

    /// Which flow on the channel.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.header.stream_id
    }

    /// 64 bits that the publisher may set, 0 if it did not.
    #[getter]
    fn reserved_value(&self) -> i64 {
        self.header.reserved_value
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.payload.as_bytes(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "Message(<{} bytes>, position={}, session_id={}, stream_id={})",
            self.payload.as_bytes(py).len(),
            self.header.position,
            self.header.session_id,
            self.header.stream_id
        )
    }
}
