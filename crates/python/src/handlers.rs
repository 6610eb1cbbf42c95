//! Python callables as the client's handlers.
//!
//! They run on the client's conductor thread. What they raise cannot reach a caller, so it goes to
//! `sys.unraisablehook`. While the interpreter ends they are no longer called.

use std::sync::{Arc, Mutex};

use headrace_client::{
    ClientError, CloseHandler, CounterHandler, ErrorHandler, ImageHandler, PublicationError,
    PublicationErrorHandler,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;
use crate::images::Image;
use crate::lock::lock;

/// A callable that a client holds until it is closed. A handler often holds what holds the client: Python's collector sees
/// no reference that the core has, so such a ring, and the files mapped for the client, would stay for ever.
#[derive(Clone)]
pub(crate) struct Callable(Arc<Mutex<Option<Py<PyAny>>>>);

impl Callable {
    pub(crate) fn new(callable: Py<PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(callable))))
    }

    /// Lets the callable go. It is not called from then on.
    pub(crate) fn release(&self) {
        // What is dropped may run Python, which must not find the lock held.
        let callable = lock(&self.0).take();
        drop(callable);
    }

    fn call(&self, arguments: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>) {
        Python::try_attach(|py| {
            let handler = lock(&self.0).as_ref().map(|handler| handler.clone_ref(py));
            let Some(handler) = handler else { return };
            let handler = handler.bind(py);
            if let Err(error) = arguments(py).and_then(|arguments| handler.call1(arguments)) {
                error.write_unraisable(py, Some(handler));
            }
        });
    }
}

pub(crate) fn image(handler: Callable) -> ImageHandler {
    Arc::new(move |image| {
        handler.call(|py| {
            let image = Bound::new(py, Image::new(Arc::clone(image), None))?;
            PyTuple::new(py, [image])
        });
    })
}

pub(crate) fn counter(handler: Callable) -> CounterHandler {
    Arc::new(move |_, registration_id, counter_id| {
        handler.call(|py| (registration_id, counter_id).into_pyobject(py));
    })
}

pub(crate) fn close(handler: Callable) -> CloseHandler {
    Arc::new(move || handler.call(|py| Ok(PyTuple::empty(py))))
}

pub(crate) fn error(handler: Callable) -> ErrorHandler {
    Arc::new(move |error: &ClientError| {
        handler.call(|py| {
            let error = errors::client(error.clone()).into_value(py);
            PyTuple::new(py, [error])
        });
    })
}

pub(crate) fn publication_error(handler: Callable) -> PublicationErrorHandler {
    Arc::new(move |error: &PublicationError| {
        handler.call(|py| {
            let error =
                errors::registration(error.code, error.registration_id, &error.message).into_value(py);
            PyTuple::new(py, [error])
        });
    })
}
