//! The streams of a client's session with a cluster.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_buffers::log::{Append, Header as LogHeader};
use headrace_client::{ClientSession, Offer, Received, SessionHeader};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::lock::lock;
use crate::boundary::{arguments, errors};
use crate::cluster::session_sender::publication_if_any;
use crate::publishing::offer_result;
use crate::publishing::publication::{Publication, with_parts};
use crate::receiving::delivery::header_values;
use crate::receiving::image::{Image, image_if_any};
use crate::receiving::message::Message;
use crate::receiving::subscription::{Subscription, egress};

/// Messages of other sessions that are passed over in one call.
const PASSED_OVER_MAX: usize = 64;

#[doc = docstring!("SessionStreams")]
#[pyclass(frozen, module = "headrace.client")]
pub(crate) struct SessionStreams {
    session: ClientSession,
    egress: Py<Subscription>,
    make: Py<PyAny>,
    length_max: Option<usize>,
    leader: Mutex<Leader>,
    is_steady: AtomicBool,
}

/// The streams to and from the member that leads.
#[derive(Default)]
struct Leader {
    publication: Option<Py<Publication>>,
    image: Option<Py<Image>>,
}

/// A message that was taken from the stream.
enum Taken {
    Message(SessionHeader, Py<PyBytes>, i64),
    OfAnother,
    Other(Message),
}

impl SessionStreams {
    fn offer_parts(&self, py: Python<'_>, parts: &[&[u8]]) -> PyResult<Append> {
        if let Some(length_max) = self.length_max {
            let length: usize = parts[1..].iter().map(|part| part.len()).sum();
            if length > length_max {
                let rule = format!("must be at most {length_max}, the length limit of the cluster's log");
                return Err(errors::config("len(data)", &length.to_string(), &rule));
            }
        }
        self.sent(py, parts)
    }

    fn sent(&self, py: Python<'_>, parts: &[&[u8]]) -> PyResult<Append> {
        let Some(publication) = self.publication(py) else {
            return Ok(Offer::NotConnected);
        };
        let append = publication
            .get()
            .shared()?
            .offer_parts(parts)
            .map_err(errors::offer)?;
        if matches!(append, Append::Position(_)) {
            self.session.note_sent(self.now_ns()?);
        }
        Ok(append)
    }

    /// The next message, of whichever leader.
    fn take_next(&self, py: Python<'_>) -> PyResult<Option<Taken>> {
        let sort = |payload: &[u8], header: &LogHeader<'_>| match self.session.sort(payload) {
            Received::Message(sent, payload) => {
                let payload = PyBytes::new(py, payload).unbind();
                Taken::Message(sent, payload, header.reserved_value())
            }
            Received::OfAnother => Taken::OfAnother,
            Received::Other => Taken::Other(Message::new(py, payload, header_values(header))),
        };
        Ok(self.egress.get().take(sort)?)
    }

    /// A message of a service as the program gets it.
    fn made(
        &self,
        py: Python<'_>,
        sent: &SessionHeader,
        payload: &Py<PyBytes>,
        log_position: i64,
    ) -> PyResult<Py<PyAny>> {
        self.session.note_seen(log_position);
        let values = (payload, sent.timestamp, sent.leadership_term_id, log_position);
        self.make.call1(py, (values.into_pyobject(py)?,))
    }

    /// A message for the program, or one that the session handles; nothing of another session.
    fn given(&self, py: Python<'_>, taken: Taken) -> PyResult<Option<Py<PyAny>>> {
        Ok(match taken {
            Taken::Message(sent, payload, log_position) => {
                Some(self.made(py, &sent, &payload, log_position)?)
            }
            Taken::OfAnother => None,
            Taken::Other(message) => Some(Py::new(py, message)?.into_any()),
        })
    }
}

#[pymethods]
impl SessionStreams {
    #[new]
    #[pyo3(signature = (egress, cluster_session_id, leadership_term_id, make, length_max, keep_alive_interval_ns))]
    fn new(
        #[pyo3(from_py_with = egress)] egress: Bound<'_, Subscription>,
        #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64,
        #[pyo3(from_py_with = arguments::leadership_term_id)] leadership_term_id: i64,
        #[pyo3(from_py_with = arguments::make)] make: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::length_max_if_any)] length_max: Option<usize>,
        #[pyo3(from_py_with = arguments::keep_alive_interval_ns)] keep_alive_interval_ns: i64,
    ) -> PyResult<Self> {
        let now_ns = egress.get().now_ns()?;
        Ok(Self {
            session: ClientSession::new(
                cluster_session_id,
                leadership_term_id,
                keep_alive_interval_ns,
                now_ns,
            ),
            egress: egress.unbind(),
            make: make.unbind(),
            length_max,
            leader: Mutex::default(),
            is_steady: AtomicBool::new(false),
        })
    }

    #[doc = docstring!("SessionStreams.follow")]
    fn follow(
        &self,
        #[pyo3(from_py_with = arguments::leadership_term_id)] leadership_term_id: i64,
        #[pyo3(from_py_with = image_if_any)] image: Option<Bound<'_, Image>>,
    ) {
        self.session.follow(leadership_term_id);
        let image = image.map(Bound::unbind);
        let before = std::mem::replace(&mut lock(&self.leader).image, image);
        drop(before);
    }

    #[doc = docstring!("SessionStreams.publication")]
    #[getter]
    fn publication(&self, py: Python<'_>) -> Option<Py<Publication>> {
        let leader = lock(&self.leader);
        leader.publication.as_ref().map(|found| found.clone_ref(py))
    }

    #[setter]
    fn set_publication(
        &self,
        #[pyo3(from_py_with = publication_if_any)] publication: Option<Bound<'_, Publication>>,
    ) {
        let publication = publication.map(Bound::unbind);
        let before = std::mem::replace(&mut lock(&self.leader).publication, publication);
        drop(before); // which may run Python, and come back here
    }

    #[doc = docstring!("SessionStreams.is_steady")]
    #[getter]
    fn is_steady(&self) -> bool {
        self.is_steady.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_steady(&self, #[pyo3(from_py_with = arguments::is_steady)] is_steady: bool) {
        self.is_steady.store(is_steady, Ordering::Relaxed);
    }

    #[doc = docstring!("SessionStreams.is_connected")]
    #[getter]
    fn is_connected(&self, py: Python<'_>) -> bool {
        let leader = lock(&self.leader);
        leader.image.as_ref().is_some_and(|image| {
            let image = image.bind(py).get().shared();
            image.is_ok_and(|image| !image.is_closed())
        })
    }

    #[doc = docstring!("SessionStreams.seen_position")]
    #[getter]
    fn seen_position(&self) -> i64 {
        self.session.seen_position()
    }

    #[doc = docstring!("SessionStreams.is_keep_alive_due")]
    #[getter]
    fn is_keep_alive_due(&self) -> PyResult<bool> {
        Ok(self.session.is_keep_alive_due(self.now_ns()?))
    }

    #[doc = docstring!("SessionStreams.offer")]
    #[pyo3(signature = (data, /))]
    fn offer(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let header = self.session.header();
        let append = match data.cast::<PyBytes>() {
            Ok(bytes) => self.offer_parts(py, &[&header, bytes.as_bytes()]),
            Err(_) => with_parts(data, |parts| {
                self.offer_parts(py, &[&[&header[..]], parts].concat())
            }),
        }?;
        offer_result::to_python(py, append)
    }

    #[doc = docstring!("SessionStreams.send")]
    #[pyo3(signature = (data, /))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let append = with_parts(data, |parts| self.sent(py, parts))?;
        offer_result::to_python(py, append)
    }

    #[doc = docstring!("SessionStreams.take")]
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        for _ in 0..PASSED_OVER_MAX {
            let Some(taken) = self.take_next(py)? else {
                return Ok(None);
            };
            if let Some(given) = self.given(py, taken)? {
                return Ok(Some(given));
            }
        }
        Ok(None)
    }

    #[doc = docstring!("SessionStreams.receive")]
    #[pyo3(signature = (timeout_s, /))]
    fn receive(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout_s)] timeout_s: f64,
    ) -> PyResult<Option<Py<PyAny>>> {
        let Some(message) = self.egress.get().receive(py, Some(timeout_s), None)? else {
            return Ok(None);
        };
        let taken = match self.session.sort(message.bytes(py)) {
            Received::Message(sent, payload) => {
                let payload = PyBytes::new(py, payload).unbind();
                Taken::Message(sent, payload, message.reserved_value())
            }
            Received::OfAnother => Taken::OfAnother,
            Received::Other => Taken::Other(message),
        };
        self.given(py, taken)
    }

    #[doc = docstring!("SessionStreams.poll")]
    fn poll(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::handler)] handler: Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::accept)] accept: Bound<'_, PyAny>,
        reading: &Bound<'_, PyAny>,
    ) -> PyResult<(usize, bool)> {
        let (acquire, release) = (intern!(py, "acquire"), intern!(py, "release"));
        let mut count = 0;
        while count < limit {
            let needs_care =
                !self.is_steady() || !self.is_connected(py) || self.session.is_keep_alive_due(self.now_ns()?);
            if needs_care || !reading.call_method1(acquire, (false,))?.is_truthy()? {
                return Ok((count, false));
            }
            // Until it is given or kept, no other thread takes the next one.
            let taken = self.take_if_steady(py, &accept);
            reading.call_method0(release)?;
            match taken? {
                Some(Taken::Message(sent, payload, log_position)) => {
                    let message = self.made(py, &sent, &payload, log_position)?;
                    count += 1;
                    handler.call1((message,))?;
                }
                Some(Taken::OfAnother | Taken::Other(_)) => {}
                None => return Ok((count, self.is_steady())),
            }
        }
        Ok((count, true))
    }
}

impl SessionStreams {
    fn now_ns(&self) -> PyResult<i64> {
        self.egress.get().now_ns()
    }

    /// The next message, unless another thread keeps one that came before. One that is not the program's is handled.
    fn take_if_steady(&self, py: Python<'_>, accept: &Bound<'_, PyAny>) -> PyResult<Option<Taken>> {
        if !self.is_steady() {
            return Ok(None);
        }
        match self.take_next(py)? {
            Some(Taken::Other(message)) => {
                accept.call1((message,))?;
                Ok(Some(Taken::OfAnother))
            }
            taken => Ok(taken),
        }
    }
}
