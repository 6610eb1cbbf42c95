//! The messages of clients of a cluster, on their way into its log.

use std::sync::Mutex;

use headrace_buffers::log::{Action, Header as LogHeader};
use headrace_client as client;
use headrace_client::{IngressStream, Sequenced};
use pyo3::prelude::*;

use crate::boundary::arguments;
use crate::boundary::handler_error::HandlerError;
use crate::boundary::lock::lock;
use crate::publishing::exclusive_publication::{self, ExclusivePublication};

#[doc = docstring!("Sequencer")]
#[pyclass(frozen, module = "headrace.client")]
pub(crate) struct Sequencer {
    log: Py<ExclusivePublication>,
    inner: Mutex<client::Sequencer>,
}

impl Sequencer {
    /// Takes a message, or passes it on. Nothing is locked while a handler runs.
    pub(crate) fn take(
        &self,
        message: &[u8],
        header: &LogHeader<'_>,
        subscription_id: i64,
        timestamp: i64,
        pass_on: impl FnOnce(&[u8], &LogHeader<'_>) -> PyResult<Action>,
        py: Python<'_>,
    ) -> Result<Action, HandlerError> {
        let log = exclusive_publication::inner(self.log.bind(py))?;
        let stream = IngressStream {
            subscription_id,
            session_id: header.session_id(),
        };
        let taken = lock(&self.inner).take(message, stream, timestamp, log)?;
        match taken {
            Sequenced::Appended | Sequenced::Passed => Ok(Action::Continue),
            Sequenced::NoRoom => Ok(Action::Abort),
            Sequenced::Other => pass_on(message, header).map_err(HandlerError::Exception),
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
    #[pyo3(signature = (cluster_session_id, stream, /))]
    fn open(
        &self,
        #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64,
        #[pyo3(from_py_with = ingress_stream)] stream: Option<IngressStream>,
    ) {
        lock(&self.inner).open(cluster_session_id, stream);
    }

    #[doc = docstring!("Sequencer.close")]
    #[pyo3(signature = (cluster_session_id, /))]
    fn close(&self, #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64) {
        lock(&self.inner).close(cluster_session_id);
    }

    #[doc = docstring!("Sequencer.take_heard")]
    fn take_heard(&self) -> Vec<i64> {
        lock(&self.inner).take_heard()
    }
}

/// The stream of a session, as subscription and publisher; or `None`.
fn ingress_stream(stream: &Bound<'_, PyAny>) -> PyResult<Option<IngressStream>> {
    let found = stream.extract::<Option<(i64, i32)>>();
    let wrong = |_| {
        arguments::wrong_type(
            stream,
            "stream",
            "must be a subscription's and a session's id, or None",
        )
    };
    Ok(found
        .map_err(wrong)?
        .map(|(subscription_id, session_id)| IngressStream {
            subscription_id,
            session_id,
        }))
}

/// The argument of a call.
pub(crate) fn sequencer<'py>(sequencer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Sequencer>> {
    let found = sequencer.cast::<Sequencer>().cloned();
    found.map_err(|_| arguments::wrong_type(sequencer, "sequencer", "must be a Sequencer"))
}
