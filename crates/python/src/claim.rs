//! Room in the log that Python fills in place.

use std::sync::{Mutex, MutexGuard, PoisonError};

use headrace_buffers::log;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::c_api::{ExportedMemory, Exporter, Loan, end_loan};
use crate::fork_guard::ForkGuard;
use crate::{arguments, errors};

#[doc = docstring!("Claim")]
#[pyclass(frozen, module = "headrace")]
pub(crate) struct Claim {
    open: ForkGuard<Mutex<Option<Open>>>,
    position: i64,
    length: usize,
}

struct Open {
    claim: log::Claim<'static>,
    loan: Option<(Py<PyMemoryView>, Py<Exporter>)>,
}

impl Claim {
    pub(crate) fn new(claim: log::Claim<'static>) -> Self {
        Self {
            position: claim.position(),
            length: claim.length(),
            open: ForkGuard::new(Mutex::new(Some(Open { claim, loan: None }))),
        }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Open>>> {
        Ok(self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_open<T>(&self, action: impl FnOnce(&mut Open) -> PyResult<T>) -> PyResult<T> {
        match &mut *self.lock()? {
            Some(open) => action(open),
            None => Err(errors::closed("the claim was committed or aborted before and")),
        }
    }

    /// Takes the view back and ends the claim. With the view's memory still held by something made from it,
    /// the claim is aborted: else its holder could rewrite what subscribers already read.
    fn finish(&self, py: Python<'_>, commit: bool) -> PyResult<bool> {
        let Some(open) = self.lock()?.take() else {
            return Ok(false);
        };
        let taken_back = open
            .loan
            .is_none_or(|(view, exporter)| end_loan(view.bind(py), exporter.bind(py)));
        if commit && taken_back {
            if open.claim.commit() {
                return Ok(true);
            }
            return Err(errors::closed(
                "the claim was held longer than the driver's publication_unblock_timeout_ns, which skipped it: its message was \
                 not sent, and it",
            ));
        }
        open.claim.abort();
        if commit {
            return Err(PyBufferError::new_err(
                "the claim was aborted: a slice or an array made from its view is still held, and could change \
                 the message after it was sent; release or delete it before the claim is committed",
            ));
        }
        Ok(true)
    }
}

#[pymethods]
impl Claim {
    #[doc = docstring!("Claim.view")]
    #[getter]
    fn view(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        self.with_open(|open| {
            if let Some((view, _)) = &open.loan {
                return Ok(view.clone_ref(py));
            }
            let loan = Loan::new(
                py,
                ExportedMemory::Shared(open.claim.memory(), open.claim.length()),
                false,
            )?;
            let (view, exporter) = loan.into_parts();
            let result = view.clone_ref(py);
            open.loan = Some((view, exporter));
            Ok(result)
        })
    }

    #[doc = docstring!("Claim.position")]
    #[getter]
    fn position(&self) -> i64 {
        self.position
    }

    #[doc = docstring!("Claim.length")]
    #[getter]
    fn length(&self) -> usize {
        self.length
    }

    #[doc = docstring!("Claim.reserved_value")]
    #[getter]
    fn reserved_value(&self) -> PyResult<i64> {
        self.with_open(|open| Ok(open.claim.reserved_value()))
    }

    #[setter]
    fn set_reserved_value(
        &self,
        #[pyo3(from_py_with = arguments::reserved_value)] value: i64,
    ) -> PyResult<()> {
        self.with_open(|open| {
            open.claim.set_reserved_value(value);
            Ok(())
        })
    }

    #[doc = docstring!("Claim.flags")]
    #[getter]
    fn flags(&self) -> PyResult<u8> {
        self.with_open(|open| Ok(open.claim.flags()))
    }

    #[setter]
    fn set_flags(&self, #[pyo3(from_py_with = arguments::flags)] flags: u8) -> PyResult<()> {
        self.with_open(|open| {
            open.claim.set_flags(flags);
            Ok(())
        })
    }

    #[doc = docstring!("Claim.commit")]
    fn commit(&self, py: Python<'_>) -> PyResult<i64> {
        if self.finish(py, true)? {
            Ok(self.position)
        } else {
            Err(errors::closed("the claim was committed or aborted before and"))
        }
    }

    #[doc = docstring!("Claim.abort")]
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, false).map(|_| ())
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        self.view(py)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.finish(py, kind.is_none()).map(|_| ())
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("Claim(length={}, position={})", self.length, self.position)
    }
}
