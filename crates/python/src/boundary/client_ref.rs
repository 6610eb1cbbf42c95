//! A reference to a client that may be the last one.

use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

use headrace_client::Client;
use headrace_sys::fork;
use pyo3::prelude::*;

use crate::boundary::interpreter_exit::{self, detach};
use crate::boundary::lock::lock;

/// Clients of this process, each with the number of forks at the time.
static OPEN: Mutex<Vec<(u64, Weak<Client>)>> = Mutex::new(Vec::new());

#[doc = docstring!("close_clients")]
#[pyfunction]
pub(crate) fn close_clients(py: Python<'_>) {
    interpreter_exit::begin();
    detach(py, || {
        let open = std::mem::take(&mut *lock(&OPEN));
        for (_, client) in open.iter().filter(|(forks, _)| *forks == fork::generation()) {
            if let Some(client) = client.upgrade() {
                // Refused only inside one of the client's own handlers, which then outlives this.
                let _ = client.close();
            }
        }
        interpreter_exit::await_handlers();
    });
}

/// Keeps a client open. Dropping the last reference closes the client, which waits for its conductor, which
/// may be waiting for the GIL to call a handler; so the GIL is released for it.
#[derive(Clone)]
pub(crate) struct ClientRef(Option<Arc<Client>>);

impl ClientRef {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        fork::watch();
        let mut open = lock(&OPEN);
        open.retain(|(_, client)| client.strong_count() > 0);
        open.push((fork::generation(), Arc::downgrade(&client)));
        Self(Some(client))
    }
}

impl Deref for ClientRef {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("taken by drop only")
    }
}

impl Drop for ClientRef {
    fn drop(&mut self) {
        let Some(last) = self.0.take().and_then(Arc::into_inner) else {
            return;
        };
        let mut last = Some(last);
        // Without an interpreter, at the end of the process, no thread holds the GIL either.
        Python::try_attach(|py| detach(py, || drop(last.take())));
    }
}
