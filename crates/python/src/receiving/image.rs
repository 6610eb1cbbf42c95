//! One publisher's stream, as a subscription sees it.

use std::sync::Arc;

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client::PollLimit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::columns::Spare;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::handler_error::HandlerError;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, errors};
use crate::cluster::log_entries::{Entries, follow};
use crate::cluster::log_place::{self, LogPlace};
use crate::receiving::delivery::{Delivery, Reception, deliver_block};
use crate::receiving::fragment_batch::FragmentBatch;
use crate::waiting::request::ask;

#[doc = docstring!("Image")]
#[pyclass(frozen, weakref, module = "headrace")]
pub(crate) struct Image {
    inner: ForkGuard<Arc<headrace_client::Image>>,
    spare: Arc<Spare>,
    client: ForkGuard<Option<ClientRef>>,
}

impl Image {
    /// `client` keeps the client open; handlers, which the client itself owns, leave it out.
    pub(crate) fn new(inner: Arc<headrace_client::Image>, client: Option<ClientRef>) -> Self {
        Self {
            inner: ForkGuard::new(inner),
            spare: Arc::default(),
            client: ForkGuard::new(client),
        }
    }

    pub(crate) fn shared(&self) -> PyResult<Arc<headrace_client::Image>> {
        self.inner.get().map(Arc::clone)
    }

    /// The client that this keeps open, if it does.
    pub(crate) fn client(&self) -> PyResult<Option<&ClientRef>> {
        self.client.get().map(Option::as_ref)
    }
}

getters! { Image:
    position: i64,
    join_position: i64,
    session_id: i32,
    stream_id: i32,
    correlation_id: i64,
    source_identity: &str,
    subscriber_position_id: i32,
    is_end_of_stream: bool,
    is_publication_revoked: bool,
    active_transport_count: i32,
    is_closed: bool,
    initial_term_id: i32,
    term_length: usize,
    mtu_length: usize,
}

#[pymethods]
impl Image {
    #[doc = docstring!("Image.poll")]
    #[pyo3(signature = (handler, limit = 10, *, assemble = true, view = false))]
    fn poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut reception = reception(image, &handler, assemble, view)?;
        Ok(image.poll(|payload, header| reception.fragment(payload, header), limit)?)
    }

    #[doc = docstring!("Image.bounded_poll")]
    #[pyo3(signature = (handler, limit_position, limit = 10, *, assemble = true, view = false))]
    fn bounded_poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit_position)] limit_position: i64,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut reception = reception(image, &handler, assemble, view)?;
        let handle = |payload: &[u8], header: &LogHeader<'_>| reception.fragment(payload, header);
        Ok(image.poll(handle, PollLimit::fragments(limit).before(limit_position))?)
    }

    #[doc = docstring!("Image.controlled_poll")]
    #[pyo3(signature = (handler, limit = 10, *, limit_position = None, assemble = true, view = false))]
    fn controlled_poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::limit_position_if_any)] limit_position: Option<i64>,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut reception = reception(image, &handler, assemble, view)?;
        let handle = |payload: &[u8], header: &LogHeader<'_>| reception.controlled_fragment(payload, header);
        let limit = PollLimit {
            fragments: limit,
            position: limit_position,
        };
        Ok(image.poll(handle, limit)?)
    }

    #[doc = docstring!("Image.poll_entries")]
    #[pyo3(signature = (deliver, sessions, place, handler, limit, limit_position))]
    fn poll_entries(
        &self,
        #[pyo3(from_py_with = arguments::deliver)] deliver: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::sessions)] sessions: Bound<'_, PyDict>,
        #[pyo3(from_py_with = log_place::log_place)] place: Bound<'_, LogPlace>,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::limit_position)] limit_position: i64,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut assembler = image.assembler().map_err(errors::poll)?;
        let mut others = Delivery::new(&handler, false);
        let pass_on = |message: &[u8], header: &LogHeader<'_>| others.controlled(message, header);
        let mut entries = Entries::new(&deliver, &sessions, place.get(), pass_on);
        let take = |payload: &[u8], header: &LogHeader<'_>| {
            assembler.on_controlled_fragment(payload, header, |message, header| entries.take(message, header))
        };
        Ok(image.poll(take, PollLimit::fragments(limit).before(limit_position))?)
    }

    #[doc = docstring!("Image.follow_entries")]
    #[pyo3(signature = (handler, limit, limit_position))]
    fn follow_entries(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::limit_position)] limit_position: i64,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut assembler = image.assembler().map_err(errors::poll)?;
        let mut others = Delivery::new(&handler, false);
        let take = |payload: &[u8], header: &LogHeader<'_>| {
            assembler.on_controlled_fragment(payload, header, |message, header| {
                follow(message, header, |message, header| {
                    others.controlled(message, header)
                })
            })
        };
        Ok(image.poll(take, PollLimit::fragments(limit).before(limit_position))?)
    }

    #[doc = docstring!("Image.take_fragments")]
    #[pyo3(signature = (previous, /))]
    fn take_fragments(&self, #[pyo3(from_py_with = previous)] previous: Bound<'_, Self>) -> PyResult<()> {
        let previous = previous.get().inner.get()?;
        self.inner.get()?.take_fragments(previous).map_err(errors::poll)
    }

    #[doc = docstring!("Image.block_poll")]
    #[pyo3(signature = (handler, limit_bytes, *, view = false))]
    fn block_poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit_bytes)] limit_bytes: usize,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        Ok(image.block_poll(|block| deliver_block(&handler, &block, view), limit_bytes)?)
    }

    #[doc = docstring!("Image.poll_batch")]
    #[pyo3(signature = (limit = 4096, *, assemble = true))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
    ) -> PyResult<FragmentBatch> {
        let image = self.inner.get()?;
        let mut columns = self.spare.columns(image.stream_id());
        detach(py, || {
            let mut assembler = image.assembler()?;
            image.poll(
                |payload, header| -> Result<_, HandlerError> {
                    Ok(if columns.collect(&mut assembler, assemble, payload, header) {
                        Action::Continue
                    } else {
                        Action::Break
                    })
                },
                limit,
            )?;
            Ok::<_, HandlerError>(())
        })?;
        Ok(FragmentBatch::new(columns))
    }

    #[doc = docstring!("Image.end_of_stream_position")]
    #[getter]
    fn end_of_stream_position(&self) -> PyResult<Option<i64>> {
        let position = self.inner.get()?.end_of_stream_position();
        Ok((position != i64::MAX).then_some(position))
    }

    #[doc = docstring!("Image.reject")]
    #[pyo3(signature = (reason, /))]
    fn reject(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::reason)] reason: &str) -> PyResult<()> {
        let image = self.inner.get()?;
        match self.client.get()? {
            Some(kept) => ask(
                py,
                kept,
                |_| image.async_reject(reason),
                |client, id| Ok(client.requests().find_operation(id)?.then_some(())),
            ),
            // In a handler, which may not wait: the client says so.
            None => detach(py, || image.reject(reason)).map_err(errors::client),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other
            .cast::<Self>()
            .ok()
            .and_then(|other| other.get().inner.get().ok());
        matches!((self.inner.get(), other), (Ok(mine), Some(other)) if Arc::ptr_eq(mine, other))
    }

    fn __hash__(&self) -> PyResult<u64> {
        Ok(Arc::as_ptr(self.inner.get()?).addr() as u64)
    }

    fn __repr__(&self) -> String {
        let Ok(image) = self.inner.get() else {
            return "Image(made before a fork)".to_owned();
        };
        format!(
            "Image(session_id={}, stream_id={}, source_identity={:?}, position={}{})",
            image.session_id(),
            image.stream_id(),
            image.source_identity(),
            image.position(),
            if image.is_closed() { ", closed" } else { "" }
        )
    }
}

/// The argument of a call.
pub(crate) fn image_if_any<'py>(image: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Image>>> {
    if image.is_none() {
        return Ok(None);
    }
    let found = image.cast::<Image>().cloned();
    found
        .map(Some)
        .map_err(|_| arguments::wrong_type(image, "image", "must be an Image or None"))
}

/// The image before this one.
fn previous<'py>(image: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Image>> {
    let found = image.cast::<Image>().cloned();
    found.map_err(|_| arguments::wrong_type(image, "previous", "must be an Image"))
}

fn reception<'a, 'py>(
    image: &'a headrace_client::Image,
    handler: &'a Bound<'py, PyAny>,
    assemble: bool,
    view: bool,
) -> PyResult<Reception<'a, 'py>> {
    let assembler = image.assembler().map_err(errors::poll)?;
    Ok(Reception::new(Delivery::new(handler, view), assembler, assemble))
}
