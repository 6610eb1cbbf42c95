//! Nodes that pause, crash and come back, and clocks that are wrong.

mod common;

use std::sync::{Arc, Mutex};

use common::{CHANNEL, Reader, SECOND, STREAM, Stream, World};
use headrace_buffers::counters::system_counter;
use headrace_client::ClientError;
use headrace_sim::WorldError;

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
fn the_image_of_a_publisher_that_died_can_be_read_and_says_that_nothing_brings_it() {
    let world = World::new(1);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    assert!(stream.offers(b"last words"));
    let image = stream.reader.subscription.images().remove(0);
    world.run_until(SECOND, "the message is there", || image.has_fragments());
    assert_eq!(image.active_transport_count(), 1);
    stream.left.crash().unwrap();
    world.run_for(12 * SECOND);
    assert_eq!((image.active_transport_count(), image.is_closed()), (0, false));
    assert_eq!(stream.reader.poll(), [b"last words"]);
    world.run_until(5 * SECOND, "the image ends", || image.is_closed());
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
fn wall_clocks_that_jump_end_no_client_and_no_stream() {
    for hours in [-2, 2] {
        let world = World::new(27);
        let mut stream = Stream::connected(&world, CHANNEL, STREAM);
        for node in [&stream.left, &stream.right] {
            node.jump_clock_ns(hours * 3_600 * SECOND);
            world.run_for(15 * SECOND);
        }
        stream.publication.offer(b"still here").unwrap();
        world.run_until(SECOND, "the message", || stream.reader.poll() == [b"still here"]);
        assert!(!stream.publisher.is_closed() && !stream.subscriber.is_closed());
    }
}

#[test]
fn a_driver_gives_up_a_client_that_is_killed_at_once_and_one_that_hangs_after_the_time_out() {
    let world = World::new(28);
    let node = world.add_node("only").unwrap();
    let fresh = node.holdings();
    let killed = node.connect().unwrap();
    let publication = killed.add_publication("aeron:ipc", STREAM).unwrap();
    node.crash_client(&killed).unwrap();
    assert!(publication.is_closed() && killed.is_closed());
    let gone = |count| common::system_counter(&node, system_counter::CLIENT_TIMEOUTS) == count;
    world.run_until(SECOND / 10, "it is given up", || gone(1));
    world.run_until(5 * SECOND, "nothing of it is left", || node.holdings() == fresh);

    let hanging = node.connect().unwrap();
    let publication = hanging.add_publication("aeron:ipc", STREAM).unwrap();
    node.set_stalled(&hanging, true);
    world.run_for(9 * SECOND);
    assert!(gone(1));
    world.run_until(3 * SECOND, "it is given up", || gone(2));
    world.run_until(5 * SECOND, "nothing of it is left", || node.holdings() == fresh);
    node.set_stalled(&hanging, false);
    world.run_until(SECOND, "the end of the client", || publication.is_closed());
}

/// What a killed publisher left in a log that others share is filled after the time-out, and they go on.
#[test]
fn a_hole_of_a_killed_publisher_is_filled() {
    let world = World::new(29);
    let node = world.add_node("only").unwrap();
    let (killed, other) = (node.connect().unwrap(), node.connect().unwrap());
    let mut reader = Reader::subscribe(&other, "aeron:ipc", STREAM);
    let publications = [&killed, &other].map(|client| client.add_publication("aeron:ipc", STREAM).unwrap());
    world.run_until(SECOND, "a connection", || publications[1].is_connected());
    std::mem::forget(publications[0].try_claim(100));
    node.crash_client(&killed).unwrap();
    publications[1].offer(b"after the hole").unwrap();
    world.run_for(10 * SECOND);
    assert!(reader.poll().is_empty());
    world.run_until(10 * SECOND, "the message", || {
        reader.poll() == [b"after the hole"]
    });
    assert_eq!(
        common::system_counter(&node, system_counter::UNBLOCKED_PUBLICATIONS),
        1
    );
}

#[test]
fn nodes_meet_over_ipv6() {
    let world = World::new(30);
    let channel = "aeron:udp?endpoint=[fd00::2]:40123|term-length=64k";
    let mut stream = Stream::connected(&world, channel, STREAM);
    assert_eq!(stream.right.address_v6().to_string(), "fd00::2");
    stream.publication.offer(b"over six").unwrap();
    world.run_until(SECOND, "the message", || stream.reader.poll() == [b"over six"]);
    assert!(world.trace(100).contains("[fd00::1]:"));
}

#[test]
fn a_full_disk_refuses_logs_and_nothing_else() {
    let world = World::new(31);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    for node in [&stream.left, &stream.right] {
        node.set_disk_room(Some(0));
    }
    let refused = stream
        .publisher
        .add_publication("aeron:ipc", STREAM)
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("insufficient usable storage"), "{refused}");
    stream.publication.offer(b"in logs that are there").unwrap();
    world.run_until(SECOND, "the message", || {
        stream.reader.poll() == [b"in logs that are there"]
    });

    // An image that finds no room comes later.
    stream.left.set_disk_room(None);
    let other = stream.publisher.add_publication(CHANNEL, STREAM + 1).unwrap();
    let late = Reader::subscribe(&stream.subscriber, CHANNEL, STREAM + 1);
    world.run_for(2 * SECOND);
    assert!(!late.subscription.is_connected() && !other.is_connected());
    stream.right.set_disk_room(None);
    world.run_until(SECOND, "an image", || {
        late.subscription.is_connected() && other.is_connected()
    });
}

#[test]
fn a_name_server_that_does_not_answer_delays_its_channel_alone() {
    let world = World::new(32);
    let node = world.add_node("only").unwrap();
    let client = node.connect().unwrap();
    world.network().set_lookup_ns(i64::MAX);
    let waiting = client
        .requests()
        .add_publication("aeron:udp?endpoint=only:40123", STREAM)
        .unwrap();
    let begun_ns = world.now_ns();
    client.add_publication("aeron:ipc", STREAM).unwrap();
    client
        .add_publication("aeron:udp?endpoint=10.0.0.1:40123", STREAM)
        .unwrap();
    assert!(world.now_ns() - begun_ns < SECOND);
    world.run_for(9 * SECOND);
    assert!(client.requests().find_publication(waiting).unwrap().is_none());
    world.run_for(2 * SECOND);
    assert!(matches!(
        client.requests().find_publication(waiting).err(),
        Some(ClientError::DriverTimeout { .. })
    ));
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
