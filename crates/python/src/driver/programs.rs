//! The programs of a simulated world: what Python steps after drivers and clients.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::boundary::lock::lock;
use crate::waiting::deferred_error;

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
                deferred_error::defer(error);
                0
            }
        }
    }
}
