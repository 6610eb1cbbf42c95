use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use headrace_buffers::cnc;
use headrace_buffers::liveness;
use headrace_protocol::channel::Interface;
use headrace_sys::SystemClock;

use super::*;
use crate::directory::LOSS_REPORT;
use crate::environment::{BufferLengths, Network, OpenSocket, SocketRequest};

/// Something that happens once, as soon as there is a file, seen when the driver asks for the time.
struct Meanwhile<F> {
    clock: SystemClock,
    file: std::path::PathBuf,
    act: Mutex<Option<F>>,
}

impl<F: FnOnce() + Send> Clock for Meanwhile<F> {
    fn nano_time(&self) -> i64 {
        self.clock.nano_time()
    }

    fn epoch_ns(&self) -> i64 {
        let act = self.act.lock().unwrap().take_if(|_| self.file.exists());
        if let Some(act) = act {
            act();
        }
        self.clock.epoch_ns()
    }
}

fn config(directory: &Path) -> DriverConfig {
    DriverConfig {
        directory: directory.to_owned(),
        ..DriverConfig::default()
    }
}

/// Starts a driver in whose directory something happens once the named file is there. The start must fail.
fn failed_start(directory: &Path, file: &str, act: impl FnOnce() + Send + 'static) -> DriverError {
    let clock = Arc::new(Meanwhile {
        clock: SystemClock::new(),
        file: directory.join(file),
        act: Mutex::new(Some(act)),
    });
    let environment = Environment {
        clock,
        ..Environment::system()
    };
    MediaDriver::launch_in(config(directory), environment).unwrap_err()
}

const ANOTHERS: &[u8] = b"another driver's";

#[test]
fn a_start_that_finds_the_file_of_another_driver_says_so_and_deletes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("driver");
    let file = directory.join(cnc::FILE_NAME);
    let path = file.clone();
    let error = failed_start(&directory, liveness::FILE_NAME, move || {
        fs::write(path, ANOTHERS).unwrap();
    });
    assert!(
        error.to_string().starts_with("Active media driver detected: "),
        "{error}"
    );
    assert_eq!(fs::read(file).unwrap(), ANOTHERS);
}

#[test]
fn a_start_that_fails_leaves_the_directory_to_the_driver_that_took_it_over() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("driver");
    let file = directory.join(cnc::FILE_NAME);
    let (path, report) = (file.clone(), directory.join(LOSS_REPORT));
    failed_start(&directory, cnc::FILE_NAME, move || {
        fs::write(report, b"").unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(path, ANOTHERS).unwrap();
    });
    assert_eq!(fs::read(file).unwrap(), ANOTHERS);
}

#[test]
fn a_start_that_fails_leaves_no_files() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("driver");
    let report = directory.join(LOSS_REPORT);
    failed_start(&directory, cnc::FILE_NAME, move || {
        fs::write(report, b"").unwrap()
    });
    assert!(!directory.exists());
}

/// Refuses sockets, while another driver starts in the directory.
struct NoSockets(std::path::PathBuf);

impl Network for NoSockets {
    fn open(&self, _request: &SocketRequest) -> io::Result<OpenSocket> {
        fs::create_dir_all(&self.0)?;
        fs::write(self.0.join(cnc::FILE_NAME), ANOTHERS)?;
        Err(io::Error::other("no sockets"))
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        Ok(BufferLengths::default())
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        Ok(Vec::new())
    }
}

#[test]
fn a_driver_that_gets_no_sockets_touches_no_directory() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("driver");
    let environment = Environment {
        network: Arc::new(NoSockets(directory.clone())),
        ..Environment::system()
    };
    let error = MediaDriver::launch_in(config(&directory), environment).unwrap_err();
    assert!(error.to_string().contains("no sockets"), "{error}");
    assert_eq!(fs::read(directory.join(cnc::FILE_NAME)).unwrap(), ANOTHERS);
}

#[test]
fn a_directory_that_is_given_with_a_slash_has_none() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("driver/");
    let driver = MediaDriver::launch(config(&directory)).unwrap();
    assert!(!driver.directory().as_os_str().to_string_lossy().ends_with('/'));
}
