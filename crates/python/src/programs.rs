//! The programs of a simulated world: what Python steps after drivers and clients.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::lock::lock;

thread_local! {
    // What a program raised inside a call that cannot raise. The next call that can does.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Gives the exception of a program to a call of the same thread that can raise it.
pub(crate) fn take_raised() -> PyResult<()> {
    RAISED.take().map_or(Ok(()), Err)
}

/// True while an exception of a program waits to be raised.
pub(crate) fn has_raised() -> bool {
    let raised = RAISED.take();
    let has_raised = raised.is_some();
    RAISED.set(raised);
    has_raised
}

/// How a world gives its programs their turns.
#[derive(Default)]
pub(crate) struct Programs {
    turn: Mutex<Option<Py<PyAny>>>,
    /// True inside a step of drivers and clients, which a handler may have left to wait for something. Programs use
    /// clients, and these are in the middle of a turn.
    is_inside: AtomicBool,
}

impl Programs {
    /// Sets what is called without arguments after each step, and gives the work that was done.
    pub(crate) fn set(&self, turn: Py<PyAny>) {
        *lock(&self.turn) = Some(turn);
    }

    /// A step of drivers and clients, then a turn of the programs. Returns the work done by all.
    pub(crate) fn follow(&self, step: impl FnOnce() -> usize) -> usize {
        let was_inside = self.is_inside.swap(true, Ordering::Relaxed);
        let work_count = step();
        self.is_inside.store(was_inside, Ordering::Relaxed);
        if was_inside {
            return work_count;
        }
        work_count + Python::try_attach(|py| self.turn(py)).unwrap_or(0)
    }

    fn turn(&self, py: Python<'_>) -> usize {
        let turn = lock(&self.turn).as_ref().map(|turn| turn.clone_ref(py));
        let Some(turn) = turn else { return 0 };
        match turn.call0(py).and_then(|count| count.extract(py)) {
            Ok(count) => count,
            Err(error) => {
                // The first is the cause.
                let first = RAISED.take().unwrap_or(error);
                RAISED.set(Some(first));
                0
            }
        }
    }
}
