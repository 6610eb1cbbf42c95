//! Several subscriptions, polled in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headrace_buffers::log::Header as LogHeader;
use headrace_client::PollError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::boundary::handler_error::HandlerError;
use crate::boundary::{arguments, errors};
use crate::receiving::delivery::{Delivery, header_values};
use crate::receiving::message::Message;
use crate::receiving::subscription::Subscription;
use crate::waiting::waitable::{AnyOf, Waitable};
use crate::waiting::waiter::Waiter;

#[doc = docstring!("Poller")]
#[pyclass(frozen, weakref, module = "headrace._core")]
pub(crate) struct Poller {
    subscriptions: Arc<[Py<Subscription>]>,
    /// The subscription that has the next turn.
    next: AtomicUsize,
}

impl Poller {
    /// The indices of all subscriptions, beginning with the one that has the next turn.
    fn turns(&self) -> impl Iterator<Item = usize> + use<> {
        let length = self.subscriptions.len();
        let start = self.next.load(Ordering::Relaxed);
        (start..start + length).map(move |turn| turn % length)
    }

    /// Takes one message, and says of which subscription. A subscription that the program closed is passed over.
    fn take<T>(
        &self,
        mut keep: impl FnMut(&[u8], &LogHeader<'_>) -> T,
    ) -> Result<Option<(usize, T)>, HandlerError> {
        let mut are_all_closed = true;
        for index in self.turns() {
            let subscription = self.subscriptions[index].get();
            match subscription.take(&mut keep) {
                Ok(None) => are_all_closed = false,
                Ok(Some(taken)) => {
                    self.next.store(index + 1, Ordering::Relaxed);
                    return Ok(Some((index, taken)));
                }
                Err(_) if subscription.is_closed_by_program() => {}
                Err(error) => return Err(error),
            }
        }
        if are_all_closed {
            return Err(PollError::Closed.into());
        }
        Ok(None)
    }

    fn pair<'py>(&self, py: Python<'py>, index: usize, message: Message) -> PyResult<Bound<'py, PyTuple>> {
        (self.subscriptions[index].bind(py), message).into_pyobject(py)
    }

    fn are_closed_by_program(&self) -> bool {
        self.subscriptions
            .iter()
            .all(|subscription| subscription.get().is_closed_by_program())
    }
}

fn subscriptions_of(objects: &Bound<'_, PyTuple>) -> PyResult<Vec<Py<Subscription>>> {
    let subscription = |(index, object): (usize, Bound<'_, PyAny>)| {
        let name = format!("subscriptions[{index}]");
        arguments::extract(&object, &name, "must be a headrace.Subscription")
    };
    objects.iter().enumerate().map(subscription).collect()
}

#[pymethods]
impl Poller {
    #[new]
    #[pyo3(signature = (*subscriptions))]
    fn new(subscriptions: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let subscriptions = subscriptions_of(subscriptions)?;
        if subscriptions.is_empty() {
            let rule = "must be at least one subscription";
            return Err(errors::config("subscriptions", "()", rule));
        }
        let is_repeated = (1..subscriptions.len()).any(|index| {
            let (before, rest) = subscriptions.split_at(index);
            before.iter().any(|other| other.is(&rest[0]))
        });
        if is_repeated {
            let rule = "must name each subscription once";
            let count = subscriptions.len().to_string();
            return Err(errors::config("len(subscriptions)", &count, rule));
        }
        Ok(Self {
            subscriptions: subscriptions.into(),
            next: AtomicUsize::new(0),
        })
    }

    #[doc = docstring!("Poller.subscriptions")]
    #[getter]
    fn subscriptions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            self.subscriptions
                .iter()
                .map(|subscription| subscription.bind(py)),
        )
    }

    #[doc = docstring!("Poller.poll")]
    #[pyo3(signature = (handler, limit = 10, *, assemble = true, view = false))]
    fn poll(
        &self,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::assemble)] assemble: bool,
        #[pyo3(from_py_with = arguments::view)] view: bool,
    ) -> PyResult<usize> {
        let py = handler.py();
        let turns = self.turns();
        // Another poll begins elsewhere, so that a subscription that uses up the limit does not keep it.
        self.next.fetch_add(1, Ordering::Relaxed);
        let (mut count, mut are_all_closed) = (0, true);
        for index in turns {
            if count >= limit {
                return Ok(count);
            }
            let subscription = self.subscriptions[index].bind(py);
            let delivery = Delivery::new(&handler, view).of(subscription.as_any());
            match subscription.get().poll_into(delivery, limit - count, assemble) {
                Ok(fragments) => {
                    count += fragments;
                    are_all_closed = false;
                }
                Err(HandlerError::Exception(error)) => return Err(error),
                Err(_) if subscription.get().is_closed_by_program() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if are_all_closed {
            return Err(errors::poll(PollError::Closed));
        }
        Ok(count)
    }

    #[doc = docstring!("Poller.poll_message")]
    fn poll_message<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let taken = self.take(|payload, header| Message::new(py, payload, header_values(header)))?;
        taken
            .map(|(index, message)| self.pair(py, index, message))
            .transpose()
    }

    #[doc = docstring!("Poller.receive")]
    #[pyo3(signature = (timeout_s = None, *, idle = None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let first = self.subscriptions[0].get();
        let waiter = Waiter::new(first.client()?, timeout_s, idle)?;
        if let Some(message) = self.poll_message(py)? {
            return Ok(Some(message));
        }
        let copy = |payload: &[u8], header: &LogHeader<'_>| (payload.to_vec(), header_values(header));
        let subscriptions = self.subscriptions.iter();
        let awaited: PyResult<_> = subscriptions
            .map(|subscription| Ok(subscription.get().shared()? as Arc<dyn Waitable>))
            .collect();
        let taken = waiter
            .wait_for(py, &AnyOf(awaited?), || self.take(copy).transpose())?
            .transpose()?;
        taken
            .map(|(index, (payload, header))| self.pair(py, index, Message::new(py, &payload, header)))
            .transpose()
    }

    /// The poller itself: an iteration has no state that an exception could end.
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The next subscription with a message and that message, waited for without the GIL.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match self.receive(py, None, None) {
            Err(error) if errors::is_closed(py, &error) && self.are_closed_by_program() => Ok(None),
            received => received,
        }
    }

    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("headrace.aio")?.call_method1("Messages", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Poller({} subscriptions)", self.subscriptions.len())
    }
}
