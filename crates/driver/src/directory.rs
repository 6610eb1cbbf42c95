//! The driver's directory: refusing one in use, saving what a dead driver left, making a fresh one.

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

use crate::config::DriverConfig;
use crate::timestamp;

/// Logs of publications, by registration id.
pub const PUBLICATIONS: &str = "publications";
/// Logs of images, by correlation id.
pub const IMAGES: &str = "images";
/// Losses seen by images.
pub const LOSS_REPORT: &str = "loss-report.dat";

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

/// A file shorter than this has no complete header, so no driver can be using it.
const CNC_HEADER_LENGTH: u64 = 128;

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Another driver is alive there.
    #[error("Active media driver detected: {}", .0.display())]
    Active(PathBuf),
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
    #[error("cannot {action} aeron.dir={}: {source}", path.display())]
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
pub fn prepare(config: &DriverConfig, clock: &dyn Clock) -> Result<(), DirectoryError> {
    let directory = &config.directory;
    if directory.exists() {
        if config.dir_warn_if_exists {
            eprintln!("WARNING: {} exists", directory.display());
        }
        if !config.dir_delete_on_start {
            refuse_if_not_a_driver(directory)?;
            leave_no_error_behind(config, clock)?;
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

/// Deletes the directory and everything in it, also what clients put there meanwhile.
pub fn delete(directory: &Path) -> Result<(), DirectoryError> {
    let mut deleted = fs::remove_dir_all(directory);
    for _ in 1..DELETE_ATTEMPTS_MAX {
        match &deleted {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                deleted = fs::remove_dir_all(directory);
            }
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
    if directory.join(cnc::FILE_NAME).exists() {
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
    let path = config.directory.join(cnc::FILE_NAME);
    let Some(file) = existing(&path, config.driver_timeout_ms, clock)? else {
        return Ok(());
    };
    if !has_ended(&config.directory) && is_beating(&file, config.driver_timeout_ms, clock) {
        return Err(DirectoryError::Active(path));
    }
    save_errors(&config.directory, &file, clock.epoch_ms())
}

/// True when the driver of the directory showed that it lives, and does so no more. Of other drivers, and when it
/// cannot be told, the heartbeat decides.
fn has_ended(directory: &Path) -> bool {
    let liveness = Liveness::open(directory).ok().flatten();
    liveness.is_some_and(|liveness| !liveness.is_driver_alive().unwrap_or(true))
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

/// The CnC file that is there, once its driver has finished writing the header; none if there is no file.
fn existing(path: &Path, timeout_ms: i64, clock: &dyn Clock) -> Result<Option<CncFile>, DirectoryError> {
    let is_long_enough = fs::metadata(path).is_ok_and(|metadata| metadata.len() > CNC_HEADER_LENGTH);
    if !is_long_enough {
        return Ok(None);
    }
    let deadline_ms = clock.epoch_ms().saturating_add(timeout_ms);
    loop {
        match CncFile::map(path, Access::ReadOnly) {
            Ok(file) => return Ok(Some(file)),
            Err(CncError::NotReady | CncError::TooShort { .. }) if clock.epoch_ms() < deadline_ms => {
                clock.sleep(Duration::from_millis(1));
            }
            Err(reason) => {
                return Err(DirectoryError::Foreign {
                    path: path.to_owned(),
                    reason,
                });
            }
        }
    }
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
    eprintln!("WARNING: Existing errors saved to: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use headrace_buffers::cnc::{CncIdentity, CncLengths};
    use headrace_buffers::doorbell::{Doorbells, DriverIdentity};
    use headrace_buffers::error_log::DistinctErrorLog;
    use headrace_sys::clock::ManualClock;

    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    struct Fixture {
        parent: tempfile::TempDir,
        config: DriverConfig,
        clock: ManualClock,
    }

    impl Fixture {
        fn new() -> Self {
            let parent = tempfile::tempdir().unwrap();
            let config = DriverConfig {
                directory: parent.path().join("driver"),
                driver_timeout_ms: 0,
                ..DriverConfig::default()
            };
            let clock = ManualClock::new(0, NOW_MS * 1_000_000);
            Self {
                parent,
                config,
                clock,
            }
        }

        /// A directory as a driver leaves it, with a file that must not survive a new start.
        fn with_driver(heartbeat_ms: i64) -> (Self, CncFile) {
            let mut fixture = Self::new();
            fixture.config.driver_timeout_ms = 10_000;
            fs::create_dir_all(fixture.config.directory.join(IMAGES)).unwrap();
            fs::write(fixture.config.directory.join(IMAGES).join("7.logbuffer"), b"x").unwrap();
            let identity = CncIdentity {
                client_liveness_timeout_ns: 1,
                start_timestamp_ms: 1,
                pid: 1,
                page_size: 4096,
            };
            let lengths = CncLengths::default();
            let file = CncFile::create(&fixture.config.directory, &lengths, &identity).unwrap();
            let ring = ManyToOneRing::new(file.to_driver()).unwrap();
            ring.put_consumer_heartbeat_ms(heartbeat_ms);
            file.signal_ready().unwrap();
            (fixture, file)
        }

        fn prepare(&self) -> Result<(), DirectoryError> {
            prepare(&self.config, &self.clock)
        }

        fn left_over(&self) -> bool {
            self.config.directory.join(IMAGES).join("7.logbuffer").exists()
        }

        fn saved_errors(&self) -> Vec<String> {
            fs::read_dir(self.parent.path())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.to_string_lossy().ends_with("-error.log"))
                .map(|path| fs::read_to_string(path).unwrap())
                .collect()
        }
    }

    #[test]
    fn a_fresh_directory_gets_its_sub_directories() {
        let fixture = Fixture::new();
        fixture.prepare().unwrap();
        assert!(fixture.config.directory.join(PUBLICATIONS).is_dir());
        assert!(fixture.config.directory.join(IMAGES).is_dir());
    }

    #[test]
    fn an_active_driver_is_left_alone() {
        let (fixture, _file) = Fixture::with_driver(NOW_MS - 10_000);
        let error = fixture.prepare().unwrap_err().to_string();
        assert!(
            error.starts_with("Active media driver detected: ") && error.ends_with("cnc.dat"),
            "{error}"
        );
        assert!(fixture.left_over());
    }

    #[test]
    fn a_heartbeat_of_a_time_to_come_is_of_a_dead_driver_unless_another_follows() {
        /// Time passes only while a driver sleeps, and another lives meanwhile.
        struct Beating<'a>(&'a ManualClock, Option<&'a CncFile>);
        impl Clock for Beating<'_> {
            fn nano_time(&self) -> i64 {
                self.0.nano_time()
            }
            fn epoch_ns(&self) -> i64 {
                self.0.epoch_ns()
            }
            fn sleep(&self, duration: Duration) {
                self.0.sleep(duration);
                if let Some(file) = self.1 {
                    let ring = ManyToOneRing::new(file.to_driver()).unwrap();
                    ring.put_consumer_heartbeat_ms(self.0.epoch_ms());
                }
            }
        }
        let (fixture, file) = Fixture::with_driver(NOW_MS + 3_600_000);
        let clock = Beating(&fixture.clock, Some(&file));
        assert!(matches!(
            prepare(&fixture.config, &clock),
            Err(DirectoryError::Active(_))
        ));
        let (fixture, _file) = Fixture::with_driver(NOW_MS + 3_600_000);
        prepare(&fixture.config, &Beating(&fixture.clock, None)).unwrap();
        assert!(!fixture.left_over());
    }

    #[test]
    fn a_driver_whose_process_has_ended_is_cleared_away_before_its_heartbeat_is_old() {
        let (fixture, _file) = Fixture::with_driver(NOW_MS);
        let alive = Liveness::create(&fixture.config.directory).unwrap();
        assert!(matches!(fixture.prepare(), Err(DirectoryError::Active(_))));
        drop(alive);
        fixture.prepare().unwrap();
        assert!(!fixture.left_over());
    }

    #[test]
    fn an_active_driver_is_overridden_by_delete_on_start() {
        let (mut fixture, _file) = Fixture::with_driver(NOW_MS);
        fixture.config.dir_delete_on_start = true;
        fixture.prepare().unwrap();
        assert!(!fixture.left_over());
    }

    #[test]
    fn a_dead_driver_is_cleared_away_and_its_errors_saved() {
        let (fixture, file) = Fixture::with_driver(NOW_MS - 10_001);
        let log = DistinctErrorLog::new(file.error_log());
        log.record(11, "out of cheese", NOW_MS - 60_000);
        fixture.prepare().unwrap();
        assert!(!fixture.left_over());
        let saved = fixture.saved_errors();
        assert_eq!(saved.len(), 1);
        assert!(saved[0].contains("out of cheese") && saved[0].contains("1 distinct errors observed."));
    }

    #[test]
    fn a_stopped_driver_without_errors_leaves_nothing() {
        let (fixture, _file) = Fixture::with_driver(-1);
        fixture.prepare().unwrap();
        assert!(!fixture.left_over() && fixture.saved_errors().is_empty());
    }

    #[test]
    fn a_foreign_version_is_refused_with_its_version() {
        let (fixture, _file) = Fixture::with_driver(-1);
        let path = fixture.config.directory.join(cnc::FILE_NAME);
        let mut bytes = fs::read(&path).unwrap();
        bytes[..4].copy_from_slice(&(3i32 << 16).to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let error = fixture.prepare().unwrap_err().to_string();
        assert!(
            error.contains("3.0.0") && error.contains("aeron.dir.delete.on.start"),
            "{error}"
        );
        assert!(fixture.left_over());
    }

    #[test]
    fn a_file_that_never_becomes_ready_is_refused() {
        let fixture = Fixture::new();
        fs::create_dir_all(&fixture.config.directory).unwrap();
        fs::write(fixture.config.directory.join(cnc::FILE_NAME), [0; 4096]).unwrap();
        assert!(matches!(
            fixture.prepare(),
            Err(DirectoryError::Foreign {
                reason: CncError::NotReady,
                ..
            })
        ));
    }

    #[test]
    fn a_file_without_a_header_is_no_driver() {
        let fixture = Fixture::new();
        fs::create_dir_all(&fixture.config.directory).unwrap();
        fs::write(fixture.config.directory.join(cnc::FILE_NAME), [0; 128]).unwrap();
        fixture.prepare().unwrap();
        assert!(!fixture.config.directory.join(cnc::FILE_NAME).exists());
    }

    #[test]
    fn a_directory_of_somebody_else_is_left_alone() {
        let mut fixture = Fixture::new();
        let directory = fixture.config.directory.clone();
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::write(directory.join("other.txt"), b"x").unwrap();
        let error = fixture.prepare().unwrap_err().to_string();
        assert!(
            error.contains(&format!("aeron.dir={} ", directory.display()))
                && error.contains("\"other.txt\"")
                && error.contains("aeron.dir.delete.on.start"),
            "{error}"
        );
        let mut names: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["other.txt", "sub"]);
        fixture.config.dir_delete_on_start = true;
        fixture.prepare().unwrap();
        assert!(!directory.join("other.txt").exists() && directory.join(IMAGES).is_dir());
    }

    #[test]
    fn a_command_file_makes_it_a_directory_of_a_driver_and_nothing_else_does_beside_others_files() {
        for own in OWN_ENTRIES {
            let fixture = Fixture::new();
            let directory = &fixture.config.directory;
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join(own), b"x").unwrap();
            fs::write(directory.join("a.txt"), b"x").unwrap();
            let is_a_drivers = own == cnc::FILE_NAME;
            assert_eq!(fixture.prepare().is_ok(), is_a_drivers, "{own}");
            assert_eq!(directory.join("a.txt").exists(), !is_a_drivers, "{own}");
        }
    }

    #[test]
    fn what_a_driver_that_died_while_starting_left_is_cleared_away() {
        let fixture = Fixture::new();
        let left = fixture.config.directory.join(IMAGES).join("1.logbuffer");
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        fs::write(&left, b"x").unwrap();
        fixture.prepare().unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn clients_that_begin_to_wait_meanwhile_do_not_keep_it() {
        let fixture = Fixture::new();
        let directory = &fixture.config.directory;
        let identity = DriverIdentity {
            pid: 1,
            start_timestamp_ms: 1,
        };
        for _ in 0..200 {
            fixture.prepare().unwrap();
            let doorbells = Doorbells::create(directory, identity).unwrap();
            std::thread::scope(|scope| {
                let (waiting, is_waiting) = mpsc::channel();
                scope.spawn(move || {
                    let mut parkers = Vec::new();
                    while let Some(parker) = doorbells.parker() {
                        parkers.push(parker);
                        let _ = waiting.send(());
                    }
                });
                is_waiting.recv().unwrap();
                delete(directory).unwrap();
            });
            assert!(!directory.exists());
        }
    }

    #[test]
    fn an_empty_directory_is_taken() {
        let fixture = Fixture::new();
        fs::create_dir_all(&fixture.config.directory).unwrap();
        fixture.prepare().unwrap();
        assert!(fixture.config.directory.join(IMAGES).is_dir());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let mut fixture = Fixture::new();
        let file = fixture.parent.path().join("file");
        fs::write(&file, b"").unwrap();
        fixture.config.directory = file.join("driver");
        let error = fixture.prepare().unwrap_err().to_string();
        assert!(
            error.contains("cannot create aeron.dir=") && error.contains("file/driver"),
            "{error}"
        );
    }
}
