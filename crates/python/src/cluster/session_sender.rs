//! What a service of a cluster sends to its clients.

use std::sync::Mutex;

use headrace_buffers::log::Append;
use headrace_buffers::log::descriptor::MESSAGE_LENGTH_MAX;
use headrace_client::{Offer, OfferError, SESSION_HEADER_LENGTH, SessionHeader};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::c_api::BorrowedBytes;
use crate::boundary::lock::lock;
use crate::boundary::{arguments, errors};
use crate::cluster::log_place::{LogPlace, log_place};
use crate::publishing::batch_input::Messages;
use crate::publishing::offer_result;
use crate::publishing::publication::{Publication, with_parts};

/// What an offer returns on a member that does not lead, and so sends nothing.
const MOCK_SUCCESS: i64 = 1;
/// The longest answer that some client's stream takes. What a service may send must not go by the stream of one client,
/// which members that do not lead, and replays, do not have.
const ANSWER_LENGTH_MAX: usize = MESSAGE_LENGTH_MAX - SESSION_HEADER_LENGTH;
/// At the end of a term the second try finds the next one, unless another writer is about to open it.
const TRIES_AT_A_TERMS_END: usize = 100;

#[pymethods]
impl LogPlace {
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
        for slice in &slices {
            check_length(slice.len())?;
        }
        self.note_output();
        if !self.is_leader() {
            return Ok(slices.len());
        }
        let mut to: Option<(i64, Option<Receiver<'_>>)> = None;
        for (index, answer) in slices.iter().enumerate().skip(first) {
            let session_id = session_ids[index];
            // Many in a row are often for one client.
            if to.as_ref().is_none_or(|(known, _)| *known != session_id) {
                to = Some((session_id, receiver(sessions, session_id)?));
            }
            let Some((_, Some((session, publication)))) = &to else {
                continue;
            };
            let header = SessionHeader {
                leadership_term_id: self.term_id(),
                cluster_session_id: session_id,
                timestamp: timestamps[index],
            };
            match sent(publication.get(), &[&header.encode(), answer], positions[index])? {
                Ok(Append::BackPressured | Append::AdminAction) => return Ok(index),
                // One that can never go is passed over.
                Ok(_) => {}
                Err(error) => drop(refused(session, error, positions[index])?),
            }
        }
        Ok(slices.len())
    }
}

/// A session that can be answered, and its stream.
type Receiver<'py> = (Bound<'py, SessionSender>, Py<Publication>);

/// Who a session's answers go to, if they can.
fn receiver<'py>(sessions: &Bound<'py, PyDict>, session_id: i64) -> PyResult<Option<Receiver<'py>>> {
    let Some(session) = sessions.get_item(session_id)? else {
        return Ok(None);
    };
    let session = session.cast_into::<SessionSender>()?;
    let publication = session.get().publication(sessions.py());
    Ok(publication.map(|publication| (session, publication)))
}

/// Refuses, on every member alike, what no stream takes.
fn check_length(length: usize) -> PyResult<()> {
    if length <= ANSWER_LENGTH_MAX {
        return Ok(());
    }
    let rule = format!("must be at most {ANSWER_LENGTH_MAX}, the longest answer that a stream can take");
    Err(errors::config("len(message)", &length.to_string(), &rule))
}

/// One offer to a client's stream, with the position of the log in its frames. The end of a term is no reason to lose it.
fn sent(publication: &Publication, parts: &[&[u8]], position: i64) -> PyResult<Result<Append, OfferError>> {
    let inner = publication.shared()?;
    for _ in 1..TRIES_AT_A_TERMS_END {
        let offered = inner.offer_reserved(parts, position);
        if offered != Ok(Append::AdminAction) {
            return Ok(offered);
        }
    }
    Ok(inner.offer_reserved(parts, position))
}

/// The client's own stream does not take a message: the session says so to the client, and nothing to the service.
#[cold]
fn refused<'py>(
    session: &Bound<'py, SessionSender>,
    error: OfferError,
    position: i64,
) -> PyResult<Bound<'py, PyAny>> {
    session.call_method1(intern!(session.py(), "on_refused"), (error.to_string(), position))
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
    fn offer(slf: &Bound<'_, Self>, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let place = this.place.get();
        if place.is_silent() {
            this.place.call_method0(py, intern!(py, "check_may_send"))?;
        }
        place.note_output();
        // Before anything that only a member has that leads.
        let offered = match message.cast::<PyBytes>() {
            Ok(bytes) => this.offer_parts(py, &[bytes.as_bytes()]),
            Err(_) => with_parts(message, |parts| this.offer_parts(py, parts)),
        }?;
        match offered {
            Some(Ok(append)) => offer_result::to_python(py, append),
            Some(Err(error)) => refused(slf, error, place.position()).map(Bound::unbind),
            None => Ok(MOCK_SUCCESS.into_pyobject(py)?.into_any().unbind()),
        }
    }

    #[doc = docstring!("SessionSender.on_refused")]
    fn on_refused(&self, py: Python<'_>, reason: &str, position: i64) -> PyResult<Py<PyAny>> {
        // For a subclass: the names are part of the signature.
        let _ = (reason, position);
        offer_result::to_python(py, Offer::NotConnected)
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

impl SessionSender {
    /// What became of a message; nothing where this member does not lead.
    #[inline]
    fn offer_parts(&self, py: Python<'_>, parts: &[&[u8]]) -> PyResult<Option<Result<Append, OfferError>>> {
        check_length(parts.iter().map(|part| part.len()).sum())?;
        let place = self.place.get();
        if !place.is_leader() {
            return Ok(None);
        }
        // The lock ends here: a buffer may be an object whose own code sends something.
        let publication = lock(&self.publication).as_ref().map(|found| found.clone_ref(py));
        let Some(publication) = publication else {
            return Ok(Some(Ok(Append::NotConnected)));
        };
        let header = SessionHeader {
            leadership_term_id: place.term_id(),
            cluster_session_id: self.cluster_session_id,
            timestamp: place.time(),
        }
        .encode();
        // Programs that know nothing of it pass the reserved value over.
        let position = place.position();
        if let [message] = parts {
            return sent(publication.get(), &[&header, message], position).map(Some);
        }
        sent(publication.get(), &[&[&header[..]], parts].concat(), position).map(Some)
    }
}

/// The argument of a call.
pub(crate) fn publication_if_any<'py>(
    publication: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, Publication>>> {
    if publication.is_none() {
        return Ok(None);
    }
    let found = publication.cast::<Publication>().cloned();
    found
        .map(Some)
        .map_err(|_| arguments::wrong_type(publication, "publication", "must be a Publication or None"))
}
