//! Many received messages in one object.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyIterator, PyList};

use crate::c_api::{ColumnName, ExportedMemory, Exporter};
use crate::columns::Columns;

/// Received messages as columns: indexing and iterating give ``bytes``, the arrays share one memory.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct FragmentBatch {
    columns: Arc<Columns>,
}

impl FragmentBatch {
    pub(crate) fn new(columns: Columns) -> Self {
        Self {
            columns: Arc::new(columns),
        }
    }

    fn column<'py>(&self, py: Python<'py>, name: ColumnName, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
        static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let from_buffer = FROM_BUFFER.import(py, "numpy", "frombuffer")?;
        let exporter = Bound::new(
            py,
            Exporter::new(ExportedMemory::Column(Arc::clone(&self.columns), name), true),
        )?;
        from_buffer.call1((exporter, dtype))
    }
}

/// The Python half: what is made of the columns with numpy and pyarrow.
fn helper(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(py.import("headrace.client._batch")?.into_any())
}

#[pymethods]
impl FragmentBatch {
    fn __len__(&self) -> usize {
        self.columns.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.columns.len();
        let index = if index < 0 { index + length as isize } else { index };
        match usize::try_from(index) {
            Ok(index) if index < length => Ok(PyBytes::new(py, self.columns.payload_of(index))),
            _ => Err(PyIndexError::new_err("batch index out of range")),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_list(py)?.try_iter()
    }

    /// All payloads, one after another. Read-only, not copied.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Payload, "u1")
    }

    /// Where each payload begins in :attr:`payload`, and where the last ends: one more than messages.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Offsets, "i4")
    }

    /// Stream position after each message.
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Positions, "i8")
    }

    /// Publisher of each message.
    #[getter]
    fn session_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::SessionIds, "i4")
    }

    /// Stream of each message, the same for all.
    #[getter]
    fn stream_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        helper(py)?.call_method1("stream_ids", (self.columns.len(), self.columns.stream_id))
    }

    /// Reserved value of each message.
    #[getter]
    fn reserved_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::ReservedValues, "i8")
    }

    /// Stream of all messages.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.columns.stream_id
    }

    /// Bytes of each payload when all are equally long; ``None`` when they differ or there are none.
    #[getter]
    fn payload_length(&self) -> Option<usize> {
        self.columns.common_length()
    }

    /// The payloads as an array over the batch's memory.
    #[pyo3(signature = (dtype = None))]
    fn as_array<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py())?.call_method1("as_array", (slf, dtype))
    }

    /// An Arrow record batch over the batch's memory.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py())?.call_method1("to_arrow", (slf,))
    }

    /// All payloads, copied.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(
            py,
            (0..self.columns.len()).map(|index| PyBytes::new(py, self.columns.payload_of(index))),
        )
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method1("__arrow_c_array__", (requested_schema,))
    }

    fn __repr__(&self) -> String {
        format!(
            "FragmentBatch({} messages, {} bytes, stream_id={})",
            self.columns.len(),
            self.columns.payload.len(),
            self.columns.stream_id
        )
    }
}
