//! The driver as a program: arguments, signals, exit statuses and the files that it leaves.

mod process;

use std::path::Path;
use std::time::{Duration, Instant};

use headrace_buffers::cnc;
use headrace_buffers::counters::{CountersReader, system_counter};
use headrace_buffers::loss_report;
use headrace_buffers::ring::ManyToOneRing;
use process::{Driver, headraced, run, text};

#[test]
fn the_version_is_printed_in_the_known_form() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = run(headraced(&directory.path().join("d")).arg("-v"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.contains("<aeron version=") && stdout.contains("> major 1 minor 53 "),
        "{stdout}"
    );
    let commit = option_env!("HEADRACE_COMMIT").unwrap_or("unknown");
    assert!(stdout.contains(&format!(" commit={commit}>")), "{stdout}");
}

#[cfg(unix)]
#[test]
fn an_argument_or_a_variable_that_is_no_text_ends_it_with_status_1() {
    use std::os::unix::ffi::OsStringExt;
    let odd = |bytes: &[u8]| std::ffi::OsString::from_vec(bytes.to_vec());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let (code, _, stderr) = run(headraced(&path).arg(odd(b"-Daeron.dir=/tmp/\xff")));
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("ERROR: argument -Daeron.dir=/tmp/\u{fffd} must be"),
        "{stderr}"
    );
    let (code, _, stderr) = run(headraced(&path).env("AERON_MTU_LENGTH", odd(b"8k\xff")));
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("AERON_MTU_LENGTH=8k\u{fffd}: must be text in UTF-8"),
        "{stderr}"
    );
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
            "ERROR: driver init invalid setting: aeron.client.liveness.timeout=10s: must be more than aeron.timer.interval=20s",
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
fn definitions_for_other_programs_are_passed_over_where_that_is_asked_for() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let mut command = headraced(&directory);
    command.args(["-Daeron.cluster.id=3", "--allow-unknown", "-Daeron.nonsense=1"]);
    let driver = Driver::start(command, &directory);
    driver.signal("-TERM");
    let output = driver.wait();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_signal_stops_it_with_status_0_in_every_threading_mode() {
    for (mode, signal) in [
        ("DEDICATED", "-TERM"),
        ("SHARED_NETWORK", "-INT"),
        ("SHARED", "-TERM"),
        ("INVOKER", "-INT"),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("d");
        let mut command = headraced(&directory);
        command.env("AERON_THREADING_MODE", mode);
        let driver = Driver::start(command, &directory);
        let file = driver.cnc();
        driver.signal(signal);
        let output = driver.wait();
        assert_eq!(output.status.code(), Some(0), "{mode}");
        assert_eq!(text(&output.stderr), "", "{mode}");
        assert_eq!(text(&output.stdout), "Shutting down driver...\n", "{mode}");
        let ring = ManyToOneRing::new(file.to_driver()).unwrap();
        assert_eq!(ring.consumer_heartbeat_ms(), -1, "{mode}");
        assert!(directory.exists(), "{mode}");
    }
}

#[test]
fn a_driver_whose_idling_is_controlled_runs_and_ends_whatever_the_counter_says() {
    for (mode, numbers) in [("SHARED", [1, 0]), ("INVOKER", [2, 3])] {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("d");
        let mut command = headraced(&directory);
        command.env("AERON_THREADING_MODE", mode).env(
            "AERON_SHARED_IDLE_STRATEGY",
            "org.agrona.concurrent.ControllableIdleStrategy",
        );
        let driver = Driver::start(command, &directory);
        let file = driver.cnc();
        let counters = CountersReader::new(file.counters_metadata(), file.counters_values());
        for how in numbers {
            let status = counters
                .counter(system_counter::CONTROLLABLE_IDLE_STRATEGY)
                .unwrap();
            status.set_release(how);
            // Turns go on.
            let ring = ManyToOneRing::new(file.to_driver()).unwrap();
            let before = ring.consumer_heartbeat_ms();
            let start = Instant::now();
            while ring.consumer_heartbeat_ms() == before {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "{mode}: no turn with {how}"
                );
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        driver.signal("-TERM");
        let output = driver.wait();
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), ""),
            "{mode}"
        );
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
    driver.terminate();
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
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
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
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_driver_runs_and_ends_in_order_when_its_output_takes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    std::fs::create_dir(&directory).unwrap();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = headraced(&directory);
    command
        .args([
            "-Daeron.print.configuration=true",
            "-Daeron.dir.warn.if.exists=true",
        ])
        .stdout(full())
        .stderr(full());
    let driver = Driver::start(command, &directory);
    driver.signal("-TERM");
    assert_eq!(driver.wait().status.code(), Some(0));
    let mut command = headraced(&directory);
    command.arg("--colour").stdout(full()).stderr(full());
    assert_eq!(run(&mut command).0, Some(1));
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
