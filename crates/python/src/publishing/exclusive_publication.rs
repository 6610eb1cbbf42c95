//! Publications that one thread writes at a time, and what they can do beyond the others.

use headrace_client as client;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::boundary::c_api::BorrowedBytes;
use crate::boundary::client_ref::ClientRef;
use crate::boundary::{arguments, errors};
use crate::publishing::any_publication::AnyPublication;
use crate::publishing::publication::Publication;
use crate::publishing::{offer_result, recorded_block};

#[doc = docstring!("ExclusivePublication")]
#[pyclass(frozen, extends = Publication, module = "headrace")]
pub(crate) struct ExclusivePublication;

impl ExclusivePublication {
    /// The publication as an object of Python, which is one of its base class as well.
    pub(crate) fn build<'py>(
        py: Python<'py>,
        kept: ClientRef,
        publication: client::ExclusivePublication,
    ) -> PyResult<Bound<'py, Self>> {
        let base = Publication::new(kept, AnyPublication::Exclusive(publication));
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
        offer_result::to_python(py, append)
    }

    #[doc = docstring!("ExclusivePublication.offer_recorded")]
    #[pyo3(signature = (read, length, within))]
    fn offer_recorded(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::read)] read: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
        #[pyo3(from_py_with = arguments::within)] within: usize,
    ) -> PyResult<Py<PyAny>> {
        recorded_block::offer(inner(slf)?, &read, length, within)
    }

    #[doc = docstring!("ExclusivePublication.append_padding")]
    #[pyo3(signature = (length, /))]
    fn append_padding(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
    ) -> PyResult<Py<PyAny>> {
        let append = inner(slf)?.append_padding(length).map_err(errors::offer)?;
        offer_result::to_python(slf.py(), append)
    }
}

pub(crate) fn inner<'a>(
    slf: &'a Bound<'_, ExclusivePublication>,
) -> PyResult<&'a client::ExclusivePublication> {
    match &**slf.as_super().get().inner.get()? {
        AnyPublication::Exclusive(publication) => Ok(publication),
        AnyPublication::Concurrent(_) => Err(PyTypeError::new_err("not an exclusive publication")),
    }
}
