//! Where in its log a service of a cluster is.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pyo3::prelude::*;

use crate::boundary::arguments;

// One thread changes it, that of the service; others may look.
#[doc = docstring!("LogPlace")]
#[pyclass(frozen, subclass, module = "headrace.client")]
pub(crate) struct LogPlace {
    term_id: AtomicI64,
    time: AtomicI64,
    position: AtomicI64,
    session_id: AtomicI64,
    output_count: AtomicI64,
    is_leader: AtomicBool,
    is_silent: AtomicBool,
}

impl LogPlace {
    /// At a message of a session.
    #[inline]
    pub(crate) fn enter(&self, session_id: i64, time: i64, position: i64) {
        self.session_id.store(session_id, Ordering::Relaxed);
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
            session_id: AtomicI64::new(-1),
            output_count: AtomicI64::new(0),
            is_leader: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
        }
    }

    #[doc = docstring!("LogPlace.term_id")]
    #[getter]
    pub(crate) fn term_id(&self) -> i64 {
        self.term_id.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_term_id(&self, #[pyo3(from_py_with = arguments::term_id)] term_id: i64) {
        self.term_id.store(term_id, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.time")]
    #[getter]
    pub(crate) fn time(&self) -> i64 {
        self.time.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_time(&self, #[pyo3(from_py_with = arguments::time)] time: i64) {
        self.time.store(time, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.position")]
    #[getter]
    pub(crate) fn position(&self) -> i64 {
        self.position.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_position(&self, #[pyo3(from_py_with = arguments::position)] position: i64) {
        self.position.store(position, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.session_id")]
    #[getter]
    fn session_id(&self) -> i64 {
        self.session_id.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_session_id(&self, #[pyo3(from_py_with = arguments::cluster_session_id)] session_id: i64) {
        self.session_id.store(session_id, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.output_count")]
    #[getter]
    fn output_count(&self) -> i64 {
        self.output_count.load(Ordering::Relaxed)
    }

    #[doc = docstring!("LogPlace.note_output")]
    #[inline]
    pub(crate) fn note_output(&self) {
        self.output_count.fetch_add(1, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.is_leader")]
    #[getter]
    pub(crate) fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_leader(&self, #[pyo3(from_py_with = arguments::is_leader)] is_leader: bool) {
        self.is_leader.store(is_leader, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.is_silent")]
    #[getter]
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_silent(&self, #[pyo3(from_py_with = arguments::is_silent)] is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::Relaxed);
    }

    #[doc = docstring!("LogPlace.check_may_send")]
    fn check_may_send(&self) {}
}

/// The argument of a call.
pub(crate) fn log_place<'py>(place: &Bound<'py, PyAny>) -> PyResult<Bound<'py, LogPlace>> {
    let found = place.cast::<LogPlace>().cloned();
    found.map_err(|_| arguments::wrong_type(place, "place", "must be a LogPlace"))
}
