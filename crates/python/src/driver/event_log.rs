//! Event logs: written by an archive, read by tools. What users see of a reader is `headrace.event_log.EventReader`.

use std::path::PathBuf;
use std::sync::Mutex;

use headrace_buffers::event_log::{self as log, Event, WriterIdentity};
use headrace_driver::state_tables as states;
use pyo3::prelude::*;

use crate::boundary::lock::lock;

#[doc = docstring!("EventLog")]
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct EventLog(log::EventLog);

#[pymethods]
impl EventLog {
    #[new]
    #[pyo3(signature = (directory, limit, start_timestamp_ms))]
    fn new(directory: PathBuf, limit: usize, start_timestamp_ms: i64) -> PyResult<Self> {
        let identity = WriterIdentity {
            pid: i64::from(std::process::id()),
            start_timestamp_ms,
        };
        Ok(Self(log::EventLog::create(&directory, limit, identity)?))
    }

    #[doc = docstring!("EventLog.append")]
    #[pyo3(signature = (
        time_ns, kind, id, old, new, reason, *, parent_id = None, stream_id = None, session_id = None, detail = "",
        is_fault = false
    ))]
    #[allow(clippy::too_many_arguments)] // one by one, they are keywords in Python
    fn append(
        &self,
        time_ns: i64,
        kind: &str,
        id: i64,
        old: &str,
        new: &str,
        reason: &str,
        parent_id: Option<i64>,
        stream_id: Option<i32>,
        session_id: Option<i32>,
        detail: &str,
        is_fault: bool,
    ) -> bool {
        self.0.append(&Event {
            time_ns,
            kind,
            id,
            parent_id,
            stream_id,
            session_id,
            old,
            new,
            reason,
            detail,
            is_fault,
        })
    }
}

/// An event as the fields of `headrace.event_log.Event`, in their order.
type Fields = (
    i64,
    i64,
    String,
    i64,
    Option<i64>,
    Option<i32>,
    Option<i32>,
    String,
    String,
    String,
    String,
    bool,
);

fn fields((number, event): (i64, Event)) -> Fields {
    (
        number,
        event.time_ns,
        event.kind,
        event.id,
        event.parent_id,
        event.stream_id,
        event.session_id,
        event.old,
        event.new,
        event.reason,
        event.detail,
        event.is_fault,
    )
}

#[doc = docstring!("EventReader")]
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct EventReader {
    #[pyo3(get)]
    pid: i64,
    #[pyo3(get)]
    start_timestamp_ms: i64,
    reader: Mutex<log::EventReader>,
}

#[pymethods]
impl EventReader {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let (identity, reader) = log::EventReader::open(&path)?;
        Ok(Self {
            pid: identity.pid,
            start_timestamp_ms: identity.start_timestamp_ms,
            reader: Mutex::new(reader),
        })
    }

    #[getter]
    fn limit(&self) -> i64 {
        lock(&self.reader).limit()
    }

    #[getter]
    fn dropped_count(&self) -> i64 {
        lock(&self.reader).dropped_count()
    }

    fn drain(&self) -> PyResult<(Vec<Fields>, i64)> {
        let (events, lost_count) = lock(&self.reader).drain()?;
        Ok((events.into_iter().map(fields).collect(), lost_count))
    }
}

/// A kind of thing with its states.
#[derive(IntoPyObject)]
pub(crate) struct Table {
    kind: &'static str,
    about: String,
    states: Vec<Row>,
}

#[derive(IntoPyObject)]
struct Row {
    name: &'static str,
    meaning: String,
    next: Vec<&'static str>,
}

#[doc = docstring!("state_tables")]
#[pyfunction]
pub(crate) fn state_tables() -> Vec<Table> {
    let row = |row: states::StateRow| Row {
        name: row.name,
        meaning: row.meaning,
        next: row.next,
    };
    let table = |table: states::StateTable| Table {
        kind: table.kind,
        about: table.about,
        states: table.states.into_iter().map(row).collect(),
    };
    states::tables().into_iter().map(table).collect()
}
