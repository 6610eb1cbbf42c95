//! Counters that a client allocated.

use headrace_client as client;
use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, errors};

#[doc = docstring!("Counter")]
#[pyclass(frozen, weakref, module = "headrace")]
pub(crate) struct Counter {
    inner: ForkGuard<Inner>,
    client: ForkGuard<ClientRef>,
}

enum Inner {
    Owned(client::Counter),
    Static(client::StaticCounter),
}

impl Counter {
    pub(crate) fn owned(kept: ClientRef, counter: client::Counter) -> Self {
        Self::new(kept, Inner::Owned(counter))
    }

    pub(crate) fn fixed(kept: ClientRef, counter: client::StaticCounter) -> Self {
        Self::new(kept, Inner::Static(counter))
    }

    fn new(kept: ClientRef, inner: Inner) -> Self {
        Self {
            inner: ForkGuard::new(inner),
            client: ForkGuard::new(kept),
        }
    }

    fn closed(&self) -> PyErr {
        match self.client.get().ok().and_then(|client| client.ended_by()) {
            Some(reason) => errors::closed_because("counter", &reason),
            None => errors::closed("counter"),
        }
    }
}

closed_by_with!(Counter);

#[pymethods]
impl Counter {
    #[doc = docstring!("Counter.value")]
    #[getter]
    fn value(&self) -> PyResult<i64> {
        match self.inner.get()? {
            Inner::Owned(counter) => counter.get().ok_or_else(|| self.closed()),
            Inner::Static(counter) => Ok(counter.get()),
        }
    }

    #[setter]
    fn set_value(&self, #[pyo3(from_py_with = arguments::value)] value: i64) -> PyResult<()> {
        match self.inner.get()? {
            Inner::Owned(counter) => counter.set(value).then_some(()).ok_or_else(|| self.closed()),
            Inner::Static(counter) => {
                counter.set(value);
                Ok(())
            }
        }
    }

    #[doc = docstring!("Counter.get_and_add")]
    #[pyo3(signature = (delta, /))]
    fn get_and_add(&self, #[pyo3(from_py_with = arguments::delta)] delta: i64) -> PyResult<i64> {
        match self.inner.get()? {
            Inner::Owned(counter) => counter.get_and_add(delta).ok_or_else(|| self.closed()),
            Inner::Static(counter) => Ok(counter.get_and_add(delta)),
        }
    }

    #[doc = docstring!("Counter.set_reference_id")]
    #[pyo3(signature = (reference_id, /))]
    fn set_reference_id(
        &self,
        #[pyo3(from_py_with = arguments::reference_id)] reference_id: i64,
    ) -> PyResult<()> {
        match self.inner.get()? {
            Inner::Owned(counter) => counter
                .set_reference_id(reference_id)
                .then_some(())
                .ok_or_else(|| self.closed()),
            Inner::Static(_) => Err(errors::config(
                "reference_id",
                &reference_id.to_string(),
                "is of counters that this client owns, and this one is static",
            )),
        }
    }

    #[doc = docstring!("Counter.counter_id")]
    #[getter]
    fn counter_id(&self) -> PyResult<i32> {
        Ok(match self.inner.get()? {
            Inner::Owned(counter) => counter.counter_id(),
            Inner::Static(counter) => counter.counter_id(),
        })
    }

    #[doc = docstring!("Counter.registration_id")]
    #[getter]
    fn registration_id(&self) -> PyResult<i64> {
        Ok(match self.inner.get()? {
            Inner::Owned(counter) => counter.registration_id(),
            Inner::Static(counter) => counter.registration_id(),
        })
    }

    #[doc = docstring!("Counter.is_static")]
    #[getter]
    fn is_static(&self) -> PyResult<bool> {
        Ok(matches!(self.inner.get()?, Inner::Static(_)))
    }

    #[doc = docstring!("Counter.is_closed")]
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(match self.inner.get()? {
            Inner::Owned(counter) => counter.is_closed(),
            Inner::Static(_) => false,
        })
    }

    #[doc = docstring!("Counter.close")]
    fn close(&self, py: Python<'_>) {
        if let Some(Inner::Owned(counter)) = self.inner.get_if_own() {
            detach(py, || counter.close());
        }
    }

    fn __repr__(&self) -> String {
        match self.inner.get() {
            Err(_) => "Counter(made before a fork)".to_owned(),
            Ok(Inner::Owned(counter)) => match counter.get() {
                Some(value) => format!("Counter(counter_id={}, value={value})", counter.counter_id()),
                None => format!("Counter(counter_id={}, closed)", counter.counter_id()),
            },
            Ok(Inner::Static(counter)) => {
                format!(
                    "Counter(counter_id={}, value={}, static)",
                    counter.counter_id(),
                    counter.get()
                )
            }
        }
    }
}
