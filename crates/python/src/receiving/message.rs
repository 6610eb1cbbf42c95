//! A message that was received whole.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::arguments;
use crate::receiving::header::HeaderValues;

/// Longest payload that `repr` shows whole.
const REPR_LENGTH_MAX: usize = 32;

#[doc = docstring!("Message")]
#[pyclass(frozen, get_all, module = "headrace")]
pub(crate) struct Message {
    #[doc = docstring!("Message.payload")]
    payload: Py<PyBytes>,
    #[doc = docstring!("Message.position")]
    position: i64,
    #[doc = docstring!("Message.session_id")]
    session_id: i32,
    #[doc = docstring!("Message.stream_id")]
    stream_id: i32,
    #[doc = docstring!("Message.reserved_value")]
    reserved_value: i64,
}

impl Message {
    pub(crate) fn new(py: Python<'_>, payload: &[u8], header: HeaderValues) -> Self {
        Self {
            payload: PyBytes::new(py, payload).unbind(),
            position: header.position,
            session_id: header.session_id,
            stream_id: header.stream_id,
            reserved_value: header.reserved_value,
        }
    }

    pub(crate) fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        self.payload.as_bytes(py)
    }

    pub(crate) fn reserved_value(&self) -> i64 {
        self.reserved_value
    }

    fn numbers(&self) -> (i64, i32, i32, i64) {
        (
            self.position,
            self.session_id,
            self.stream_id,
            self.reserved_value,
        )
    }
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (payload, position = 0, session_id = 0, stream_id = 0, reserved_value = 0))]
    fn build(
        #[pyo3(from_py_with = arguments::payload)] payload: Py<PyBytes>,
        #[pyo3(from_py_with = arguments::position)] position: i64,
        #[pyo3(from_py_with = arguments::session_id)] session_id: i32,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = arguments::reserved_value)] reserved_value: i64,
    ) -> Self {
        Self {
            payload,
            position,
            session_id,
            stream_id,
            reserved_value,
        }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.payload.as_bytes(py).len()
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> bool {
        self.numbers() == other.numbers() && self.payload.as_bytes(py) == other.payload.as_bytes(py)
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.numbers(), self.payload.as_bytes(py)).hash(&mut hasher);
        hasher.finish()
    }

    /// For `pickle` and `copy`.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (position, session_id, stream_id, reserved_value) = slf.get().numbers();
        let payload = &slf.get().payload;
        let values = (payload, position, session_id, stream_id, reserved_value);
        Ok((slf.get_type(), values).into_pyobject(slf.py())?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let payload = self.payload.as_bytes(py);
        let shown = if payload.len() <= REPR_LENGTH_MAX {
            self.payload.bind(py).repr()?.to_string()
        } else {
            let start = PyBytes::new(py, &payload[..REPR_LENGTH_MAX]).repr()?;
            format!("{start}... of {} bytes", payload.len())
        };
        let reserved = match self.reserved_value {
            0 => String::new(),
            value => format!(", reserved_value={value}"),
        };
        Ok(format!(
            "Message({shown}, position={}, session_id={}, stream_id={}{reserved})",
            self.position, self.session_id, self.stream_id
        ))
    }
}
