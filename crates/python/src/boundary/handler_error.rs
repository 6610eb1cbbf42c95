//! What a poll that calls handlers fails with.

use headrace_client::{ClientError, OfferError, PollError};
use pyo3::prelude::*;

use crate::boundary::errors;

/// What ends a poll early. It stays a Rust value until the poll has returned: a poll may run without the GIL, and
/// an exception can only be built with it, which at the end of the process is never to be had again.
pub(crate) enum HandlerError {
    /// The poll itself was refused.
    Poll(PollError),
    /// The client ended; why.
    Client(Box<ClientError>),
    /// What a handler wanted to send was refused.
    Offer(OfferError),
    /// The handler raised.
    Exception(PyErr),
}

impl From<PollError> for HandlerError {
    fn from(error: PollError) -> Self {
        Self::Poll(error)
    }
}

impl From<OfferError> for HandlerError {
    fn from(error: OfferError) -> Self {
        Self::Offer(error)
    }
}

impl From<PyErr> for HandlerError {
    fn from(error: PyErr) -> Self {
        Self::Exception(error)
    }
}

impl From<HandlerError> for PyErr {
    fn from(error: HandlerError) -> Self {
        match error {
            HandlerError::Poll(error) => errors::poll(error),
            HandlerError::Client(error) => errors::client(*error),
            HandlerError::Offer(error) => errors::offer(error),
            HandlerError::Exception(error) => error,
        }
    }
}
