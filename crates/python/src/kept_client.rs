//! A reference to a client that may be the last one.

use std::ops::Deref;
use std::sync::Arc;

use headrace_client::Client;
use pyo3::prelude::*;

/// Keeps a client open. Dropping the last reference closes the client, which waits for its conductor, which
/// may be waiting for the GIL to call a handler; so the GIL is released for it.
#[derive(Clone)]
pub(crate) struct KeptClient(Option<Arc<Client>>);

impl KeptClient {
    pub(crate) fn new(client: Client) -> Self {
        Self(Some(Arc::new(client)))
    }
}

impl Deref for KeptClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("taken by drop only")
    }
}

impl Drop for KeptClient {
    fn drop(&mut self) {
        let Some(last) = self.0.take().and_then(Arc::into_inner) else {
            return;
        };
        let mut last = Some(last);
        // Without an interpreter, at the end of the process, nobody holds the GIL either.
        Python::try_attach(|py| py.detach(|| drop(last.take())));
    }
}
