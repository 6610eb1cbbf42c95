//! Streams that spies alone keep going, and receivers that join them.

mod common;

use std::sync::Arc;

use common::{CHANNEL, MILLISECOND, Reader, SECOND, STREAM, World, is_accepted};
use headrace_buffers::counters::type_ids;
use headrace_client::{Client, Publication};
use headrace_protocol::frame::{FrameKind, StatusMessage, classify};
use headrace_sim::{LinkSettings, Node, Tap};

const TERM_LENGTH: i64 = 64 * 1024;
/// What receivers grant.
const WINDOW: i64 = 16 * 1024;
const RECEIVER: &str = "aeron:udp?endpoint=right:40123|rcv-wnd=16k";

/// A publication and a spy beside it; nothing listens at the endpoint at first.
struct Spied {
    world: World,
    left: Node,
    right: Node,
    publication: Publication,
    spy: Reader,
    tap: Tap,
    _publisher: Arc<Client>,
}

impl Spied {
    fn new(seed: u64, is_simulated: bool) -> Self {
        let world = World::new(seed);
        let tap = world.network().tap();
        let [left, right] = world.pair();
        let publisher = left.connect().unwrap();
        let channel = format!("{CHANNEL}|ssc={is_simulated}");
        let publication = publisher.add_publication(&channel, STREAM).unwrap();
        let spy = Reader::subscribe(&publisher, &format!("aeron-spy:{channel}"), STREAM);
        world.run_until(SECOND, "a spy", || spy.subscription.is_connected());
        world.run_for(MILLISECOND);
        assert_eq!(publication.is_connected(), is_simulated);
        Self {
            world,
            left,
            right,
            publication,
            spy,
            tap,
            _publisher: publisher,
        }
    }

    fn offers(&self, message: &[u8]) -> bool {
        is_accepted(self.publication.offer(message))
    }

    /// Publishes a message as soon as there is room for it, and has the spy read it.
    fn publish(&mut self, index: usize) {
        let (publication, spy) = (&self.publication, &mut self.spy);
        self.world.run_until(SECOND, "room", || {
            spy.poll();
            is_accepted(publication.offer(&message(index)))
        });
        self.spy.poll();
    }

    fn counter(&self, type_id: i32) -> i64 {
        common::counter(&self.left, type_id)
    }
}

/// A message whose bytes tell which one it is.
fn message(index: usize) -> Vec<u8> {
    (0..900 + index % 100).map(|at| (index * 31 + at) as u8).collect()
}

fn assert_are(messages: &[Vec<u8>], indices: std::ops::Range<usize>, seed: u64) {
    assert_eq!(messages.len(), indices.len(), "seed={seed}");
    for (received, index) in messages.iter().zip(indices) {
        assert!(
            *received == message(index),
            "message {index} differs, seed={seed}"
        );
    }
}

#[test]
fn spies_alone_carry_the_position_and_only_setups_go_out() {
    let mut spied = Spied::new(51, true);
    for index in 0..300 {
        spied.publish(index);
    }
    spied.world.run_for(10 * MILLISECOND);
    let position = spied.publication.position().unwrap();
    assert!(position > 4 * TERM_LENGTH);
    assert_eq!(spied.counter(type_ids::SENDER_POSITION), position);
    assert_eq!(spied.counter(type_ids::SENDER_LIMIT), position);
    assert_are(&spied.spy.messages, 0..300, 51);
    let sent = spied.tap.take();
    assert!(!sent.is_empty());
    for datagram in sent {
        assert_eq!(classify(&datagram.bytes), Ok(FrameKind::Setup));
    }
}

/// A receiver that grants nothing connects the publication, so that the spy has something to read.
#[test]
fn without_being_asked_to_spies_move_nothing() {
    let mut spied = Spied::new(52, false);
    let socket = spied.tap.take()[0].clone();
    let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
    let nothing = StatusMessage {
        flags: 0,
        session_id: spied.publication.session_id(),
        stream_id: STREAM,
        consumption_term_id: spied.publication.limits().initial_term_id,
        consumption_term_offset: 0,
        receiver_window_length: 0,
        receiver_id: 1,
        group_tag: None,
    };
    let length = nothing.encode(&mut frame);
    spied
        .world
        .network()
        .inject(socket.to, socket.from, &frame[..length]);
    spied
        .world
        .run_until(SECOND, "a connection", || spied.publication.is_connected());
    spied.publish(0);
    assert_are(&spied.spy.messages, 0..1, 52);
    spied.world.run_for(10 * SECOND);
    assert!(!spied.publication.is_connected());
    assert_eq!(spied.counter(type_ids::SENDER_POSITION), 0);
}

#[test]
fn what_the_last_spy_had_read_is_not_sent_again() {
    let mut spied = Spied::new(53, true);
    spied.publish(0);
    let read = spied.publication.position().unwrap();
    spied.spy.subscription.close();
    spied
        .world
        .run_until(5 * SECOND, "no spy", || !spied.publication.is_connected());
    spied.world.run_for(MILLISECOND);
    assert_eq!(spied.counter(type_ids::SENDER_POSITION), read);
    let client = spied.right.connect().unwrap();
    let reader = Reader::subscribe(&client, RECEIVER, STREAM);
    spied.world.run_until(SECOND, "an image", || {
        reader.subscription.is_connected() && spied.publication.is_connected()
    });
    assert_eq!(reader.subscription.images()[0].join_position(), read);
}

/// A receiver joins a spied stream over a bad network: it gets every message from there on, once and in order, however
/// far ahead the spies are.
#[test]
fn a_receiver_joins_where_the_spies_are_and_then_sets_the_pace() {
    for seed in 1..=8 {
        let mut spied = Spied::new(seed, true);
        let spied_count = 40 + seed as usize;
        for index in 0..spied_count {
            spied.publish(index);
        }
        let client = spied.right.connect().unwrap();
        let mut reader = Reader::subscribe(&client, RECEIVER, STREAM);
        spied
            .world
            .run_until(SECOND, "an image", || reader.subscription.is_connected());
        spied.world.run_for(MILLISECOND);
        let joined = spied.counter(type_ids::SENDER_POSITION);

        spied.left.set_cut(&spied.right, true);
        let mut next = spied_count;
        while spied.offers(&message(next)) {
            next += 1;
            assert!(next < spied_count + 100, "spies set the pace, seed={seed}");
            spied.spy.poll();
            spied.world.run_for(MILLISECOND / 10);
        }
        let spy_position = spied.spy.subscription.images()[0].position();
        assert!(spy_position > joined + WINDOW, "seed={seed}");
        // Past the limit only by what a padding frame at the end of a term spans.
        let sent = spied.counter(type_ids::SENDER_POSITION);
        assert!(sent < joined + WINDOW + 1056, "seed={seed}");

        spied.left.set_cut(&spied.right, false);
        spied.world.network().set_links(LinkSettings {
            loss: 0.1,
            duplication: 0.1,
            reordering: 0.1,
            ..LinkSettings::default()
        });
        let end = spied_count + 200;
        while next < end {
            reader.poll();
            if spied.offers(&message(next)) {
                next += 1;
            }
            spied.spy.poll();
            spied.world.step();
        }
        spied.world.run_until(60 * SECOND, "all messages", || {
            spied.spy.poll();
            reader.poll().len() >= 200
        });
        assert_are(&reader.messages, spied_count..end, seed);
        assert_are(&spied.spy.messages, 0..end, seed);
    }
}
