//! Idle strategies for loops written in Python.

use std::sync::{Mutex, PoisonError};

use headrace_sys::idle;
use pyo3::prelude::*;

use crate::errors;

#[doc = docstring!("IdleStrategy")]
#[pyclass(frozen, subclass, module = "headrace")]
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

    #[doc = docstring!("IdleStrategy.idle")]
    #[pyo3(signature = (work_count = 0, /))]
    fn idle(&self, py: Python<'_>, work_count: usize) {
        if work_count > 0 {
            self.lock().reset();
        } else {
            py.detach(|| self.lock().idle(0));
        }
    }

    #[doc = docstring!("IdleStrategy.reset")]
    fn reset(&self) {
        self.lock().reset();
    }

    #[doc = docstring!("IdleStrategy.name")]
    #[getter]
    fn name(&self) -> &'static str {
        self.lock().name()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().name()?;
        Ok(match class.to_str()? {
            "IdleStrategy" => format!("IdleStrategy({:?})", slf.get().name()),
            class => format!("{class}()"),
        })
    }
}
