//! What Python calls of an idle strategy.

use headrace_client::Awaited;
use pyo3::prelude::*;

use crate::arguments;
use crate::awaited::AnyOf;
use crate::exit::detach;
use crate::idle::IdleStrategy;
use crate::no_doorbell::NoDoorbell;
use crate::wait::tell_refusal;
use crate::watched::watched;

#[pymethods]
impl IdleStrategy {
    #[new]
    #[pyo3(signature = (name = "backoff", init_args = None, awaited = Vec::new()))]
    fn make(
        #[pyo3(from_py_with = arguments::name)] name: &str,
        #[pyo3(from_py_with = arguments::init_args_if_any)] init_args: Option<&str>,
        #[pyo3(from_py_with = arguments::awaited)] awaited: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let awaited: PyResult<_> = awaited.iter().map(watched).collect();
        let strategy = Self::parse(name, init_args)?;
        Ok(Self::new(strategy, AnyOf(awaited?)))
    }

    #[doc = docstring!("IdleStrategy.idle")]
    #[pyo3(signature = (work_count = 0, /))]
    fn idle(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::work_count)] work_count: usize) {
        if work_count > 0 {
            self.begin_anew(py);
        } else {
            let awaited: &(dyn Awaited + Sync) = match self.awaited() {
                Some(awaited) => awaited,
                None => &NoDoorbell,
            };
            detach(py, || self.lock().idle(0, awaited));
            tell_refusal(py, &awaited.doorbells());
        }
    }

    #[doc = docstring!("IdleStrategy.reset")]
    fn reset(&self, py: Python<'_>) {
        self.begin_anew(py);
    }

    #[doc = docstring!("IdleStrategy.name")]
    #[getter(name)]
    fn shown_name(&self) -> &'static str {
        self.name()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().name()?;
        Ok(match class.to_str()? {
            "IdleStrategy" => format!("IdleStrategy({:?})", slf.get().name()),
            class => format!("{class}()"),
        })
    }
}
