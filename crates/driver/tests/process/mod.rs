//! The driver as a process.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command;
use headrace_sys::Access;

/// Far beyond what anything here takes; only a driver that hangs gets there.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A driver on `directory`, with nothing else of Aeron in its environment.
pub(crate) fn headraced(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headraced"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AERON_")) {
        command.env_remove(name);
    }
    command
        .env("AERON_DIR", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running driver; killed if a test fails before it stops.
pub(crate) struct Driver {
    child: Option<Child>,
    directory: PathBuf,
}

impl Driver {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(mut command: Command, directory: &Path) -> Self {
        let driver = Self {
            child: Some(command.spawn().unwrap()),
            directory: directory.to_owned(),
        };
        let _ready = driver.cnc();
        driver
    }

    /// The command-and-control file, once this driver, and not one before it, says that it is ready.
    pub(crate) fn cnc(&self) -> CncFile {
        let started = Instant::now();
        loop {
            let mapped = CncFile::map(&self.directory.join(cnc::FILE_NAME), Access::ReadWrite);
            let own_pid = self.child.as_ref().map(|child| i64::from(child.id()));
            if let Ok(file) = mapped
                && Some(file.pid()) == own_pid
            {
                return file;
            }
            assert!(started.elapsed() < TIMEOUT, "the driver did not get ready");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Asks it to end, as a client does.
    pub(crate) fn terminate(&self) {
        let ring = ManyToOneRing::new(self.cnc().to_driver()).unwrap();
        let mut message = Vec::new();
        let type_id = command::Command::TerminateDriver {
            client_id: ring.next_correlation_id(),
            correlation_id: ring.next_correlation_id(),
            token: &[],
        }
        .encode(&mut message);
        assert!(ring.try_write(type_id, &message).unwrap());
    }

    /// What it printed, and its status.
    pub(crate) fn wait(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a driver that is expected to end by itself. One that starts after all is killed, and so has no status.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (text(&output.stdout).to_owned(), text(&output.stderr).to_owned());
    (output.status.code(), stdout, stderr)
}
