//! Commands to the driver.

use headrace_buffers::doorbell::Doorbell;
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command::Command;

use crate::error::ClientError;

/// Tries at a full command ring, with the processor yielded between them, before the call fails.
const COMMAND_ATTEMPTS: usize = 10;

/// No correlation id: closing has no reply.
const NO_CORRELATION_ID: i64 = -1;

/// What the driver is to free.
#[derive(Clone, Copy)]
pub(crate) enum Removal {
    Publication { revoke: bool },
    Subscription,
    Counter,
}

/// The ring to the driver, and the name of this client in it.
pub(crate) struct DriverProxy {
    client_id: i64,
    ring: ManyToOneRing,
    // Rung after a command.
    doorbell: Doorbell,
}

impl DriverProxy {
    pub(crate) fn new(client_id: i64, ring: ManyToOneRing, doorbell: Doorbell) -> Self {
        Self {
            client_id,
            ring,
            doorbell,
        }
    }

    pub(crate) fn client_id(&self) -> i64 {
        self.client_id
    }

    /// A number that is unique while the driver runs.
    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.ring.next_correlation_id()
    }

    /// When the driver last showed that it lives.
    pub(crate) fn heartbeat_ms(&self) -> i64 {
        self.ring.consumer_heartbeat_ms()
    }

    /// What wakes the driver.
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Writes a command, waiting a little for a full ring.
    pub(crate) fn send(&self, name: &'static str, command: &Command<'_>) -> Result<(), ClientError> {
        let mut bytes = Vec::with_capacity(256);
        let type_id = command.encode(&mut bytes);
        for _ in 0..COMMAND_ATTEMPTS {
            match self.ring.try_write(type_id, &bytes) {
                Ok(true) => {
                    self.doorbell.ring();
                    return Ok(());
                }
                Ok(false) => std::thread::yield_now(),
                Err(error) => return Err(ClientError::argument("command", name, error.to_string())),
            }
        }
        Err(ClientError::CommandBufferFull { command: name })
    }

    /// Has a resource freed.
    pub(crate) fn remove(&self, registration_id: i64, removal: Removal) -> Result<(), ClientError> {
        let (client_id, correlation_id) = (self.client_id, self.next_correlation_id());
        let (name, command) = match removal {
            Removal::Publication { revoke } => (
                "remove publication",
                Command::RemovePublication {
                    client_id,
                    correlation_id,
                    registration_id,
                    revoke,
                },
            ),
            Removal::Subscription => (
                "remove subscription",
                Command::RemoveSubscription {
                    client_id,
                    correlation_id,
                    registration_id,
                },
            ),
            Removal::Counter => (
                "remove counter",
                Command::RemoveCounter {
                    client_id,
                    correlation_id,
                    registration_id,
                },
            ),
        };
        self.send(name, &command)
    }

    /// Says that this client goes.
    pub(crate) fn close_client(&self) -> Result<(), ClientError> {
        let command = Command::ClientClose {
            client_id: self.client_id,
            correlation_id: NO_CORRELATION_ID,
        };
        self.send("close client", &command)
    }
}
