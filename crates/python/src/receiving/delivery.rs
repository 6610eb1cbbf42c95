//! Handing messages to Python handlers.

use std::sync::MutexGuard;

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client::{Block, FragmentAssembler};
use pyo3::exceptions::{PyBufferError, PySystemExit, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyMemoryView};

use crate::boundary::c_api::{ExportedMemory, Loan, call_handler};
use crate::boundary::handler_error::HandlerError;
use crate::boundary::interpreter_exit::{HandlerPoll, is_exiting_elsewhere};
use crate::receiving::header::{HeaderMaker, HeaderValues};

#[inline]
pub(crate) fn header_values(header: &LogHeader<'_>) -> HeaderValues {
    HeaderValues {
        position: header.position(),
        reserved_value: header.reserved_value(),
        session_id: header.session_id(),
        stream_id: header.stream_id(),
        term_id: header.term_id(),
        term_offset: header.term_offset(),
        frame_length: header.frame_length(),
        flags: header.flags(),
    }
}

/// Calls one handler for the messages of one poll.
pub(crate) struct Delivery<'a, 'py> {
    handler: &'a Bound<'py, PyAny>,
    // Given to the handler before the payload, for a handler of several subscriptions.
    subscription: Option<&'a Bound<'py, PyAny>>,
    headers: HeaderMaker<'py>,
    view: bool,
    _poll: HandlerPoll,
}

impl<'a, 'py> Delivery<'a, 'py> {
    pub(crate) fn new(handler: &'a Bound<'py, PyAny>, view: bool) -> Self {
        Self {
            headers: HeaderMaker::new(handler.py()),
            handler,
            subscription: None,
            view,
            _poll: HandlerPoll::begin(),
        }
    }

    /// Names the subscription to the handler.
    pub(crate) fn of(mut self, subscription: &'a Bound<'py, PyAny>) -> Self {
        self.subscription = Some(subscription);
        self
    }

    /// Calls the handler with a copy of the payload, or with a view that ends with the call.
    #[inline]
    fn message(&mut self, payload: &[u8], header: &LogHeader<'_>) -> PyResult<Bound<'py, PyAny>> {
        if is_exiting_elsewhere() {
            return Err(PySystemExit::new_err(()));
        }
        let py = self.handler.py();
        let values = header_values(header);
        if self.view {
            return self.lend(payload, header, &values);
        }
        let payload = PyBytes::new(py, payload);
        let header = self.headers.make(&values)?.as_any();
        call_handler(self.handler, self.subscription, payload.as_any(), header)
    }

    fn lend(
        &mut self,
        payload: &[u8],
        header: &LogHeader<'_>,
        values: &HeaderValues,
    ) -> PyResult<Bound<'py, PyAny>> {
        let memory = match header.payload_in_place() {
            Some(buffer) => ExportedMemory::Shared(buffer, payload.len()),
            // Put together from fragments, in memory that the next message will be put together in.
            None => ExportedMemory::Owned(payload.into()),
        };
        let header = self.headers.make(values)?;
        lend(self.handler.py(), memory, |view| {
            call_handler(self.handler, self.subscription, view.as_any(), header.as_any())
        })
    }

    /// As [`Self::message`] for handlers that say how to go on.
    pub(crate) fn controlled(&mut self, payload: &[u8], header: &LogHeader<'_>) -> PyResult<Action> {
        action(&self.message(payload, header)?)
    }
}

/// What a poll does with each fragment: passes it, or the message that it completes, to a Python handler.
pub(crate) struct Reception<'a, 'py> {
    delivery: Delivery<'a, 'py>,
    // Held even by a poll that does not assemble: one poll at a time.
    assembler: MutexGuard<'a, FragmentAssembler>,
    assemble: bool,
}

impl<'a, 'py> Reception<'a, 'py> {
    pub(crate) fn new(
        delivery: Delivery<'a, 'py>,
        assembler: MutexGuard<'a, FragmentAssembler>,
        assemble: bool,
    ) -> Self {
        Self {
            delivery,
            assembler,
            assemble,
        }
    }

    #[inline]
    pub(crate) fn fragment(&mut self, payload: &[u8], header: &LogHeader<'_>) -> Result<(), HandlerError> {
        let delivery = &mut self.delivery;
        if !self.assemble {
            delivery.message(payload, header)?;
            return Ok(());
        }
        let delivered = self.assembler.on_fragment(payload, header, |payload, header| {
            delivery.message(payload, header).map(drop)
        });
        delivered.unwrap_or(Ok(())).map_err(HandlerError::Exception)
    }

    /// As [`Self::fragment`] for handlers that say how to go on.
    pub(crate) fn controlled_fragment(
        &mut self,
        payload: &[u8],
        header: &LogHeader<'_>,
    ) -> Result<Action, HandlerError> {
        let delivery = &mut self.delivery;
        let mut handle = |payload: &[u8], header: &LogHeader<'_>| {
            delivery
                .controlled(payload, header)
                .map_err(HandlerError::Exception)
        };
        if self.assemble {
            self.assembler.on_controlled_fragment(payload, header, handle)
        } else {
            handle(payload, header)
        }
    }
}

/// Passes a run of frames to a Python handler.
pub(crate) fn deliver_block(
    handler: &Bound<'_, PyAny>,
    block: &Block<'_>,
    view: bool,
) -> Result<(), HandlerError> {
    let place = (block.session_id, block.term_id, block.term_offset);
    if view {
        lend(
            handler.py(),
            ExportedMemory::Shared(block.in_place(), block.bytes.len()),
            |view| handler.call1((view, place.0, place.1, place.2)),
        )?;
    } else {
        let bytes = PyBytes::new(handler.py(), block.bytes);
        handler.call1((bytes, place.0, place.1, place.2))?;
    }
    Ok(())
}

/// Calls a handler with a view that ends with the call.
fn lend<'py>(
    py: Python<'py>,
    memory: ExportedMemory,
    call: impl FnOnce(&Bound<'py, PyMemoryView>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let loan = Loan::new(py, memory, true)?;
    let result = call(&loan.view);
    if loan.end() {
        return result;
    }
    // The handler's own exception is worth more; its traceback may well be what holds the view.
    result.and(Err(PyBufferError::new_err(
        "the handler kept a slice or an array made from its view; the view was valid inside the handler \
         only, and what is left of it will show other messages: copy what you keep, for example with \
         bytes(view)",
    )))
}

/// The action a handler returned: a member of `Action`, or `None`.
fn action(returned: &Bound<'_, PyAny>) -> PyResult<Action> {
    if returned.is_none() {
        return Ok(Action::Continue);
    }
    // `True` is 1, and would have the same message come for ever.
    let number = if returned.is_instance_of::<PyBool>() {
        None
    } else {
        returned.extract::<i32>().ok()
    };
    match number {
        Some(1) => Ok(Action::Abort),
        Some(2) => Ok(Action::Break),
        Some(3) => Ok(Action::Commit),
        Some(4) => Ok(Action::Continue),
        _ => Err(PyTypeError::new_err(format!(
            "the handler returned {}: must return a member of headrace.Action, or None to continue",
            returned.repr()?
        ))),
    }
}
