//! From Rust errors to the Python tree of `headrace._base.exceptions`.

use headrace_buffers::log::BlockError;
use headrace_client::{AppendError, ClientError, ErrorCode, OfferError, PollError};
use headrace_driver::{DirectoryError, DriverError};
use headrace_protocol::text::excerpt;
use headrace_recording::RecordingError;
use headrace_sim::WorldError;
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::boundary::interpreter_exit::is_exiting_elsewhere;

/// The class `name` of `headrace._base.exceptions`, called with `args` and `kwargs`.
fn build(name: &str, message: &str, attributes: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| {
        let built = exceptions(py).and_then(|module| {
            let keywords = PyDict::new(py);
            attributes(&keywords)?;
            let class = module.getattr(name)?.cast_into::<PyType>()?;
            class.call((message,), Some(&keywords))
        });
        match built {
            Ok(instance) => PyErr::from_value(instance),
            Err(error) => error,
        }
    })
}

fn exceptions(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MODULE
        .get_or_try_init(py, || {
            Ok(py.import("headrace._base.exceptions")?.into_any().unbind())
        })
        .map(|module| module.bind(py).clone())
}

fn plain(name: &str, message: &str) -> PyErr {
    build(name, message, |_| Ok(()))
}

pub(crate) fn forked() -> PyErr {
    plain(
        "ForkError",
        "this object was made before os.fork() and cannot be used in the child: neither its threads nor its \
         place at the driver came along; connect a new client in the child, or start processes with the \
         \"spawn\" method",
    )
}

pub(crate) fn closed(what: &str) -> PyErr {
    closed_error(&format!("{what} is closed"))
}

pub(crate) fn closed_because(what: &str, reason: &ClientError) -> PyErr {
    closed_error(&format!("{what} is closed: {reason}"))
}

/// True for a `ClosedError`.
pub(crate) fn is_closed(py: Python<'_>, error: &PyErr) -> bool {
    exceptions(py)
        .and_then(|module| module.getattr("ClosedError"))
        .is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

/// `ClosedError`, but on daemon threads of a process that is ending: the interpreter's exit has closed their client,
/// not the program. They end as `sys.exit()` ends a thread, without a traceback.
fn closed_error(message: &str) -> PyErr {
    if is_exiting_elsewhere() {
        return PySystemExit::new_err(());
    }
    plain("ClosedError", message)
}

pub(crate) fn reentrant(message: &str) -> PyErr {
    plain("ReentrantError", message)
}

pub(crate) fn config(setting: &str, value: &str, rule: &str) -> PyErr {
    config_as_shown(&excerpt(setting), &excerpt(value), rule)
}

/// As [`config`], for a setting and a value that are short enough already: an excerpt of an excerpt tells a wrong length.
fn config_as_shown(setting: &str, value: &str, rule: &str) -> PyErr {
    build("ConfigError", &format!("{setting}={value}: {rule}"), |keywords| {
        keywords.set_item("setting", setting)?;
        keywords.set_item("value", value)?;
        keywords.set_item("rule", rule)
    })
}

/// An error of a blocking helper of a publication, with the last result and, from batches, how many messages
/// had been accepted.
pub(crate) fn publication(name: &str, message: &str, result: &Bound<'_, PyAny>, accepted: usize) -> PyErr {
    // As in `closed_error`.
    if name == "PublicationClosedError" && is_exiting_elsewhere() {
        return PySystemExit::new_err(());
    }
    build(name, message, |keywords| {
        keywords.set_item("result", result)?;
        keywords.set_item("accepted", accepted)
    })
}

pub(crate) fn client(error: ClientError) -> PyErr {
    let message = error.to_string();
    match error {
        ClientError::Closed { .. } => closed_error(&message),
        ClientError::Reentrant { .. } => plain("ReentrantError", &message),
        ClientError::DriverTimeout { .. } | ClientError::DriverEnded { .. } => {
            plain("DriverTimeoutError", &message)
        }
        ClientError::InvalidArgument { name, value, rule } => config(&name, &value, &rule),
        ClientError::Registration {
            code, correlation_id, ..
        } => registration(code, correlation_id, &message),
        _ => plain("ClientError", &message),
    }
}

pub(crate) fn registration(code: ErrorCode, correlation_id: i64, message: &str) -> PyErr {
    build("RegistrationError", message, |keywords| {
        keywords.set_item("code", code.value())?;
        keywords.set_item("code_name", screaming(&format!("{code:?}")))?;
        keywords.set_item("correlation_id", correlation_id)
    })
}

/// An offer that can never succeed.
#[cold]
pub(crate) fn offer(error: OfferError) -> PyErr {
    let (setting, length, rule) = match error {
        OfferError::Busy => return reentrant(&error.to_string()),
        OfferError::Append(AppendError::MessageTooLong { length, max }) => (
            "len(data)",
            length,
            format!("must be at most max_message_length={max}"),
        ),
        OfferError::Append(AppendError::ClaimTooLong { length, max }) => (
            "length",
            length,
            format!(
                "must be at most max_payload_length={max}: a claim is a single frame; offer() splits longer messages"
            ),
        ),
        OfferError::Append(AppendError::PaddingTooLong { length, max }) => {
            ("length", length, format!("must be at most {max}"))
        }
        OfferError::Append(AppendError::Block(error)) => return block(error),
        OfferError::Append(AppendError::CorruptTail { .. }) => {
            return plain("ClientError", &error.to_string());
        }
    };
    config(setting, &length.to_string(), &rule)
}

/// A block of frames that does not belong here: which of its fields has which value, and what belongs there.
fn block(error: BlockError) -> PyErr {
    match error {
        BlockError::Length { length, remaining } => config(
            "len(block)",
            &length.to_string(),
            &format!("must be a positive multiple of 32 and at most remaining={remaining} bytes of the term"),
        ),
        BlockError::FirstFrame {
            field,
            value,
            expected,
        } => config(
            &format!("block {field}"),
            &value.to_string(),
            &format!("the first frame must have {field}={expected}, as the stream stands there"),
        ),
        BlockError::Frame { offset, frame_length } => config(
            &format!("block frame_length at offset {offset}"),
            &frame_length.to_string(),
            "frames must have a header of 32 bytes at least and follow on to the end of the block",
        ),
    }
}

pub(crate) fn driver(name: &str, message: &str) -> PyErr {
    plain(name, message)
}

/// What a simulated world refuses.
pub(crate) fn world(error: WorldError) -> PyErr {
    match error {
        WorldError::Driver { source, .. } => launch(source),
        WorldError::Client(source) => client(source),
        WorldError::Node { node, rule } => config("node", &node, rule),
        error => driver("DriverError", &error.to_string()),
    }
}

/// A driver that did not start, or did not stop cleanly.
pub(crate) fn launch(error: DriverError) -> PyErr {
    let message = error.to_string();
    match error {
        DriverError::Config(error) => config_as_shown(&error.setting, &error.value, &error.rule),
        DriverError::Directory(DirectoryError::Active { .. }) => plain("ActiveDriverError", &message),
        _ => plain("DriverError", &message),
    }
}

pub(crate) fn poll(error: PollError) -> PyErr {
    let message = error.to_string();
    match error {
        PollError::Busy { .. } => reentrant(&message),
        PollError::Closed => closed_error(&message),
        PollError::Overtaken { .. } => plain("ClientError", &message),
    }
}

/// A recording that cannot be read; what is wrong with a file is said by the archive's own class.
pub(crate) fn recording(error: RecordingError) -> PyErr {
    let message = error.to_string();
    if let RecordingError::InvalidArgument { name, value, rule } = error {
        return config(name, &value.to_string(), rule);
    }
    Python::attach(|py| {
        let built = py
            .import("headrace.archive.errors")
            .and_then(|module| module.getattr("SegmentError")?.call1((message,)));
        built.map_or_else(|error| error, PyErr::from_value)
    })
}

/// `InvalidChannel` as `INVALID_CHANNEL`, the way the specification writes it.
fn screaming(name: &str) -> String {
    let mut result = String::with_capacity(name.len() + 4);
    for (index, character) in name.chars().enumerate() {
        if character.is_ascii_uppercase() && index > 0 {
            result.push('_');
        }
        result.push(character.to_ascii_uppercase());
    }
    result
}
