//! Finding a driver, and saying clearly why there is none.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headrace_buffers::Memory;
use headrace_buffers::cnc::{CncFile, CncIdentity, CncLengths};
use headrace_client::{Client, ClientConfig, ClientError};
use headrace_sys::Clock;

use common::{FakeDriver, LIVENESS_TIMEOUT_NS, MS, config, driver};

/// Connects with a short timeout while the clock runs on; gives the error's text.
fn refusal(fake: &Arc<Mutex<FakeDriver>>, change: impl FnOnce(&mut ClientConfig)) -> String {
    let (mut config, _) = config(fake);
    let clock = driver(fake).clock.clone();
    config.driver_timeout_ms = 50;
    config.driver_invoker = Some(Arc::new(move || clock.advance_ns(20 * MS)));
    change(&mut config);
    match Client::connect(config) {
        Ok(_) => panic!("connected"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn without_a_driver_the_file_that_is_missing_is_named() {
    let fake = FakeDriver::start();
    let empty = tempfile::tempdir().unwrap();
    let text = refusal(&fake, |config| config.directory = empty.path().to_owned());
    assert!(text.contains("CnC file not created"), "{text}");
    assert!(text.contains(empty.path().to_str().unwrap()), "{text}");
}

#[test]
fn a_program_that_finds_no_driver_for_a_second_is_told_once() {
    let fake = FakeDriver::start();
    let empty = tempfile::tempdir().unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = |timeout_ms: i64| {
        let handler = Arc::clone(&told);
        refusal(&fake, |config| {
            config.directory = empty.path().to_owned();
            config.driver_timeout_ms = timeout_ms;
            config.no_driver_handler = Some(Arc::new(move || {
                handler.fetch_add(1, Ordering::Relaxed);
            }));
        });
        told.swap(0, Ordering::Relaxed)
    };
    assert_eq!(count(900), 0);
    assert_eq!(count(3_000), 1);
}

#[test]
fn a_driver_that_is_starting_is_waited_for() {
    let fake = FakeDriver::start();
    let starting = tempfile::tempdir().unwrap();
    let identity = CncIdentity {
        client_liveness_timeout_ns: LIVENESS_TIMEOUT_NS,
        start_timestamp_ms: 0,
        pid: 1,
        page_size: 4096,
    };
    let cnc = CncFile::create(starting.path(), &CncLengths::default(), &identity).unwrap();
    let text = refusal(&fake, |config| config.directory = starting.path().to_owned());
    assert!(text.contains("created but not initialised"), "{text}");

    cnc.signal_ready().unwrap();
    let text = refusal(&fake, |config| config.directory = starting.path().to_owned());
    assert!(text.contains("no driver heartbeat detected"), "{text}");

    // The driver comes to life while a client waits for it.
    let ring = headrace_buffers::ring::ManyToOneRing::new(cnc.to_driver()).unwrap();
    let (mut config, _) = config(&fake);
    config.directory = starting.path().to_owned();
    let clock = driver(&fake).clock.clone();
    config.driver_invoker = Some(Arc::new(move || ring.put_consumer_heartbeat_ms(clock.epoch_ms())));
    assert!(Client::connect(config).is_ok());
}

#[test]
fn files_of_a_dead_driver_are_not_taken_for_a_driver() {
    let fake = FakeDriver::start();
    driver(&fake).clock.advance_ns(20_000 * MS);
    let text = refusal(&fake, |_| {});
    assert!(
        text.contains("no driver heartbeat detected") && text.contains("last_heartbeat_ms="),
        "{text}"
    );
    driver(&fake).ring.put_consumer_heartbeat_ms(-1);
    let text = refusal(&fake, |_| {});
    assert!(text.contains("last_heartbeat_ms=-1"), "{text}");
}

#[test]
fn a_file_of_another_version_is_refused_at_once() {
    let fake = FakeDriver::start();
    let path = driver(&fake).directory.path().join("cnc.dat");
    let mapping = headrace_sys::MappedFile::open(&path, headrace_sys::Access::ReadWrite).unwrap();
    headrace_buffers::AtomicBuffer::of_mapping(Arc::new(mapping)).put_i32_release(0, 1 << 16);
    let (config, _) = config(&fake);
    let Err(ClientError::DriverFiles { reason }) = Client::connect(config) else {
        panic!("expected an error about the driver's files");
    };
    assert!(
        reason.contains("version=1.0.0") && reason.contains("cnc.dat"),
        "{reason}"
    );
}

#[test]
fn the_keepalive_interval_must_suit_the_driver() {
    let fake = FakeDriver::start();
    let text = refusal(&fake, |config| config.keepalive_interval_ns = LIVENESS_TIMEOUT_NS);
    assert!(text.contains("keepalive_interval_ns=10000000000"), "{text}");
    assert!(text.contains("client_liveness_timeout_ns=10000000000"), "{text}");
}

#[test]
fn connecting_says_nothing_to_the_driver() {
    let fake = FakeDriver::start();
    let (client, _) = common::connect(&fake);
    driver(&fake).work();
    assert!(driver(&fake).commands.is_empty());
    assert_eq!(client.client_id(), 1);
}

#[test]
fn only_a_live_driver_is_asked_to_stop() {
    let fake = FakeDriver::start();
    let (directory, clock) = {
        let guard = driver(&fake);
        (guard.directory.path().to_owned(), guard.clock.clone())
    };
    let ask = |directory: &std::path::Path| {
        headrace_client::request_driver_termination(directory, b"secret", 10_000, &*clock)
    };
    assert_eq!(ask(&directory.join("nowhere")), Ok(false));
    assert_eq!(ask(&directory), Ok(true));
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        headrace_protocol::command::Command::TerminateDriver { token: b"secret", .. }
    ));
    clock.advance_ns(10_001 * MS);
    assert_eq!(ask(&directory), Ok(false), "the driver has ended");
    assert_eq!(driver(&fake).commands.len(), 1);
}
