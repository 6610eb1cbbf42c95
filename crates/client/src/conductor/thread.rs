//! The conductor's own thread.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ClientConductor;
use crate::conductor_proxy::ConductorProxy;
use crate::error::ClientError;
use crate::lock::lock;

/// Makes the turns of a client until it has ended. A client that the program invokes has none.
pub(crate) struct ConductorThread(Mutex<Option<JoinHandle<()>>>);

impl ConductorThread {
    pub(crate) fn none() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn start(conductor: &Arc<ClientConductor>) -> Result<Self, ClientError> {
        let registry = &conductor.registry;
        let idle_sleep = Duration::from_nanos(registry.services.config.idle_sleep_ns.unsigned_abs());
        let served = Arc::clone(conductor);
        let thread = std::thread::Builder::new()
            .name("client-conductor".to_owned())
            .spawn(move || {
                while !served.registry.has_ended() {
                    if served.turn() == 0 {
                        std::thread::park_timeout(idle_sleep);
                    }
                }
                served.run_handlers_now();
            })
            .map_err(|error| ClientError::DriverFiles {
                reason: format!("cannot start the client conductor's thread: {error}"),
            })?;
        // Set once: each client gets at most one conductor thread.
        let _ = registry.thread.set(thread.thread().clone());
        Ok(Self(Mutex::new(Some(thread))))
    }

    /// Waits until it has ended. Two threads may wait at once; neither goes on before.
    pub(crate) fn join(&self) {
        if let Some(thread) = lock(&self.0).take() {
            // A panic of the conductor was reported where it happened.
            let _ = thread.join();
        }
    }
}
