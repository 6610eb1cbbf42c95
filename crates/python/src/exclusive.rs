//! Publications that one thread writes at a time, and what they can do beyond the others.

use headrace_client as client;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::c_api::BorrowedBytes;
use crate::kept_client::KeptClient;
use crate::publication::{Inner, Publication};
use crate::{arguments, errors, recorded, results};

/// A stream with a session and log of its own, written by one thread at a time, which makes it faster.
#[pyclass(frozen, extends = Publication, module = "headrace._core")]
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
    /// Send whole frames that were formed for exactly this place of the stream, all visible at once.
    #[pyo3(signature = (block, /))]
    fn offer_block(slf: &Bound<'_, Self>, block: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let block = BorrowedBytes::of(block)?;
        let append = inner(slf)?
            .offer_block(block.as_slice(py))
            .map_err(errors::offer)?;
        results::to_python(py, append)
    }

    /// Send frames of a recording, read straight into the log, under the session and stream of this publication.
    #[pyo3(signature = (read, length, within))]
    fn offer_recorded(
        slf: &Bound<'_, Self>,
        read: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
        #[pyo3(from_py_with = arguments::within)] within: usize,
    ) -> PyResult<Py<PyAny>> {
        recorded::offer(inner(slf)?, read, length, within)
    }

    /// Send padding, which subscribers skip, as long as a frame with ``length`` bytes of payload.
    #[pyo3(signature = (length, /))]
    fn append_padding(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::span_length)] length: usize,
    ) -> PyResult<Py<PyAny>> {
        let append = inner(slf)?.append_padding(length).map_err(errors::offer)?;
        results::to_python(slf.py(), append)
    }
}

fn inner<'a>(slf: &'a Bound<'_, ExclusivePublication>) -> PyResult<&'a client::ExclusivePublication> {
    match &**slf.as_super().get().inner.get()? {
        Inner::Exclusive(publication) => Ok(publication),
        Inner::Concurrent(_) => Err(PyTypeError::new_err("not an exclusive publication")),
    }
}
