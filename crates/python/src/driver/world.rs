//! The simulated world. What users see of it is `headrace.testing.World`, which wraps this class.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::boundary::errors;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::driver::link::{LinkValues, link};
use crate::driver::node::Node;
use crate::driver::programs::Programs;
use crate::waiting::deferred_error;

/// Nodes on one simulated network. Wrapped by ``headrace.testing.World``, which documents it.
#[pyclass(frozen, weakref, module = "headrace._core")]
pub(crate) struct World {
    inner: ForkGuard<headrace_sim::World>,
    programs: Arc<Programs>,
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (seed, directory, checks))]
    fn new(seed: u64, directory: PathBuf, checks: bool) -> Self {
        let world = headrace_sim::World::new(seed, &directory);
        Self {
            inner: ForkGuard::new(if checks { world } else { world.without_checks() }),
            programs: Arc::default(),
        }
    }

    #[getter]
    fn seed(&self) -> PyResult<u64> {
        Ok(self.inner.get()?.seed())
    }

    #[getter]
    fn now_ns(&self) -> PyResult<i64> {
        Ok(self.inner.get()?.now_ns())
    }

    #[getter]
    fn socket_count(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.socket_count())
    }

    /// Settings by property name, over the defaults; the environment does not count.
    fn add_node(&self, py: Python<'_>, name: &str, properties: Vec<(String, String)>) -> PyResult<Node> {
        let world = self.inner.get()?;
        let added = detach(py, || {
            world.add_node_with(name, |config| {
                properties
                    .iter()
                    .try_for_each(|(name, value)| config.set(name, value))
            })
        });
        Ok(Node {
            inner: ForkGuard::new(added.map_err(errors::world)?),
            programs: Arc::clone(&self.programs),
        })
    }

    fn set_links(&self, values: LinkValues) -> PyResult<()> {
        self.inner.get()?.network().set_links(link(values));
        Ok(())
    }

    /// Sets what gives the programs their turns after each step: a call that gives the work that was done.
    fn set_programs(&self, turn: Py<PyAny>) {
        self.programs.set(turn);
    }

    fn set_lookup_ns(&self, lookup_ns: i64) -> PyResult<()> {
        self.inner.get()?.network().set_lookup_ns(lookup_ns);
        Ok(())
    }

    /// Moves time, not beyond `end_ns`, and gives each node a turn, then the programs; where nodes rest, in so many steps
    /// as it takes until programs are due.
    fn step(&self, py: Python<'_>, end_ns: i64) -> PyResult<usize> {
        let world = self.inner.get()?;
        let mut verdict = Ok(());
        let work_count = detach(py, || {
            self.programs.follow(|| {
                let mut work_count = 0;
                loop {
                    match world.step_until(end_ns) {
                        Ok(count) => work_count += count,
                        Err(broken) => verdict = Err(broken),
                    }
                    if verdict.is_err() || world.now_ns() >= end_ns || world.are_programs_due() {
                        return work_count;
                    }
                }
            })
        });
        deferred_error::raise()?;
        verdict.map(|()| work_count).map_err(errors::world)
    }

    fn set_rest_ns(&self, rest_max_ns: i64) -> PyResult<()> {
        self.inner.get()?.set_rest_ns(rest_max_ns);
        Ok(())
    }

    fn set_programs_due_ns(&self, due_ns: i64) -> PyResult<()> {
        self.inner.get()?.set_programs_due_ns(due_ns);
        Ok(())
    }

    fn note_work(&self) -> PyResult<()> {
        self.inner.get()?.note_work();
        Ok(())
    }

    fn note(&self, text: &str) -> PyResult<()> {
        self.inner.get()?.note(text);
        Ok(())
    }

    fn trace(&self, count: usize) -> PyResult<String> {
        Ok(self.inner.get()?.trace(count))
    }

    fn digest(&self) -> PyResult<(u64, u64)> {
        Ok(self.inner.get()?.digest())
    }
}
