//! Asking a driver to stop, as tools do.

use std::path::Path;

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command::Command;
use headrace_sys::{Access, Clock};

use crate::error::ClientError;

/// Asks the driver of `directory` to stop. The driver's validator checks the `token`; most drivers allow no client by
/// default. False when no driver is alive there. Does not wait for the driver.
pub fn request_driver_termination(
    directory: &Path,
    token: &[u8],
    driver_timeout_ms: i64,
    clock: &dyn Clock,
) -> Result<bool, ClientError> {
    let path = directory.join(cnc::FILE_NAME);
    let unusable = |error: &dyn std::error::Error| ClientError::DriverFiles {
        reason: format!("cannot use the driver's file={}: {error}", path.display()),
    };
    if !path.exists() {
        return Ok(false);
    }
    let cnc = CncFile::map(&path, Access::ReadWrite).map_err(|error| unusable(&error))?;
    let to_driver = ManyToOneRing::new(cnc.to_driver()).map_err(|error| unusable(&error))?;
    if to_driver.consumer_heartbeat_ms() < clock.epoch_ms() - driver_timeout_ms {
        return Ok(false);
    }
    let command = Command::TerminateDriver {
        // The id of the client does not matter; drawn like a client's id, it is no other client's.
        client_id: to_driver.next_correlation_id(),
        correlation_id: to_driver.next_correlation_id(),
        token,
    };
    let mut bytes = Vec::new();
    let type_id = command.encode(&mut bytes);
    match to_driver.try_write(type_id, &bytes) {
        Ok(true) => Ok(true),
        Ok(false) => Err(ClientError::CommandBufferFull {
            command: "terminate driver",
        }),
        Err(error) => Err(ClientError::argument(
            "token_length",
            token.len(),
            error.to_string(),
        )),
    }
}
