//! Nodes that pause, crash and come back, and clocks that are wrong.

mod common;

use std::sync::{Arc, Mutex};

use common::{Reader, SECOND, Stream, World};
use headrace_client::ClientError;
use headrace_sim::WorldError;

const CHANNEL: &str = "aeron:udp?endpoint=right:40123|term-length=64k";
const STREAM: i32 = 1001;

#[test]
fn a_publisher_reaches_the_subscriber_that_comes_back_after_a_crash() {
    let world = World::new(21);
    let stream = Stream::connected(&world, CHANNEL, STREAM);
    stream.right.crash().unwrap();
    assert!(!stream.right.is_up() && stream.subscriber.is_closed());
    assert!(matches!(stream.right.crash(), Err(WorldError::Node { .. })));
    world.run_until(20 * SECOND, "no receiver", || !stream.publication.is_connected());

    stream.right.start().unwrap();
    let subscriber = stream.right.connect().unwrap();
    let mut reader = Reader::subscribe(&subscriber, CHANNEL, STREAM);
    world.run_until(20 * SECOND, "a connection", || stream.publication.is_connected());
    stream.publication.offer(b"again").unwrap();
    world.run_until(SECOND, "the message", || reader.poll() == [b"again"]);
}

#[test]
fn a_pause_shorter_than_the_time_outs_only_delays() {
    let world = World::new(22);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    stream.right.pause();
    stream.publication.offer(b"later").unwrap();
    world.run_for(3 * SECOND);
    assert!(stream.reader.poll().is_empty());
    stream.right.resume();
    world.run_until(SECOND, "the message", || stream.reader.poll() == [b"later"]);
}

#[test]
fn a_client_that_slept_too_long_says_so_and_ends() {
    let world = World::new(23);
    let node = world.add_node("only").unwrap();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&errors);
    let client = node
        .connect_with(|config| {
            config.error_handler = Arc::new(move |error| told.lock().unwrap().push(error.clone()));
        })
        .unwrap();
    node.pause();
    world.run_for(11 * SECOND);
    node.resume();
    world.run_until(SECOND, "the end of the client", || client.is_closed());
    assert!(matches!(
        errors.lock().unwrap()[..],
        [ClientError::ServiceInterval { .. }]
    ));
}

#[test]
fn connecting_to_a_driver_that_is_down_takes_virtual_time() {
    let world = World::new(24);
    let node = world.add_node("only").unwrap();
    node.crash().unwrap();
    let begun_ns = world.now_ns();
    let refused = node.connect();
    assert!(matches!(
        refused,
        Err(WorldError::Client(ClientError::DriverTimeout { .. }))
    ));
    assert!(world.now_ns() - begun_ns >= 10 * SECOND);
}

#[test]
fn wall_clocks_may_be_wrong_by_an_hour() {
    let world = World::new(25);
    let [left, right] = world.pair();
    left.set_clock_skew_ns(3_600 * SECOND);
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let subscription = subscriber
        .add_subscription(CHANNEL, STREAM, Default::default())
        .unwrap();
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || publication.is_connected());
    world.run_for(30 * SECOND);
    assert!(publication.is_connected() && subscription.is_connected());
}

#[test]
fn names_are_checked_and_a_failure_tells_how_to_replay_it() {
    let world = World::new(26);
    world.add_node("only").unwrap();
    for name in ["only", "", "1st", "a b"] {
        assert!(
            matches!(world.add_node(name), Err(WorldError::Node { .. })),
            "{name}"
        );
    }
    let failed = headrace_sim::World::run_until(&world, SECOND, "the impossible", || false);
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("the impossible") && text.contains("seed=26") && text.contains("only starts"),
        "{text}"
    );
}
