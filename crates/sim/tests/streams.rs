//! Publishers and subscribers on nodes of one world.

mod common;

use common::{CHANNEL, Reader, SECOND, STREAM, Stream, World, errors_of, faults, is_accepted};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_driver::DriverConfig;
use headrace_protocol::frame::{DataHeader, FrameKind, classify, validate_data};
use headrace_sim::{Datagram, LinkSettings, Node};

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

/// What a stream is like: where its terms start, how it is cut into datagrams, and how bad its network is.
#[derive(Debug)]
struct Shape {
    mtu: usize,
    first_term: i32,
    lengths: Vec<usize>,
    links: LinkSettings,
}

impl Shape {
    fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let wrapping = [i32::MAX, i32::MAX - 1, -1, i32::MIN];
        Self {
            mtu: [64, 352, 1408, 8192][random.usize(..4)],
            first_term: random
                .choice(wrapping)
                .unwrap_or_default()
                .wrapping_sub(random.i32(0..2)),
            lengths: (0..random.usize(1..160))
                .map(|_| {
                    let longest = [64, 2_000, MESSAGE_LENGTH_MAX + 1][random.usize(..3)];
                    random.usize(..longest)
                })
                .collect(),
            links: LinkSettings {
                loss: random.f64() * 0.2,
                duplication: random.f64() * 0.2,
                reordering: random.f64() * 0.4,
                delay_max_ns: 200_000,
                // With a send buffer as small as that of the channel, sends are accepted in part only.
                bytes_per_second: random.bool().then_some(20_000_000),
                ..LinkSettings::default()
            },
        }
    }

    fn channel(&self) -> String {
        let Self { mtu, first_term, .. } = self;
        format!(
            "{CHANNEL}|so-sndbuf=16k|mtu={mtu}|init-term-id={first_term}|term-id={first_term}|term-offset=0"
        )
    }
}

/// The longest message in terms of 64 KiB.
const MESSAGE_LENGTH_MAX: usize = 8 * 1024;

/// Each datagram of data is whole frames of one term, and no longer than the MTU.
fn check_wire(sent: &[Datagram], mtu: usize) {
    let mut count = 0;
    for Datagram { bytes, .. } in sent {
        if let FrameKind::Data | FrameKind::Pad = classify(bytes).unwrap() {
            count += 1;
            let length = bytes.len();
            assert!(length <= mtu && length.is_multiple_of(32), "length={length}");
            let packet = validate_data(bytes, 64 * 1024).unwrap();
            let mut at = 0;
            while at < length {
                let frame = DataHeader::decode(&bytes[at..]).unwrap();
                assert_eq!(frame.term_id, packet.term_id);
                at += (frame.frame_length.max(32) as usize).next_multiple_of(32);
            }
        }
    }
    assert!(count > 0);
}

#[test]
fn streams_of_any_shape_are_read_in_order_and_once_and_well_packed() {
    let mut short_sends = 0;
    for seed in 0..16 {
        let shape = Shape::of(seed);
        let world = World::new(seed);
        let tap = world.network().tap();
        world.network().set_links(shape.links);
        let mut stream = Stream::new(&world, &shape.channel(), STREAM);
        let messages: Vec<Vec<u8>> = (shape.lengths.iter().enumerate())
            .map(|(number, length)| vec![number as u8; *length])
            .collect();
        let mut sent = 0;
        // Heavy loss hits repairs of repairs too.
        world.run_until(120 * SECOND, "all messages", || {
            while sent < messages.len() && stream.offers(&messages[sent]) {
                sent += 1;
            }
            stream.reader.poll().len() >= messages.len()
        });
        world.run_for(SECOND / 10);
        assert!(stream.reader.poll() == messages, "seed={seed} {shape:?}");
        check_wire(&tap.take(), shape.mtu);
        for node in [&stream.left, &stream.right] {
            assert_eq!(common::system_counter(node, system_counter::INVALID_PACKETS), 0);
        }
        short_sends += common::system_counter(&stream.left, system_counter::SHORT_SENDS);
    }
    assert!(short_sends > 0);
}

#[test]
fn a_stream_much_longer_than_its_log_survives_heavy_loss() {
    let links = LinkSettings {
        loss: 0.2,
        duplication: 0.1,
        reordering: 0.3,
        delay_max_ns: 200_000,
        ..LinkSettings::default()
    };
    let world = World::new(7);
    world.network().set_links(links);
    let mut stream = Stream::new(&world, CHANNEL, STREAM);
    let mut sent = 0;
    world.run_until(120 * SECOND, "all messages", || {
        while sent < 1_000 && stream.offers(&message(sent)) {
            sent += 1;
        }
        stream.reader.poll().len() >= 1_000
    });
    assert!(stream.publication.position().unwrap() > 12 * 64 * 1024);
    for (number, read) in stream.reader.messages.iter().enumerate() {
        assert!(*read == message(number), "number={number}");
    }
    for (node, id) in [
        (&stream.right, system_counter::NAK_MESSAGES_SENT),
        (&stream.left, system_counter::NAK_MESSAGES_RECEIVED),
        (&stream.left, system_counter::RETRANSMITS_SENT),
        (&stream.left, system_counter::RETRANSMITTED_BYTES),
    ] {
        assert!(common::system_counter(node, id) > 0, "system counter {id}");
    }
}

#[test]
fn an_unreliable_stream_skips_what_is_lost() {
    let world = World::new(3);
    let mut stream = Stream::connected(&world, &format!("{CHANNEL}|reliable=false"), STREAM);
    world.network().set_links(LinkSettings {
        loss: 0.3,
        ..LinkSettings::default()
    });
    let mut sent = 0;
    world.run_until(60 * SECOND, "the end of the stream", || {
        while sent < 300 && stream.offers(&[sent as u8; 1_300]) {
            sent += 1;
        }
        stream.reader.poll();
        let position = stream.reader.subscription.images()[0].position();
        sent == 300 && Some(position) == stream.publication.position()
    });
    let read = stream.reader.poll();
    assert!(
        read.len() < 300 && read.len() > 100,
        "{} of 300 arrived",
        read.len()
    );
    let count = |id| common::system_counter(&stream.right, id);
    assert!(count(system_counter::LOSS_GAP_FILLS) > 0);
    assert_eq!(count(system_counter::NAK_MESSAGES_SENT), 0);
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
                (system_counter::SHORT_SENDS, "short sends"),
            ] {
                let count = common::system_counter(node, id);
                assert_eq!(count, 0, "seed={seed} {} {name}", node.name());
            }
        }
        let bytes_sent = common::system_counter(&stream.left, system_counter::BYTES_SENT);
        assert!(bytes_sent >= common::counter(&stream.left, type_ids::SENDER_POSITION));
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
            while *sent < 20 && is_accepted(publication.offer(&message(*sent))) {
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
        while sent < 500 && is_accepted(publication.offer(&message(sent))) {
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
    assert!(is_accepted(publication.offer(b"the last")));
    drop(publication);
    world.run_for(3 * SECOND);
    left.set_cut(&right, false);
    world.run_until(5 * SECOND, "the end of the stream", || !reader.poll().is_empty());
    assert_eq!(reader.messages, [b"the last"]);
}

/// After a pause the heartbeats of all streams fall due at once, and the status messages of all images: more than the
/// buffer of a socket holds. What is lost of them would be of the same streams each time.
#[test]
fn frames_of_many_streams_that_fall_due_at_once_do_not_flood_a_socket() {
    const STREAMS: i32 = 400;
    // The rules would be checked for each stream after each step.
    let world = World::without_rules(1);
    let channel = format!("{CHANNEL}|mtu=1408|rcv-wnd=4k|so-rcvbuf=8k");
    let [left, right] = world.pair();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let streams: Vec<_> = (STREAM..STREAM + STREAMS)
        .map(|id| {
            let reader = Reader::subscribe(&subscriber, &channel, id);
            (publisher.add_publication(&channel, id).unwrap(), reader)
        })
        .collect();
    world.run_until(5 * SECOND, "the connections", || {
        streams
            .iter()
            .all(|(publication, reader)| publication.is_connected() && reader.subscription.is_connected())
    });
    world.run_for(SECOND);
    let heard = [
        (
            &left,
            system_counter::HEARTBEATS_SENT,
            &right,
            system_counter::HEARTBEATS_RECEIVED,
        ),
        (
            &right,
            system_counter::STATUS_MESSAGES_SENT,
            &left,
            system_counter::STATUS_MESSAGES_RECEIVED,
        ),
    ];
    for (sender, sent, receiver, received) in heard {
        let count =
            || [(sender, sent), (receiver, received)].map(|(node, id)| common::system_counter(node, id));
        sender.pause();
        world.run_for(SECOND / 4);
        sender.resume();
        let before = count();
        world.run_for(2 * SECOND);
        let [sent, received] = [0, 1].map(|index| count()[index] - before[index]);
        assert!(sent > 5 * i64::from(STREAMS), "{sent} sent");
        // Those at either end of the time may be under way.
        let under_way = (sent - received).abs();
        assert!(under_way <= i64::from(STREAMS), "{received} of {sent} came");
    }
}

#[test]
fn what_a_shared_publication_cannot_have_is_noted() {
    let world = World::new(8);
    let node = world.add_node("left").unwrap();
    let client = node.connect().unwrap();
    let with = |channel: &str, parameters: &[&str]| -> Vec<_> {
        let add = |parameters| {
            client
                .add_publication(&format!("{channel}{parameters}"), STREAM)
                .unwrap()
        };
        parameters.iter().map(add).collect()
    };
    let ipc = "aeron:ipc?term-length=64k";
    let udp = "aeron:udp?control=left:40124|control-mode=dynamic|term-length=64k";
    // The same values, or none, get what they ask for.
    let _quiet_ipc = with(ipc, &["|linger=3s", "|linger=3000ms", "|eos=true", ""]);
    let _quiet_udp = with(
        udp,
        &["|fc=max|linger=3s", "|fc=max", "|linger=3s", "|eos=true", ""],
    );
    assert_eq!(errors_of(&node), [""; 0]);

    let _noted_ipc = with(ipc, &["|linger=1s|eos=false", "|pub-wnd=8k"]);
    let _noted_udp = with(udp, &["|fc=min", "|pub-wnd=4k|max-resend=3"]);
    let noted = errors_of(&node);
    assert_eq!(noted.len(), 6, "{noted:?}");
    for text in [
        "linger=1s has no effect here: the publication that it shares was added with linger=3s;",
        "eos=false has no effect here: the publication that it shares was added without eos;",
        "pub-wnd=8k has no effect here: the publication that it shares was added without pub-wnd;",
        "fc=min has no effect here: the publication that it shares was added with fc=max; add an exclusive publication, or give \
         all publications of the stream the same value, channel=aeron:udp",
        "pub-wnd=4k has no effect here: the publication that it shares was added without pub-wnd;",
        "max-resend=3 has no effect here: the publication that it shares was added without max-resend;",
    ] {
        assert!(
            noted.iter().any(|noted| noted.contains(text)),
            "{text}: {noted:?}"
        );
    }
}
