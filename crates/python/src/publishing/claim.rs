//! Room in the log that Python fills in place.

use std::sync::{Mutex, MutexGuard, PoisonError};

use headrace_buffers::log;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::boundary::c_api::{ExportedMemory, Exporter, Loan, end_loan};
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::{arguments, errors};

#[doc = docstring!("Claim")]
#[pyclass(frozen, module = "headrace")]
pub(crate) struct Claim {
    open: ForkGuard<Mutex<Option<Open>>>,
    position: i64,
    length: usize,
}

/// How a claim ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Abort,
    /// What was raised is worth more than what the abort has to tell.
    AbortAfterError,
}

/// Fields are dropped in this order: a claim that is dropped is aborted, and nothing may write into its room after that.
struct Open {
    lent: Lent,
    claim: log::Claim<'static>,
}

/// The view, if one was given out.
struct Lent(Option<(Py<PyMemoryView>, Py<Exporter>)>);

impl Lent {
    /// Takes the view back; false when something made from it still holds the memory.
    fn take_back(&mut self, py: Python<'_>) -> bool {
        let lent = self.0.take();
        lent.is_none_or(|(view, exporter)| end_loan(view.bind(py), exporter.bind(py)))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.0.is_some() {
            Python::try_attach(|py| {
                if !self.take_back(py) {
                    still_held("it was dropped and so ").write_unraisable(py, None);
                }
            });
        }
    }
}

/// What something that was made from a view of an ended claim can do.
fn still_held(how: &str) -> PyErr {
    PyBufferError::new_err(format!(
        "the claim was aborted: {how}a slice or an array made from its view is still held, and what is written into it \
         reaches other messages; release or delete it before the claim ends"
    ))
}

impl Claim {
    pub(crate) fn new(claim: log::Claim<'static>) -> Self {
        Self {
            position: claim.position(),
            length: claim.length(),
            open: ForkGuard::new(Mutex::new(Some(Open {
                lent: Lent(None),
                claim,
            }))),
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
    fn finish(&self, py: Python<'_>, end: End) -> PyResult<bool> {
        let Some(Open { mut lent, claim }) = self.lock()?.take() else {
            return Ok(false);
        };
        let taken_back = lent.take_back(py);
        if end == End::Commit && taken_back {
            if claim.commit() {
                return Ok(true);
            }
            return Err(errors::closed(
                "the claim was held longer than the driver's publication_unblock_timeout_ns, which skipped it, or for a \
                 second after its publication was closed: its message was not sent, and it",
            ));
        }
        claim.abort();
        if taken_back || end == End::AbortAfterError {
            return Ok(true);
        }
        Err(still_held(""))
    }
}

#[pymethods]
impl Claim {
    #[doc = docstring!("Claim.view")]
    #[getter]
    fn view(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        self.with_open(|open| {
            if let Some((view, _)) = &open.lent.0 {
                return Ok(view.clone_ref(py));
            }
            let loan = Loan::new(
                py,
                ExportedMemory::Shared(open.claim.memory(), open.claim.length()),
                false,
            )?;
            let (view, exporter) = loan.into_parts();
            let result = view.clone_ref(py);
            open.lent = Lent(Some((view, exporter)));
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
        if self.finish(py, End::Commit)? {
            Ok(self.position)
        } else {
            Err(errors::closed("the claim was committed or aborted before and"))
        }
    }

    #[doc = docstring!("Claim.abort")]
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, End::Abort).map(|_| ())
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
        let end = if kind.is_none() {
            End::Commit
        } else {
            End::AbortAfterError
        };
        self.finish(py, end).map(|_| ())
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
