//! The driver as a program: arguments, signals, exit statuses and the files that it leaves.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{CountersReader, system_counter};
use headrace_buffers::loss_report;
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command;
use headrace_sys::Access;

/// Far beyond what anything here takes; only a driver that hangs gets there.
const TIMEOUT: Duration = Duration::from_secs(120);

fn headraced(directory: &Path) -> Command {
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
struct Driver {
    child: Option<Child>,
    directory: PathBuf,
}

impl Driver {
    fn start(mut command: Command, directory: &Path) -> Self {
        let driver = Self {
            child: Some(command.spawn().unwrap()),
            directory: directory.to_owned(),
        };
        let _ready = driver.cnc();
        driver
    }

    /// The command-and-control file, once this driver, and not one before it, says that it is ready.
    fn cnc(&self) -> CncFile {
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

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    fn wait(mut self) -> Output {
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

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a driver that is expected to end by itself. One that starts after all is killed, and so has no status.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
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

#[test]
fn the_version_is_printed_in_the_known_form() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = run(headraced(&directory.path().join("d")).arg("-v"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.contains("<aeron version=") && stdout.contains("> major 0 minor "),
        "{stdout}"
    );
    let commit = option_env!("HEADRACE_COMMIT").unwrap_or("unknown");
    assert!(stdout.contains(&format!(" commit={commit}>")), "{stdout}");
}

#[test]
fn arguments_that_make_no_sense_end_it_with_status_1() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    for (argument, expected) in [
        ("--colour", "Usage: "),
        ("-Dnonsense", "malformed define: nonsense"),
        (
            "-Daeron.nonsense=3",
            "ERROR: context init invalid setting: aeron.nonsense=3: is not a setting of the media driver",
        ),
        (
            "/no/such.properties",
            "ERROR: loading properties from /no/such.properties",
        ),
        (
            "-Daeron.mtu.length=1400",
            "ERROR: context init invalid setting: aeron.mtu.length=1400: must be a multiple of 32",
        ),
        (
            "-Daeron.timer.interval=20s",
            "ERROR: driver init invalid setting: aeron.client.liveness.timeout=10000000000: must be more than",
        ),
        (
            "-Daeron.name.resolver.supplier=csv_table",
            "aeron.name.resolver.supplier=csv_table: needs aeron.name.resolver.init.args",
        ),
        (
            "-Daeron.conductor.idle.strategy=doze",
            "aeron.conductor.idle.strategy=doze",
        ),
    ] {
        let (code, _, stderr) = run(headraced(&path).arg(argument));
        assert_eq!(code, Some(1), "{argument}");
        assert!(stderr.contains(expected), "{argument}: {stderr}");
        assert!(!path.exists(), "{argument} left a directory");
    }
}

#[test]
fn a_signal_stops_it_with_its_number_in_every_threading_mode() {
    for (mode, signal, status) in [
        ("DEDICATED", "-TERM", 15),
        ("SHARED_NETWORK", "-INT", 2),
        ("SHARED", "-TERM", 15),
        ("INVOKER", "-INT", 2),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("d");
        let mut command = headraced(&directory);
        command
            .env("AERON_THREADING_MODE", mode)
            .env("AERON_EVENT_LOG", "admin");
        let driver = Driver::start(command, &directory);
        let file = driver.cnc();
        driver.signal(signal);
        let output = driver.wait();
        assert_eq!(output.status.code(), Some(status), "{mode}");
        assert_eq!(text(&output.stderr), "", "{mode}");
        assert_eq!(text(&output.stdout), "Shutting down driver...\n", "{mode}");
        let ring = ManyToOneRing::new(file.to_driver()).unwrap();
        assert_eq!(ring.consumer_heartbeat_ms(), -1, "{mode}");
        assert!(directory.exists(), "{mode}");
    }
}

#[test]
fn a_client_that_may_stops_it_with_status_0_and_the_directory_goes() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let mut command = headraced(&directory);
    command
        .env("AERON_DRIVER_TERMINATION_VALIDATOR", "allow")
        .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
        .env("AERON_PRINT_CONFIGURATION", "true");
    let driver = Driver::start(command, &directory);
    let ring = ManyToOneRing::new(driver.cnc().to_driver()).unwrap();
    let mut message = Vec::new();
    let type_id = command::Command::TerminateDriver {
        client_id: ring.next_correlation_id(),
        correlation_id: ring.next_correlation_id(),
        token: &[],
    }
    .encode(&mut message);
    assert!(ring.try_write(type_id, &message).unwrap());
    let output = driver.wait();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let stdout = text(&output.stdout);
    assert!(
        stdout.contains(&format!("aeron.dir={}\n", directory.display())),
        "{stdout}"
    );
    assert!(!directory.exists());
}

#[test]
fn a_properties_file_overrides_definitions_and_the_environment() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let file = parent.path().join("driver.properties");
    std::fs::write(&file, "aeron.client.liveness.timeout=12s\n").unwrap();
    let mut command = headraced(Path::new("/nowhere"));
    command
        .env("AERON_CLIENT_LIVENESS_TIMEOUT", "14s")
        .arg(format!("-Daeron.dir={}", directory.display()))
        .arg("-Daeron.client.liveness.timeout=13s")
        .arg(format!("file://{}", file.display()));
    let driver = Driver::start(command, &directory);
    assert_eq!(driver.cnc().client_liveness_timeout_ns(), 12_000_000_000);
    driver.signal("-TERM");
    driver.wait();
}

#[test]
fn only_a_definition_must_name_a_setting_and_only_if_it_is_aerons() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let file = parent.path().join("driver.properties");
    std::fs::write(&file, "aeron.archive.nonsense=1\n").unwrap();
    let mut command = headraced(&directory);
    command
        .env("AERON_NONSENSE", "3")
        .arg("-Djava.nonsense=3")
        .arg("-Daeron.mtu.length=1408")
        .arg(&file);
    let driver = Driver::start(command, &directory);
    driver.signal("-TERM");
    let output = driver.wait();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(15), ""));
}

#[test]
fn a_directory_that_is_no_drivers_is_refused_and_kept() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("other.txt");
    std::fs::write(&file, "mine").unwrap();
    let (code, _, stderr) = run(&mut headraced(parent.path()));
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("ERROR: driver init aeron.dir=") && stderr.contains("other.txt"),
        "{stderr}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn the_command_file_and_the_loss_report_count_as_mapped() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let driver = Driver::start(headraced(&directory), &directory);
    let file = driver.cnc();
    let counters = CountersReader::new(file.counters_metadata(), file.counters_values());
    let length = |name: &str| std::fs::metadata(directory.join(name)).unwrap().len() as i64;
    assert_eq!(
        counters.value(system_counter::BYTES_CURRENTLY_MAPPED),
        Some(length(cnc::FILE_NAME) + length(loss_report::FILE_NAME))
    );
    driver.signal("-TERM");
    driver.wait();
}

#[test]
fn a_second_driver_leaves_the_first_alone_and_a_killed_one_is_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let first = Driver::start(headraced(&directory), &directory);
    let (code, _, stderr) = run(&mut headraced(&directory));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("Active media driver detected: "), "{stderr}");
    first.signal("-KILL");
    first.wait();
    // With no patience at all, a driver dead for a millisecond is dead.
    std::thread::sleep(Duration::from_millis(2));
    let mut command = headraced(&directory);
    command.env("AERON_DRIVER_TIMEOUT", "0");
    let second = Driver::start(command, &directory);
    second.signal("-TERM");
    let output = second.wait();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(15), ""));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, _, stderr) = run(&mut headraced(&file.join("d")));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("cannot create aeron.dir="), "{stderr}");
}
