//! What is known of a message besides its bytes.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering::Relaxed};

use pyo3::prelude::*;

use crate::boundary::c_api::is_unshared;

/// Plain values of a header, copied out of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderValues {
    pub(crate) position: i64,
    pub(crate) reserved_value: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) term_id: i32,
    pub(crate) term_offset: i32,
    pub(crate) frame_length: i32,
    pub(crate) flags: u8,
}

#[doc = docstring!("Header")]
#[pyclass(frozen, module = "headrace")]
#[derive(Default)]
pub(crate) struct Header {
    position: AtomicI64,
    reserved_value: AtomicI64,
    session_id: AtomicI32,
    stream_id: AtomicI32,
    term_id: AtomicI32,
    term_offset: AtomicI32,
    frame_length: AtomicI32,
    flags: AtomicI32,
}

impl Header {
    #[inline]
    fn set(&self, values: &HeaderValues) {
        self.position.store(values.position, Relaxed);
        self.reserved_value.store(values.reserved_value, Relaxed);
        self.session_id.store(values.session_id, Relaxed);
        self.stream_id.store(values.stream_id, Relaxed);
        self.term_id.store(values.term_id, Relaxed);
        self.term_offset.store(values.term_offset, Relaxed);
        self.frame_length.store(values.frame_length, Relaxed);
        self.flags.store(i32::from(values.flags), Relaxed);
    }
}

#[pymethods]
impl Header {
    #[doc = docstring!("Header.position")]
    #[getter]
    fn position(&self) -> i64 {
        self.position.load(Relaxed)
    }

    #[doc = docstring!("Header.reserved_value")]
    #[getter]
    fn reserved_value(&self) -> i64 {
        self.reserved_value.load(Relaxed)
    }

    #[doc = docstring!("Header.session_id")]
    #[getter]
    fn session_id(&self) -> i32 {
        self.session_id.load(Relaxed)
    }

    #[doc = docstring!("Header.stream_id")]
    #[getter]
    fn stream_id(&self) -> i32 {
        self.stream_id.load(Relaxed)
    }

    #[doc = docstring!("Header.term_id")]
    #[getter]
    fn term_id(&self) -> i32 {
        self.term_id.load(Relaxed)
    }

    #[doc = docstring!("Header.term_offset")]
    #[getter]
    fn term_offset(&self) -> i32 {
        self.term_offset.load(Relaxed)
    }

    #[doc = docstring!("Header.frame_length")]
    #[getter]
    fn frame_length(&self) -> i32 {
        self.frame_length.load(Relaxed)
    }

    #[doc = docstring!("Header.flags")]
    #[getter]
    fn flags(&self) -> i32 {
        self.flags.load(Relaxed)
    }

    fn __repr__(&self) -> String {
        format!(
            "Header(position={}, session_id={}, stream_id={}, term_id={}, term_offset={}, frame_length={}, \
             flags={:#04x}, reserved_value={})",
            self.position(),
            self.session_id(),
            self.stream_id(),
            self.term_id(),
            self.term_offset(),
            self.frame_length(),
            self.flags(),
            self.reserved_value(),
        )
    }
}

/// Gives out headers, using the last one again unless the program kept it.
pub(crate) struct HeaderMaker<'py> {
    py: Python<'py>,
    current: Option<Bound<'py, Header>>,
}

impl<'py> HeaderMaker<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, current: None }
    }

    #[inline]
    pub(crate) fn make(&mut self, values: &HeaderValues) -> PyResult<&Bound<'py, Header>> {
        let header = match self.current.take() {
            Some(header) if is_unshared(&header) => header,
            _ => Bound::new(self.py, Header::default())?,
        };
        header.get().set(values);
        Ok(self.current.insert(header))
    }
}
