//! Requests to the driver that a call waits for.

use headrace_client::{Client, ClientError};
use pyo3::prelude::*;

use crate::errors;
use crate::exit::detach;
use crate::kept_client::KeptClient;
use crate::wait::Waiter;

/// Asks, and waits for the outcome as [`wait`] does.
pub(crate) fn ask<T: Send>(
    py: Python<'_>,
    kept: &KeptClient,
    request: impl FnOnce(&Client) -> Result<i64, ClientError> + Send,
    find: impl Fn(&Client, i64) -> Result<Option<T>, ClientError> + Send,
) -> PyResult<T> {
    let client: &Client = kept;
    let id = detach(py, || request(client)).map_err(errors::client)?;
    wait(py, kept, || id, move |client| find(client, id))
}

/// Waits for the outcome of what was asked for in steps that see Ctrl-C, which gives the request up.
///
/// The request is the one of that id by then: what is found may be that it is to be asked again.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    kept: &KeptClient,
    id: impl Fn() -> i64 + Sync,
    find: impl Fn(&Client) -> Result<Option<T>, ClientError> + Send,
) -> PyResult<T> {
    let client: &Client = kept;
    let idle = client.config().awaiting_idle.clone();
    let id = &id;
    let waited = Waiter::without_end(idle).wait_for(py, &client.answers(), move || {
        client.drive(id());
        find(client).transpose()
    });
    match waited {
        Ok(Some(found)) => found.map_err(errors::client),
        Ok(None) => Err(errors::closed("client")),
        Err(interrupted) => {
            // The driver may be what does not answer; the interruption is what the caller asked to see.
            let _ = detach(py, || client.cancel(id()));
            Err(interrupted)
        }
    }
}
