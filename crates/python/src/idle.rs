//! Idle strategies for loops written in Python.

use std::sync::{Mutex, PoisonError};

use headrace_client::{Awaited, BlockingIdle, PARK_MAX};
use headrace_sys::idle;
use pyo3::prelude::*;

use crate::awaited::{AnyOf, NoDoorbell, Watched};
use crate::errors;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::wait::tell_refusal;

#[doc = docstring!("IdleStrategy")]
#[pyclass(frozen, subclass, module = "headrace")]
pub(crate) struct IdleStrategy {
    idle: Mutex<BlockingIdle>,
    // What of it belongs to a parent must not even be dropped in a child.
    awaited: ForkGuard<AnyOf>,
}

impl IdleStrategy {
    pub(crate) fn parse(name: &str, init_args: Option<&str>) -> PyResult<idle::IdleStrategy> {
        idle::IdleStrategy::parse(name, init_args).map_err(|rule| errors::config("idle", name, &rule))
    }

    /// A strategy given by name or as an object; the default, which blocks, when nothing is given.
    pub(crate) fn extract(given: Option<&Bound<'_, PyAny>>) -> PyResult<idle::IdleStrategy> {
        let Some(given) = given else {
            return Ok(idle::IdleStrategy::default());
        };
        match given.cast::<Self>() {
            Ok(object) => {
                let mut strategy = object.get().lock().strategy().clone();
                strategy.reset();
                Ok(strategy)
            }
            Err(_) => Self::parse(&given.extract::<String>()?, None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BlockingIdle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl IdleStrategy {
    #[new]
    #[pyo3(signature = (name = "backoff", init_args = None, awaited = Vec::new()))]
    fn new(name: &str, init_args: Option<&str>, awaited: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let awaited: PyResult<_> = awaited.iter().map(Watched::extract).collect();
        let strategy = Self::parse(name, init_args)?;
        Ok(Self {
            idle: Mutex::new(BlockingIdle::new(strategy, PARK_MAX)),
            awaited: ForkGuard::new(AnyOf(awaited?)),
        })
    }

    #[doc = docstring!("IdleStrategy.idle")]
    #[pyo3(signature = (work_count = 0, /))]
    fn idle(&self, py: Python<'_>, work_count: usize) {
        if work_count > 0 {
            self.lock().reset();
        } else {
            let awaited: &(dyn Awaited + Sync) = match self.awaited.get_if_own() {
                Some(awaited) => awaited,
                None => &NoDoorbell,
            };
            detach(py, || self.lock().idle(0, awaited));
            tell_refusal(py, &awaited.doorbells());
        }
    }

    #[doc = docstring!("IdleStrategy.reset")]
    fn reset(&self) {
        self.lock().reset();
    }

    #[doc = docstring!("IdleStrategy.name")]
    #[getter]
    fn name(&self) -> &'static str {
        self.lock().strategy().name()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().name()?;
        Ok(match class.to_str()? {
            "IdleStrategy" => format!("IdleStrategy({:?})", slf.get().name()),
            class => format!("{class}()"),
        })
    }
}
