//! The simulated world. What users see of it is `headrace.testing.World`, which wraps these classes.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_sim::LinkSettings;
use pyo3::prelude::*;

use crate::client::Client as PyClient;
use crate::errors;
use crate::exit::detach;
use crate::fork_guard::ForkGuard;
use crate::node::Node;
use crate::programs::{self, Programs};

/// Loss, duplication, reordering, shortest and longest delay in nanoseconds, bytes a second.
type LinkValues = (f64, f64, f64, i64, i64, Option<u64>);

fn link((loss, duplication, reordering, min_ns, max_ns, rate): LinkValues) -> LinkSettings {
    LinkSettings {
        loss,
        duplication,
        reordering,
        delay_min_ns: min_ns,
        delay_max_ns: max_ns,
        bytes_per_second: rate,
    }
}

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

    /// Moves time, not beyond `end_ns`, and gives each node a turn, then the programs.
    fn step(&self, py: Python<'_>, end_ns: i64) -> PyResult<usize> {
        let world = self.inner.get()?;
        let mut verdict = Ok(());
        let work_count = detach(py, || {
            self.programs.follow(|| {
                let stepped = world.step_until(end_ns);
                stepped.unwrap_or_else(|broken| {
                    verdict = Err(broken);
                    0
                })
            })
        });
        programs::take_raised()?;
        verdict.map(|()| work_count).map_err(errors::world)
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

    fn crash_client(&self, py: Python<'_>, client: &Bound<'_, PyClient>) -> PyResult<()> {
        let client = client.get().inner()?;
        self.run(py, |node| node.crash_client(client))
    }

    fn set_stalled(&self, client: &Bound<'_, PyClient>, is_stalled: bool) -> PyResult<()> {
        self.inner.get()?.set_stalled(client.get().inner()?, is_stalled);
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
