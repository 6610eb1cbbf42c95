//! Requests to the driver that no thread waits for.

use headrace_client as client;
use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::errors;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::client::counter::Counter;
use crate::publishing::any_publication::AnyPublication;
use crate::publishing::exclusive_publication::ExclusivePublication;
use crate::publishing::publication::Publication;
use crate::receiving::subscription::Subscription;

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Kind {
    Publication,
    ExclusivePublication,
    Subscription,
    Counter,
}

/// Something that was asked of the driver and need not be there yet. Made by ``Client.request_...``.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct Pending {
    kind: Kind,
    registration_id: i64,
    client: ForkGuard<ClientRef>,
}

impl Pending {
    pub(crate) fn new(client: ClientRef, kind: Kind, registration_id: i64) -> Self {
        Self {
            kind,
            registration_id,
            client: ForkGuard::new(client),
        }
    }
}

#[pymethods]
impl Pending {
    /// What was asked for, once; nothing while the driver has not answered.
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let kept = self.client.get()?;
        let (inner, id): (&client::Client, i64) = (kept, self.registration_id);
        Ok(match self.kind {
            Kind::Publication => detach(py, || inner.requests().find_publication(id))
                .map_err(errors::client)?
                .map(|found| {
                    Bound::new(
                        py,
                        Publication::new(kept.clone(), AnyPublication::Concurrent(found)),
                    )
                })
                .transpose()?
                .map(Bound::into_any),
            Kind::ExclusivePublication => detach(py, || inner.requests().find_exclusive_publication(id))
                .map_err(errors::client)?
                .map(|found| ExclusivePublication::build(py, kept.clone(), found))
                .transpose()?
                .map(Bound::into_any),
            Kind::Subscription => detach(py, || inner.requests().find_subscription(id))
                .map_err(errors::client)?
                .map(|found| Bound::new(py, Subscription::new(kept.clone(), found)))
                .transpose()?
                .map(Bound::into_any),
            Kind::Counter => detach(py, || inner.requests().find_counter(id))
                .map_err(errors::client)?
                .map(|found| Bound::new(py, Counter::owned(kept.clone(), found)))
                .transpose()?
                .map(Bound::into_any),
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "Pending({:?}, registration_id={})",
            self.kind, self.registration_id
        )
    }

    /// Give the request up; what came of it already is closed. Does nothing once it was taken.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let inner: &client::Client = self.client.get()?;
        detach(py, || inner.requests().cancel(self.registration_id))
            .map(|_| ())
            .map_err(errors::client)
    }
}
