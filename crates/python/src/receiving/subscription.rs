//! Subscriptions and everything that polls them.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use headrace_buffers::log::Header as LogHeader;
use headrace_client::{Awaited, ClientError, FragmentAssembler, PollError};
use headrace_sys::native_handler::NativeHeader;
use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::columns::Spare;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::handler_error::HandlerError;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, c_api, errors};
use crate::cluster::sequencer::{self, Sequencer};
use crate::receiving::delivery::{Delivery, Reception, deliver_block, header_values};
use crate::receiving::fragment_batch::FragmentBatch;
use crate::receiving::image::Image;
use crate::receiving::message::Message;
use crate::streams::destination_change::Change;
use crate::waiting::idle_strategy::IdleStrategy;
use crate::waiting::waitable::Waitable;
use crate::waiting::waiter::Waiter;

/// Batches up to this many fragments are copied with the GIL held: less time than handing it over may cost.
const BATCH_WITH_GIL_MAX: usize = 64;

#[doc = docstring!("Subscription")]
#[pyclass(frozen, weakref, module = "headrace")]
pub(crate) struct Subscription {
    inner: ForkGuard<Arc<headrace_client::Subscription>>,
    assembler: Mutex<FragmentAssembler>,
    spare: Arc<Spare>,
    // Keeps the client open for as long as anything made by it is in use.
    client: ForkGuard<ClientRef>,
}

impl Subscription {
    pub(crate) fn new(client: ClientRef, inner: headrace_client::Subscription) -> Self {
        Self {
            inner: ForkGuard::new(Arc::new(inner)),
            assembler: Mutex::new(FragmentAssembler::new()),
            spare: Arc::default(),
            client: ForkGuard::new(client),
        }
    }

    pub(crate) fn shared(&self) -> PyResult<Arc<headrace_client::Subscription>> {
        self.inner.get().map(Arc::clone)
    }

    /// The assembler of polls of all images, without what is left of messages whose publishers went.
    fn assembler(
        &self,
        subscription: &headrace_client::Subscription,
    ) -> Result<MutexGuard<'_, FragmentAssembler>, PollError> {
        let mut assembler = match self.assembler.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(PollError::Busy { what: "subscription" });
            }
        };
        if assembler.session_count() > 0 && assembler.session_count() > subscription.image_count() {
            let images = subscription.images();
            assembler
                .retain_sessions(|session_id| images.iter().any(|image| image.session_id() == session_id));
        }
        Ok(assembler)
    }

    /// The time of its client's clock.
    pub(crate) fn now_ns(&self) -> PyResult<i64> {
        Ok(self.client.get()?.config().clock.nano_time())
    }

    /// Closed by this program, itself or with its client, and not because the client failed.
    pub(crate) fn is_closed_by_program(&self) -> bool {
        match (self.inner.get(), self.client.get()) {
            (Ok(subscription), Ok(client)) => {
                subscription.is_closed()
                    && matches!(client.ended_by(), None | Some(ClientError::Closed { .. }))
            }
            _ => false,
        }
    }

    /// A poll on a subscription that was closed because its client ended says why that was. What a handler raised is the
    /// program's own.
    fn explain(&self, error: HandlerError) -> HandlerError {
        if !matches!(error, HandlerError::Poll(_)) {
            return error;
        }
        let reason = match (self.inner.get(), self.client.get()) {
            (Ok(subscription), Ok(client)) if subscription.is_closed() => client.ended_by(),
            _ => None,
        };
        reason.map_or(error, |reason| HandlerError::Client(Box::new(reason)))
    }

    /// Takes one message, of whichever image has the next turn, and keeps of it what `keep` makes.
    pub(crate) fn take<T>(
        &self,
        mut keep: impl FnMut(&[u8], &LogHeader<'_>) -> T,
    ) -> Result<Option<T>, HandlerError> {
        let subscription = self.inner.get()?;
        let mut assembler = self.assembler(subscription)?;
        let mut taken = None;
        subscription
            .poll_while(
                |payload, header| -> Result<bool, HandlerError> {
                    taken = assembler.on_fragment(payload, header, &mut keep);
                    Ok(taken.is_none())
                },
                usize::MAX,
            )
            .map_err(|error| self.explain(error))?;
        Ok(taken)
    }

    fn reception<'a, 'py>(
        &'a self,
        subscription: &headrace_client::Subscription,
        delivery: Delivery<'a, 'py>,
        assemble: bool,
    ) -> Result<Reception<'a, 'py>, HandlerError> {
        Ok(Reception::new(delivery, self.assembler(subscription)?, assemble))
    }

    /// Passes up to `limit` fragments, or the messages they complete, to a handler.
    pub(crate) fn poll_into(
        &self,
        delivery: Delivery<'_, '_>,
        limit: usize,
        assemble: bool,
    ) -> Result<usize, HandlerError> {
        let subscription = self.inner.get()?;
        let mut reception = self.reception(subscription, delivery, assemble)?;
        subscription
            .poll(|payload, header| reception.fragment(payload, header), limit)
            .map_err(|error| self.explain(error))
    }
}

stream_methods!(Subscription);

getters! { Subscription:
    image_count: usize,
    resolved_endpoint: Option<String>,
    resolved_channel: Option<String>,
}

#[pymethods]
impl Subscription {
    #[doc = docstring!("Subscription.poll")]
    #[pyo3(signature = (handler, limit = 10, *, assemble = true, view = false))]
    fn poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        Ok(self.poll_into(Delivery::new(&handler, view), limit, assemble)?)
    }

    #[doc = docstring!("Subscription.controlled_poll")]
    #[pyo3(signature = (handler, limit = 10, *, assemble = true, view = false))]
    fn controlled_poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let subscription = self.inner.get()?;
        let mut reception = self.reception(subscription, Delivery::new(&handler, view), assemble)?;
        subscription
            .poll(
                |payload, header| reception.controlled_fragment(payload, header),
                limit,
            )
            .map_err(|error| self.explain(error).into())
    }

    #[doc = docstring!("Subscription.sequence")]
    #[pyo3(signature = (sequencer, handler, timestamp, limit))]
    fn sequence(
        &self,
        #[pyo3(from_py_with = sequencer::sequencer)] sequencer: Bound<'_, Sequencer>,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::timestamp)] timestamp: i64,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
    ) -> PyResult<usize> {
        let (py, sequencer) = (handler.py(), sequencer.get());
        let subscription = self.inner.get()?;
        let subscription_id = subscription.registration_id();
        let mut others = Delivery::new(&handler, false);
        let mut assembler = self.assembler(subscription).map_err(HandlerError::from)?;
        let take = |payload: &[u8], header: &LogHeader<'_>| {
            assembler.on_controlled_fragment(payload, header, |message, header| {
                let pass_on = |message: &[u8], header: &LogHeader<'_>| others.controlled(message, header);
                sequencer.take(message, header, subscription_id, timestamp, pass_on, py)
            })
        };
        subscription
            .poll(take, limit)
            .map_err(|error| self.explain(error).into())
    }

    #[doc = docstring!("Subscription.block_poll")]
    #[pyo3(signature = (handler, limit_bytes, *, view = false))]
    fn block_poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit_bytes)] limit_bytes: usize,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let subscription = self.inner.get()?;
        subscription
            .block_poll(|block| deliver_block(&handler, &block, view), limit_bytes)
            .map_err(|error| self.explain(error).into())
    }

    #[doc = docstring!("Subscription.poll_batch")]
    #[pyo3(signature = (limit = 4096, *, assemble = true))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
    ) -> PyResult<FragmentBatch> {
        let subscription = self.inner.get()?;
        let mut columns = self.spare.columns(subscription.stream_id());
        let mut fill = || -> Result<(), HandlerError> {
            let mut assembler = self.assembler(subscription)?;
            subscription
                .poll_while(
                    |payload, header| Ok(columns.collect(&mut assembler, assemble, payload, header)),
                    limit,
                )
                .map_err(|error| self.explain(error))?;
            Ok(())
        };
        let filled = if limit <= BATCH_WITH_GIL_MAX {
            fill()
        } else {
            detach(py, fill)
        };
        match filled {
            // What other images brought is consumed. The error comes again with the next call.
            Err(error) if columns.len() == 0 => Err(error.into()),
            _ => Ok(FragmentBatch::new(columns)),
        }
    }

    #[doc = docstring!("Subscription.poll_native")]
    #[pyo3(signature = (handler, context = 0, limit = 4096, *, assemble = true))]
    fn poll_native(
        &self,
        py: Python<'_>,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::context)] context: usize,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
    ) -> PyResult<usize> {
        let subscription = self.inner.get()?;
        let handler = c_api::native_handler(address_of(handler)?, context)?;
        let call = |payload: &[u8], header: &LogHeader<'_>| {
            let header = NativeHeader {
                position: header.position(),
                reserved_value: header.reserved_value(),
                session_id: header.session_id(),
                stream_id: header.stream_id(),
                term_id: header.term_id(),
                term_offset: header.term_offset(),
                length: payload.len() as i32,
                flags: u32::from(header.flags()),
            };
            handler.call(payload, &header);
        };
        let count = detach(py, || -> Result<usize, HandlerError> {
            let mut assembler = self.assembler(subscription)?;
            subscription
                .poll(
                    |payload, header| -> Result<(), HandlerError> {
                        if assemble {
                            assembler.on_fragment(payload, header, call);
                        } else {
                            call(payload, header);
                        }
                        Ok(())
                    },
                    limit,
                )
                .map_err(|error| self.explain(error))
        })?;
        Ok(count)
    }

    #[doc = docstring!("Subscription.poll_message")]
    fn poll_message(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        let message = self.take(|payload, header| Message::new(py, payload, header_values(header)))?;
        Ok(message)
    }

    #[doc = docstring!("Subscription.receive")]
    #[pyo3(signature = (timeout_s = None, *, idle = None))]
    pub(crate) fn receive(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Message>> {
        if idle.is_some() {
            // Refused whether or not a message is there already.
            IdleStrategy::extract(idle)?;
        }
        if let Some(message) = self.poll_message(py)? {
            return Ok(Some(message));
        }
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let copy = |payload: &[u8], header: &LogHeader<'_>| (payload.to_vec(), header_values(header));
        let awaited: &headrace_client::Subscription = self.inner.get()?;
        let taken = waiter
            .wait_for(py, awaited, || self.take(copy).transpose())?
            .transpose()?;
        Ok(taken.map(|(payload, header)| Message::new(py, &payload, header)))
    }

    /// The subscription itself: an iteration has no state that an exception could end.
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The next message, waited for without the GIL; ends when this program closes the subscription.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        match self.receive(py, None, None) {
            // Not what a signal handler raised that closed it.
            Err(error) if errors::is_closed(py, &error) && self.is_closed_by_program() => Ok(None),
            received => received,
        }
    }

    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("headrace.aio")?.call_method1("Messages", (slf,))
    }

    #[doc = docstring!("Subscription.images")]
    #[getter]
    fn images(&self, py: Python<'_>) -> PyResult<Vec<Py<Image>>> {
        let client = self.client.get()?;
        let images = self.inner.get()?.images();
        images
            .into_iter()
            .map(|image| Py::new(py, Image::new(image, Some(client.clone()))))
            .collect()
    }

    #[doc = docstring!("Subscription.image_by_session_id")]
    #[pyo3(signature = (session_id, /))]
    fn image_by_session_id(
        &self,
        #[pyo3(from_py_with = arguments::session_id)] session_id: i32,
    ) -> PyResult<Option<Image>> {
        let client = self.client.get()?;
        let image = self.inner.get()?.image_by_session_id(session_id);
        Ok(image.map(|image| Image::new(image, Some(client.clone()))))
    }

    fn __repr__(&self) -> String {
        let Ok(subscription) = self.inner.get() else {
            return "Subscription(made before a fork)".to_owned();
        };
        format!(
            "Subscription(channel={:?}, stream_id={}, {})",
            subscription.channel(),
            subscription.stream_id(),
            match (subscription.is_closed(), subscription.image_count()) {
                (true, _) => "closed".to_owned(),
                (false, 1) => "1 image".to_owned(),
                (false, count) => format!("{count} images"),
            }
        )
    }
}

impl Waitable for headrace_client::Subscription {
    fn is_ready(&self) -> bool {
        self.has_fragments() || self.is_closed()
    }

    fn awaited(&self) -> &(dyn Awaited + Sync) {
        self
    }
}

/// The argument of a call.
pub(crate) fn egress<'py>(subscription: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Subscription>> {
    let found = subscription.cast::<Subscription>().cloned();
    found.map_err(|_| arguments::wrong_type(subscription, "egress", "must be a Subscription"))
}

/// The address in an integer, a numba cfunc (`.address`), a ctypes function or a cffi pointer.
fn address_of(handler: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(address) = handler.extract::<usize>() {
        return Ok(address);
    }
    handler
        .py()
        .import("headrace.client.native")?
        .call_method1("address_of", (handler,))?
        .extract()
}
