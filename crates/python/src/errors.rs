//! From Rust errors to the Python tree of `headrace._exceptions`.

use headrace_client::{ClientError, PollError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// The class `name` of `headrace._exceptions`, called with `args` and `kwargs`.
fn build(
    name: &str,
    message: &str,
    attributes: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
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
        .get_or_try_init(py, || Ok(py.import("headrace._exceptions")?.into_any().unbind()))
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
    plain("ClosedError", &format!("{what} is closed"))
}

pub(crate) fn reentrant(message: &str) -> PyErr {
    plain("ReentrantError", message)
}

pub(crate) fn config(setting: &str, value: &str, rule: &str) -> PyErr {
    build("ConfigError", &format!("{setting}={value}: {rule}"), |keywords| {
        keywords.set_item("setting", setting)?;
        keywords.set_item("value", value)?;
        keywords.set_item("rule", rule)
    })
}

/// An error of a blocking helper of a publication, with the last result and, from batches, how many messages
/// had been accepted.
pub(crate) fn publication(name: &str, message: &str, result: &Bound<'_, PyAny>, accepted: usize) -> PyErr {
    build(name, message, |keywords| {
        keywords.set_item("result", result)?;
        keywords.set_item("accepted", accepted)
    })
}

pub(crate) fn client(error: ClientError) -> PyErr {
    let message = error.to_string();
    match error {
        ClientError::Closed { .. } => plain("ClosedError", &message),
        ClientError::Reentrant { .. } => plain("ReentrantError", &message),
        ClientError::DriverTimeout { .. } => plain("DriverTimeoutError", &message),
        ClientError::InvalidArgument { name, value, rule } => config(name, &value, &rule),
        ClientError::Registration {
            code, correlation_id, ..
        } => build("RegistrationError", &message, |keywords| {
            keywords.set_item("code", code as i32)?;
            keywords.set_item("code_name", screaming(&format!("{code:?}")))?;
            keywords.set_item("correlation_id", correlation_id)
        }),
        _ => plain("ClientError", &message),
    }
}

pub(crate) fn poll(error: PollError) -> PyErr {
    let message = error.to_string();
    match error {
        PollError::Busy { .. } => reentrant(&message),
        PollError::Closed => plain("ClosedError", &message),
    }
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
