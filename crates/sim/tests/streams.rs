//! Publishers and subscribers on nodes of one world.

mod common;

use common::{Reader, SECOND, Stream, World, faults};
use headrace_buffers::counters::system_counter;
use headrace_client::Offer;
use headrace_driver::DriverConfig;
use headrace_sim::{LinkSettings, Node};

const CHANNEL: &str = "aeron:udp?endpoint=right:40123|term-length=64k";
const STREAM: i32 = 1001;

/// Message `number` of a stream: as long as it likes, and unlike its neighbours.
fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % 4_000;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// Publishes `count` messages from left to right while the network is as bad as `settings`. Returns what arrives.
fn exchange(seed: u64, settings: LinkSettings, count: usize) -> (World, Vec<Vec<u8>>) {
    let world = World::new(seed);
    world.network().set_links(settings);
    let mut stream = Stream::new(&world, CHANNEL, STREAM);
    let mut sent = 0;
    world.run_until(120 * SECOND, "all messages arrive", || {
        while sent < count && stream.offers(&message(sent)) {
            sent += 1;
        }
        stream.reader.poll().len() >= count
    });
    world.run_for(SECOND);
    let messages = stream.reader.poll().to_vec();
    (world, messages)
}

#[test]
fn a_subscriber_reads_each_message_in_order_and_once_whatever_the_network_does() {
    for seed in 0..6 {
        let (world, read) = exchange(seed, faults(), 300);
        assert_eq!(read.len(), 300, "seed={seed}");
        for (number, read) in read.iter().enumerate() {
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
        let (world, read) = exchange(seed, faults(), 100);
        (world.digest(), world.trace(10_000), world.now_ns(), read.len())
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
        let mut stream = Stream::new(&world, CHANNEL, STREAM);
        let mut looks = 0;
        for number in 0..600 {
            let message = message(number + seed as usize);
            world.run_until(SECOND, "room", || {
                looks += 1;
                if looks % 16 == 0 {
                    stream.reader.poll();
                }
                stream.offers(&message)
            });
        }
        for node in [&stream.left, &stream.right] {
            for (id, name) in [
                (system_counter::NAK_MESSAGES_SENT, "NAKs sent"),
                (system_counter::RETRANSMITS_SENT, "retransmits"),
                (system_counter::FLOW_CONTROL_OVER_RUNS, "over-runs"),
                (system_counter::INVALID_PACKETS, "invalid packets"),
            ] {
                let count = common::system_counter(node, id);
                assert_eq!(count, 0, "seed={seed} {} {name}", node.name());
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
    let (world, read) = exchange(3, settings, 500);
    assert_eq!(read.len(), 500);
    // A megabyte takes a second.
    assert!(world.now_ns() > SECOND, "{}", world.now_ns());
}

#[test]
fn a_stream_goes_on_after_a_short_partition_and_ends_in_a_long_one() {
    let world = World::new(11);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    stream.left.set_cut(&stream.right, true);
    stream.publication.offer(b"held up").unwrap();
    world.run_for(2 * SECOND);
    assert!(stream.reader.poll().is_empty());
    stream.left.set_cut(&stream.right, false);
    world.run_until(5 * SECOND, "the message", || stream.reader.poll() == [b"held up"]);
    stream.left.set_cut(&stream.right, true);
    world.run_until(20 * SECOND, "the publisher sees it", || {
        !stream.publication.is_connected()
    });
    world.run_until(20 * SECOND, "the image goes", || {
        !stream.reader.subscription.is_connected()
    });
}

#[test]
fn hundreds_of_streams_share_two_nodes_under_faults() {
    const STREAMS: i32 = 200;
    let world = World::new(5);
    let [left, right] = world.pair();
    world.network().set_links(faults());
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut readers: Vec<Reader> = (0..STREAMS)
        .map(|stream| Reader::subscribe(&subscriber, CHANNEL, stream))
        .collect();
    let publications: Vec<_> = (0..STREAMS)
        .map(|stream| publisher.add_publication(CHANNEL, stream).unwrap())
        .collect();
    let mut sent = vec![0; STREAMS as usize];
    world.run_until(60 * SECOND, "every stream has its messages", || {
        for (publication, sent) in publications.iter().zip(&mut sent) {
            while *sent < 20 && matches!(publication.offer(&message(*sent)), Ok(Offer::Position(_))) {
                *sent += 1;
            }
        }
        readers
            .iter_mut()
            .map(|reader| usize::from(reader.poll().len() < 20))
            .sum::<usize>()
            == 0
    });
    for reader in &readers {
        let expected: Vec<_> = (0..20).map(message).collect();
        assert!(reader.messages == expected);
    }
}

#[test]
fn nothing_is_left_when_all_is_closed() {
    let world = World::new(9);
    let nodes = world.pair();
    world.network().set_links(faults());
    let fresh = nodes.each_ref().map(Node::holdings);
    let (publisher, subscriber) = (nodes[0].connect().unwrap(), nodes[1].connect().unwrap());
    let reader = Reader::subscribe(&subscriber, CHANNEL, STREAM);
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    let ipc = publisher.add_publication("aeron:ipc", STREAM).unwrap();
    world.run_until(5 * SECOND, "an image", || {
        reader.subscription.is_connected() && publication.is_connected()
    });
    assert_eq!(world.socket_count(), 2);
    for (node, fresh) in nodes.iter().zip(&fresh) {
        assert_ne!(node.holdings(), *fresh);
    }
    drop((publication, ipc, reader));
    drop((publisher, subscriber));
    world.run_until(40 * SECOND, "drivers as they were at the start", || {
        world.socket_count() == 0 && nodes.each_ref().map(Node::holdings) == fresh
    });
}

/// A publisher without receivers ends although not all is sent. Receivers that come back while it lingers get the rest,
/// and are not told before that they have it all.
#[test]
fn a_receiver_that_was_away_when_the_stream_ended_reads_it_to_its_end() {
    let world = World::new(12);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    stream.left.set_cut(&stream.right, true);
    let message = [7; 1_000];
    let mut sent = 0;
    // Beyond what the receiver allows to be sent.
    world.run_until(SECOND, "no room", || {
        let is_taken = stream.offers(&message);
        sent += usize::from(is_taken);
        !is_taken
    });
    assert!(sent > 50, "{sent}");
    drop(stream.publication);
    world.run_for(7 * SECOND);
    stream.left.set_cut(&stream.right, false);
    world.run_until(3 * SECOND, "the end of the stream", || {
        stream.reader.poll().len() == sent
    });
}

/// The value of the counter whose label begins with `name`.
fn counter(node: &Node, name: &str) -> Option<i64> {
    common::counters(node)
        .into_iter()
        .find_map(|(label, value)| label.starts_with(name).then_some(value))
}

#[test]
fn cubic_congestion_control_on_a_slow_and_lossy_link_delivers_all_and_shows_the_round_trip() {
    const DELAY_NS: i64 = 5_000_000;
    let world = World::new(31);
    let cubic = |config: &mut DriverConfig| config.set("aeron.CubicCongestionControl.measureRtt", "true");
    let left = world.add_node("left").unwrap();
    let right = world.add_node_with("right", cubic).unwrap();
    world.network().set_links(LinkSettings {
        bytes_per_second: Some(2_000_000),
        delay_min_ns: DELAY_NS,
        delay_max_ns: DELAY_NS,
        loss: 0.01,
        ..LinkSettings::default()
    });
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, &format!("{CHANNEL}|cc=cubic"), STREAM);
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    let mut sent = 0;
    let mut windows = std::collections::BTreeSet::new();
    world.run_until(120 * SECOND, "all messages arrive", || {
        while sent < 500 && matches!(publication.offer(&message(sent)), Ok(Offer::Position(_))) {
            sent += 1;
        }
        windows.extend(counter(&right, "rcv-cc-cubic-wnd: "));
        reader.poll().len() >= 500
    });
    for (number, read) in reader.messages.iter().enumerate() {
        assert!(*read == message(number), "number={number}");
    }
    assert!(windows.len() > 2, "the window moved: {windows:?}");
    assert!(
        windows
            .iter()
            .all(|window| window % 1408 == 0 && *window <= 32 * 1024),
        "{windows:?}"
    );
    // Nothing queues any more: the round trip is that of the link, and the time until each end looks.
    world.run_for(SECOND);
    let rtt_ns = counter(&right, "rcv-cc-cubic-rtt: ").unwrap();
    assert!((2 * DELAY_NS..3 * DELAY_NS).contains(&rtt_ns), "{rtt_ns}");
    assert_eq!(common::system_counter(&right, system_counter::INVALID_PACKETS), 0);
}

/// The receiver of a subscription that leaves says that it wants no more. That is no word on the next one's behalf.
#[test]
fn the_reader_that_comes_after_one_that_left_reads_the_stream_to_its_end() {
    let world = World::new(1);
    let stream = Stream::connected(&world, CHANNEL, STREAM);
    let Stream {
        left,
        right,
        publisher: _client,
        subscriber,
        publication,
        reader,
    } = stream;
    drop(reader);
    world.run_until(15 * SECOND, "the end of the first image", || {
        !publication.is_connected() && world.socket_count() == 1
    });
    let mut reader = Reader::subscribe(&subscriber, CHANNEL, STREAM);
    world.run_until(15 * SECOND, "the second reader's image", || {
        publication.is_connected() && reader.subscription.is_connected()
    });
    left.set_cut(&right, true);
    assert!(matches!(publication.offer(b"the last"), Ok(Offer::Position(_))));
    drop(publication);
    world.run_for(3 * SECOND);
    left.set_cut(&right, false);
    world.run_until(5 * SECOND, "the end of the stream", || !reader.poll().is_empty());
    assert_eq!(reader.messages, [b"the last"]);
}
