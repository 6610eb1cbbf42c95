//! Many received messages in one object.

use std::sync::Arc;

use headrace_buffers::log::Header as LogHeader;
use headrace_client::FragmentAssembler;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyIterator, PyList};

use crate::boundary::c_api::{ColumnName, ExportedMemory, Exporter};
use crate::boundary::columns::{Columns, Spare};

#[doc = docstring!("FragmentBatch")]
#[pyclass(frozen, module = "headrace")]
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
        let from_buffer = FROM_BUFFER.import(py, "headrace.client._batch", "from_buffer")?;
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
    #[new]
    fn empty() -> Self {
        Self::new(Arc::<Spare>::default().columns(0))
    }

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

    #[doc = docstring!("FragmentBatch.payload")]
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Payload, "u1")
    }

    #[doc = docstring!("FragmentBatch.offsets")]
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Offsets, "i4")
    }

    #[doc = docstring!("FragmentBatch.positions")]
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::Positions, "i8")
    }

    #[doc = docstring!("FragmentBatch.session_ids")]
    #[getter]
    fn session_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::SessionIds, "i4")
    }

    #[doc = docstring!("FragmentBatch.stream_ids")]
    #[getter]
    fn stream_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        helper(py)?.call_method1("stream_ids", (self.columns.len(), self.columns.stream_id))
    }

    #[doc = docstring!("FragmentBatch.reserved_values")]
    #[getter]
    fn reserved_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnName::ReservedValues, "i8")
    }

    #[doc = docstring!("FragmentBatch.stream_id")]
    #[getter]
    fn stream_id(&self) -> i32 {
        self.columns.stream_id
    }

    #[doc = docstring!("FragmentBatch.payload_length")]
    #[getter]
    fn payload_length(&self) -> Option<usize> {
        self.columns.common_length()
    }

    #[doc = docstring!("FragmentBatch.as_array")]
    #[pyo3(signature = (dtype = None))]
    fn as_array<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py())?.call_method1("as_array", (slf, dtype))
    }

    #[doc = docstring!("FragmentBatch.to_arrow")]
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py())?.call_method1("to_arrow", (slf,))
    }

    #[doc = docstring!("FragmentBatch.to_list")]
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

impl Columns {
    /// Takes a fragment, or the message it completes, and says whether there is room for more.
    #[inline]
    pub(crate) fn collect(
        &mut self,
        assembler: &mut FragmentAssembler,
        assemble: bool,
        payload: &[u8],
        header: &LogHeader<'_>,
    ) -> bool {
        let mut push = |payload: &[u8], header: &LogHeader<'_>| {
            self.push(
                payload,
                header.position(),
                header.session_id(),
                header.reserved_value(),
            );
        };
        if assemble {
            assembler.on_fragment(payload, header, |payload, header| push(payload, header));
        } else {
            push(payload, header);
        }
        !self.is_full()
    }
}
