//! The driver's directory: refuses one in use, saves the logs of a dead driver, makes a new one.

mod ownership;

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headrace_buffers::cnc::{self, CncError, CncFile};
use headrace_buffers::doorbell;
use headrace_buffers::error_log;
use headrace_buffers::event_log;
use headrace_buffers::liveness::{self, Liveness};
use headrace_buffers::ring::ManyToOneRing;
use headrace_sys::{Access, Clock};
use thiserror::Error;

pub(crate) use ownership::Ownership;

use crate::config::DriverConfig;
use crate::printing;
use crate::timestamp;

/// Logs of publications, by registration id.
pub(crate) const PUBLICATIONS: &str = "publications";
/// Logs of images, by correlation id.
pub(crate) const IMAGES: &str = "images";
/// Losses seen by images.
pub(crate) const LOSS_REPORT: &str = "loss-report.dat";

/// What a driver makes in its directory; one of them tells a driver's directory from any other.
const OWN_ENTRIES: [&str; 9] = [
    cnc::FILE_NAME,
    PUBLICATIONS,
    IMAGES,
    LOSS_REPORT,
    event_log::FILE_NAME,
    event_log::UNFINISHED_FILE_NAME,
    liveness::FILE_NAME,
    doorbell::FILE_NAME,
    doorbell::WAITERS,
];

/// How often deleting begins again. A client that starts to wait makes a file, so a directory may get one after it was
/// emptied and before it is deleted; each client thread does so a few times at most.
const DELETE_ATTEMPTS_MAX: usize = 1000;

/// The heartbeat with which a driver says that it has stopped.
const STOPPED_HEARTBEAT_MS: i64 = -1;

/// A file shorter than this has no complete header, so no driver can be using it.
const CNC_HEADER_LENGTH: u64 = 128;

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Another driver is alive there.
    #[error(
        "Active media driver detected: {}, pid={}; use that driver, stop it, or give this one another directory, \
         by aeron.dir, --dir or directory=",
        path.display(),
        pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string())
    )]
    Active {
        /// The file that it keeps.
        path: PathBuf,
        /// Its process, once the file says it.
        pid: Option<i64>,
    },
    /// A file of another layout, or damaged, is there; it might be in use by a driver that we cannot talk to.
    #[error(
        "cannot tell whether the driver of {} is alive: {reason}; if no driver runs there, set \
         aeron.dir.delete.on.start=true to delete the directory and everything in it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: CncError,
    },
    /// Something is there, and nothing of it was made by a driver.
    #[error(
        "aeron.dir={} is no media driver's directory: it has {entry:?} and no cnc.dat; use an empty or a new \
         directory, or set aeron.dir.delete.on.start=true to delete everything in it",
        path.display()
    )]
    NotADriver {
        /// The directory.
        path: PathBuf,
        /// One of the entries that are there.
        entry: OsString,
    },
    /// The operating system refused.
    #[error(
        "cannot {action} aeron.dir={}: {source}; a driver deletes what the one before it left there and makes its own \
         files: name one that this user may create, write and delete",
        path.display()
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl DirectoryError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Makes the directory ready for a new driver, with its sub-directories and nothing else in it.
pub(crate) fn prepare(config: &DriverConfig, clock: &dyn Clock) -> Result<(), DirectoryError> {
    let directory = &config.directory;
    if directory.exists() {
        if config.dir_warn_if_exists {
            printing::to_stderr(format_args!("WARNING: {} exists", directory.display()));
        }
        if !config.dir_delete_on_start {
            leave_no_error_behind(config, clock)?;
            refuse_if_not_a_driver(directory)?;
        }
        delete(directory)?;
    }
    for path in [
        directory.clone(),
        directory.join(PUBLICATIONS),
        directory.join(IMAGES),
    ] {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o777);
        builder
            .create(&path)
            .map_err(|error| DirectoryError::io("create", &path, error))?;
    }
    Ok(())
}

/// Deletes the directory at the end of the driver that made it. One that another driver has taken over meanwhile is left alone.
pub(crate) fn delete_own(directory: &Path, ownership: &Ownership) -> Result<(), DirectoryError> {
    if ownership.is_lost() {
        printing::to_stderr(format_args!(
            "WARNING: aeron.dir={} is kept: another driver has taken it over",
            directory.display()
        ));
        return Ok(());
    }
    delete_while(
        directory,
        || !ownership.is_lost(),
        |path| fs::remove_dir_all(path),
    )
}

/// Deletes what a start has made that got no CnC file; nothing once another driver has its own there.
pub(crate) fn delete_unfinished(directory: &Path) -> Result<(), DirectoryError> {
    let is_free = || !directory.join(cnc::FILE_NAME).exists();
    delete_while(directory, is_free, |path| fs::remove_dir_all(path))
}

/// Deletes the directory and everything in it, also what clients put there meanwhile.
fn delete(directory: &Path) -> Result<(), DirectoryError> {
    delete_while(directory, || true, |path| fs::remove_dir_all(path))
}

/// Deletes the directory as long as that is allowed, which is asked before each attempt.
fn delete_while(
    directory: &Path,
    is_allowed: impl Fn() -> bool,
    remove: impl Fn(&Path) -> io::Result<()>,
) -> Result<(), DirectoryError> {
    let mut deleted = Ok(());
    for _ in 0..DELETE_ATTEMPTS_MAX {
        if !is_allowed() {
            return Ok(());
        }
        deleted = remove(directory);
        match &deleted {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
    }
    match deleted {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DirectoryError::io("delete", directory, error))
        }
        _ => Ok(()),
    }
}

/// A mistyped directory must not cost its owner what is in it: what has no command file is only taken over when
/// nothing else is there but what a driver that died while starting leaves.
fn refuse_if_not_a_driver(directory: &Path) -> Result<(), DirectoryError> {
    // The driver before may have deleted it when it closed.
    if directory.join(cnc::FILE_NAME).exists() || !directory.exists() {
        return Ok(());
    }
    let cannot_list = |source| DirectoryError::io("list", directory, source);
    let mut foreign: Option<OsString> = None;
    for entry in fs::read_dir(directory).map_err(cannot_list)? {
        let name = entry.map_err(cannot_list)?.file_name();
        let is_own = OWN_ENTRIES.iter().any(|own| name == *own);
        // The first by name, so that the text does not depend on the file system.
        if !is_own && foreign.as_ref().is_none_or(|first| name < *first) {
            foreign = Some(name);
        }
    }
    match foreign {
        Some(entry) => Err(DirectoryError::NotADriver {
            path: directory.to_owned(),
            entry,
        }),
        None => Ok(()),
    }
}

fn leave_no_error_behind(config: &DriverConfig, clock: &dyn Clock) -> Result<(), DirectoryError> {
    let Some(file) = existing(&config.directory, config.driver_timeout_ms, clock)? else {
        return Ok(());
    };
    let has_ended = owner(&config.directory) == Owner::Ended;
    if !has_ended && is_beating(&file, config.driver_timeout_ms, clock) {
        return Err(active(&config.directory));
    }
    save_errors(&config.directory, &file, clock.epoch_ms())
}

/// The refusal of a directory in which another driver is alive.
pub(crate) fn active(directory: &Path) -> DirectoryError {
    let path = directory.join(cnc::FILE_NAME);
    let file = CncFile::map(&path, Access::ReadOnly);
    DirectoryError::Active {
        pid: file.ok().map(|file| file.pid()),
        path,
    }
}

/// What the lock of a directory tells of its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It holds its lock.
    Alive,
    /// It showed that it lives, and does so no more.
    Ended,
    /// It has no lock, or cannot be asked: the heartbeat decides.
    Unknown,
}

fn owner(directory: &Path) -> Owner {
    let liveness = Liveness::open(directory).ok().flatten();
    match liveness.map(|liveness| liveness.is_driver_alive()) {
        Some(Ok(true)) => Owner::Alive,
        Some(Ok(false)) => Owner::Ended,
        Some(Err(_)) | None => Owner::Unknown,
    }
}

/// Whether the heartbeat of a driver is young. One of a time to come is of before the clock was set back: a driver that
/// lives soon writes another, which is waited for.
fn is_beating(file: &CncFile, timeout_ms: i64, clock: &dyn Clock) -> bool {
    let Ok(ring) = ManyToOneRing::new(file.to_driver()) else {
        return false;
    };
    let heartbeat_ms = ring.consumer_heartbeat_ms();
    let start_ms = clock.epoch_ms();
    if heartbeat_ms <= start_ms.saturating_add(timeout_ms) {
        return start_ms.saturating_sub(heartbeat_ms) <= timeout_ms;
    }
    while clock.epoch_ms() <= start_ms.saturating_add(timeout_ms) {
        if ring.consumer_heartbeat_ms() != heartbeat_ms {
            return true;
        }
        clock.sleep(Duration::from_millis(1));
    }
    false
}

/// The CnC file that is there, once its driver has finished writing the header; none if there is no file, or if its driver was
/// killed before it had finished. A driver that holds its lock and has no such file yet, or has written its last heartbeat,
/// is starting or closing: it has the time-out to get there.
fn existing(directory: &Path, timeout_ms: i64, clock: &dyn Clock) -> Result<Option<CncFile>, DirectoryError> {
    let path = &directory.join(cnc::FILE_NAME);
    let deadline_ms = clock.epoch_ms().saturating_add(timeout_ms);
    loop {
        // Before the file is looked at: a driver lets go of its lock last of all.
        let owner = owner(directory);
        let reason = match map_headed(path) {
            Ok(Some(file)) if owner != Owner::Alive || !has_stopped(&file) => return Ok(Some(file)),
            Ok(None) if owner != Owner::Alive => return Ok(None),
            Err(CncError::NotReady | CncError::TooShort { .. }) if owner == Owner::Ended => return Ok(None),
            Ok(_) => None,
            Err(reason @ (CncError::NotReady | CncError::TooShort { .. })) => Some(reason),
            Err(reason) => return Err(foreign(path, reason)),
        };
        if clock.epoch_ms() < deadline_ms {
            clock.sleep(Duration::from_millis(1));
            continue;
        }
        return Err(match reason {
            Some(reason) if owner != Owner::Alive => foreign(path, reason),
            _ => active(directory),
        });
    }
}

fn foreign(path: &Path, reason: CncError) -> DirectoryError {
    DirectoryError::Foreign {
        path: path.to_owned(),
        reason,
    }
}

/// The CnC file; none if there is no file, or none with a header.
fn map_headed(path: &Path) -> Result<Option<CncFile>, CncError> {
    let has_header = fs::metadata(path).is_ok_and(|metadata| metadata.len() > CNC_HEADER_LENGTH);
    if !has_header {
        return Ok(None);
    }
    match CncFile::map(path, Access::ReadOnly) {
        Err(CncError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        mapped => mapped.map(Some),
    }
}

/// True when the driver has written the last of its heartbeats.
fn has_stopped(file: &CncFile) -> bool {
    ManyToOneRing::new(file.to_driver())
        .is_ok_and(|ring| ring.consumer_heartbeat_ms() == STOPPED_HEARTBEAT_MS)
}

/// Writes the errors a dead driver recorded to a file beside the directory, since the directory will go.
fn save_errors(directory: &Path, file: &CncFile, now_ms: i64) -> Result<(), DirectoryError> {
    let entries = error_log::read(&file.error_log(), 0);
    if entries.is_empty() {
        return Ok(());
    }
    let mut name = directory.as_os_str().to_owned();
    name.push(format!("-{}-error.log", timestamp::for_file_name(now_ms)));
    let path = PathBuf::from(name);
    let mut text = String::new();
    for entry in &entries {
        text.push_str(&format!(
            "***\n{} observations from {} to {} for:\n {}\n",
            entry.observation_count,
            timestamp::for_people(entry.first_ms),
            timestamp::for_people(entry.last_ms),
            entry.text
        ));
    }
    text.push_str(&format!("\n{} distinct errors observed.\n", entries.len()));
    fs::write(&path, text).map_err(|error| DirectoryError::io("save the errors of", &path, error))?;
    printing::to_stderr(format_args!(
        "WARNING: Existing errors saved to: {}",
        path.display()
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
