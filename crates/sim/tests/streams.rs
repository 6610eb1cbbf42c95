//! Publishers and subscribers on nodes of one world.

mod common;

use common::{Reader, SECOND, World, faults};
use headrace_buffers::counters::system_counter;
use headrace_client::Offer;
use headrace_sim::{LinkSettings, Node};

const CHANNEL: &str = "aeron:udp?endpoint=right:40123|term-length=64k";
const STREAM: i32 = 1001;

/// Message `number` of a stream: as long as it likes, and unlike its neighbours.
fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % 4_000;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// Publishes `count` messages from left to right while the network is as bad as `settings`.
fn exchange(seed: u64, settings: LinkSettings, count: usize) -> (World, Reader) {
    let world = World::new(seed);
    let (left, right) = (world.add_node("left").unwrap(), world.add_node("right").unwrap());
    world.network().set_links(settings);
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::new(
        subscriber
            .add_subscription(CHANNEL, STREAM, Default::default())
            .unwrap(),
    );
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    let mut sent = 0;
    world
        .run_until(120 * SECOND, "all messages arrive", || {
            while sent < count && matches!(publication.offer(&message(sent)), Ok(Offer::Position(_))) {
                sent += 1;
            }
            reader.poll();
            reader.messages.len() >= count
        })
        .unwrap();
    world.run_for(SECOND);
    reader.poll();
    drop(publication);
    drop((publisher, subscriber, left, right));
    (world, reader)
}

#[test]
fn a_subscriber_reads_each_message_in_order_and_once_whatever_the_network_does() {
    for seed in 0..6 {
        let (world, reader) = exchange(seed, faults(), 300);
        assert_eq!(reader.messages.len(), 300, "seed={seed}");
        for (number, read) in reader.messages.iter().enumerate() {
            assert!(*read == message(number), "seed={seed} number={number}");
        }
        let trace = world.trace(10_000);
        assert!(
            trace.contains("NAK") && trace.contains(": lost"),
            "seed={seed} had no faults"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    let run = |seed| {
        let (world, reader) = exchange(seed, faults(), 100);
        (
            world.digest(),
            world.trace(10_000),
            world.now_ns(),
            reader.messages.len(),
        )
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first.0, run(8).0);
}

/// Also when the reader comes late, so that each stream meets the end of its window, wherever that falls in a term.
#[test]
fn a_network_without_faults_needs_no_repair() {
    for seed in 0..6 {
        let world = World::new(seed);
        let (left, right) = (world.add_node("left").unwrap(), world.add_node("right").unwrap());
        let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
        let mut reader = Reader::new(
            subscriber
                .add_subscription(CHANNEL, STREAM, Default::default())
                .unwrap(),
        );
        let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
        for number in 0..600 {
            let sent = || {
                matches!(
                    publication.offer(&message(number + seed as usize)),
                    Ok(Offer::Position(_))
                )
            };
            let mut looks = 0;
            let mut offer = || {
                looks += 1;
                if looks % 16 == 0 {
                    reader.poll();
                }
                sent()
            };
            world.run_until(SECOND, "room", &mut offer).unwrap();
        }
        for node in [&left, &right] {
            for (id, name) in [
                (system_counter::NAK_MESSAGES_SENT, "NAKs sent"),
                (system_counter::RETRANSMITS_SENT, "retransmits"),
                (system_counter::FLOW_CONTROL_OVER_RUNS, "over-runs"),
                (system_counter::INVALID_PACKETS, "invalid packets"),
            ] {
                assert_eq!(
                    common::system_counter(node, id),
                    0,
                    "seed={seed} {} {name}",
                    node.name()
                );
            }
        }
    }
}

#[test]
fn a_slow_link_makes_the_publisher_wait_and_loses_nothing() {
    let settings = LinkSettings {
        bytes_per_second: Some(1_000_000),
        delay_min_ns: 5_000_000,
        delay_max_ns: 10_000_000,
        ..LinkSettings::default()
    };
    let (world, reader) = exchange(3, settings, 500);
    assert_eq!(reader.messages.len(), 500);
    // A megabyte takes a second.
    assert!(world.now_ns() > SECOND, "{}", world.now_ns());
}

#[test]
fn a_stream_goes_on_after_a_short_partition_and_ends_in_a_long_one() {
    let world = World::new(11);
    let (left, right) = (world.add_node("left").unwrap(), world.add_node("right").unwrap());
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::new(
        subscriber
            .add_subscription(CHANNEL, STREAM, Default::default())
            .unwrap(),
    );
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    world
        .run_until(SECOND, "a connection", || publication.is_connected())
        .unwrap();
    left.set_cut(&right, true);
    publication.offer(b"held up").unwrap();
    world.run_for(2 * SECOND);
    reader.poll();
    assert!(reader.messages.is_empty());
    left.set_cut(&right, false);
    world
        .run_until(5 * SECOND, "the message", || {
            reader.poll();
            reader.messages == [b"held up"]
        })
        .unwrap();
    left.set_cut(&right, true);
    world
        .run_until(20 * SECOND, "the publisher sees it", || {
            !publication.is_connected()
        })
        .unwrap();
    world
        .run_until(20 * SECOND, "the image goes", || {
            !reader.subscription.is_connected()
        })
        .unwrap();
}

#[test]
fn hundreds_of_streams_share_two_nodes_under_faults() {
    const STREAMS: i32 = 200;
    let world = World::new(5);
    let (left, right) = (world.add_node("left").unwrap(), world.add_node("right").unwrap());
    world.network().set_links(faults());
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut readers: Vec<Reader> = (0..STREAMS)
        .map(|stream| {
            Reader::new(
                subscriber
                    .add_subscription(CHANNEL, stream, Default::default())
                    .unwrap(),
            )
        })
        .collect();
    let publications: Vec<_> = (0..STREAMS)
        .map(|stream| publisher.add_publication(CHANNEL, stream).unwrap())
        .collect();
    let mut sent = vec![0; STREAMS as usize];
    world
        .run_until(60 * SECOND, "every stream has its messages", || {
            for (publication, sent) in publications.iter().zip(&mut sent) {
                while *sent < 20 && matches!(publication.offer(&message(*sent)), Ok(Offer::Position(_))) {
                    *sent += 1;
                }
            }
            readers.iter_mut().for_each(Reader::poll);
            readers.iter().all(|reader| reader.messages.len() >= 20)
        })
        .unwrap();
    for reader in &readers {
        let expected: Vec<_> = (0..20).map(message).collect();
        assert!(reader.messages == expected);
    }
}

#[test]
fn nothing_is_left_when_all_is_closed() {
    let world = World::new(9);
    let nodes: Vec<Node> = ["left", "right"].map(|name| world.add_node(name).unwrap()).into();
    world.network().set_links(faults());
    let fresh: Vec<_> = nodes.iter().map(common::traces_of).collect();
    let (publisher, subscriber) = (nodes[0].connect().unwrap(), nodes[1].connect().unwrap());
    let subscription = subscriber
        .add_subscription(CHANNEL, STREAM, Default::default())
        .unwrap();
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    let ipc = publisher.add_publication("aeron:ipc", STREAM).unwrap();
    world
        .run_until(5 * SECOND, "an image", || {
            subscription.is_connected() && publication.is_connected()
        })
        .unwrap();
    assert_eq!(world.socket_count(), 2);
    assert!(
        nodes
            .iter()
            .zip(&fresh)
            .all(|(node, fresh)| common::traces_of(node) != *fresh)
    );
    drop((publication, ipc, subscription));
    drop((publisher, subscriber));
    world
        .run_until(40 * SECOND, "drivers as they were at the start", || {
            world.socket_count() == 0
                && nodes
                    .iter()
                    .zip(&fresh)
                    .all(|(node, fresh)| common::traces_of(node) == *fresh)
        })
        .unwrap();
}
