//! Idle strategies for loops written in Python.

use std::sync::{Mutex, PoisonError};

use headrace_sys::idle;
use pyo3::prelude::*;

use crate::errors;

/// What a loop does when a turn found no work. Use one of its subclasses, one object for each loop.
#[pyclass(frozen, subclass, module = "headrace._core")]
pub(crate) struct IdleStrategy {
    strategy: Mutex<idle::IdleStrategy>,
}

impl IdleStrategy {
    pub(crate) fn parse(name: &str, init_args: Option<&str>) -> PyResult<idle::IdleStrategy> {
        idle::IdleStrategy::parse(name, init_args).map_err(|rule| errors::config("idle", name, &rule))
    }

    /// A strategy given by name or as an object; the default, which backs off, when nothing is given.
    pub(crate) fn extract(given: Option<&Bound<'_, PyAny>>) -> PyResult<idle::IdleStrategy> {
        let Some(given) = given else {
            return Ok(idle::IdleStrategy::default());
        };
        match given.cast::<Self>() {
            Ok(object) => {
                let mut strategy = object.get().lock().clone();
                strategy.reset();
                Ok(strategy)
            }
            Err(_) => Self::parse(&given.extract::<String>()?, None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, idle::IdleStrategy> {
        self.strategy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl IdleStrategy {
    #[new]
    #[pyo3(signature = (name = "backoff", init_args = None))]
    fn new(name: &str, init_args: Option<&str>) -> PyResult<Self> {
        Ok(Self {
            strategy: Mutex::new(Self::parse(name, init_args)?),
        })
    }

    /// Call after each turn with the work it did. Returns at once when that is above 0, else passes some
    /// time.
    #[pyo3(signature = (work_count = 0, /))]
    fn idle(&self, py: Python<'_>, work_count: usize) {
        if work_count > 0 {
            self.lock().reset();
        } else {
            py.detach(|| self.lock().idle(0));
        }
    }

    /// Begin again, as after work was done.
    fn reset(&self) {
        self.lock().reset();
    }

    /// Name of the strategy.
    #[getter]
    fn name(&self) -> &'static str {
        self.lock().name()
    }

    fn __repr__(&self) -> String {
        format!("IdleStrategy({:?})", self.name())
    }
}
