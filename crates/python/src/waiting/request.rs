//! Requests to the driver that a call waits for.

use headrace_client::{Client, ClientError};
use pyo3::prelude::*;

use crate::boundary::client_ref::ClientRef;
use crate::boundary::errors;
use crate::boundary::interpreter_exit::detach;
use crate::waiting::waiter::Waiter;

/// A client without a thread of its own takes so many of the driver's events, one a turn, before it rests: beside a busy
/// driver, one event a rest would fall behind them.
const EVENTS_PER_LOOK: usize = 64;

/// Asks, and waits for the answer as [`await_answer`] does.
pub(crate) fn ask<T: Send>(
    py: Python<'_>,
    kept: &ClientRef,
    request: impl FnOnce(&Client) -> Result<i64, ClientError> + Send,
    find: impl Fn(&Client, i64) -> Result<Option<T>, ClientError> + Send,
) -> PyResult<T> {
    let client: &Client = kept;
    let id = detach(py, || request(client)).map_err(errors::client)?;
    await_answer(py, kept, || id, move |client| find(client, id))
}

/// Waits for the outcome of what was asked for in steps that see Ctrl-C, which gives the request up.
///
/// The request is the one of that id by then: what is found may be that it is to be asked again.
pub(crate) fn await_answer<T: Send>(
    py: Python<'_>,
    kept: &ClientRef,
    id: impl Fn() -> i64 + Sync,
    find: impl Fn(&Client) -> Result<Option<T>, ClientError> + Send,
) -> PyResult<T> {
    let client: &Client = kept;
    let idle = client.config().awaiting_idle.clone();
    let id = &id;
    let waited = Waiter::without_end(idle).wait_for(py, &client.replies(), move || {
        for _ in 0..EVENTS_PER_LOOK {
            let work_count = client.requests().drive(id());
            if let Some(found) = find(client).transpose() {
                return Some(found);
            }
            if work_count == 0 {
                break;
            }
        }
        None
    });
    match waited {
        Ok(Some(found)) => found.map_err(errors::client),
        Ok(None) => Err(errors::closed("client")),
        Err(interrupted) => {
            // The driver may be what does not answer; the interruption is what the caller asked to see.
            let _ = detach(py, || client.requests().cancel(id()));
            Err(interrupted)
        }
    }
}
