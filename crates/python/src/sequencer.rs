//! The messages of a cluster: from clients into the log, and from the log to a service.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client as client;
use headrace_client::{SESSION_HEADER_LENGTH, Sequenced, SessionHeader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments;
use crate::c_api::call_with;
use crate::delivery::{Delivery, HandlerError};
use crate::exclusive::{self, ExclusivePublication};
use crate::service::LogPlace;

#[doc = docstring!("Sequencer")]
#[pyclass(frozen, module = "headrace.client")]
pub(crate) struct Sequencer {
    log: Py<ExclusivePublication>,
    inner: Mutex<client::Sequencer>,
}

impl Sequencer {
    fn lock(&self) -> MutexGuard<'_, client::Sequencer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message, or passes it to the handler. Nothing is locked while the handler runs.
    pub(crate) fn take(
        &self,
        message: &[u8],
        header: &LogHeader<'_>,
        timestamp: i64,
        others: &mut Delivery<'_, '_>,
        py: Python<'_>,
    ) -> Result<Action, HandlerError> {
        let log = exclusive::inner(self.log.bind(py))?;
        let taken = self.lock().take(message, timestamp, log)?;
        match taken {
            Sequenced::Appended | Sequenced::Passed => Ok(Action::Continue),
            Sequenced::NoRoom => Ok(Action::Abort),
            Sequenced::Other => others
                .controlled(message, header)
                .map_err(HandlerError::Exception),
        }
    }
}

#[pymethods]
impl Sequencer {
    #[new]
    fn new(
        log: Py<ExclusivePublication>,
        #[pyo3(from_py_with = arguments::leadership_term_id)] leadership_term_id: i64,
    ) -> Self {
        Self {
            log,
            inner: Mutex::new(client::Sequencer::new(leadership_term_id)),
        }
    }

    #[doc = docstring!("Sequencer.open")]
    #[pyo3(signature = (cluster_session_id, /))]
    fn open(&self, #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64) {
        self.lock().open(cluster_session_id);
    }

    #[doc = docstring!("Sequencer.close")]
    #[pyo3(signature = (cluster_session_id, /))]
    fn close(&self, #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64) {
        self.lock().close(cluster_session_id);
    }

    #[doc = docstring!("Sequencer.take_heard")]
    fn take_heard(&self) -> Vec<i64> {
        self.lock().take_heard()
    }
}

/// Gives the entries of a log to a service: messages of sessions the short way, all others to another handler.
pub(crate) struct Entries<'a, 'py> {
    deliver: &'a Bound<'py, PyAny>,
    sessions: &'a Bound<'py, PyDict>,
    place: &'a LogPlace,
    others: Delivery<'a, 'py>,
    // Many messages in a row are often of one session and of one millisecond.
    session: Option<(i64, Bound<'py, PyAny>)>,
    timestamp: Option<(i64, Bound<'py, PyAny>)>,
}

impl<'a, 'py> Entries<'a, 'py> {
    pub(crate) fn new(
        deliver: &'a Bound<'py, PyAny>,
        sessions: &'a Bound<'py, PyDict>,
        place: &'a LogPlace,
        others: Delivery<'a, 'py>,
    ) -> Self {
        Self {
            deliver,
            sessions,
            place,
            others,
            session: None,
            timestamp: None,
        }
    }

    pub(crate) fn take(&mut self, message: &[u8], header: &LogHeader<'_>) -> Result<Action, HandlerError> {
        let Some(entry) = SessionHeader::decode(message) else {
            // It may open or close a session.
            self.session = None;
            let taken = self.others.controlled(message, header);
            return taken.map_err(HandlerError::Exception);
        };
        let py = self.deliver.py();
        let (sessions, position) = (self.sessions, header.position());
        self.place.enter(entry.timestamp, position);
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

/// Reads the entries of a log for a consensus module: what clients sent matters as a sign of life alone.
pub(crate) struct Followed<'a, 'py> {
    others: Delivery<'a, 'py>,
    // Mostly one, or the same ones again and again.
    heard: HashMap<i64, i64>,
}

impl<'a, 'py> Followed<'a, 'py> {
    pub(crate) fn new(others: Delivery<'a, 'py>) -> Self {
        Self {
            others,
            heard: HashMap::new(),
        }
    }

    pub(crate) fn take(&mut self, message: &[u8], header: &LogHeader<'_>) -> Result<Action, HandlerError> {
        match SessionHeader::decode(message) {
            Some(entry) if entry.cluster_session_id > 0 => {
                self.heard.insert(entry.cluster_session_id, entry.timestamp);
                Ok(Action::Continue)
            }
            _ => {
                let taken = self.others.controlled(message, header);
                taken.map_err(HandlerError::Exception)
            }
        }
    }

    pub(crate) fn heard(self) -> HashMap<i64, i64> {
        self.heard
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

/// The argument of a call.
pub(crate) fn sequencer<'py>(sequencer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Sequencer>> {
    let found = sequencer.cast::<Sequencer>().cloned();
    found.map_err(|_| arguments::wrong_type(sequencer, "sequencer", "must be a Sequencer"))
}
