//! What a program of a simulated world raised inside a call that cannot raise. The thread's next call that can does.

use std::cell::Cell;

use pyo3::prelude::*;

thread_local! {
    static DEFERRED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Keeps an exception for later. The first is kept: it is the cause.
pub(crate) fn defer(error: PyErr) {
    let first = DEFERRED.take().unwrap_or(error);
    DEFERRED.set(Some(first));
}

/// Raises what was deferred on this thread.
pub(crate) fn raise() -> PyResult<()> {
    DEFERRED.take().map_or(Ok(()), Err)
}

/// True while an exception waits to be raised.
pub(crate) fn is_pending() -> bool {
    let deferred = DEFERRED.take();
    let is_pending = deferred.is_some();
    DEFERRED.set(deferred);
    is_pending
}
