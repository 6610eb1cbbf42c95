//! A machine of a simulated world.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_client::{Client, ClientConfig};
use headrace_sim::WorldError;
use pyo3::prelude::*;

use crate::boundary::errors;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::driver::link::{LinkValues, link};
use crate::driver::programs::Programs;

/// A machine of a world. Wrapped by ``headrace.testing.Node``, which documents it.
#[pyclass(frozen, weakref, module = "headrace._core")]
pub(crate) struct Node {
    pub(crate) inner: ForkGuard<headrace_sim::Node>,
    pub(crate) programs: Arc<Programs>,
}

impl Node {
    /// A client of this node, made on the calling thread: in a world only the caller makes time pass.
    pub(crate) fn connect(&self, py: Python<'_>, mut config: ClientConfig) -> PyResult<Arc<Client>> {
        let node = self.inner.get()?;
        node.place(&mut config);
        // A step that a wait makes is one as any other, programs included.
        let programs = Arc::clone(&self.programs);
        config.driver_invoker = config.driver_invoker.map(|step| {
            Arc::new(move || {
                programs.follow(|| {
                    step();
                    0
                });
            }) as Arc<dyn Fn() + Send + Sync>
        });
        let client = Arc::new(detach(py, || Client::connect(config)).map_err(errors::client)?);
        node.adopt(&client);
        Ok(client)
    }

    pub(crate) fn run(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&headrace_sim::Node) -> Result<(), WorldError> + Send,
    ) -> PyResult<()> {
        let node = self.inner.get()?;
        detach(py, || change(node)).map_err(errors::world)
    }
}

#[pymethods]
impl Node {
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.inner.get()?.name())
    }

    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.inner.get()?.address().to_string())
    }

    #[getter]
    fn address_v6(&self) -> PyResult<String> {
        Ok(self.inner.get()?.address_v6().to_string())
    }

    #[getter]
    fn directory(&self) -> PyResult<PathBuf> {
        Ok(self.inner.get()?.directory().to_owned())
    }

    #[getter]
    fn is_up(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_up())
    }

    #[getter]
    fn is_paused(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_paused())
    }

    /// Monotonic nanoseconds, and nanoseconds since 1970, on the clock of the node.
    fn clock_ns(&self) -> PyResult<(i64, i64)> {
        let clock = self.inner.get()?.clock();
        Ok((clock.nano_time(), clock.epoch_ns()))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, headrace_sim::Node::start)
    }

    fn crash(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, headrace_sim::Node::crash)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.inner.get_if_own() {
            None => Ok(()),
            Some(_) => self.run(py, headrace_sim::Node::close),
        }
    }

    fn pause(&self) -> PyResult<()> {
        self.inner.get()?.pause();
        Ok(())
    }

    fn resume(&self) -> PyResult<()> {
        self.inner.get()?.resume();
        Ok(())
    }

    /// Its driver has a turn in the next step, where nodes rest.
    fn wake(&self) -> PyResult<()> {
        self.inner.get()?.wake();
        Ok(())
    }

    fn set_clock_skew_ns(&self, skew_ns: i64) -> PyResult<()> {
        self.inner.get()?.set_clock_skew_ns(skew_ns);
        Ok(())
    }

    fn jump_clock_ns(&self, by_ns: i64) -> PyResult<()> {
        self.inner.get()?.jump_clock_ns(by_ns);
        Ok(())
    }

    /// Bytes for all logs together; none is room for anything.
    #[pyo3(signature = (bytes))]
    fn set_disk_room(&self, bytes: Option<u64>) -> PyResult<()> {
        self.inner.get()?.set_disk_room(bytes);
        Ok(())
    }

    /// The link in this direction; without values, as all others.
    #[pyo3(signature = (other, values))]
    fn set_link_to(&self, other: &Bound<'_, Self>, values: Option<LinkValues>) -> PyResult<()> {
        let other = other.get().inner.get()?;
        self.inner.get()?.set_link_to(other, values.map(link));
        Ok(())
    }

    /// In this direction.
    fn set_cut_to(&self, other: &Bound<'_, Self>, is_cut: bool) -> PyResult<()> {
        self.inner.get()?.set_cut_to(other.get().inner.get()?, is_cut);
        Ok(())
    }
}
