//! Publications, concurrent and exclusive.

use std::sync::Arc;

use headrace_buffers::log::append::Progress;
use headrace_buffers::log::{Append, ClaimResult};
use headrace_client::{OfferError, SubscriberCount};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::boundary::c_api::BorrowedBytes;
use crate::boundary::client_ref::ClientRef;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, errors};
use crate::publishing::any_publication::AnyPublication;
use crate::publishing::batch_input::Messages;
use crate::publishing::batch_offer::{BatchResult, advance, check_lengths};
use crate::publishing::claim::Claim;
use crate::publishing::offer_result;
use crate::streams::destination_change::Change;
use crate::waiting::doorbells::NoDoorbell;
use crate::waiting::waitable::Waitable;
use crate::waiting::waiter::Waiter;

#[doc = docstring!("Publication")]
#[pyclass(frozen, subclass, weakref, module = "headrace")]
pub(crate) struct Publication {
    pub(crate) inner: ForkGuard<Arc<AnyPublication>>,
    // Keeps the client open for as long as anything made by it is in use.
    client: ForkGuard<ClientRef>,
}

impl Publication {
    pub(crate) fn new(client: ClientRef, inner: AnyPublication) -> Self {
        Self {
            inner: ForkGuard::new(Arc::new(inner)),
            client: ForkGuard::new(client),
        }
    }

    pub(crate) fn shared(&self) -> PyResult<Arc<AnyPublication>> {
        self.inner.get().map(Arc::clone)
    }

    /// An offer of anything but `bytes`: another buffer, or several parts.
    #[cold]
    fn offer_other(inner: &AnyPublication, data: &Bound<'_, PyAny>) -> PyResult<Append> {
        with_parts(data, |parts| {
            let offered = match parts {
                [message] => inner.offer(message),
                parts => inner.offer_parts(parts),
            };
            offered.map_err(errors::offer)
        })
    }

    /// One offer of a buffer, or of several as one message.
    #[inline]
    fn offer_now(
        inner: &AnyPublication,
        data: &Bound<'_, PyAny>,
        reserved_value: Option<i64>,
    ) -> PyResult<Append> {
        if let Some(value) = reserved_value {
            return with_parts(data, |parts| {
                inner.offer_reserved(parts, value).map_err(errors::offer)
            });
        }
        match data.cast::<PyBytes>() {
            Ok(bytes) => inner.offer(bytes.as_bytes()).map_err(errors::offer),
            Err(_) => Self::offer_other(inner, data),
        }
    }

    /// The exception for an offer that a blocking helper gave up on.
    fn gave_up(&self, py: Python<'_>, last: Append, accepted: usize) -> PyErr {
        let (handle, result) = match (self.inner.get(), offer_result::to_python(py, last)) {
            (Ok(handle), Ok(result)) => (handle, result.into_bound(py)),
            (Err(error), _) | (_, Err(error)) => return error,
        };
        let stream = format!("channel={} stream_id={}", handle.channel(), handle.stream_id());
        let (name, message) = match last {
            Append::Closed => (
                "PublicationClosedError",
                match self.client().ok().and_then(|client| client.ended_by()) {
                    Some(reason) => format!("publication is closed: {reason}: {stream}"),
                    None => format!("publication is closed: {stream}"),
                },
            ),
            Append::MaxPositionExceeded => (
                "MaxPositionExceededError",
                format!(
                    "the stream is used up: max_possible_position={}: add a publication with a new session id: \
                     {stream}",
                    handle.limits().max_possible_position
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

    /// Repeats an attempt to send until it is taken. The last refusal if waiting cannot help, or not in time.
    fn until_taken<T: Send>(
        &self,
        py: Python<'_>,
        waiter: Waiter<'_>,
        mut attempt: impl FnMut() -> Result<Result<T, Append>, OfferError> + Send,
    ) -> PyResult<Result<T, Append>> {
        let mut last = Append::BackPressured;
        let done = waiter.wait_for(py, self.inner.get()?.awaited(), || match attempt() {
            Ok(Ok(taken)) => Some(Ok(Some(taken))),
            Ok(Err(refused)) => {
                last = refused;
                is_final(refused).then_some(Ok(None))
            }
            Err(error) => Some(Err(error)),
        })?;
        let taken = done.transpose().map_err(errors::offer)?.flatten();
        Ok(taken.ok_or(last))
    }
}

/// Channels without flow control's groups.
const IPC: &str = "aeron:ipc";

/// Makes one offer of a buffer, or of the buffers in a tuple or list as one message.
pub(crate) fn with_parts<T>(
    data: &Bound<'_, PyAny>,
    offer: impl FnOnce(&[&[u8]]) -> PyResult<T>,
) -> PyResult<T> {
    let buffers = if data.is_instance_of::<PyTuple>() || data.is_instance_of::<PyList>() {
        data.try_iter()?
            .enumerate()
            .map(|(index, part)| BorrowedBytes::of(&part?, &format!("data[{index}]")))
            .collect::<PyResult<Vec<_>>>()?
    } else {
        vec![BorrowedBytes::of(data, "data")?]
    };
    let parts: Vec<&[u8]> = buffers.iter().map(|buffer| buffer.as_slice(data.py())).collect();
    offer(&parts)
}

/// Waiting cannot change these.
fn is_final(append: Append) -> bool {
    matches!(append, Append::Closed | Append::MaxPositionExceeded)
}

stream_methods!(Publication);

getters! { Publication:
    position: Option<i64>,
    position_limit: Option<i64>,
    available_window: Option<i64>,
    is_original: bool,
    session_id: i32,
    original_registration_id: i64,
    position_limit_id: i32,
}

getters! { Publication.limits:
    initial_term_id: i32,
    term_length: usize,
    max_possible_position: i64,
    max_payload_length: usize,
    max_message_length: usize,
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
        offer_result::to_python(py, append)
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
        let waiter = Waiter::new(self.client()?, timeout_s, idle)?;
        if let Append::Position(position) = Self::offer_now(inner, data, reserved_value)? {
            return Ok(position);
        }
        // From here on other threads may run, and may write to a buffer that is not `bytes`.
        let copy = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => with_parts(data, |parts| Ok(PyBytes::new(py, &parts.concat())))?,
        };
        let message = copy.as_bytes();
        let offer = || match reserved_value {
            Some(value) => inner.offer_reserved(&[message], value),
            None => inner.offer(message),
        };
        let attempt = || {
            Ok(match offer()? {
                Append::Position(position) => Ok(position),
                refused => Err(refused),
            })
        };
        self.until_taken(py, waiter, attempt)?
            .map_err(|refused| self.gave_up(py, refused, 0))
    }

    #[doc = docstring!("Publication.offer_async")]
    #[pyo3(
        signature = (data, /, *, reserved_value = None, timeout_s = Some(5.0)),
        text_signature = "($self, data, /, *, reserved_value=None, timeout_s=5.0)"
    )]
    fn offer_async<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        reserved_value: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("headrace.aio")?
            .call_method1("offer_async", (slf, data, timeout_s, reserved_value))
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
            Err(refused) => offer_result::to_python(py, refused),
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
        let waiter = Waiter::new(self.client()?, timeout_s, idle)?;
        self.until_taken(py, waiter, || Self::claim_now(inner, length))?
            .map_err(|refused| self.gave_up(py, refused, 0))
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
                .map(|refused| offer_result::to_python(py, refused))
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
        let waiter = Waiter::new(self.client()?, timeout_s, idle)?;
        let messages = Messages::extract(messages)?;
        let slices = messages.slices()?;
        check_lengths(inner, &slices)?;
        let mut progress = Progress::default();
        let attempt = || {
            advance(&mut progress, inner, &slices)?;
            Ok(progress.refused.map_or(Ok(()), Err))
        };
        match self.until_taken(py, waiter, attempt)? {
            Ok(()) => Ok(progress.position.or_else(|| inner.position()).unwrap_or(0)),
            Err(refused) => Err(self.gave_up(py, refused, progress.accepted)),
        }
    }

    #[doc = docstring!("Publication.subscriber_count")]
    #[getter]
    fn subscriber_count(&self) -> PyResult<Option<usize>> {
        Ok(match self.inner.get()?.subscriber_count() {
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
        let handle = self.inner.get()?;
        let waiter = Waiter::new(self.client()?, timeout_s, idle)?;
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

    #[doc = docstring!("Publication.revoke")]
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.inner.get()?;
        detach(py, || handle.revoke());
        Ok(())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?;
        let Ok(handle) = slf.get().inner.get() else {
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
    fn claim_now(inner: &Arc<AnyPublication>, length: usize) -> Result<Result<Claim, Append>, OfferError> {
        let result = match &**inner {
            AnyPublication::Concurrent(publication) => publication.try_claim(length)?,
            AnyPublication::Exclusive(publication) => publication.try_claim(length)?,
        };
        Ok(match result {
            ClaimResult::Claimed(claim) => Ok(Claim::new(claim.into_owned())),
            ClaimResult::Refused(refused) => Err(refused),
        })
    }
}
