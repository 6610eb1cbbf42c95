//! Idle strategies for loops written in Python.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use headrace_client::{Awaited, BlockingIdle, PARK_MAX};
use headrace_sys::idle;
use pyo3::prelude::*;

use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::lock::lock;
use crate::boundary::{arguments, errors};
use crate::waiting::doorbells::{NoDoorbell, warn_unwoken};
use crate::waiting::waitable::AnyOf;

#[doc = docstring!("IdleStrategy")]
#[pyclass(frozen, subclass, module = "headrace")]
pub(crate) struct IdleStrategy {
    /// As it was made.
    strategy: idle::IdleStrategy,
    /// Held by a thread for as long as it sleeps.
    idle: Mutex<BlockingIdle>,
    // What of it belongs to a parent must not even be dropped in a child.
    awaited: ForkGuard<AnyOf>,
}

impl IdleStrategy {
    /// Idles as `strategy` says, and until one of `awaited` rings.
    pub(crate) fn new(strategy: idle::IdleStrategy, awaited: AnyOf) -> Self {
        let idle = if awaited.0.is_empty() {
            BlockingIdle::new(strategy.clone(), PARK_MAX)
        } else {
            BlockingIdle::woken(strategy.clone(), PARK_MAX)
        };
        Self {
            strategy,
            idle: Mutex::new(idle),
            awaited: ForkGuard::new(awaited),
        }
    }

    pub(crate) fn parse(name: &str, init_args: Option<&str>) -> PyResult<idle::IdleStrategy> {
        idle::IdleStrategy::parse(name, init_args).map_err(|rule| errors::config("idle", name, &rule))
    }

    /// A strategy given by name or as an object; the default, which blocks, when nothing is given.
    pub(crate) fn extract(given: Option<&Bound<'_, PyAny>>) -> PyResult<idle::IdleStrategy> {
        let Some(given) = given else {
            return Ok(idle::IdleStrategy::default());
        };
        match given.cast::<Self>() {
            Ok(object) => Ok(object.get().strategy.clone()),
            Err(_) => Self::parse(arguments::idle(given)?, None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BlockingIdle> {
        lock(&self.idle)
    }
}

#[pymethods]
impl IdleStrategy {
    #[doc = docstring!("IdleStrategy.idle")]
    #[pyo3(signature = (work_count = 0, /))]
    fn idle(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::work_count)] work_count: usize) {
        if work_count > 0 {
            return self.reset(py);
        }
        // In a child of the process that made it nothing rings.
        let awaited: &(dyn Awaited + Sync) = match self.awaited.get_if_own() {
            Some(awaited) => awaited,
            None => &NoDoorbell,
        };
        detach(py, || self.lock().idle(0, awaited));
        warn_unwoken(py, &awaited.doorbells());
    }

    #[doc = docstring!("IdleStrategy.rest")]
    #[pyo3(signature = (found, longest_ns, /))]
    fn rest(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::found)] found: bool,
        #[pyo3(from_py_with = arguments::longest_ns)] longest_ns: u64,
    ) {
        let awaited: &(dyn Awaited + Sync) = match self.awaited.get_if_own() {
            Some(awaited) => awaited,
            None => &NoDoorbell,
        };
        let longest = Duration::from_nanos(longest_ns);
        detach(py, || self.lock().rest(found, longest, awaited));
        warn_unwoken(py, &awaited.doorbells());
    }

    #[doc = docstring!("IdleStrategy.reset")]
    fn reset(&self, py: Python<'_>) {
        match self.idle.try_lock() {
            Ok(mut idle) => idle.reset(),
            // Another thread sleeps.
            Err(_) => detach(py, || self.lock().reset()),
        }
    }

    #[doc = docstring!("IdleStrategy.name")]
    #[getter]
    fn name(&self) -> &'static str {
        self.strategy.name()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().name()?;
        Ok(match class.to_str()? {
            "IdleStrategy" => format!("IdleStrategy({:?})", slf.get().name()),
            class => format!("{class}()"),
        })
    }
}
