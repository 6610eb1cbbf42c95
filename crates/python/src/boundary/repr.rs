//! Values in the texts of errors.

use headrace_protocol::text::excerpt;
use pyo3::prelude::*;

/// How Python shows an object, no longer than an error should be.
pub(crate) fn short_repr(object: &Bound<'_, PyAny>) -> String {
    match object.repr() {
        Ok(text) => excerpt(&text.to_string_lossy()).into_owned(),
        // Its class is at fault, and the caller's mistake is another one.
        Err(_) => format!("{:?}", object.get_type()),
    }
}
