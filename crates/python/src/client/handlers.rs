//! Python callables as the client's handlers.
//!
//! They run on the client's conductor thread. What they raise cannot reach a caller, so it goes to
//! `sys.unraisablehook`. While the interpreter ends they are no longer called.

use std::sync::Arc;

use headrace_client::{
    ClientError, CloseHandler, CounterHandler, ErrorHandler, ImageHandler, PublicationError,
    PublicationErrorHandler,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::boundary::errors;
use crate::receiving::image::Image;

fn call(handler: &Py<PyAny>, arguments: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>) {
    Python::try_attach(|py| {
        let handler = handler.bind(py);
        if let Err(error) = arguments(py).and_then(|arguments| handler.call1(arguments)) {
            error.write_unraisable(py, Some(handler));
        }
    });
}

pub(crate) fn image(handler: Py<PyAny>) -> ImageHandler {
    Arc::new(move |image| {
        call(&handler, |py| {
            let image = Bound::new(py, Image::new(Arc::clone(image), None))?;
            PyTuple::new(py, [image])
        });
    })
}

pub(crate) fn counter(handler: Py<PyAny>) -> CounterHandler {
    Arc::new(move |_, registration_id, counter_id| {
        call(&handler, |py| (registration_id, counter_id).into_pyobject(py));
    })
}

pub(crate) fn close(handler: Py<PyAny>) -> CloseHandler {
    Arc::new(move || call(&handler, |py| Ok(PyTuple::empty(py))))
}

pub(crate) fn error(handler: Py<PyAny>) -> ErrorHandler {
    Arc::new(move |error: &ClientError| {
        call(&handler, |py| {
            let error = errors::client(error.clone()).into_value(py);
            PyTuple::new(py, [error])
        });
    })
}

pub(crate) fn publication_error(handler: Py<PyAny>) -> PublicationErrorHandler {
    Arc::new(move |error: &PublicationError| {
        call(&handler, |py| {
            let error =
                errors::registration(error.code, error.registration_id, &error.message).into_value(py);
            PyTuple::new(py, [error])
        });
    })
}
