//! The messages of a cluster: from clients into the log, and from the log to a service.

use std::sync::{Mutex, MutexGuard, PoisonError};

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client as client;
use headrace_client::{SESSION_HEADER_LENGTH, Sequenced, SessionHeader};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments;
use crate::delivery::{Delivery, HandlerError};
use crate::exclusive::{self, ExclusivePublication};

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
    pub(crate) deliver: &'a Bound<'py, PyAny>,
    pub(crate) sessions: &'a Bound<'py, PyDict>,
    pub(crate) state: &'a Bound<'py, PyAny>,
    pub(crate) others: Delivery<'a, 'py>,
}

impl Entries<'_, '_> {
    pub(crate) fn take(&mut self, message: &[u8], header: &LogHeader<'_>) -> Result<Action, HandlerError> {
        let Some(entry) = SessionHeader::decode(message) else {
            return self
                .others
                .controlled(message, header)
                .map_err(HandlerError::Exception);
        };
        let py = self.deliver.py();
        let (timestamp, position) = (entry.timestamp, header.position());
        self.state.setattr(intern!(py, "time"), timestamp)?;
        self.state.setattr(intern!(py, "position"), position)?;
        let session = self.sessions.get_item(entry.cluster_session_id)?;
        let payload = PyBytes::new(py, &message[SESSION_HEADER_LENGTH..]);
        self.deliver.call1((session, timestamp, payload, position))?;
        Ok(Action::Continue)
    }
}

/// The argument of a call.
pub(crate) fn sequencer<'py>(sequencer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Sequencer>> {
    let found = sequencer.cast::<Sequencer>().cloned();
    found.map_err(|_| arguments::wrong_type(sequencer, "sequencer", "must be a Sequencer"))
}
