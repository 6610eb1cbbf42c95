//! Arguments from Python: one that does not fit is refused by name, with its value and what it must be.
//!
//! A wrong type is a `TypeError`, a value out of range a `ConfigError`.
//!
//! For `#[pyo3(from_py_with = ...)]`. A number that fits costs what PyO3's own conversion does.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::boundary::errors;
use crate::boundary::repr::short_repr;

const COUNT: &str = "must be a whole number from 0 to 2**64 - 1";
const PAYLOAD_LENGTH: &str = "must be a whole number from 0 to max_payload_length";
const BYTE: &str = "must be a whole number from 0 to 255";
const ID: &str = "must be a whole number from -2**31 to 2**31 - 1";
const LONG: &str = "must be a whole number from -2**63 to 2**63 - 1";
const SECONDS: &str = "must be a number of seconds";
const FLAG: &str = "must be True or False";
const TEXT: &str = "must be text";
const NO_UTF8: &str = "must be text that UTF-8 can encode: no half of a surrogate pair";

/// The conversion of each argument, which is named as the function.
macro_rules! arguments {
    ($($name:ident: $type:ty, $rule:expr;)*) => {
        $(
            pub(crate) fn $name<'py>(number: &Bound<'py, PyAny>) -> PyResult<$type> {
                extract(number, stringify!($name), $rule)
            }
        )*
    };
}

arguments! {
    limit: usize, COUNT;
    limit_bytes: usize, COUNT;
    context: usize, COUNT;
    within: usize, COUNT;
    accepted: usize, COUNT;
    requested: usize, COUNT;
    count: usize, COUNT;
    count_max: usize, COUNT;
    length_max: usize, COUNT;
    length: usize, PAYLOAD_LENGTH;
    stream_id: i32, ID;
    session_id: i32, ID;
    initial_term_id: i32, ID;
    term_length: i32, ID;
    segment_length: i32, ID;
    type_id: i32, ID;
    counter_id: i32, ID;
    registration_id: i64, LONG;
    reference_id: i64, LONG;
    value: i64, LONG;
    expected: i64, LONG;
    delta: i64, LONG;
    reserved_value: i64, LONG;
    flags: u8, BYTE;
    position: i64, LONG;
    limit_position: i64, LONG;
    recording_id: i64, LONG;
    leadership_term_id: i64, LONG;
    cluster_session_id: i64, LONG;
    timestamp: i64, LONG;
    term_id: i64, LONG;
    time: i64, LONG;
    keep_alive_interval_ns: i64, LONG;
    start_position: i64, LONG;
    start: i64, LONG;
    stop: i64, LONG;
    reserved_value_min: i64, LONG;
    reserved_value_max: i64, LONG;
    work_count: usize, COUNT;
    longest_ns: u64, COUNT;
    timeout_s: f64, SECONDS;
    assemble: bool, FLAG;
    view: bool, FLAG;
    is_frame_at_start: bool, FLAG;
    is_leader: bool, FLAG;
    is_silent: bool, FLAG;
    with_payload: bool, FLAG;
    found: bool, FLAG;
    is_steady: bool, FLAG;
    payload: Py<PyBytes>, "must be bytes";
    awaited: Vec<Bound<'py, PyAny>>, "must be a list of subscriptions and publications";
}

/// What a poll calls for each message. Refused before the poll begins, not when the first message has arrived.
pub(crate) fn handler<'py>(handler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(handler, "handler")
}

/// What fills a block that is sent.
pub(crate) fn read<'py>(read: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(read, "read")
}

/// What takes the messages of a log.
pub(crate) fn deliver<'py>(deliver: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(deliver, "deliver")
}

/// What makes a message of its values.
pub(crate) fn make<'py>(make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(make, "make")
}

/// What takes the messages that are not a service's.
pub(crate) fn accept<'py>(accept: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(accept, "accept")
}

/// Sessions by id.
pub(crate) fn sessions<'py>(sessions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let found = sessions.cast::<PyDict>().cloned();
    found.map_err(|_| wrong_type(sessions, "sessions", "must be a dict"))
}

/// A handler that a client keeps, or `None`.
pub(crate) fn on_available_image(handler: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if_any(handler, |handler| kept(handler, "on_available_image"))
}

/// As [`on_available_image`].
pub(crate) fn on_unavailable_image(handler: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if_any(handler, |handler| kept(handler, "on_unavailable_image"))
}

/// A handler that outlives the call it is given to.
pub(crate) fn kept(handler: &Bound<'_, PyAny>, name: &str) -> PyResult<Py<PyAny>> {
    callable(handler, name).map(Bound::unbind)
}

fn callable<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if object.is_callable() {
        return Ok(object.clone());
    }
    Err(wrong_type(object, name, "must be callable"))
}

/// The length of padding or of a block, which may be longer than one frame's payload.
pub(crate) fn span_length(number: &Bound<'_, PyAny>) -> PyResult<usize> {
    extract(number, "length", COUNT)
}

/// The limit of a recording, which is a position and not a count as [`limit`] is.
pub(crate) fn recording_limit(number: &Bound<'_, PyAny>) -> PyResult<i64> {
    extract(number, "limit", LONG)
}

/// As [`limit_position`], or `None`.
pub(crate) fn limit_position_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if_any(number, limit_position)
}

/// As [`reserved_value`], or `None`.
pub(crate) fn reserved_value_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if_any(number, reserved_value)
}

/// As [`length_max`], or `None`.
pub(crate) fn length_max_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if_any(number, length_max)
}

/// As [`session_id`], or `None`.
pub(crate) fn session_id_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
    if_any(number, session_id)
}

fn if_any<T>(
    number: &Bound<'_, PyAny>,
    convert: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    (!number.is_none()).then(|| convert(number)).transpose()
}

/// As [`timeout_s`], or `None` to wait without end.
pub(crate) fn timeout_s_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if_any(number, |number| {
        extract(
            number,
            "timeout_s",
            "must be a number of seconds, or None to wait without end",
        )
    })
}

/// Why an image is rejected.
pub(crate) fn reason<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text(object, "reason", TEXT)
}

/// Where a stream goes.
pub(crate) fn channel<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text(
        object,
        "channel",
        "must be text, such as 'aeron:udp?endpoint=192.168.0.8:20452'",
    )
}

/// What a counter is called.
pub(crate) fn label<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text(object, "label", TEXT)
}

/// What something is called.
pub(crate) fn name<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text(object, "name", TEXT)
}

/// What an idle strategy is made with, or `None`.
pub(crate) fn init_args_if_any<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a str>> {
    (!object.is_none())
        .then(|| text(object, "init_args", TEXT))
        .transpose()
}

/// The name of an idle strategy, where an object would do as well.
pub(crate) fn idle<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text(
        object,
        "idle",
        "must be a headrace.IdleStrategy or the name of one",
    )
}

/// The error for what cannot lend its bytes; other errors of the buffer protocol stay what they are.
#[cold]
pub(crate) fn not_bytes(object: &Bound<'_, PyAny>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(object.py()) {
        return error;
    }
    let rule = if object.is_instance_of::<PyString>() {
        "must be a bytes-like object; text becomes bytes with .encode()"
    } else {
        "must be a bytes-like object, such as bytes or a numpy array"
    };
    wrong_type(object, name, rule)
}

/// The error for an object of a type that cannot be used.
#[cold]
pub(crate) fn wrong_type(object: &Bound<'_, PyAny>, name: &str, rule: &str) -> PyErr {
    PyTypeError::new_err(format!("{name}={}: {rule}", short_repr(object)))
}

fn text<'a>(object: &'a Bound<'_, PyAny>, name: &str, rule: &str) -> PyResult<&'a str> {
    match object.cast::<PyString>() {
        Ok(text) => text
            .to_str()
            .map_err(|_| errors::config(name, &short_repr(object), NO_UTF8)),
        Err(_) => Err(wrong_type(object, name, rule)),
    }
}

/// What an object of Python is in Rust; an error names the argument and says what it must be.
#[inline]
pub(crate) fn extract<'py, T: FromPyObjectOwned<'py>>(
    object: &Bound<'py, PyAny>,
    name: &str,
    rule: &str,
) -> PyResult<T> {
    object
        .extract::<T>()
        .map_err(|error| refused(object, name, rule, error.into()))
}

#[cold]
fn refused(object: &Bound<'_, PyAny>, name: &str, rule: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyTypeError>(object.py()) {
        return wrong_type(object, name, rule);
    }
    if !error.is_instance_of::<PyOverflowError>(object.py()) {
        return error;
    }
    // Python itself declines to write out integers of thousands of digits.
    let value = object
        .str()
        .map_or_else(|_| "(too long to print)".to_owned(), |text| text.to_string());
    errors::config(name, &value, rule)
}
