//! Publications, concurrent and exclusive.

use std::sync::Arc;

use headrace_buffers::log::append::Progress;
use headrace_buffers::log::{Append, ClaimResult};
use headrace_client::{OfferError, PublicationHandle, SubscriberCount};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::batch_input::Messages;
use crate::batch_offer::{BatchResult, advance, check_lengths};
use crate::c_api::BorrowedBytes;
use crate::changes::{Change, HasDestinations};
use crate::claim::Claim;
use crate::destinations;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::inner::Inner;
use crate::kept_client::KeptClient;
use crate::no_doorbell::NoDoorbell;
use crate::wait::Waiter;
use crate::{arguments, errors, results};

#[doc = docstring!("Publication")]
#[pyclass(frozen, subclass, weakref, module = "headrace")]
pub(crate) struct Publication {
    pub(crate) inner: ForkGuard<Arc<Inner>>,
    // Keeps the client open for as long as anything made by it is in use.
    client: ForkGuard<KeptClient>,
}

impl Publication {
    pub(crate) fn new(client: KeptClient, inner: Inner) -> Self {
        Self {
            inner: ForkGuard::new(Arc::new(inner)),
            client: ForkGuard::new(client),
        }
    }

    pub(crate) fn shared(&self) -> PyResult<Arc<Inner>> {
        self.inner.get().map(Arc::clone)
    }

    fn handle(&self) -> PyResult<&PublicationHandle> {
        Ok(self.inner.get()?.handle())
    }

    fn destinations(&self) -> PyResult<Arc<dyn HasDestinations>> {
        Ok(Arc::clone(self.inner.get()?) as Arc<dyn HasDestinations>)
    }

    /// An offer of anything but `bytes`: another buffer, or several parts.
    #[cold]
    fn offer_other(inner: &Inner, data: &Bound<'_, PyAny>) -> PyResult<Append> {
        with_parts(data, |parts| match parts {
            [message] => inner.offer(message),
            parts => inner.offer_parts(parts),
        })
    }

    /// One offer of a buffer, or of several as one message.
    #[inline]
    fn offer_now(inner: &Inner, data: &Bound<'_, PyAny>, reserved_value: Option<i64>) -> PyResult<Append> {
        if let Some(value) = reserved_value {
            return with_parts(data, |parts| inner.offer_reserved(parts, value));
        }
        match data.cast::<PyBytes>() {
            Ok(bytes) => inner.offer(bytes.as_bytes()).map_err(errors::offer),
            Err(_) => Self::offer_other(inner, data),
        }
    }

    /// One offer of a header with what stands behind it.
    #[inline]
    pub(crate) fn offer_behind(
        &self,
        header: &[u8],
        data: &Bound<'_, PyAny>,
        reserved_value: i64,
    ) -> PyResult<Append> {
        let inner = self.inner.get()?;
        if let Ok(bytes) = data.cast::<PyBytes>() {
            let offered = inner.offer_reserved(&[header, bytes.as_bytes()], reserved_value);
            return offered.map_err(errors::offer);
        }
        with_parts(data, |parts| {
            inner.offer_reserved(&[&[header], parts].concat(), reserved_value)
        })
    }

    /// The same for one message of many; false when there is no room for it now. One that can never go is not sent, and
    /// true.
    pub(crate) fn sends_behind(&self, header: &[u8], message: &[u8], reserved_value: i64) -> PyResult<bool> {
        let inner = self.inner.get()?;
        // The second try finds the new term.
        for _ in 0..2 {
            let offered = inner.offer_reserved(&[header, message], reserved_value);
            match offered.map_err(errors::offer)? {
                Append::AdminAction => {}
                append => return Ok(append != Append::BackPressured),
            }
        }
        Ok(false)
    }

    /// The exception for an offer that a blocking helper gave up on.
    fn gave_up(&self, py: Python<'_>, last: Append, accepted: usize) -> PyErr {
        let handle = match self.handle() {
            Ok(handle) => handle,
            Err(error) => return error,
        };
        let result = match results::to_python(py, last) {
            Ok(result) => result.into_bound(py),
            Err(error) => return error,
        };
        let stream = format!("channel={} stream_id={}", handle.channel(), handle.stream_id());
        let (name, message) = match last {
            Append::Closed => match self.client.get().ok().and_then(|client| client.ended_by()) {
                Some(reason) => (
                    "PublicationClosedError",
                    format!("publication is closed: {reason}: {stream}"),
                ),
                None => (
                    "PublicationClosedError",
                    format!("publication is closed: {stream}"),
                ),
            },
            Append::MaxPositionExceeded => (
                "MaxPositionExceededError",
                format!(
                    "the stream is used up: max_possible_position={}: add a publication with a new session id: \
                     {stream}",
                    handle.max_possible_position()
                ),
            ),
            Append::NotConnected => (
                "PublicationTimeoutError",
                match handle.subscriber_count() {
                    SubscriberCount::Exactly(count) if count > 0 && !handle.channel().starts_with(IPC) => {
                        format!(
                            "too few subscribers for the group are connected, and no more came in time: receivers={count}: \
                         fc=min,g:/2 waits for 2 of them: {stream}"
                        )
                    }
                    _ => format!(
                        "no subscriber is connected, and none came in time: is one running on the same channel and \
                         stream? {stream}"
                    ),
                },
            ),
            _ => (
                "PublicationTimeoutError",
                format!(
                    "subscribers made no room in time: position={} limit={}: {stream}",
                    handle.position().unwrap_or(-1),
                    handle.position_limit().unwrap_or(-1),
                ),
            ),
        };
        errors::publication(name, &message, &result, accepted)
    }
}

/// Channels without flow control's groups.
const IPC: &str = "aeron:ipc";

/// Makes one offer of a buffer, or of the buffers in a tuple or list as one message.
fn with_parts(
    data: &Bound<'_, PyAny>,
    offer: impl FnOnce(&[&[u8]]) -> Result<Append, OfferError>,
) -> PyResult<Append> {
    let buffers = if data.is_instance_of::<PyTuple>() || data.is_instance_of::<PyList>() {
        data.try_iter()?
            .enumerate()
            .map(|(index, part)| BorrowedBytes::of(&part?, &format!("data[{index}]")))
            .collect::<PyResult<Vec<_>>>()?
    } else {
        vec![BorrowedBytes::of(data, "data")?]
    };
    let parts: Vec<&[u8]> = buffers.iter().map(|buffer| buffer.as_slice(data.py())).collect();
    offer(&parts).map_err(errors::offer)
}

/// Waiting cannot change these.
fn is_final(append: Append) -> bool {
    matches!(append, Append::Closed | Append::MaxPositionExceeded)
}

#[pymethods]
impl Publication {
    #[doc = docstring!("Publication.offer")]
    #[pyo3(signature = (data, /, *, reserved_value = None))]
    fn offer(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::reserved_value_if_any)] reserved_value: Option<i64>,
    ) -> PyResult<Py<PyAny>> {
        let append = Self::offer_now(self.inner.get()?, data, reserved_value)?;
        results::to_python(py, append)
    }

    #[doc = docstring!("Publication.offer_blocking")]
    #[pyo3(
        signature = (data, /, *, reserved_value = None, timeout_s = Some(5.0), idle = None),
        text_signature = "($self, data, /, *, reserved_value=None, timeout_s=5.0, idle=None)"
    )]
    fn offer_blocking(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::reserved_value_if_any)] reserved_value: Option<i64>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let inner = self.inner.get()?;
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let first = Self::offer_now(inner, data, reserved_value)?;
        if let Append::Position(position) = first {
            return Ok(position);
        }
        // From here on other threads may run, and may write to a buffer that is not `bytes`.
        let copy = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => joined(data)?,
        };
        let (message, mut last) = (copy.as_bytes(), first);
        let offer = || match reserved_value {
            Some(value) => inner.offer_reserved(&[message], value),
            None => inner.offer(message),
        };
        let done = waiter.wait_for(py, inner.handle(), || match offer() {
            Ok(Append::Position(position)) => Some(Ok(position)),
            Ok(refused) => {
                last = refused;
                is_final(refused).then_some(Err(None))
            }
            Err(error) => Some(Err(Some(error))),
        })?;
        match done {
            Some(Ok(position)) => Ok(position),
            Some(Err(Some(error))) => Err(errors::offer(error)),
            Some(Err(None)) | None => Err(self.gave_up(py, last, 0)),
        }
    }

    #[doc = docstring!("Publication.offer_async")]
    #[pyo3(signature = (data, /, *, reserved_value = None, timeout_s = None))]
    fn offer_async<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        reserved_value: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("headrace.aio")?
            .call_method1("offer", (slf, data, timeout_s, reserved_value))
    }

    #[doc = docstring!("Publication.try_claim")]
    #[pyo3(signature = (length, /))]
    fn try_claim<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::length)] length: usize,
    ) -> PyResult<Py<PyAny>> {
        let inner = self.inner.get()?;
        match Self::claim_now(inner, length).map_err(errors::offer)? {
            Ok(claim) => Ok(Bound::new(py, claim)?.into_any().unbind()),
            Err(refused) => results::to_python(py, refused),
        }
    }

    #[doc = docstring!("Publication.claim_blocking")]
    #[pyo3(
        signature = (length, /, *, timeout_s = Some(5.0), idle = None),
        text_signature = "($self, length, /, *, timeout_s=5.0, idle=None)"
    )]
    fn claim_blocking(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::length)] length: usize,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Claim> {
        let inner = self.inner.get()?;
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let mut last = Append::BackPressured;
        let done = waiter.wait_for(py, inner.handle(), || match Self::claim_now(inner, length) {
            Ok(Ok(claim)) => Some(Ok(claim)),
            Ok(Err(refused)) => {
                last = refused;
                is_final(refused).then_some(Err(None))
            }
            Err(error) => Some(Err(Some(error))),
        })?;
        match done {
            Some(Ok(claim)) => Ok(claim),
            Some(Err(Some(error))) => Err(errors::offer(error)),
            Some(Err(None)) | None => Err(self.gave_up(py, last, 0)),
        }
    }

    #[doc = docstring!("Publication.offer_batch")]
    #[pyo3(signature = (messages, /))]
    fn offer_batch(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<BatchResult> {
        let inner = self.inner.get()?;
        let messages = Messages::extract(messages)?;
        let slices = messages.slices()?;
        check_lengths(inner, &slices)?;
        let mut progress = Progress::default();
        detach(py, || advance(&mut progress, inner, &slices)).map_err(errors::offer)?;
        Ok(BatchResult {
            accepted: progress.accepted,
            requested: slices.len(),
            position: progress.position,
            stopped_by: progress
                .refused
                .map(|refused| results::to_python(py, refused))
                .transpose()?,
        })
    }

    #[doc = docstring!("Publication.offer_batch_blocking")]
    #[pyo3(
        signature = (messages, /, *, timeout_s = Some(5.0), idle = None),
        text_signature = "($self, messages, /, *, timeout_s=5.0, idle=None)"
    )]
    fn offer_batch_blocking(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let inner = self.inner.get()?;
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let messages = Messages::extract(messages)?;
        let slices = messages.slices()?;
        check_lengths(inner, &slices)?;
        let mut progress = Progress::default();
        let done = waiter.wait_for(py, inner.handle(), || {
            match advance(&mut progress, inner, &slices) {
                Ok(()) => match progress.refused {
                    None => Some(Ok(())),
                    Some(refused) => is_final(refused).then_some(Ok(())),
                },
                Err(error) => Some(Err(error)),
            }
        })?;
        done.transpose().map_err(errors::offer)?;
        match progress.refused {
            None => Ok(progress
                .position
                .or_else(|| inner.handle().position())
                .unwrap_or(0)),
            Some(refused) => Err(self.gave_up(py, refused, progress.accepted)),
        }
    }

    #[doc = docstring!("Publication.wait_until_connected")]
    #[pyo3(
        signature = (timeout_s = Some(5.0), *, idle = None),
        text_signature = "($self, timeout_s=5.0, *, idle=None)"
    )]
    fn wait_until_connected(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let handle = self.handle()?;
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let step = || match handle.is_connected() {
            false if !handle.is_closed() => None,
            is_connected => Some(is_connected),
        };
        Ok(waiter.wait_for(py, handle, step)?.unwrap_or(false))
    }

    #[doc = docstring!("Publication.subscriber_count")]
    #[getter]
    fn subscriber_count(&self) -> PyResult<Option<usize>> {
        Ok(match self.handle()?.subscriber_count() {
            SubscriberCount::Exactly(count) => Some(count),
            SubscriberCount::AtLeast(_) => None,
        })
    }

    #[doc = docstring!("Publication.wait_for_subscribers")]
    #[pyo3(
        signature = (count, /, timeout_s = Some(5.0), *, idle = None),
        text_signature = "($self, count, /, timeout_s=5.0, *, idle=None)"
    )]
    fn wait_for_subscribers(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::count)] count: usize,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let handle = self.handle()?;
        let waiter = Waiter::new(self.client.get()?, timeout_s, idle)?;
        let is_counted = matches!(handle.subscriber_count(), SubscriberCount::Exactly(_));
        if count > 1 && !is_counted {
            return Err(errors::config(
                "count",
                &count.to_string(),
                "must be 1 on this channel: the driver knows whether it has a receiver, and counts receivers of IPC, \
                 and of flow control min and tagged, only",
            ));
        }
        let has_enough = || match handle.subscriber_count() {
            SubscriberCount::Exactly(subscribers) | SubscriberCount::AtLeast(subscribers) => {
                subscribers >= count
            }
        };
        let step = || {
            let is_closed = handle.is_closed();
            (is_closed || has_enough()).then_some(!is_closed)
        };
        // Receivers are counted without a sign.
        Ok(waiter.wait_for(py, &NoDoorbell, step)?.unwrap_or(false))
    }

    #[doc = docstring!("Publication.position")]
    #[getter]
    fn position(&self) -> PyResult<Option<i64>> {
        self.handle().map(PublicationHandle::position)
    }

    #[doc = docstring!("Publication.position_limit")]
    #[getter]
    fn position_limit(&self) -> PyResult<Option<i64>> {
        self.handle().map(PublicationHandle::position_limit)
    }

    #[doc = docstring!("Publication.available_window")]
    #[getter]
    fn available_window(&self) -> PyResult<Option<i64>> {
        self.handle().map(PublicationHandle::available_window)
    }

    #[doc = docstring!("Publication.is_connected")]
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        self.handle().map(PublicationHandle::is_connected)
    }

    #[doc = docstring!("Publication.is_closed")]
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        self.handle().map(PublicationHandle::is_closed)
    }

    #[doc = docstring!("Publication.is_original")]
    #[getter]
    fn is_original(&self) -> PyResult<bool> {
        self.handle().map(PublicationHandle::is_original)
    }

    #[doc = docstring!("Publication.channel")]
    #[getter]
    fn channel(&self) -> PyResult<&str> {
        self.handle().map(PublicationHandle::channel)
    }

    #[doc = docstring!("Publication.stream_id")]
    #[getter]
    fn stream_id(&self) -> PyResult<i32> {
        self.handle().map(PublicationHandle::stream_id)
    }

    #[doc = docstring!("Publication.session_id")]
    #[getter]
    fn session_id(&self) -> PyResult<i32> {
        self.handle().map(PublicationHandle::session_id)
    }

    #[doc = docstring!("Publication.initial_term_id")]
    #[getter]
    fn initial_term_id(&self) -> PyResult<i32> {
        self.handle().map(PublicationHandle::initial_term_id)
    }

    #[doc = docstring!("Publication.term_length")]
    #[getter]
    fn term_length(&self) -> PyResult<usize> {
        self.handle().map(PublicationHandle::term_length)
    }

    #[doc = docstring!("Publication.max_possible_position")]
    #[getter]
    fn max_possible_position(&self) -> PyResult<i64> {
        self.handle().map(PublicationHandle::max_possible_position)
    }

    #[doc = docstring!("Publication.max_payload_length")]
    #[getter]
    fn max_payload_length(&self) -> PyResult<usize> {
        self.handle().map(PublicationHandle::max_payload_length)
    }

    #[doc = docstring!("Publication.max_message_length")]
    #[getter]
    fn max_message_length(&self) -> PyResult<usize> {
        self.handle().map(PublicationHandle::max_message_length)
    }

    #[doc = docstring!("Publication.registration_id")]
    #[getter]
    fn registration_id(&self) -> PyResult<i64> {
        self.handle().map(PublicationHandle::registration_id)
    }

    #[doc = docstring!("Publication.original_registration_id")]
    #[getter]
    fn original_registration_id(&self) -> PyResult<i64> {
        self.handle().map(PublicationHandle::original_registration_id)
    }

    #[doc = docstring!("Publication.position_limit_id")]
    #[getter]
    fn position_limit_id(&self) -> PyResult<i32> {
        self.handle().map(PublicationHandle::position_limit_id)
    }

    #[doc = docstring!("Publication.channel_status_id")]
    #[getter]
    fn channel_status_id(&self) -> PyResult<i32> {
        self.handle().map(PublicationHandle::channel_status_id)
    }

    #[doc = docstring!("Publication.channel_status")]
    #[getter]
    fn channel_status(&self) -> PyResult<&'static str> {
        Ok(results::channel_status(self.handle()?.channel_status()))
    }

    #[doc = docstring!("Publication.local_socket_addresses")]
    #[getter]
    fn local_socket_addresses(&self) -> PyResult<Vec<String>> {
        self.handle().map(PublicationHandle::local_socket_addresses)
    }

    #[doc = docstring!("Publication.add_destination")]
    #[pyo3(signature = (channel, /))]
    fn add_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = destinations::sent)] channel: String,
    ) -> PyResult<i64> {
        Change::Add(channel).make(py, self.client.get()?, self.destinations()?)
    }

    #[doc = docstring!("Publication.remove_destination")]
    #[pyo3(signature = (channel, /))]
    fn remove_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = destinations::sent)] channel: String,
    ) -> PyResult<()> {
        let change = Change::Remove(channel);
        change
            .make(py, self.client.get()?, self.destinations()?)
            .map(|_| ())
    }

    #[doc = docstring!("Publication.remove_destination_by_id")]
    #[pyo3(signature = (registration_id, /))]
    fn remove_destination_by_id(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
    ) -> PyResult<()> {
        let change = Change::RemoveById(registration_id);
        change
            .make(py, self.client.get()?, self.destinations()?)
            .map(|_| ())
    }

    #[doc = docstring!("Publication.add_destination_async")]
    #[pyo3(signature = (channel, /))]
    fn add_destination_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = destinations::sent)] channel: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        Change::Add(channel).make_async(py, self.client.get()?, self.destinations()?)
    }

    #[doc = docstring!("Publication.remove_destination_async")]
    #[pyo3(signature = (channel, /))]
    fn remove_destination_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = destinations::sent)] channel: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        Change::Remove(channel).make_async(py, self.client.get()?, self.destinations()?)
    }

    #[doc = docstring!("Publication.remove_destination_by_id_async")]
    #[pyo3(signature = (registration_id, /))]
    fn remove_destination_by_id_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        Change::RemoveById(registration_id).make_async(py, self.client.get()?, self.destinations()?)
    }

    #[doc = docstring!("Publication.close")]
    fn close(&self, py: Python<'_>) {
        if let Some(inner) = self.inner.get_if_own() {
            detach(py, || inner.handle().close());
        }
    }

    #[doc = docstring!("Publication.revoke")]
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle()?;
        detach(py, || handle.revoke());
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?;
        let Ok(handle) = slf.get().handle() else {
            return Ok(format!("{name}(made before a fork)"));
        };
        Ok(format!(
            "{name}(channel={:?}, stream_id={}, session_id={}, {})",
            handle.channel(),
            handle.stream_id(),
            handle.session_id(),
            match (handle.is_closed(), handle.is_connected()) {
                (true, _) => "closed",
                (false, true) => "connected",
                (false, false) => "not connected",
            }
        ))
    }
}

impl Publication {
    /// A claim, or the reason there is none.
    fn claim_now(inner: &Arc<Inner>, length: usize) -> Result<Result<Claim, Append>, OfferError> {
        let result = match &**inner {
            Inner::Concurrent(publication) => publication.try_claim(length)?,
            Inner::Exclusive(publication) => publication.try_claim(length)?,
        };
        Ok(match result {
            ClaimResult::Claimed(claim) => Ok(Claim::new(claim.into_owned())),
            ClaimResult::Refused(refused) => Err(refused),
        })
    }
}

/// The bytes of a buffer or of several parts, copied.
pub(crate) fn joined<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    let mut copy = Vec::new();
    if data.is_instance_of::<PyTuple>() || data.is_instance_of::<PyList>() {
        for part in data.try_iter()? {
            copy.extend_from_slice(BorrowedBytes::of(&part?, "data")?.as_slice(py));
        }
    } else {
        copy.extend_from_slice(BorrowedBytes::of(data, "data")?.as_slice(py));
    }
    Ok(PyBytes::new(py, &copy))
}
