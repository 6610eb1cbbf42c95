//! From objects of Python to what is waited for.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::boundary::arguments;
use crate::publishing::publication::Publication;
use crate::receiving::subscription::Subscription;
use crate::waiting::idle_strategy::IdleStrategy;
use crate::waiting::waitable::{AnyOf, Waitable};

/// The messages of a subscription, or the room in a publication.
fn waitable(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Waitable>> {
    if let Ok(subscription) = object.cast::<Subscription>() {
        return Ok(subscription.get().shared()?);
    }
    if let Ok(publication) = object.cast::<Publication>() {
        return Ok(publication.get().shared()?);
    }
    let rule = "must be a subscription or a publication";
    Err(arguments::wrong_type(object, "awaited", rule))
}

/// The first of several subscriptions and publications that is ready.
pub(super) fn any_of<'py>(objects: impl IntoIterator<Item = Bound<'py, PyAny>>) -> PyResult<AnyOf> {
    let waitables: PyResult<_> = objects.into_iter().map(|object| waitable(&object)).collect();
    waitables.map(AnyOf)
}

#[pymethods]
impl IdleStrategy {
    #[new]
    #[pyo3(signature = (name = "backoff", init_args = None, awaited = Vec::new()))]
    fn make(
        #[pyo3(from_py_with = arguments::name)] name: &str,
        #[pyo3(from_py_with = arguments::init_args_if_any)] init_args: Option<&str>,
        #[pyo3(from_py_with = arguments::awaited)] awaited: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let strategy = Self::parse(name, init_args)?;
        Ok(Self::new(strategy, any_of(awaited)?))
    }
}
