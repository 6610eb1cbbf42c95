//! Numbers and callables from Python: one that does not fit is refused by name, with its value and what is allowed.
//!
//! For `#[pyo3(from_py_with = ...)]`. A number that fits costs what PyO3's own conversion does.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::{errors, shown};

const COUNT: &str = "must be from 0 to 18446744073709551615";
const PAYLOAD_LENGTH: &str = "must be from 0 to max_payload_length";
const BYTE: &str = "must be from 0 to 255";
const ID: &str = "must be from -2147483648 to 2147483647";
const LONG: &str = "must be from -9223372036854775808 to 9223372036854775807";

/// The conversion of each argument, which is named as the function.
macro_rules! arguments {
    ($($name:ident: $type:ty, $rule:expr;)*) => {
        $(
            pub(crate) fn $name(number: &Bound<'_, PyAny>) -> PyResult<$type> {
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
    recorded_session_id: i32, ID;
    initial_term_id: i32, ID;
    term_length: i32, ID;
    segment_length: i32, ID;
    type_id: i32, ID;
    counter_id: i32, ID;
    registration_id: i64, LONG;
    reference_id: i64, LONG;
    value: i64, LONG;
    delta: i64, LONG;
    reserved_value: i64, LONG;
    flags: u8, BYTE;
    position: i64, LONG;
    limit_position: i64, LONG;
    recording_id: i64, LONG;
    start_position: i64, LONG;
    start: i64, LONG;
    stop: i64, LONG;
    reserved_value_min: i64, LONG;
    reserved_value_max: i64, LONG;
}

/// What a poll calls for each message. Refused before the poll begins, not when the first message has arrived.
pub(crate) fn handler<'py>(handler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(handler, "handler")
}

/// What fills a block that is sent.
pub(crate) fn read<'py>(read: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    callable(read, "read")
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
    let value = shown::repr(object);
    Err(PyTypeError::new_err(format!("{name}={value}: must be callable")))
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

/// As [`session_id`], or `None`.
pub(crate) fn session_id_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
    if_any(number, session_id)
}

/// As [`recorded_session_id`], or `None`.
pub(crate) fn recorded_session_id_if_any(number: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
    if_any(number, recorded_session_id)
}

fn if_any<T>(
    number: &Bound<'_, PyAny>,
    convert: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    (!number.is_none()).then(|| convert(number)).transpose()
}

#[inline]
fn extract<'py, T: FromPyObjectOwned<'py>>(
    number: &Bound<'py, PyAny>,
    name: &str,
    rule: &str,
) -> PyResult<T> {
    number
        .extract::<T>()
        .map_err(|error| refused(number, name, rule, error.into()))
}

/// What is no integer at all stays the `TypeError` it is.
#[cold]
fn refused(number: &Bound<'_, PyAny>, name: &str, rule: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyOverflowError>(number.py()) {
        return error;
    }
    // Python itself declines to write out integers of thousands of digits.
    let value = number
        .str()
        .map_or_else(|_| "(too long to print)".to_owned(), |text| text.to_string());
    errors::config(name, &value, rule)
}
