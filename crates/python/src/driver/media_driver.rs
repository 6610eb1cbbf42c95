//! The media driver inside a Python process. What users see of it is `headrace.driver.MediaDriver`.

use std::path::PathBuf;

use headrace_driver::{DriverConfig, Invoker};
use pyo3::prelude::*;

use crate::boundary::build_info::COMMIT;
use crate::boundary::errors;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;

/// A running media driver. Wrapped by ``headrace.MediaDriver``, which documents it.
#[pyclass(frozen, weakref, module = "headrace._core")]
pub(crate) struct MediaDriver {
    inner: ForkGuard<headrace_driver::MediaDriver>,
}

impl MediaDriver {
    pub(crate) fn invoker(&self) -> PyResult<Option<Invoker>> {
        Ok(self.inner.get()?.invoker())
    }
}

#[pymethods]
impl MediaDriver {
    /// Starts a driver with the environment's settings, overridden by `properties` in order.
    #[staticmethod]
    #[pyo3(signature = (properties))]
    fn launch(py: Python<'_>, properties: Vec<(String, String)>) -> PyResult<Self> {
        let launched = detach(py, || {
            let mut config = DriverConfig::from_env_and_properties([])?;
            config.commit = COMMIT;
            for (name, value) in &properties {
                config.set(name, value)?;
            }
            headrace_driver::MediaDriver::launch(config)
        });
        Ok(Self {
            inner: ForkGuard::new(launched.map_err(errors::launch)?),
        })
    }

    #[getter]
    fn directory(&self) -> PyResult<PathBuf> {
        Ok(self.inner.get()?.directory().to_owned())
    }

    #[getter]
    fn settings(&self) -> PyResult<Vec<(&'static str, String)>> {
        Ok(self.inner.get()?.config().entries())
    }

    #[getter]
    fn chosen_threading(&self) -> PyResult<Option<String>> {
        Ok(self.inner.get()?.chosen_threading())
    }

    #[getter]
    fn doubts(&self) -> PyResult<Vec<String>> {
        Ok(self.inner.get()?.config().doubts())
    }

    #[getter]
    fn is_terminated(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_terminated())
    }

    #[getter]
    fn failure(&self) -> PyResult<Option<String>> {
        Ok(self.inner.get()?.failure())
    }

    /// One duty cycle of every agent; the work done, or `None` when the driver has threads of its own.
    fn invoke(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let invoker = self.invoker()?;
        Ok(invoker.map(|invoker| detach(py, || invoker.invoke())))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.inner.get_if_own() {
            None => Ok(()),
            Some(driver) => detach(py, || driver.close()).map_err(errors::launch),
        }
    }
}
