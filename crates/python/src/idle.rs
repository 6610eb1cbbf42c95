//! Idle strategies for loops written in Python.

use std::sync::{Mutex, MutexGuard};

use headrace_client::{BlockingIdle, PARK_MAX};
use headrace_sys::idle;
use pyo3::prelude::*;

use crate::awaited::AnyOf;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::lock::lock;
use crate::{arguments, errors};

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

    /// What rings; none in a child of the process that made it.
    pub(crate) fn awaited(&self) -> Option<&AnyOf> {
        self.awaited.get_if_own()
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

    pub(crate) fn name(&self) -> &'static str {
        self.strategy.name()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BlockingIdle> {
        lock(&self.idle)
    }

    /// Begins anew. While another thread sleeps it waits without the GIL.
    pub(crate) fn begin_anew(&self, py: Python<'_>) {
        match self.idle.try_lock() {
            Ok(mut idle) => idle.reset(),
            Err(_) => detach(py, || self.lock().reset()),
        }
    }
}
