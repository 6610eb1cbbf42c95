//! Finding a live driver and mapping its command-and-control file.

mod permissions;
mod termination;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headrace_buffers::broadcast::Receiver;
use headrace_buffers::cnc::{self, CncError, CncFile};
use headrace_buffers::doorbell::Doorbells;
use headrace_buffers::liveness::{self, Liveness};
use headrace_buffers::ring::ManyToOneRing;
use headrace_sys::Access;

pub use termination::request_driver_termination;

use crate::conductor::{ClientConductor, ConductorParts};
use crate::config::ClientConfig;
use crate::error::ClientError;

const AWAIT_FILE: Duration = Duration::from_millis(16);
const AWAIT_READY: Duration = Duration::from_millis(1);
const AWAIT_SUCCESSOR: Duration = Duration::from_millis(100);
/// Without a word. A driver that runs is found within milliseconds.
const SILENCE_NS: i64 = 1_000_000_000;

/// What keeps a client from connecting now and may be over soon.
enum NotYet {
    /// No file, or one that still grows.
    NoFile,
    /// The driver is starting.
    NotInitialised,
    /// The driver has not shown a sign of life since it started.
    NoHeartbeat,
    /// A file left by a dead or stopped driver.
    Stale { heartbeat_ms: i64 },
    /// A file of a driver whose process has ended.
    Ended,
}

/// Waits for a live driver until the driver timeout and makes the conductor of a client to it.
pub(crate) fn connect(mut config: ClientConfig) -> Result<Arc<ClientConductor>, ClientError> {
    config.validate()?;
    let start_ns = config.clock.nano_time();
    let deadline_ns = start_ns.saturating_add(config.driver_timeout_ns());
    loop {
        let not_yet = match attempt(&config)? {
            Ok(found) => return assemble(config, found),
            Err(not_yet) => not_yet,
        };
        let now_ns = config.clock.nano_time();
        if now_ns >= deadline_ns {
            return Err(timed_out(&config, &not_yet));
        }
        if now_ns - start_ns >= SILENCE_NS
            && let Some(tell) = config.no_driver_handler.take()
        {
            tell();
        }
        if let Some(driver_invoker) = &config.driver_invoker {
            driver_invoker();
        }
        config.clock.sleep(match not_yet {
            NotYet::NoFile => AWAIT_FILE,
            NotYet::NotInitialised | NotYet::NoHeartbeat => AWAIT_READY,
            NotYet::Stale { .. } | NotYet::Ended => AWAIT_SUCCESSOR,
        });
    }
}

/// A live driver.
struct Found {
    cnc: CncFile,
    to_driver: ManyToOneRing,
    /// `None` if the driver has no sign of life for clients.
    liveness: Option<Liveness>,
}

type Attempt = Result<Found, NotYet>;

fn attempt(config: &ClientConfig) -> Result<Attempt, ClientError> {
    let path = config.directory.join(cnc::FILE_NAME);
    // Before the CnC file: a new driver makes both anew, so that an old one here is never taken for the other's.
    let liveness = open_liveness(config)?;
    let cnc = match CncFile::map(&path, Access::ReadWrite) {
        Ok(cnc) => cnc,
        Err(CncError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(NotYet::NoFile));
        }
        Err(CncError::TooShort { .. }) => return Ok(Err(NotYet::NoFile)),
        Err(CncError::NotReady) => return Ok(Err(NotYet::NotInitialised)),
        Err(CncError::Io(error)) => return Err(refused(&path, &error)),
        Err(error) => {
            let reason = format!("cannot use the driver's file={}: {error}", path.display());
            return Err(ClientError::DriverFiles { reason });
        }
    };
    if let Some(liveness) = &liveness
        && !liveness.is_driver_alive().unwrap_or(true)
    {
        return Ok(Err(NotYet::Ended));
    }
    let to_driver = ManyToOneRing::new(cnc.to_driver()).map_err(|error| unusable(config, &error))?;
    let heartbeat_ms = to_driver.consumer_heartbeat_ms();
    if heartbeat_ms == 0 {
        return Ok(Err(NotYet::NoHeartbeat));
    }
    if heartbeat_ms < config.clock.epoch_ms() - config.driver_timeout_ms {
        return Ok(Err(NotYet::Stale { heartbeat_ms }));
    }
    if liveness.is_none() && open_liveness(config)?.is_some() {
        // A driver was starting in between: the next look sees all of it.
        return Ok(Err(NotYet::NotInitialised));
    }
    Ok(Ok(Found {
        cnc,
        to_driver,
        liveness,
    }))
}

fn open_liveness(config: &ClientConfig) -> Result<Option<Liveness>, ClientError> {
    let path = config.directory.join(liveness::FILE_NAME);
    Liveness::open(&config.directory).map_err(|error| refused(&path, &error))
}

fn assemble(config: ClientConfig, found: Found) -> Result<Arc<ClientConductor>, ClientError> {
    let Found {
        cnc,
        to_driver,
        liveness,
    } = found;
    let service_timeout_ns = cnc.client_liveness_timeout_ns();
    if service_timeout_ns <= config.keepalive_interval_ns {
        let rule = format!("must be less than the driver's client_liveness_timeout_ns={service_timeout_ns}");
        return Err(ClientError::argument(
            "keepalive_interval_ns",
            config.keepalive_interval_ns,
            rule,
        ));
    }
    let receiver = Receiver::new(cnc.to_clients()).map_err(|error| unusable(&config, &error))?;
    let client_id = to_driver.next_correlation_id();
    if let Some(liveness) = &liveness {
        // Before the first command, with which the driver gets to know this client.
        liveness
            .hold_client(client_id)
            .map_err(|error| unusable(&config, &error))?;
    }
    let doorbells = Doorbells::open(&config.directory, cnc.driver_identity());
    doorbells.register_client(client_id);
    Ok(ClientConductor::new(ConductorParts {
        config,
        client_id,
        cnc,
        to_driver,
        receiver,
        liveness_file: liveness,
        doorbells,
    }))
}

/// The error when the system refuses a file of the driver.
fn refused(path: &Path, error: &io::Error) -> ClientError {
    let advice = permissions::advice(path, error);
    ClientError::DriverFiles {
        reason: format!("cannot use the driver's file={}: {error}{advice}", path.display()),
    }
}

fn unusable(config: &ClientConfig, error: &dyn std::error::Error) -> ClientError {
    ClientError::DriverFiles {
        reason: format!(
            "cannot use the driver's files: directory={}: {error}",
            config.directory.display()
        ),
    }
}

fn timed_out(config: &ClientConfig, not_yet: &NotYet) -> ClientError {
    let path = config.directory.join(cnc::FILE_NAME);
    let path = path.display();
    let what = match not_yet {
        NotYet::NoFile => format!("CnC file not created: {path}"),
        NotYet::NotInitialised => format!("CnC file is created but not initialised: {path}"),
        NotYet::NoHeartbeat => format!("no driver heartbeat detected: {path}"),
        NotYet::Stale { heartbeat_ms } => {
            format!("no driver heartbeat detected: {path} last_heartbeat_ms={heartbeat_ms}")
        }
        NotYet::Ended => format!("the driver's process has ended: {path}"),
    };
    ClientError::DriverTimeout {
        reason: format!("{what} driver_timeout_ms={}", config.driver_timeout_ms),
    }
}
