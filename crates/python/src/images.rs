//! One publisher's stream, as a subscription sees it.

use std::collections::HashMap;
use std::sync::Arc;

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client::FragmentAssembler;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asking::ask;
use crate::batch::FragmentBatch;
use crate::columns::{Columns, Spare};
use crate::delivery::{Delivery, HandlerError, Reception, deliver_block};
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::kept_client::KeptClient;
use crate::sequencer::{Entries, Followed};
use crate::service::{self, LogPlace};
use crate::{arguments, errors};

#[doc = docstring!("Image")]
#[pyclass(frozen, weakref, module = "headrace")]
pub(crate) struct Image {
    inner: ForkGuard<Arc<headrace_client::Image>>,
    spare: Arc<Spare>,
    client: ForkGuard<Option<KeptClient>>,
}

impl Image {
    /// `client` keeps the client open; handlers, which the client itself owns, leave it out.
    pub(crate) fn new(inner: Arc<headrace_client::Image>, client: Option<KeptClient>) -> Self {
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
    pub(crate) fn client(&self) -> PyResult<Option<&KeptClient>> {
        self.client.get().map(Option::as_ref)
    }
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
        let mut reception = Reception::new(
            Delivery::new(&handler, view),
            image.assembler().map_err(errors::poll)?,
            assemble,
        );
        Ok(image.try_poll(|payload, header| reception.fragment(payload, header), limit)?)
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
        let mut reception = Reception::new(
            Delivery::new(&handler, view),
            image.assembler().map_err(errors::poll)?,
            assemble,
        );
        let handle = |payload: &[u8], header: &LogHeader<'_>| reception.fragment(payload, header);
        Ok(image.try_bounded_poll(limit_position, handle, limit)?)
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
        let mut reception = Reception::new(
            Delivery::new(&handler, view),
            image.assembler().map_err(errors::poll)?,
            assemble,
        );
        let handle = |payload: &[u8], header: &LogHeader<'_>| reception.controlled_fragment(payload, header);
        let count = match limit_position {
            None => image.try_controlled_poll(handle, limit)?,
            Some(position) => image.try_bounded_controlled_poll(position, handle, limit)?,
        };
        Ok(count)
    }

    #[doc = docstring!("Image.poll_entries")]
    #[pyo3(signature = (deliver, sessions, place, handler, limit, limit_position))]
    fn poll_entries(
        &self,
        #[pyo3(from_py_with = arguments::deliver)] deliver: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::sessions)] sessions: Bound<'_, PyDict>,
        #[pyo3(from_py_with = service::log_place)] place: Bound<'_, LogPlace>,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::limit_position)] limit_position: i64,
    ) -> PyResult<usize> {
        let image = self.inner.get()?;
        let mut assembler = image.assembler().map_err(errors::poll)?;
        let mut entries = Entries::new(&deliver, &sessions, place.get(), Delivery::new(&handler, false));
        let take = |payload: &[u8], header: &LogHeader<'_>| {
            assembler.on_controlled_fragment(payload, header, |message, header| entries.take(message, header))
        };
        Ok(image.try_bounded_controlled_poll(limit_position, take, limit)?)
    }

    #[doc = docstring!("Image.follow_entries")]
    #[pyo3(signature = (handler, limit, limit_position))]
    fn follow_entries(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::limit_position)] limit_position: i64,
    ) -> PyResult<(usize, HashMap<i64, i64>)> {
        let image = self.inner.get()?;
        let mut assembler = image.assembler().map_err(errors::poll)?;
        let mut followed = Followed::new(Delivery::new(&handler, false));
        let take = |payload: &[u8], header: &LogHeader<'_>| {
            assembler
                .on_controlled_fragment(payload, header, |message, header| followed.take(message, header))
        };
        let count = image.try_bounded_controlled_poll(limit_position, take, limit)?;
        Ok((count, followed.heard()))
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
        Ok(image.try_block_poll(|block| deliver_block(&handler, &block, view), limit_bytes)?)
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
            image.try_controlled_poll(
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

    #[doc = docstring!("Image.position")]
    #[getter]
    fn position(&self) -> PyResult<i64> {
        Ok(self.inner.get()?.position())
    }

    #[doc = docstring!("Image.join_position")]
    #[getter]
    fn join_position(&self) -> PyResult<i64> {
        Ok(self.inner.get()?.join_position())
    }

    #[doc = docstring!("Image.session_id")]
    #[getter]
    fn session_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.session_id())
    }

    #[doc = docstring!("Image.stream_id")]
    #[getter]
    fn stream_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.stream_id())
    }

    #[doc = docstring!("Image.correlation_id")]
    #[getter]
    fn correlation_id(&self) -> PyResult<i64> {
        Ok(self.inner.get()?.correlation_id())
    }

    #[doc = docstring!("Image.source_identity")]
    #[getter]
    fn source_identity(&self) -> PyResult<&str> {
        Ok(self.inner.get()?.source_identity())
    }

    #[doc = docstring!("Image.subscriber_position_id")]
    #[getter]
    fn subscriber_position_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.subscriber_position_id())
    }

    #[doc = docstring!("Image.is_end_of_stream")]
    #[getter]
    fn is_end_of_stream(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_end_of_stream())
    }

    #[doc = docstring!("Image.end_of_stream_position")]
    #[getter]
    fn end_of_stream_position(&self) -> PyResult<Option<i64>> {
        let position = self.inner.get()?.end_of_stream_position();
        Ok((position != i64::MAX).then_some(position))
    }

    #[doc = docstring!("Image.is_publication_revoked")]
    #[getter]
    fn is_publication_revoked(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_publication_revoked())
    }

    #[doc = docstring!("Image.active_transport_count")]
    #[getter]
    fn active_transport_count(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.active_transport_count())
    }

    #[doc = docstring!("Image.is_closed")]
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_closed())
    }

    #[doc = docstring!("Image.initial_term_id")]
    #[getter]
    fn initial_term_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.initial_term_id())
    }

    #[doc = docstring!("Image.term_length")]
    #[getter]
    fn term_length(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.term_length())
    }

    #[doc = docstring!("Image.mtu_length")]
    #[getter]
    fn mtu_length(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.mtu_length())
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
                |client, id| Ok(client.find_operation(id)?.then_some(())),
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
