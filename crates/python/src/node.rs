//! A machine of a simulated world, as what connects to it and what changes it share it.

use std::sync::Arc;

use headrace_client::{Client, ClientConfig};
use headrace_sim::WorldError;
use pyo3::prelude::*;

use crate::errors;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::programs::Programs;

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
