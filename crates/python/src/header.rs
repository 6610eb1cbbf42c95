//! What is known of a message besides its bytes.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering::Relaxed};

use pyo3::prelude::*;

use crate::c_api::is_unshared;

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

/// What is known of a message or fragment besides its bytes.
#[pyclass(frozen, module = "headrace._core")]
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
    /// Stream position after the message, in bytes since the stream began.
    #[getter]
    fn position(&self) -> i64 {
        self.position.load(Relaxed)
    }

    /// 64 bits that the publisher may set, 0 if it did not.
    #[getter]
    fn reserved_value(&self) -> i64 {
        self.reserved_value.load(Relaxed)
    }

    /// Which publisher.
    #[getter]
    fn session_id(&self) -> i32 {
        self.session_id.load(Relaxed)
    }

    /// Which flow on the channel.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.stream_id.load(Relaxed)
    }

    /// Term of the message's first frame.
    #[getter]
    fn term_id(&self) -> i32 {
        self.term_id.load(Relaxed)
    }

    /// Offset of the message's first frame in its term, in bytes.
    #[getter]
    fn term_offset(&self) -> i32 {
        self.term_offset.load(Relaxed)
    }

    /// Bytes of header and payload; for an assembled message, 32 and all of its payload.
    #[getter]
    fn frame_length(&self) -> i32 {
        self.frame_length.load(Relaxed)
    }

    /// Flags of the frame: 0x80 begins a message, 0x40 ends it; 0xC0 for a whole message.
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

/// Gives out headers, using the last one again when nobody kept it.
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
