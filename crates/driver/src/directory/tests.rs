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
        error.starts_with("Active media driver detected: ")
            && error.contains("cnc.dat, pid=")
            && error.contains("another directory"),
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
        Err(DirectoryError::Active { .. })
    ));
    let (fixture, _file) = Fixture::with_driver(NOW_MS + 3_600_000);
    prepare(&fixture.config, &Beating(&fixture.clock, None)).unwrap();
    assert!(!fixture.left_over());
}

#[test]
fn a_driver_whose_process_has_ended_is_cleared_away_before_its_heartbeat_is_old() {
    let (fixture, _file) = Fixture::with_driver(NOW_MS);
    let alive = Liveness::create(&fixture.config.directory).unwrap();
    assert!(matches!(fixture.prepare(), Err(DirectoryError::Active { .. })));
    drop(alive);
    fixture.prepare().unwrap();
    assert!(!fixture.left_over());
}

/// Time passes only while a driver sleeps, and after 50 ms something happens.
struct After<F>(ManualClock, std::sync::Mutex<Option<F>>);

impl<F: FnOnce() + Send> Clock for After<F> {
    fn nano_time(&self) -> i64 {
        self.0.nano_time()
    }

    fn epoch_ns(&self) -> i64 {
        self.0.epoch_ns()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
        if self.0.epoch_ms() >= NOW_MS + 50
            && let Some(act) = self.1.lock().unwrap().take()
        {
            act();
        }
    }
}

fn after<F: FnOnce() + Send>(act: F) -> After<F> {
    After(
        ManualClock::new(0, NOW_MS * 1_000_000),
        std::sync::Mutex::new(Some(act)),
    )
}

/// The time that a start waits for a driver that has its lock; the clock stands where it began before.
fn assert_is_refused_after_the_timeout(fixture: &Fixture) {
    let clock = after(|| {});
    let error = prepare(&fixture.config, &clock).unwrap_err();
    assert!(matches!(error, DirectoryError::Active { .. }), "{error}");
    assert!(clock.epoch_ms() >= NOW_MS + fixture.config.driver_timeout_ms);
}

#[test]
fn a_driver_that_holds_its_lock_and_has_made_no_file_yet_is_left_alone() {
    for length in [None, Some(0), Some(128), Some(4096)] {
        let mut fixture = Fixture::new();
        fixture.config.driver_timeout_ms = 10_000;
        let directory = &fixture.config.directory;
        fs::create_dir_all(directory).unwrap();
        let alive = Liveness::create(directory).unwrap();
        if let Some(length) = length {
            fs::write(directory.join(cnc::FILE_NAME), vec![0; length]).unwrap();
        }
        assert_is_refused_after_the_timeout(&fixture);
        assert!(directory.join(liveness::FILE_NAME).exists(), "length={length:?}");
        // It fails to start.
        prepare(&fixture.config, &after(move || drop(alive))).unwrap();
        assert!(!directory.join(liveness::FILE_NAME).exists(), "length={length:?}");
    }
}

#[test]
fn a_driver_that_is_closing_is_waited_for() {
    let (fixture, _file) = Fixture::with_driver(-1);
    let alive = Liveness::create(&fixture.config.directory).unwrap();
    assert_is_refused_after_the_timeout(&fixture);
    assert!(fixture.left_over());
    prepare(&fixture.config, &after(move || drop(alive))).unwrap();
    assert!(!fixture.left_over());
}

#[test]
fn a_driver_that_deletes_its_directory_while_it_closes_is_waited_for() {
    let (fixture, _file) = Fixture::with_driver(-1);
    let directory = fixture.config.directory.clone();
    let alive = Liveness::create(&directory).unwrap();
    let path = directory.clone();
    let clock = after(move || {
        fs::remove_dir_all(path).unwrap();
        drop(alive);
    });
    prepare(&fixture.config, &clock).unwrap();
    assert!(directory.join(IMAGES).is_dir() && clock.epoch_ms() == NOW_MS + 50);
}

#[test]
fn a_driver_that_does_not_run_loses_its_directory_with_its_heartbeat_and_its_lock_notwithstanding() {
    let (fixture, _file) = Fixture::with_driver(NOW_MS - 10_001);
    let _alive = Liveness::create(&fixture.config.directory).unwrap();
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
fn a_driver_that_was_killed_before_its_file_was_ready_is_cleared_away() {
    let fixture = Fixture::new();
    let directory = &fixture.config.directory;
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(cnc::FILE_NAME);
    let liveness = Liveness::create(directory).unwrap();
    fs::write(&path, [0; 4096]).unwrap();
    assert!(fixture.prepare().is_err(), "it may still be starting");
    drop(liveness);
    fixture.prepare().unwrap();
    assert!(!path.exists());
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
fn a_link_is_not_followed_when_what_is_there_is_cleared_away() {
    let (fixture, file) = Fixture::with_driver(0);
    drop(file);
    let elsewhere = fixture.parent.path().join("elsewhere");
    let cnc = fixture.config.directory.join(cnc::FILE_NAME);
    fs::rename(&cnc, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &cnc).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    fixture.prepare().unwrap();
    assert!(!fixture.left_over());
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
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

#[test]
fn a_directory_that_another_driver_took_over_is_not_deleted() {
    let (fixture, _first) = Fixture::with_driver(0);
    let directory = &fixture.config.directory;
    let firsts = Ownership::of(directory).unwrap();
    fixture.prepare().unwrap();
    let identity = CncIdentity {
        client_liveness_timeout_ns: 1,
        start_timestamp_ms: 2,
        pid: 2,
        page_size: 4096,
    };
    let second = CncFile::create(directory, &CncLengths::default(), &identity).unwrap();
    let seconds = Ownership::of(directory).unwrap();
    delete_own(directory, &firsts).unwrap();
    assert!(
        directory.join(cnc::FILE_NAME).exists(),
        "not ready yet, and another's"
    );
    second.signal_ready().unwrap();
    delete_own(directory, &firsts).unwrap();
    assert!(directory.join(cnc::FILE_NAME).exists());
    delete_own(directory, &seconds).unwrap();
    assert!(!directory.exists());
    delete_own(directory, &seconds).unwrap();
}

#[test]
fn a_directory_that_another_driver_takes_over_while_it_is_deleted_is_left_to_that_one() {
    let (fixture, _first) = Fixture::with_driver(0);
    let directory = &fixture.config.directory;
    let ownership = Ownership::of(directory).unwrap();
    let file = directory.join(cnc::FILE_NAME);
    let attempts = std::cell::Cell::new(0);
    let remove = |path: &Path| {
        attempts.set(attempts.get() + 1);
        if attempts.get() > 1 {
            return fs::remove_dir_all(path);
        }
        fs::remove_file(&file)?;
        fs::write(&file, b"another's")?;
        Err(io::ErrorKind::DirectoryNotEmpty.into())
    };
    delete_while(directory, || !ownership.is_lost(), remove).unwrap();
    assert_eq!((attempts.get(), file.exists()), (1, true));
}
