//! What a service of a cluster has to do with each message: where in the log it is, and what it sends to clients.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use headrace_client::{Offer, SessionHeader};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch_input::Messages;
use crate::c_api::BorrowedBytes;
use crate::lock::lock;
use crate::publication::Publication;
use crate::{arguments, errors, results};

/// What an offer gives on a member that does not lead, and so sends nothing.
const MOCK_SUCCESS: i64 = 1;

// One thread changes it, that of the service; others may look.
#[doc = docstring!("LogPlace")]
#[pyclass(frozen, subclass, module = "headrace.client")]
pub(crate) struct LogPlace {
    term_id: AtomicI64,
    time: AtomicI64,
    position: AtomicI64,
    is_leader: AtomicBool,
    is_silent: AtomicBool,
}

impl LogPlace {
    /// At an entry of the log.
    #[inline]
    pub(crate) fn enter(&self, time: i64, position: i64) {
        self.time.store(time, Ordering::Relaxed);
        self.position.store(position, Ordering::Relaxed);
    }
}

#[pymethods]
impl LogPlace {
    #[new]
    fn new() -> Self {
        Self {
            term_id: AtomicI64::new(-1),
            time: AtomicI64::new(0),
            position: AtomicI64::new(0),
            is_leader: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
        }
    }

    #[doc = docstring!("LogPlace.term_id")]
    #[getter]
    fn term_id(&self) -> i64 {
        self.term_id.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_term_id(&self, #[pyo3(from_py_with = arguments::term_id)] term_id: i64) {
        self.term_id.store(term_id, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.time")]
    #[getter]
    fn time(&self) -> i64 {
        self.time.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_time(&self, #[pyo3(from_py_with = arguments::time)] time: i64) {
        self.time.store(time, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.position")]
    #[getter]
    fn position(&self) -> i64 {
        self.position.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_position(&self, #[pyo3(from_py_with = arguments::position)] position: i64) {
        self.position.store(position, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.is_leader")]
    #[getter]
    fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_leader(&self, #[pyo3(from_py_with = arguments::is_leader)] is_leader: bool) {
        self.is_leader.store(is_leader, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.is_silent")]
    #[getter]
    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_silent(&self, #[pyo3(from_py_with = arguments::is_silent)] is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.check_may_send")]
    fn check_may_send(&self) {}

    #[doc = docstring!("LogPlace.answer")]
    fn answer(
        &self,
        sessions: &Bound<'_, PyDict>,
        columns: [Bound<'_, PyAny>; 3],
        answers: &Bound<'_, PyAny>,
        first: usize,
    ) -> PyResult<usize> {
        let columns = columns.map(|column| BorrowedBytes::of(&column, "columns"));
        let [session_ids, timestamps, positions] = columns;
        let (session_ids, timestamps, positions) = (session_ids?, timestamps?, positions?);
        let [session_ids, timestamps, positions] =
            [&session_ids, &timestamps, &positions].map(|column| longs(column.as_slice(sessions.py())));
        let messages = Messages::extract(answers)?;
        let slices = messages.slices()?;
        for (name, count) in [
            ("len(answers)", slices.len()),
            ("len(timestamps)", timestamps.len()),
            ("len(positions)", positions.len()),
        ] {
            if count != session_ids.len() {
                let rule = format!("must be {}, one for each message of the batch", session_ids.len());
                return Err(errors::config(name, &count.to_string(), &rule));
            }
        }
        let mut to: Option<(i64, Option<Py<Publication>>)> = None;
        for (index, answer) in slices.iter().enumerate().skip(first) {
            let session_id = session_ids[index];
            // Many in a row are often for one client.
            if to.as_ref().is_none_or(|(known, _)| *known != session_id) {
                to = Some((session_id, publication_of(sessions, session_id)?));
            }
            let Some((_, Some(publication))) = &to else {
                continue;
            };
            let header = SessionHeader {
                leadership_term_id: self.term_id(),
                cluster_session_id: session_id,
                timestamp: timestamps[index],
            };
            if !publication
                .get()
                .sends_behind(&header.encode(), answer, positions[index])?
            {
                return Ok(index);
            }
        }
        Ok(slices.len())
    }
}

/// Where answers to a session go, if they can.
fn publication_of(sessions: &Bound<'_, PyDict>, session_id: i64) -> PyResult<Option<Py<Publication>>> {
    let Some(session) = sessions.get_item(session_id)? else {
        return Ok(None);
    };
    let session = session.cast::<SessionSender>()?;
    Ok(session.get().publication(sessions.py()))
}

/// A column of numbers of 64 bits.
fn longs(column: &[u8]) -> Vec<i64> {
    let (words, _) = column.as_chunks::<8>();
    words.iter().map(|word| i64::from_ne_bytes(*word)).collect()
}

#[doc = docstring!("SessionSender")]
#[pyclass(frozen, subclass, module = "headrace.client")]
pub(crate) struct SessionSender {
    place: Py<LogPlace>,
    cluster_session_id: i64,
    publication: Mutex<Option<Py<Publication>>>,
}

#[pymethods]
impl SessionSender {
    #[new]
    fn new(
        #[pyo3(from_py_with = log_place)] place: Bound<'_, LogPlace>,
        #[pyo3(from_py_with = arguments::cluster_session_id)] cluster_session_id: i64,
    ) -> Self {
        Self {
            place: place.unbind(),
            cluster_session_id,
            publication: Mutex::new(None),
        }
    }

    #[doc = docstring!("SessionSender.offer")]
    fn offer(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let place = self.place.get();
        if place.is_silent() {
            self.place.call_method0(py, intern!(py, "check_may_send"))?;
        }
        if !place.is_leader() {
            return Ok(MOCK_SUCCESS.into_pyobject(py)?.into_any().unbind());
        }
        // The lock ends here: a buffer may be an object whose own code sends something.
        let publication = lock(&self.publication).as_ref().map(|found| found.clone_ref(py));
        let Some(publication) = publication else {
            return results::to_python(py, Offer::NotConnected);
        };
        let header = SessionHeader {
            leadership_term_id: place.term_id(),
            cluster_session_id: self.cluster_session_id,
            timestamp: place.time(),
        };
        // Programs that know nothing of it pass the reserved value over.
        let offer = publication
            .get()
            .offer_behind(&header.encode(), message, place.position())?;
        results::to_python(py, offer)
    }

    #[doc = docstring!("SessionSender.publication")]
    #[getter]
    fn publication(&self, py: Python<'_>) -> Option<Py<Publication>> {
        lock(&self.publication).as_ref().map(|found| found.clone_ref(py))
    }

    #[setter]
    fn set_publication(
        &self,
        #[pyo3(from_py_with = publication_if_any)] publication: Option<Bound<'_, Publication>>,
    ) {
        let before = std::mem::replace(&mut *lock(&self.publication), publication.map(Bound::unbind));
        drop(before); // which may run Python, and come back here
    }
}

/// The argument of a call.
pub(crate) fn log_place<'py>(place: &Bound<'py, PyAny>) -> PyResult<Bound<'py, LogPlace>> {
    let found = place.cast::<LogPlace>().cloned();
    found.map_err(|_| arguments::wrong_type(place, "place", "must be a LogPlace"))
}

fn publication_if_any<'py>(publication: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Publication>>> {
    if publication.is_none() {
        return Ok(None);
    }
    let found = publication.cast::<Publication>().cloned();
    found
        .map(Some)
        .map_err(|_| arguments::wrong_type(publication, "publication", "must be a Publication or None"))
}
