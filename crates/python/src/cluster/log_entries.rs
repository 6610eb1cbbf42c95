//! The entries of a cluster's log, on their way to a service or to a consensus module.

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client::{SESSION_HEADER_LENGTH, SessionHeader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::c_api::call_with;
use crate::boundary::handler_error::HandlerError;
use crate::cluster::log_place::LogPlace;

/// Gives the entries of a log to a service: messages of sessions the short way; all others are passed on.
pub(crate) struct Entries<'a, 'py, F> {
    deliver: &'a Bound<'py, PyAny>,
    sessions: &'a Bound<'py, PyDict>,
    place: &'a LogPlace,
    pass_on: F,
    // Many messages in a row are often of one session and of one millisecond.
    session: Option<(i64, Bound<'py, PyAny>)>,
    timestamp: Option<(i64, Bound<'py, PyAny>)>,
}

impl<'a, 'py, F: FnMut(&[u8], &LogHeader<'_>) -> PyResult<Action>> Entries<'a, 'py, F> {
    pub(crate) fn new(
        deliver: &'a Bound<'py, PyAny>,
        sessions: &'a Bound<'py, PyDict>,
        place: &'a LogPlace,
        pass_on: F,
    ) -> Self {
        Self {
            deliver,
            sessions,
            place,
            pass_on,
            session: None,
            timestamp: None,
        }
    }

    pub(crate) fn take(&mut self, message: &[u8], header: &LogHeader<'_>) -> Result<Action, HandlerError> {
        let Some(entry) = SessionHeader::decode(message) else {
            // It may open or close a session.
            self.session = None;
            return (self.pass_on)(message, header).map_err(HandlerError::Exception);
        };
        let py = self.deliver.py();
        let (sessions, position) = (self.sessions, header.position());
        self.place
            .enter(entry.cluster_session_id, entry.timestamp, position);
        let session = remembered(&mut self.session, entry.cluster_session_id, |id| {
            Ok(sessions.get_item(id)?.unwrap_or_else(|| py.None().into_bound(py)))
        })?;
        let timestamp = remembered(&mut self.timestamp, entry.timestamp, |timestamp| {
            Ok(timestamp.into_pyobject(py)?.into_any())
        })?;
        let payload = PyBytes::new(py, &message[SESSION_HEADER_LENGTH..]).into_any();
        let position = position.into_pyobject(py).map_err(PyErr::from)?.into_any();
        call_with(self.deliver, [session, timestamp, &payload, &position])?;
        Ok(Action::Continue)
    }
}

/// Reads an entry of a log for a consensus module, to which what clients sent is nothing.
pub(crate) fn follow(
    message: &[u8],
    header: &LogHeader<'_>,
    pass_on: impl FnOnce(&[u8], &LogHeader<'_>) -> PyResult<Action>,
) -> Result<Action, HandlerError> {
    match SessionHeader::decode(message) {
        Some(entry) if entry.cluster_session_id > 0 => Ok(Action::Continue),
        _ => pass_on(message, header).map_err(HandlerError::Exception),
    }
}

/// The object for a key, which is made anew when it is not the same key as last time.
#[inline]
fn remembered<'a, 'py>(
    last: &'a mut Option<(i64, Bound<'py, PyAny>)>,
    key: i64,
    make: impl FnOnce(i64) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<&'a Bound<'py, PyAny>> {
    if !matches!(last, Some((known, _)) if *known == key) {
        *last = None;
    }
    Ok(match last {
        Some((_, object)) => object,
        None => &last.insert((key, make(key)?)).1,
    })
}
