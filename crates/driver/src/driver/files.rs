//! Making the files of a driver's directory that clients map, and the counters in them.

use std::io;
use std::sync::Arc;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::cnc::{CncError, CncFile, CncIdentity, CncLengths};
use headrace_buffers::counters::system_counter::{self, LabelFacts};
use headrace_buffers::counters::{CountersManager, NULL_COUNTER_ID, type_ids};
use headrace_buffers::doorbell::{self, Doorbells};
use headrace_buffers::event_log::{self, EventLog, WriterIdentity};
use headrace_buffers::liveness::Liveness;
use headrace_buffers::loss_report::LossReport;
use headrace_protocol::channel::units::format_duration;
use headrace_sys::{Clock, disk};

use super::{AERON_VERSION, DriverError, VERSION};
use crate::config::{DriverConfig, property};
use crate::directory::{self, Ownership};
use crate::errors::ErrorRecorder;

/// What makes a directory a driver's own.
pub(super) struct OwnFiles {
    pub(super) cnc: CncFile,
    /// The proof whose the CnC file is.
    pub(super) ownership: Arc<Ownership>,
    /// The lock that shows that the driver lives.
    pub(super) liveness: io::Result<Arc<Liveness>>,
}

/// Makes the CnC file, and before it the lock that shows that the driver lives: so a start knows of a file that is not ready
/// whether its driver was killed. The first to make them has the directory. Leaves no files when it fails, and touches none
/// of another driver.
pub(super) fn take_directory(config: &DriverConfig, clock: &dyn Clock) -> Result<OwnFiles, DriverError> {
    let active = || DriverError::from(directory::active(&config.directory));
    let liveness = match Liveness::create(&config.directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(active()),
        created => created.map(Arc::new),
    };
    let cnc = create_cnc(config, clock).map_err(|error| match error {
        CncError::Io(source) if source.kind() == io::ErrorKind::AlreadyExists => active(),
        error => {
            // The first error is the one to tell; a directory that cannot be deleted adds nothing to it.
            let _ = directory::delete_unfinished(&config.directory);
            cnc_failure(config, error)
        }
    })?;
    let ownership = Ownership::of(&config.directory).map_err(|source| DriverError::Io {
        action: "look at the CnC file",
        source,
    })?;
    Ok(OwnFiles {
        cnc,
        ownership: Arc::new(ownership),
        liveness,
    })
}

fn cnc_lengths(config: &DriverConfig) -> CncLengths {
    CncLengths {
        to_driver: config.conductor_buffer_length,
        to_clients: config.clients_buffer_length,
        counters_values: config.counters_buffer_length,
        error_log: config.error_buffer_length,
    }
}

fn create_cnc(config: &DriverConfig, clock: &dyn Clock) -> Result<CncFile, CncError> {
    let identity = CncIdentity {
        client_liveness_timeout_ns: config.client_liveness_timeout_ns,
        start_timestamp_ms: clock.epoch_ms(),
        pid: i64::from(std::process::id()),
        page_size: config.file_page_size_bytes as i32,
    };
    CncFile::create(&config.directory, &cnc_lengths(config), &identity)
}

fn cnc_failure(config: &DriverConfig, error: CncError) -> DriverError {
    match error {
        CncError::Io(source) => {
            let length = cnc_lengths(config).file_length(config.file_page_size_bytes);
            failure(config, "create the CnC file", length, source)
        }
        error => error.into(),
    }
}

pub(super) fn create_loss_report(config: &DriverConfig) -> Result<LossReport, DriverError> {
    let length = config.loss_report_buffer_length;
    LossReport::create(&config.directory, length, config.file_page_size_bytes)
        .map_err(|source| failure(config, "create the loss report", length, source))
}

/// Why a file could not be made; if for want of room, with what can be done about it.
fn failure(config: &DriverConfig, action: &'static str, length: usize, source: io::Error) -> DriverError {
    if source.kind() != io::ErrorKind::StorageFull {
        return DriverError::Io { action, source };
    }
    DriverError::Storage {
        action,
        length: length as u64,
        usable: disk::usable_space(&config.directory).unwrap_or(0),
        counters_length: config.counters_buffer_length,
        place: disk::description(&config.directory),
    }
}

pub(super) fn create_counters(config: &DriverConfig, cnc: &CncFile) -> CountersManager<AtomicBuffer> {
    let reuse_timeout_ns = config.counters_free_to_reuse_timeout_ns;
    let reuse_timeout_ms = if reuse_timeout_ns > 0 {
        (reuse_timeout_ns / 1_000_000).max(1)
    } else {
        0
    };
    let mut counters = CountersManager::new(cnc.counters_metadata(), cnc.counters_values(), reuse_timeout_ms);
    let facts = LabelFacts {
        version: AERON_VERSION,
        own_version: VERSION,
        commit: config.commit,
        threading_mode: config.threading().name(),
        driver_name: config.resolver_name.as_deref().unwrap_or_default(),
        conductor_threshold: &format_duration(config.conductor_cycle_threshold_ns),
        sender_threshold: &format_duration(config.sender_cycle_threshold_ns),
        receiver_threshold: &format_duration(config.receiver_cycle_threshold_ns),
        name_resolver_threshold: &format_duration(config.name_resolver_threshold_ns),
    };
    for (id, label) in system_counter::labels(&facts) {
        let allocated = counters
            .allocate(type_ids::SYSTEM_COUNTER, &id.to_le_bytes(), &label, 0)
            .unwrap_or(NULL_COUNTER_ID);
        // The smallest section that the settings allow holds thousands of counters, handed out in order.
        assert_eq!(allocated, id, "system counters come first");
        counters.set_registration_id(id, i64::from(id));
        counters.set_owner_id(id, -1);
    }
    counters.set_value(system_counter::AERON_VERSION, packed_version(AERON_VERSION));
    counters.set_value(
        system_counter::CONTROL_PROTOCOL_VERSION,
        system_counter::CONTROL_PROTOCOL_SEMANTIC_VERSION,
    );
    counters
}

/// The doorbells of the directory. Without them everything works, only slower where there is little to do.
pub(super) fn create_doorbells(
    config: &DriverConfig,
    cnc: &CncFile,
    errors: &ErrorRecorder,
    clock: &dyn Clock,
) -> Doorbells {
    Doorbells::create(&config.directory, cnc.driver_identity()).unwrap_or_else(|error| {
        let text = format!(
            "no doorbells: clients and agents look for work every millisecond instead of being woken: cannot create {}: \
             {error}",
            config.directory.join(doorbell::FILE_NAME).display()
        );
        errors.warn(&text, clock.epoch_ms());
        Doorbells::none()
    })
}

/// The event log of the directory, if it is to have one. Without it everything works, only no one can look back.
pub(super) fn create_event_log(
    config: &DriverConfig,
    cnc: &CncFile,
    errors: &ErrorRecorder,
    clock: &dyn Clock,
) -> Option<EventLog> {
    if config.event_limit == 0 {
        return None;
    }
    let driver = cnc.driver_identity();
    let identity = WriterIdentity {
        pid: driver.pid,
        start_timestamp_ms: driver.start_timestamp_ms,
    };
    match EventLog::create(&config.directory, config.event_limit, identity) {
        Ok(log) => Some(log),
        Err(error) => {
            let text = format!(
                "no event log: cannot create {}: {error}; with {}=0 the driver makes none",
                config.directory.join(event_log::FILE_NAME).display(),
                property::event_limit
            );
            errors.warn(&text, clock.epoch_ms());
            None
        }
    }
}

/// The lock that shows that the driver lives. Without it everything works, only the dead are noticed later.
pub(super) fn shared_liveness(
    created: io::Result<Arc<Liveness>>,
    errors: &ErrorRecorder,
    clock: &dyn Clock,
) -> Option<Arc<Liveness>> {
    match created {
        Ok(liveness) => Some(liveness),
        Err(error) => {
            let text = format!("clients and driver learn of each other's end by time-outs alone: {error}");
            errors.warn(&text, clock.epoch_ms());
            None
        }
    }
}

fn packed_version(version: &str) -> i64 {
    version.split('.').take(3).fold(0, |packed, part| {
        packed << 8 | part.parse::<u8>().map_or(0, i64::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_packs_its_three_numbers() {
        assert_eq!(packed_version("1.53.2"), 0x01_35_02);
    }

    #[test]
    fn the_directory_belongs_to_the_first_that_holds_its_lock() {
        let directory = tempfile::tempdir().unwrap();
        let config = DriverConfig {
            directory: directory.path().to_owned(),
            ..DriverConfig::default()
        };
        let first = Liveness::create(directory.path()).unwrap();
        let clock = headrace_sys::SystemClock::new();
        let refused = take_directory(&config, &clock).err().unwrap();
        assert!(
            refused.to_string().starts_with("Active media driver detected: "),
            "{refused}"
        );
        let watcher = Liveness::open(directory.path()).unwrap().unwrap();
        assert!(watcher.is_driver_alive().unwrap());
        drop(first);
    }
}
