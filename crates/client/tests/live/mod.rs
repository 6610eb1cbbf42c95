//! A real driver in this process, and clients to it, for tests of everything together.

#![allow(dead_code, unreachable_pub)] // each test file uses its own part of it

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headrace_client::{
    Client, ClientConfig, ClientError, FragmentAssembler, Offer, Publication, Subscription,
};
use headrace_driver::{DriverConfig, Environment, MediaDriver, ThreadingMode};
use headrace_sys::idle::IdleStrategy;

pub const IPC: &str = "aeron:ipc?term-length=64k";
pub const STREAM: i32 = 1001;
pub const MS: i64 = 1_000_000;

/// A condition that is still false after this long will not come true.
const TIMEOUT: Duration = Duration::from_secs(200);

/// A running driver. Its directory goes when it is dropped.
pub struct Live {
    pub driver: MediaDriver,
    pub errors: Arc<Mutex<Vec<ClientError>>>,
    directory: tempfile::TempDir,
}

pub fn start() -> Live {
    start_with(|_| {})
}

/// The driver looks at its timers often, so that endings do not last; idle strategies back off.
pub fn start_with(change: impl FnOnce(&mut DriverConfig)) -> Live {
    start_in(Environment::system(), change)
}

/// As [`start_with`], on sockets of the caller's choice.
pub fn start_in(environment: Environment, change: impl FnOnce(&mut DriverConfig)) -> Live {
    let shared_memory = Path::new("/dev/shm");
    let place = if shared_memory.is_dir() {
        shared_memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let directory = tempfile::tempdir_in(place).unwrap();
    let mut config = DriverConfig {
        directory: directory.path().join("driver"),
        dir_delete_on_start: true,
        threading_mode: Some(ThreadingMode::Shared),
        timer_interval_ns: 50 * MS,
        publication_linger_timeout_ns: 200 * MS,
        ..DriverConfig::default()
    };
    change(&mut config);
    let driver = MediaDriver::launch_in(config, environment).unwrap();
    Live {
        driver,
        errors: Arc::default(),
        directory,
    }
}

impl Live {
    pub fn config(&self) -> ClientConfig {
        let errors = Arc::clone(&self.errors);
        ClientConfig {
            directory: self.driver.directory().to_owned(),
            idle_sleep_ns: MS,
            error_handler: Arc::new(move |error| errors.lock().unwrap().push(error.clone())),
            ..ClientConfig::default()
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.config()).unwrap()
    }
}

/// Waits without spinning until `condition` holds; fails with `what` when it never does.
pub fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let mut idle = IdleStrategy::default();
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "never happened: {what}");
        idle.idle(0);
    }
}

/// Offers until accepted; returns the position.
pub fn send(publication: &Publication, message: &[u8]) -> i64 {
    send_with(|| publication.offer(message).unwrap())
}

/// As [`send`] for any way of offering.
pub fn send_with(mut offer: impl FnMut() -> Offer) -> i64 {
    let mut position = None;
    await_that("message accepted", || match offer() {
        Offer::Position(after) => {
            position = Some(after);
            true
        }
        Offer::BackPressured | Offer::NotConnected | Offer::AdminAction => false,
        refusal => panic!("refused: {refusal:?}"),
    });
    position.unwrap()
}

/// Receives whole messages until `count` of them have come.
pub fn receive(subscription: &Subscription, count: usize) -> Vec<Vec<u8>> {
    let mut assembler = FragmentAssembler::new();
    let mut messages = Vec::new();
    await_that("messages received", || {
        subscription
            .poll(
                |payload, header| {
                    assembler.on_fragment(payload, header, |message, _| messages.push(message.to_vec()));
                },
                32,
            )
            .unwrap();
        messages.len() >= count
    });
    assert_eq!(messages.len(), count);
    messages
}

/// A publication and a subscription that see each other.
pub fn pair(client: &Client, channel: &str) -> (Publication, Subscription) {
    let subscription = client
        .add_subscription(channel, STREAM, Default::default())
        .unwrap();
    let channel = match subscription.status().counter_id() {
        -1 => channel.to_owned(),
        _ => {
            await_that("endpoint bound", || subscription.resolved_channel().is_some());
            subscription.resolved_channel().unwrap()
        }
    };
    let publication = client.add_publication(&channel, STREAM).unwrap();
    await_that("publication connected", || {
        publication.is_connected() && subscription.is_connected()
    });
    (publication, subscription)
}

/// Bytes that tell which message and where in it they belong.
pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (seed.wrapping_mul(31) + index * 7 + index / 251) as u8)
        .collect()
}
