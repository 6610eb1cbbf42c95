//! Checksums of recorded frames, a block of them in one crossing.

use headrace_recording as recording;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::c_api::BorrowedBytes;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, errors};

#[doc = docstring!("Checksum")]
#[pyclass(frozen, module = "headrace.client")]
pub(crate) struct Checksum(pub(crate) recording::Checksum);

#[pymethods]
impl Checksum {
    #[new]
    fn new(#[pyo3(from_py_with = arguments::name)] name: &str) -> PyResult<Self> {
        match name {
            "CRC-32" => Ok(Self(recording::Checksum::Crc32)),
            "CRC-32C" => Ok(Self(recording::Checksum::Crc32c)),
            other => Err(errors::config("name", other, "must be CRC-32 or CRC-32C")),
        }
    }

    /// The checksum of some bytes as a signed 32-bit number. Releases the GIL.
    #[pyo3(signature = (data, /))]
    fn __call__(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<i32> {
        let data = BorrowedBytes::of(data, "data")?;
        let bytes = data.as_slice_detached();
        Ok(detach(py, || self.0.of(bytes)))
    }

    #[doc = docstring!("Checksum.put")]
    #[pyo3(signature = (block, /))]
    fn put<'py>(&self, py: Python<'py>, block: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let block = BorrowedBytes::of(block, "block")?;
        let bytes = block.as_slice_detached();
        PyBytes::new_with(py, bytes.len(), |copy| {
            detach(py, || {
                copy.copy_from_slice(bytes);
                self.0.put(copy);
            });
            Ok(())
        })
    }

    #[doc = docstring!("Checksum.first_wrong")]
    #[pyo3(signature = (block, limit, /))]
    fn first_wrong(
        &self,
        py: Python<'_>,
        block: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit_bytes)] limit: usize,
    ) -> PyResult<Option<usize>> {
        let block = BorrowedBytes::of(block, "block")?;
        let bytes = block.as_slice_detached();
        Ok(detach(py, || self.0.first_wrong(bytes, limit)))
    }
}
