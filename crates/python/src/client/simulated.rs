//! What a node of a simulated world does to its clients.

use pyo3::prelude::*;

use crate::client::connection::Client;
use crate::driver::node::Node;

#[pymethods]
impl Node {
    fn crash_client(&self, py: Python<'_>, client: &Bound<'_, Client>) -> PyResult<()> {
        let client = client.get().inner()?;
        self.run(py, |node| node.crash_client(client))
    }

    fn set_stalled(&self, client: &Bound<'_, Client>, is_stalled: bool) -> PyResult<()> {
        self.inner.get()?.set_stalled(client.get().inner()?, is_stalled);
        Ok(())
    }
}
