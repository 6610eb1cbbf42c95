//! Publications that one thread writes at a time, and what they can do beyond the others.

use headrace_client as client;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::c_api::BorrowedBytes;
use crate::inner::Inner;
use crate::kept_client::KeptClient;
use crate::publication::Publication;
use crate::{arguments, errors, recorded, results};

#[doc = docstring!("ExclusivePublication")]
#[pyclass(frozen, extends = Publication, module = "headrace")]
pub(crate) struct ExclusivePublication;

impl ExclusivePublication {
    /// The publication as an object of Python, which is one of its base class as well.
    pub(crate) fn build<'py>(
        py: Python<'py>,
        kept: KeptClient,
        publication: client::ExclusivePublication,
    ) -> PyResult<Bound<'py, Self>> {
        let base = Publication::new(kept, Inner::Exclusive(publication));
        Bound::new(py, PyClassInitializer::from(base).add_subclass(Self))
    }
}

#[pymethods]
impl ExclusivePublication {
    #[doc = docstring!("ExclusivePublication.offer_block")]
    #[pyo3(signature = (block, /))]
    fn offer_block(slf: &Bound<'_, Self>, block: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let block = BorrowedBytes::of(block, "block")?;
        let append = inner(slf)?
            .offer_block(block.as_slice(py))
            .map_err(errors::offer)?;
        results::to_python(py, append)
    }

    #[doc = docstring!("ExclusivePublication.offer_recorded")]
    #[pyo3(signature = (read, length, within))]
    fn offer_recorded(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::read)] read: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
        #[pyo3(from_py_with = arguments::within)] within: usize,
    ) -> PyResult<Py<PyAny>> {
        recorded::offer(inner(slf)?, &read, length, within)
    }

    #[doc = docstring!("ExclusivePublication.append_padding")]
    #[pyo3(signature = (length, /))]
    fn append_padding(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
    ) -> PyResult<Py<PyAny>> {
        let append = inner(slf)?.append_padding(length).map_err(errors::offer)?;
        results::to_python(slf.py(), append)
    }
}

pub(crate) fn inner<'a>(
    slf: &'a Bound<'_, ExclusivePublication>,
) -> PyResult<&'a client::ExclusivePublication> {
    match &**slf.as_super().get().inner.get()? {
        Inner::Exclusive(publication) => Ok(publication),
        Inner::Concurrent(_) => Err(PyTypeError::new_err("not an exclusive publication")),
    }
}
