//! What a driver does for those that have no part in its streams: frames that anyone can send, in the name of any address.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use common::peer::Peer;
use common::{MILLISECOND, Reader, SECOND, World, counter, is_accepted, system_counter};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_client::{Client, Publication};
use headrace_driver::config::{ConfigError, DriverConfig};
use headrace_protocol::ErrorCode;
use headrace_protocol::frame::{
    ErrorFrame, FrameKind, Nak, RttMeasurement, StatusMessage, classify, rtt, status_message,
};
use headrace_sim::{Datagram, Node};

const STREAM: i32 = 1001;
const DYNAMIC: &str = "aeron:udp?control=center:24325|control-mode=dynamic|term-length=64k";
const SLOWEST_OF_DYNAMIC: &str = "aeron:udp?control=center:24325|control-mode=dynamic|fc=min|term-length=64k";
const SLOWEST_OF_ADDED: &str = "aeron:udp?control=center:24325|control-mode=manual|fc=min|term-length=64k";
const MESSAGE: [u8; 1000] = [7; 1000];

/// A publication with several destinations.
struct Center {
    node: Node,
    client: Arc<Client>,
    publication: Publication,
}

impl Center {
    fn new(world: &World, channel: &str) -> Self {
        Self::with(world, channel, |_| Ok(()))
    }

    fn with(
        world: &World,
        channel: &str,
        set: impl FnOnce(&mut DriverConfig) -> Result<(), ConfigError>,
    ) -> Self {
        let node = world.add_node_with("center", set).unwrap();
        let client = node.connect().unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        Self {
            node,
            client,
            publication,
        }
    }

    /// Where receivers speak to.
    fn control(&self) -> SocketAddr {
        SocketAddr::new(self.node.address(), 24325)
    }

    fn destination_count(&self) -> i64 {
        counter(&self.node, type_ids::MULTI_DESTINATION_COUNT)
    }

    fn rejected(&self) -> i64 {
        system_counter(&self.node, system_counter::STATUS_MESSAGES_REJECTED)
    }

    /// A status message of a receiver that is at the beginning of the stream.
    fn status(&self) -> StatusMessage {
        StatusMessage {
            flags: 0,
            session_id: self.publication.session_id(),
            stream_id: STREAM,
            consumption_term_id: self.publication.limits().initial_term_id,
            consumption_term_offset: 0,
            receiver_window_length: 4096,
            receiver_id: 77,
            group_tag: None,
        }
    }

    /// The request of one that knows the session, and of one that knows of no stream.
    fn requests(&self) -> [StatusMessage; 2] {
        let known = StatusMessage {
            flags: status_message::FLAG_SETUP,
            consumption_term_id: 0,
            receiver_window_length: 0,
            ..self.status()
        };
        let unknown = StatusMessage {
            session_id: 0,
            stream_id: 0,
            ..known
        };
        [known, unknown]
    }

    fn hears(&self, peer: &Peer, message: &StatusMessage) -> usize {
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = message.encode(&mut frame);
        peer.send(self.control(), &frame[..length]);
        length
    }

    /// Publishes so many messages, each of which the reader gets before the next.
    fn publish(&self, world: &World, reader: &mut Reader, count: usize) {
        for _ in 0..count {
            let read = reader.messages.len();
            world.run_until(SECOND, "room", || is_accepted(self.publication.offer(&MESSAGE)));
            world.run_until(SECOND, "the message", || reader.poll().len() > read);
        }
    }
}

/// A reader on a node of its own.
fn reader(world: &World, channel: &str) -> (Node, Arc<Client>, Reader) {
    let node = world.add_node("one").unwrap();
    let client = node.connect().unwrap();
    let reader = Reader::subscribe(&client, channel, STREAM);
    (node, client, reader)
}

fn dynamic_reader(world: &World) -> (Node, Arc<Client>, Reader) {
    reader_of(world, "one", STREAM)
}

/// A reader of one stream of the dynamic channel, on a node of its own.
fn reader_of(world: &World, name: &str, stream_id: i32) -> (Node, Arc<Client>, Reader) {
    let node = world.add_node(name).unwrap();
    let client = node.connect().unwrap();
    let channel = format!("aeron:udp?endpoint={name}:40123|control=center:24325|control-mode=dynamic");
    let reader = Reader::subscribe(&client, &channel, stream_id);
    (node, client, reader)
}

/// 39 more streams on the dynamic channel.
fn others(center: &Center) -> Vec<Publication> {
    let add = |other| center.client.add_publication(DYNAMIC, STREAM + other);
    (1..40).map(|other| add(other).unwrap()).collect()
}

fn connected(world: &World, center: &Center, reader: &Reader) {
    world.run_until(10 * SECOND, "a connection", || {
        center.publication.is_connected() && reader.subscription.is_connected()
    });
}

/// The address may be another's, which would get the stream for a frame of 36 bytes.
#[test]
fn one_that_asks_for_a_stream_gets_a_frame_for_a_frame_until_it_shows_that_it_has_it() {
    for channel in [DYNAMIC, SLOWEST_OF_DYNAMIC] {
        let world = World::new(1);
        let center = Center::new(&world, channel);
        let (_node, _client, mut reader) = dynamic_reader(&world);
        connected(&world, &center, &reader);
        let stranger = Peer::new(&world);
        for request in center.requests() {
            for _ in 0..5 {
                center.hears(&stranger, &request);
                world.run_for(MILLISECOND);
            }
        }
        let out_of_window = StatusMessage {
            consumption_term_id: center.publication.limits().initial_term_id.wrapping_add(3),
            ..center.status()
        };
        center.hears(&stranger, &out_of_window);
        world.run_for(6 * SECOND);
        center.publish(&world, &mut reader, 200);
        let sent = stranger.take();
        let kinds: Vec<_> = sent.iter().map(|frame| classify(frame).unwrap()).collect();
        assert_eq!(kinds[..5], [FrameKind::Setup; 5], "{channel}");
        assert_eq!(kinds[5..], [FrameKind::Data; 5], "{channel}");
        assert!(sent[5..].iter().all(|heartbeat| heartbeat.len() == 32));
        assert_eq!((center.destination_count(), center.rejected()), (1, 1));

        center.hears(&stranger, &center.status());
        world.run_for(SECOND);
        assert_eq!(center.rejected(), 2, "the stream is elsewhere");
        let position = center.publication.position().unwrap();
        assert!(position < 4 * 65_536);
        let member = StatusMessage {
            consumption_term_id: center
                .publication
                .limits()
                .initial_term_id
                .wrapping_add((position / 65_536) as i32),
            consumption_term_offset: (position % 65_536) as i32,
            receiver_window_length: 32 * 1024,
            ..center.status()
        };
        center.hears(&stranger, &member);
        world.run_for(MILLISECOND);
        assert_eq!(center.destination_count(), 2, "{channel}");
        center.publish(&world, &mut reader, 1);
        let data = stranger.take_frames(FrameKind::Data);
        assert!(data.iter().any(|frame| frame.len() > 1000), "{channel}");
    }
}

/// One that asks must not wait for its turn: a receiver asks once a second.
#[test]
fn a_channel_of_many_streams_tells_each_newcomer_of_all_of_them() {
    let world = World::new(2);
    let center = Center::new(&world, DYNAMIC);
    let _others = others(&center);
    for number in 0..8 {
        let (node, client, reader) = reader_of(&world, &format!("reader{number}"), STREAM + 38);
        world.run_until(SECOND / 2, "the stream", || reader.subscription.is_connected());
        world.run_for(10 * MILLISECOND);
        drop((reader, client, node));
    }
}

/// Aeron's receivers cannot say which stream they want.
#[test]
fn one_that_asks_for_all_streams_is_told_of_all_at_once_or_of_three_in_each_second_without_an_allowance() {
    for (allowance, told) in [(0, [3; 20]), (4_096, [40; 20])] {
        let world = World::new(2);
        let center = Center::with(&world, DYNAMIC, |config| {
            config.newcomer_allowance = allowance;
            Ok(())
        });
        let _others = others(&center);
        let newcomer = Peer::new(&world);
        let [_, unknown] = center.requests();
        let mut named = std::collections::HashSet::new();
        let mut told_of = || {
            center.hears(&newcomer, &unknown);
            world.run_for(SECOND);
            let frames = newcomer.take_frames(FrameKind::Data);
            named.extend(frames.iter().map(|frame| frame[16..20].to_vec()));
            frames.len()
        };
        assert_eq!([(); 20].map(|()| told_of()), told, "{allowance}");
        assert_eq!(named.len(), 40, "{allowance}");
    }
}

#[test]
fn publications_that_have_ended_use_up_no_asks() {
    let world = World::new(2);
    let channel = "aeron:udp?control=center:24325|control-mode=dynamic|term-length=64k|linger=60s";
    let center = Center::new(&world, channel);
    for _ in 0..8 {
        center
            .client
            .add_exclusive_publication(channel, STREAM)
            .unwrap()
            .close();
    }
    world.run_for(SECOND);
    let newcomer = Peer::new(&world);
    let [_, unknown] = center.requests();
    center.hears(&newcomer, &unknown);
    world.run_for(SECOND);
    assert_eq!(newcomer.take_frames(FrameKind::Data).len(), 1);
    let (_node, _client, reader) = dynamic_reader(&world);
    world.run_until(SECOND, "the stream", || reader.subscription.is_connected());
}

#[test]
fn a_newcomer_whose_first_status_messages_are_lost_speaks_again() {
    let world = World::new(2);
    let center = Center::new(&world, DYNAMIC);
    let _others = others(&center);
    let tap = world.network().tap();
    let (node, _client, reader) = dynamic_reader(&world);
    let is_setup = |sent: &Datagram| classify(&sent.bytes) == Ok(FrameKind::Setup);
    world.run_until(SECOND, "a SETUP", || tap.take().iter().any(is_setup));
    node.set_cut_to(&center.node, true);
    world.run_for(2 * SECOND);
    node.set_cut_to(&center.node, false);
    world.run_until(1_100 * MILLISECOND, "a connection", || {
        center.publication.is_connected() && reader.subscription.is_connected()
    });
}

/// Those that wait for a stream that is not there, and strangers that ask and ask, have budgets of their own.
#[test]
fn those_that_ask_in_vain_do_not_hold_up_one_that_comes() {
    let world = World::new(3);
    let center = Center::new(&world, DYNAMIC);
    let _others = others(&center);
    let _waiting: Vec<_> = (0..3)
        .map(|number| reader_of(&world, &format!("idle{number}"), 9_999))
        .collect();
    let stranger = Peer::new(&world);
    let [known, unknown] = center.requests();
    for number in 0..4 {
        let (_node, _client, reader) = reader_of(&world, &format!("reader{number}"), STREAM + 7 * number);
        for _ in 0..120 {
            center.hears(&stranger, &unknown);
            center.hears(&stranger, &known);
            world.run_for(10 * MILLISECOND);
        }
        assert!(reader.subscription.is_connected(), "{number}");
    }
}

/// Its session and its receiver are no secrets.
#[test]
fn a_stranger_does_not_end_a_stream_in_the_name_of_its_receiver() {
    let world = World::new(4);
    let center = Center::new(&world, DYNAMIC);
    let (_node, _client, mut reader) = dynamic_reader(&world);
    let tap = world.network().tap();
    connected(&world, &center, &reader);
    let sent = tap.take();
    let message = sent
        .iter()
        .filter_map(|datagram| StatusMessage::decode(&datagram.bytes).ok())
        .find(|message| !message.asks_for_setup());
    let receiver_id = message.unwrap().receiver_id;
    let stranger = Peer::new(&world);
    let error = ErrorFrame {
        session_id: center.publication.session_id(),
        stream_id: STREAM,
        receiver_id,
        group_tag: None,
        error_code: ErrorCode::ImageRejected.value(),
        text: "no".into(),
    };
    let mut frame = [0; ErrorFrame::LENGTH_MAX];
    let length = error.encode(&mut frame);
    for _ in 0..20 {
        stranger.send(center.control(), &frame[..length]);
        world.run_for(MILLISECOND);
        assert!(center.publication.is_connected());
    }
    // Nor does it become a receiver by saying goodbye.
    let goodbye = StatusMessage {
        flags: status_message::FLAG_END_OF_STREAM,
        ..center.status()
    };
    center.hears(&stranger, &goodbye);
    world.run_for(MILLISECOND);
    assert_eq!(center.destination_count(), 1);
    center.publish(&world, &mut reader, 10);
}

/// Addresses can be forged.
#[test]
fn a_flood_of_requests_brings_three_times_itself_and_the_allowance() {
    let world = World::new(2);
    let center = Center::new(&world, DYNAMIC);
    let _others = others(&center);
    let victims = [9, 8].map(|host| Peer::at(&world, host));
    let [known, unknown] = center.requests();
    let mut paid = 0;
    for number in 0..2_000 {
        let request = if number % 9 == 0 { &known } else { &unknown };
        paid += center.hears(&victims[number % 2], request);
        world.run_for(MILLISECOND / 2);
    }
    world.run_for(10 * MILLISECOND);
    let told: usize = victims.iter().flat_map(Peer::take).map(|frame| frame.len()).sum();
    let allowances = victims.len() * 2 * 4096; // in one second, which may lie in two
    assert!(
        told > 2 * paid && told <= 3 * paid + allowances,
        "{told} bytes for {paid}"
    );
    // One that asks for a stream by name is told all the same.
    center.hears(&victims[0], &known);
    world.run_for(MILLISECOND);
    assert_eq!(victims[0].take_frames(FrameKind::Setup).len(), 1);
}

/// A group's publishers hear what its receivers say to the others; any other channel hears what is for itself.
#[test]
fn requests_that_name_a_session_that_the_channel_does_not_have_are_counted() {
    let group = "aeron:udp?endpoint=224.0.1.1:24326|interface=center|term-length=64k";
    let heard_by_all = "224.0.1.2:24326".parse().unwrap();
    for (channel, counted) in [(DYNAMIC, 2), (SLOWEST_OF_ADDED, 2), (group, 0)] {
        let world = World::new(5);
        let center = Center::new(&world, channel);
        let to = if channel == group {
            heard_by_all
        } else {
            center.control()
        };
        let stranger = Peer::new(&world);
        let nak = Nak {
            flags: 0,
            session_id: center.publication.session_id() ^ 1,
            stream_id: STREAM,
            term_id: center.publication.limits().initial_term_id,
            term_offset: 0,
            length: 64,
        };
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: nak.session_id,
            stream_id: STREAM,
            echo_timestamp_ns: 1,
            reception_delta_ns: 0,
            receiver_id: 77,
        };
        let (mut first, mut second) = ([0; Nak::LENGTH], [0; RttMeasurement::LENGTH]);
        nak.encode(&mut first);
        probe.encode(&mut second);
        for frame in [&first[..], &second] {
            stranger.send(to, frame);
        }
        world.run_for(10 * MILLISECOND);
        let invalid = system_counter(&center.node, system_counter::INVALID_PACKETS);
        assert_eq!(invalid, counted, "{channel}");
        assert!(stranger.take().is_empty());
    }
}

/// Its word would be the limit of them all.
#[test]
fn one_that_is_no_destination_does_not_hold_back_those_that_are() {
    let world = World::new(3);
    let center = Center::new(&world, SLOWEST_OF_ADDED);
    let (_node, _client, mut reader) = reader(&world, "aeron:udp?endpoint=one:40123");
    let destination = "aeron:udp?endpoint=one:40123";
    center.publication.destinations().add(destination).unwrap();
    connected(&world, &center, &reader);
    let stranger = Peer::new(&world);
    let [request, _] = center.requests();
    for _ in 0..20 {
        center.hears(&stranger, &center.status());
        center.hears(&stranger, &request);
        world.run_for(MILLISECOND);
        center.publish(&world, &mut reader, 1);
    }
    assert_eq!(center.rejected(), 40);
    assert_eq!(counter(&center.node, type_ids::FLOW_CONTROL_RECEIVERS), 1);
    assert!(stranger.take().is_empty());
}

/// A machine with several addresses answers from the one that leads back, and from the port that was sent to.
#[test]
fn a_destination_that_answers_from_another_of_its_addresses_is_heard() {
    let world = World::new(4);
    let center = Center::new(&world, SLOWEST_OF_ADDED);
    let [sent_to, answers_from, stranger] = [9, 8, 7].map(|host| Peer::at(&world, host));
    let destination = format!("aeron:udp?endpoint={}", sent_to.address);
    center.publication.destinations().add(&destination).unwrap();
    center.hears(&answers_from, &center.status());
    world.run_until(SECOND, "a connection", || center.publication.is_connected());
    let other = StatusMessage {
        receiver_id: 78,
        ..center.status()
    };
    center.hears(&stranger, &other);
    world.run_for(10 * MILLISECOND);
    assert_eq!(center.rejected(), 1, "the destination has been heard");
    sent_to.take();
    assert!(is_accepted(center.publication.offer(&MESSAGE)));
    world.run_for(10 * MILLISECOND);
    assert_eq!(sent_to.take_frames(FrameKind::Data).len(), 1);
    // After a silence it may be another receiver.
    world.run_for(6 * SECOND);
    assert!(!center.publication.is_connected());
    let next = StatusMessage {
        receiver_id: 79,
        ..center.status()
    };
    center.hears(&answers_from, &next);
    world.run_until(SECOND, "a connection", || center.publication.is_connected());
}

/// The first status message may be lost, and the sender says nothing before it has one: it is repeated, since the subscriber
/// has named the sender.
#[test]
fn a_sender_that_a_destination_names_is_told_more_than_once_of_its_receiver() {
    let world = World::new(9);
    let center = Center::new(&world, DYNAMIC);
    let node = world.add_node("reader").unwrap();
    let client = node.connect().unwrap();
    let reader = Reader::subscribe(&client, "aeron:udp?control-mode=manual", STREAM);
    let tap = world.network().tap();
    let channel = format!("aeron:udp?endpoint=reader:0|control={}", center.control());
    reader.subscription.destinations().add(&channel).unwrap();
    world.run_until(5 * SECOND, "an image", || reader.subscription.is_connected());
    center.node.set_cut_to(&node, true);
    world.run_for(3 * SECOND);
    let sent = tap.take();
    let told = sent
        .iter()
        .filter(|datagram| datagram.to == center.control())
        .filter_map(|datagram| StatusMessage::decode(&datagram.bytes).ok())
        .filter(|message| !message.asks_for_setup());
    let count = told.count();
    assert!((13..=16).contains(&count), "{count} in 3 s");
}
