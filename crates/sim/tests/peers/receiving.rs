//! What an image accepts of a publisher that the test plays, and what it tells it.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_client::{Client, Image};
use headrace_driver::DriverConfig;
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, Nak, RttMeasurement, Setup, StatusMessage, data, rtt, status_message,
};
use headrace_sim::Node;

use crate::common::peer::Peer;
use crate::common::{self, MILLISECOND, Reader, SECOND, STREAM, World};
use crate::{SESSION, TERM_LENGTH, WINDOW};

const CHANNEL: &str = "aeron:udp?endpoint=right:40123|rcv-wnd=16k";
/// Where the stream of the test is joined.
pub(crate) const JOIN: i64 = TERM_LENGTH as i64 + 1024;
/// The first term of the stream; it is joined in the one after that.
const FIRST_TERM: i32 = 9;

pub(crate) const WHOLE: u8 = data::FLAGS_UNFRAGMENTED;
/// How often a publisher says that it lives.
const HEARTBEAT_NS: i64 = 100 * MILLISECOND;

const ENDS: u8 = WHOLE | data::FLAG_END_OF_STREAM;

/// A subscription whose only publisher is the test.
pub(crate) struct Receiving {
    pub(crate) world: World,
    pub(crate) node: Node,
    client: Arc<Client>,
    pub(crate) reader: Reader,
    pub(crate) peer: Peer,
    /// Where its socket is.
    pub(crate) socket: SocketAddr,
}

impl Receiving {
    /// A subscription that has heard nothing yet.
    pub(crate) fn silent() -> Self {
        Self::on(CHANNEL, |_| {})
    }

    pub(crate) fn on(channel: &str, change: impl FnOnce(&mut DriverConfig)) -> Self {
        let world = World::new(42);
        let peer = Peer::new(&world);
        let node = world.add_node_with("right", |config| {
            change(config);
            Ok(())
        });
        let node = node.unwrap();
        let client = node.connect().unwrap();
        let reader = Reader::subscribe(&client, channel, STREAM);
        world.run_for(MILLISECOND);
        Self {
            socket: SocketAddr::new(node.address(), 40_123),
            world,
            node,
            client,
            reader,
            peer,
        }
    }

    /// A subscription with its image, whose first status message is taken.
    fn joined() -> Self {
        Self::joined_on(CHANNEL)
    }

    fn joined_on(channel: &str) -> Self {
        let receiving = Self::on(channel, |_| {});
        receiving.join();
        receiving
    }

    pub(crate) fn join(&self) {
        self.send(&setup_of(SESSION));
        self.world.run_for(2 * MILLISECOND);
        assert_eq!(self.peer.take_status_messages().len(), 1);
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        self.peer.send(self.socket, datagram);
    }

    /// Time passes in which the publisher says that it lives, as it does at the end of what was sent.
    pub(crate) fn live_for(&self, duration_ns: i64, flags: u8) {
        let position = self.high_water_mark();
        for _ in 0..duration_ns / HEARTBEAT_NS {
            self.send(&heartbeat_at(position, flags));
            self.world.run_for(HEARTBEAT_NS);
        }
    }

    pub(crate) fn image(&self) -> Arc<Image> {
        let images = self.reader.subscription.images();
        assert_eq!(images.len(), 1);
        Arc::clone(&images[0])
    }

    pub(crate) fn system(&self, id: i32) -> i64 {
        common::system_counter(&self.node, id)
    }

    pub(crate) fn naks_sent(&self) -> i64 {
        self.system(system_counter::NAK_MESSAGES_SENT)
    }

    fn high_water_mark(&self) -> i64 {
        common::counter(&self.node, type_ids::RECEIVER_HIGH_WATER_MARK)
    }

    /// As its next status message has it.
    pub(crate) fn receiver_id(&self) -> i64 {
        self.live_for(SECOND, WHOLE);
        self.peer.take_status_messages()[0].receiver_id
    }

    /// Runs until the image says goodbye.
    fn run_until_goodbye(&self, within_ns: i64) {
        self.world.run_until(within_ns, "a goodbye", || {
            let messages = self.peer.take_status_messages();
            messages.iter().any(StatusMessage::is_end_of_stream)
        });
    }
}

pub(crate) fn setup_of(session_id: i32) -> Vec<u8> {
    let setup = Setup {
        flags: 0,
        term_offset: 1024,
        session_id,
        stream_id: STREAM,
        initial_term_id: FIRST_TERM,
        active_term_id: FIRST_TERM + 1,
        term_length: TERM_LENGTH,
        mtu: 1408,
        ttl: 0,
    };
    let mut frame = vec![0; Setup::LENGTH];
    setup.encode(&mut frame);
    frame
}

pub(crate) fn frame_at(position: i64, length: i32, flags: u8) -> Vec<u8> {
    let header = DataHeader {
        frame_length: length,
        flags,
        is_padding: false,
        term_offset: (position % i64::from(TERM_LENGTH)) as i32,
        session_id: SESSION,
        stream_id: STREAM,
        term_id: FIRST_TERM + (position / i64::from(TERM_LENGTH)) as i32,
        reserved_value: 0,
    };
    let mut bytes = vec![7; (length.max(32) as usize).next_multiple_of(32)];
    header.encode(&mut bytes);
    bytes
}

pub(crate) fn heartbeat_at(position: i64, flags: u8) -> Vec<u8> {
    frame_at(position, 0, flags)
}

/// Padding that begins inside the window may end outside, and all of it and before it may be lost; and a publisher goes on
/// with a faster receiver.
#[test]
fn a_publisher_that_stands_outside_the_window_is_heard_while_it_has_what_is_missing() {
    let mut receiving = Receiving::joined();
    let term_end = 2 * i64::from(TERM_LENGTH);
    let has_read = term_end - i64::from(TERM_LENGTH) / 2 - 1024;
    for position in (JOIN..has_read).step_by(1024) {
        receiving.send(&frame_at(position, 1024, WHOLE));
        receiving.world.run_for(MILLISECOND);
        receiving.reader.poll();
    }
    receiving.world.run_for(SECOND / 2);
    // Of a term and more a publisher no longer has the beginning.
    for position in [has_read, term_end].map(|position| position + i64::from(TERM_LENGTH)) {
        receiving.send(&heartbeat_at(position, WHOLE));
        receiving.world.run_for(SECOND / 10);
        assert_eq!(receiving.high_water_mark(), has_read);
    }
    assert_eq!(receiving.naks_sent(), 0);
    receiving.send(&heartbeat_at(term_end, WHOLE));
    receiving.world.run_for(SECOND / 10);
    assert_eq!(receiving.high_water_mark(), term_end);
    let naks = receiving.peer.take_frames(FrameKind::Nak);
    let asked = Nak::decode(&naks[0]).unwrap();
    assert_eq!(i64::from(asked.term_offset), has_read % i64::from(TERM_LENGTH));
    assert_eq!(asked.length, TERM_LENGTH / 2, "as far as there is room");
}

/// It may have several frames, or the kernel has joined several datagrams.
#[test]
fn of_a_datagram_that_ends_outside_of_the_window_the_frames_inside_are_taken() {
    let mut receiving = Receiving::joined();
    let edge = JOIN + i64::from(TERM_LENGTH) / 2;
    let frames = |positions: std::ops::Range<i64>| -> Vec<Vec<u8>> {
        let positions = positions.step_by(1024);
        positions
            .map(|position| frame_at(position, 1024, WHOLE))
            .collect()
    };
    for frame in frames(JOIN..edge - 2048) {
        receiving.send(&frame);
    }
    receiving.send(&frames(edge - 2048..edge + 2048).concat());
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.high_water_mark(), edge);
    assert_eq!(receiving.system(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    // Nothing is asked for that would not be taken.
    receiving.send(&heartbeat_at(edge + 2048, WHOLE));
    receiving.live_for(SECOND / 2, WHOLE);
    assert_eq!(receiving.naks_sent(), 0);
    assert_eq!(receiving.reader.poll().len(), 32);
    receiving.live_for(SECOND / 2, WHOLE);
    let naks = receiving.peer.take_frames(FrameKind::Nak);
    let asked = Nak::decode(&naks[0]).unwrap();
    assert_eq!(i64::from(asked.term_offset), edge % i64::from(TERM_LENGTH));
    assert_eq!(asked.length, 2048);
    receiving.send(&frames(edge - 1024..edge + 2048).concat());
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.reader.poll().len(), 34);
}

/// A publisher that spies move could otherwise leave the receiver behind within the time of a status message.
#[test]
fn a_publisher_on_another_path_is_told_at_once_where_the_receiver_is() {
    let receiving = Receiving::on("aeron:udp?control-mode=manual", |_| {});
    for port in [40_123, 40_124] {
        let path = format!("aeron:udp?endpoint=right:{port}");
        receiving.reader.subscription.destinations().add(&path).unwrap();
    }
    receiving.join();
    receiving.world.run_for(50 * MILLISECOND);
    receiving.peer.take();
    let other = SocketAddr::new(receiving.node.address(), 40_124);
    receiving.peer.send(other, &setup_of(SESSION));
    receiving.world.run_for(2 * MILLISECOND);
    let told = receiving.peer.take_datagrams();
    assert!(told.iter().any(|datagram| {
        datagram.from == other
            && StatusMessage::decode(&datagram.bytes).is_ok_and(|told| !told.asks_for_setup())
    }));
}

/// A heartbeat outside the window can come from each program that knows the session.
#[test]
fn a_publisher_far_ahead_on_another_path_is_asked_who_it_is() {
    let receiving = Receiving::on("aeron:udp?control-mode=manual", |_| {});
    for port in [40_123, 40_124] {
        let path = format!("aeron:udp?endpoint=right:{port}");
        receiving.reader.subscription.destinations().add(&path).unwrap();
    }
    receiving.join();
    let other = SocketAddr::new(receiving.node.address(), 40_124);
    let ahead = heartbeat_at(JOIN + i64::from(TERM_LENGTH), WHOLE);
    let told_for = |frame: &[u8]| {
        receiving.peer.take();
        receiving.peer.send(other, frame);
        receiving.send(&heartbeat_at(JOIN, WHOLE));
        receiving.world.run_for(90 * MILLISECOND);
        let told = receiving.peer.take_datagrams().into_iter();
        let there = told.filter(|datagram| datagram.from == other);
        let messages = there.map(|datagram| StatusMessage::decode(&datagram.bytes).unwrap());
        messages
            .map(|message| message.asks_for_setup())
            .collect::<Vec<_>>()
    };
    let told: Vec<_> = (0..20).map(|_| told_for(&ahead)).collect();
    assert_eq!(told.concat(), [true, true], "once a second: {told:?}");
    assert_eq!(told_for(&setup_of(SESSION)), [false]);
    assert_eq!(told_for(&ahead), [] as [bool; 0]);
}

#[test]
fn unknown_data_asks_for_a_setup_once_a_second() {
    let receiving = Receiving::silent();
    for _ in 0..15 {
        receiving.send(&frame_at(JOIN, 64, WHOLE));
        receiving.world.run_for(100 * MILLISECOND);
    }
    let asked = receiving.peer.take_status_messages();
    let receiver_id = asked[0].receiver_id;
    let expected = StatusMessage::eliciting_setup(SESSION, STREAM, receiver_id, None);
    assert_eq!(asked, [expected, expected]);
    receiving.send(&heartbeat_at(JOIN, ENDS));
    receiving.send(&{
        let mut other = frame_at(JOIN, 64, WHOLE);
        other[16] ^= 1; // another stream
        other
    });
    receiving.world.run_for(2 * SECOND);
    assert!(receiving.peer.take().is_empty());
    assert_eq!(receiving.system(system_counter::INVALID_PACKETS), 0);
}

#[test]
fn a_setup_makes_an_image_whose_first_status_message_goes_at_once() {
    let receiving = Receiving::silent();
    receiving.send(&setup_of(SESSION));
    receiving.send(&setup_of(SESSION));
    receiving.world.run_for(2 * MILLISECOND);
    let messages = receiving.peer.take_status_messages();
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(
        (message.consumption_term_id, message.consumption_term_offset),
        (FIRST_TERM + 1, 1024)
    );
    assert_eq!((message.flags, message.receiver_window_length), (0, WINDOW));
    assert_eq!(receiving.image().join_position(), JOIN);
    assert_eq!(receiving.image().active_transport_count(), 1);
    receiving.live_for(SECOND, WHOLE);
    let timed = receiving.peer.take_status_messages().len();
    assert!((4..=5).contains(&timed), "{timed} in a second");
}

#[test]
fn setups_that_cannot_be_are_refused() {
    let receiving = Receiving::silent();
    for (at, value) in [
        (8, 1),
        (8, -32),
        (28, 65_535),
        (28, i32::MIN),
        (32, 31),
        (32, 65_536),
        (32, 1400),
    ] {
        let mut setup = setup_of(SESSION);
        setup[at..at + 4].copy_from_slice(&i32::to_le_bytes(value));
        receiving.send(&setup);
    }
    receiving.world.run_for(10 * MILLISECOND);
    assert_eq!(receiving.system(system_counter::INVALID_PACKETS), 7);
    assert_eq!(receiving.reader.subscription.image_count(), 0);
    assert!(receiving.peer.take().is_empty());
}

#[test]
fn a_stream_takes_no_more_sessions_than_allowed() {
    let receiving = Receiving::on(CHANNEL, |config| config.stream_session_limit = 2);
    for session_id in 1..=4 {
        receiving.send(&setup_of(session_id));
        receiving.world.run_for(2 * MILLISECOND);
    }
    assert_eq!(receiving.reader.subscription.image_count(), 2);
    let reported = common::error_entries(&receiving.node);
    let [reported] = &reported[..] else {
        panic!("strangers make no new texts: {reported:?}");
    };
    assert!(
        reported.text.contains("exceeded session limit"),
        "{}",
        reported.text
    );
    assert_eq!(reported.observation_count, 2);
}

#[test]
fn packets_are_kept_inside_the_window_and_counted_outside() {
    let receiving = Receiving::joined();
    let reach = JOIN + i64::from(TERM_LENGTH) / 2;
    receiving.send(&frame_at(reach, 32, WHOLE));
    receiving.send(&frame_at(JOIN - 64, 64, WHOLE));
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.system(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(receiving.system(system_counter::FLOW_CONTROL_UNDER_RUNS), 1);
    assert_eq!(receiving.high_water_mark(), JOIN);
    receiving.send(&frame_at(reach - 32, 32, WHOLE));
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.high_water_mark(), reach);
    assert_eq!(receiving.image().position(), JOIN, "there is a gap before it");
}

#[test]
fn padding_that_begins_inside_the_window_is_taken_though_it_ends_outside() {
    let receiving = Receiving::joined();
    let reach = JOIN + i64::from(TERM_LENGTH) / 2;
    let term_end = 2 * i64::from(TERM_LENGTH);
    let padding_at = |position: i64| {
        let mut frame = frame_at(position, 32, WHOLE);
        frame[..4].copy_from_slice(&((term_end - position) as i32).to_le_bytes());
        frame[6] = 0; // the type of padding
        frame
    };
    receiving.send(&padding_at(reach));
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.system(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(receiving.high_water_mark(), JOIN);
    receiving.send(&padding_at(reach - 32));
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.system(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(receiving.high_water_mark(), term_end);
}

#[test]
fn broken_data_is_counted_and_dropped() {
    let receiving = Receiving::joined();
    let mut wrong_offset = [frame_at(JOIN, 64, WHOLE), frame_at(JOIN + 96, 64, WHOLE)].concat();
    receiving.send(&wrong_offset);
    wrong_offset.truncate(100);
    receiving.send(&wrong_offset);
    receiving.send(&frame_at(JOIN, 1_000_000, WHOLE)[..64]);
    receiving.send(&[]);
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.system(system_counter::INVALID_PACKETS), 4);
    assert_eq!(receiving.high_water_mark(), JOIN);
}

#[test]
fn a_finished_stream_says_goodbye_until_it_is_removed() {
    let mut receiving = Receiving::joined();
    receiving.send(&frame_at(JOIN, 64, WHOLE));
    receiving.send(&heartbeat_at(JOIN + 64, ENDS));
    receiving.world.run_for(2 * MILLISECOND);
    assert_eq!(receiving.image().end_of_stream_position(), JOIN + 64);
    receiving.peer.take();
    receiving.live_for(SECOND, ENDS);
    let messages = receiving.peer.take_status_messages();
    assert!(messages.len() >= 4 && messages.iter().all(StatusMessage::is_end_of_stream));
    assert_eq!(receiving.reader.poll(), [vec![7; 32]]);
    receiving
        .world
        .run_until(20 * SECOND, "the end of the image", || {
            receiving.reader.subscription.image_count() == 0
        });
    receiving.world.run_for(MILLISECOND);
    receiving.peer.take();
    receiving.world.run_for(SECOND);
    assert!(receiving.peer.take().is_empty());
    // The stream is over, so its heartbeats do not start it again.
    receiving.send(&heartbeat_at(JOIN + 64, ENDS));
    receiving.world.run_for(SECOND);
    assert!(receiving.peer.take().is_empty());
}

#[test]
fn an_end_of_stream_waits_for_what_is_missing() {
    let mut receiving = Receiving::joined();
    receiving.send(&heartbeat_at(JOIN + 64, ENDS));
    receiving.world.run_for(MILLISECOND);
    receiving.live_for(SECOND, ENDS);
    let messages = receiving.peer.take_status_messages();
    assert!(messages.len() >= 4 && !messages.iter().any(StatusMessage::is_end_of_stream));
    let naks_sent = receiving.naks_sent();
    assert!(naks_sent > 0);
    assert_eq!(
        common::counter(&receiving.node, type_ids::RECEIVER_NAKS_SENT),
        naks_sent
    );
    receiving.send(&frame_at(JOIN, 64, WHOLE));
    receiving.run_until_goodbye(10 * MILLISECOND);
    assert_eq!(receiving.reader.poll(), [vec![7; 32]]);
}

/// The image is taken from the receiver in the same turn, and still says goodbye.
#[test]
fn a_revoked_stream_is_marked_and_not_repaired_and_says_goodbye() {
    let receiving = Receiving::joined();
    let image = receiving.image();
    for _ in 0..2 {
        receiving.send(&heartbeat_at(JOIN + 64, ENDS | data::FLAG_REVOKED));
    }
    receiving
        .world
        .run_until(10 * MILLISECOND, "the mark", || image.is_publication_revoked());
    receiving.world.run_for(20 * MILLISECOND);
    assert_eq!(receiving.system(system_counter::PUBLICATION_IMAGES_REVOKED), 1);
    assert_eq!(receiving.system(system_counter::NAK_MESSAGES_SENT), 0);
    receiving.run_until_goodbye(5 * SECOND);
    receiving
        .world
        .run_until(10 * MILLISECOND, "the end of the image", || image.is_closed());
}

#[test]
fn a_silent_image_is_given_up_and_its_session_may_join_again() {
    let receiving = Receiving::joined();
    receiving.world.run_for(10 * SECOND - 10 * MILLISECOND);
    assert_eq!(receiving.peer.take().len(), 2, "as much as its SETUP has earned");
    receiving.world.run_for(20 * MILLISECOND);
    receiving.peer.take();
    receiving.send(&frame_at(JOIN, 64, WHOLE));
    receiving.send(&setup_of(SESSION));
    receiving.world.run_for(SECOND / 2);
    assert!(receiving.peer.take().is_empty());
    assert_eq!(receiving.high_water_mark(), JOIN);
    let silent = receiving.image();
    receiving
        .world
        .run_until(5 * SECOND, "the end of the image", || silent.is_closed());
    receiving.world.run_for(MILLISECOND);
    receiving.peer.take();
    receiving.send(&setup_of(SESSION));
    receiving.world.run_for(2 * MILLISECOND);
    assert_ne!(receiving.image().correlation_id(), silent.correlation_id());
    let messages = receiving.peer.take_status_messages();
    assert!(messages.len() == 1 && !messages[0].is_end_of_stream());
}

/// A publisher that sends nothing but SETUPs, or a stranger, keeps no image and its memory for ever.
#[test]
fn setups_alone_keep_no_image_alive() {
    let receiving = Receiving::joined();
    let image = receiving.image();
    let mut seconds = 0;
    while !image.is_closed() {
        receiving.world.run_for(SECOND);
        receiving.send(&setup_of(SESSION));
        seconds += 1;
        assert!(seconds < 20, "it is still there");
    }
    assert!(seconds >= 10);
}

#[test]
fn without_rejoin_a_session_that_was_given_up_stays_out() {
    let receiving = Receiving::joined_on("aeron:udp?endpoint=right:40123|rcv-wnd=16k|rejoin=false");
    receiving
        .world
        .run_until(20 * SECOND, "the end of the image", || {
            receiving.reader.subscription.image_count() == 0
        });
    receiving.world.run_for(MILLISECOND);
    receiving.peer.take();
    for _ in 0..20 {
        receiving.send(&setup_of(SESSION));
        receiving.send(&frame_at(JOIN, 64, WHOLE));
        receiving.world.run_for(SECOND);
    }
    assert!(receiving.peer.take().is_empty());
    assert_eq!(receiving.reader.subscription.image_count(), 0);
    receiving.send(&setup_of(SESSION + 1));
    receiving.world.run_for(2 * MILLISECOND);
    assert_eq!(receiving.reader.subscription.image_count(), 1);
}

/// Another stream keeps the socket open that the packets come to.
#[test]
fn an_image_without_subscribers_says_goodbye_and_takes_nothing() {
    let receiving = Receiving::joined();
    let _other = Reader::subscribe(&receiving.client, CHANNEL, STREAM + 1);
    receiving.reader.subscription.close();
    receiving.world.run_for(2 * MILLISECOND);
    let messages = receiving.peer.take_status_messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].flags, status_message::FLAG_END_OF_STREAM);
    receiving.send(&frame_at(JOIN, 64, WHOLE));
    receiving.world.run_for(MILLISECOND);
    assert_eq!(receiving.high_water_mark(), JOIN);
}

#[test]
fn a_rejected_image_answers_with_errors_and_takes_nothing() {
    let receiving = Receiving::joined();
    let receiver_id = receiving.receiver_id();
    let reason = "no room";
    receiving.image().async_reject(reason).unwrap();
    receiving.world.run_for(10 * MILLISECOND);
    receiving.peer.take();
    receiving.live_for(SECOND, WHOLE);
    let sent = receiving.peer.take();
    assert!((4..=5).contains(&sent.len()), "{} in a second", sent.len());
    for bytes in &sent {
        let error = ErrorFrame::decode(bytes).unwrap();
        assert_eq!((error.error_code, error.receiver_id), (13, receiver_id));
        assert_eq!(error.text, reason);
    }
    assert!(receiving.system(system_counter::ERROR_FRAMES_SENT) >= sent.len() as i64);
    assert_eq!(receiving.high_water_mark(), JOIN);
    receiving.world.run_until(30 * SECOND, "the image is freed", || {
        common::counters_of(&receiving.node, type_ids::RECEIVER_HIGH_WATER_MARK).is_empty()
    });
}

#[test]
fn a_probe_for_this_receiver_is_echoed() {
    let receiving = Receiving::joined();
    let own = receiving.receiver_id();
    for receiver_id in [0, own, own ^ 5] {
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: SESSION,
            stream_id: STREAM,
            echo_timestamp_ns: receiver_id,
            reception_delta_ns: 0,
            receiver_id,
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        probe.encode(&mut frame);
        receiving.send(&frame);
    }
    receiving.world.run_for(MILLISECOND);
    let echoes = receiving.peer.take_frames(FrameKind::RttMeasurement);
    let echoed: Vec<i64> = echoes
        .iter()
        .map(|bytes| RttMeasurement::decode(bytes).unwrap())
        .filter(|measurement| !measurement.asks_for_reply())
        .map(|echo| echo.echo_timestamp_ns)
        .collect();
    assert_eq!(echoed, [0, own]);
}

/// A repair, or another publisher of the same stream, cuts it into datagrams in another way: some of what comes may be there,
/// or may be read.
#[test]
fn what_follows_frames_that_were_there_is_taken() {
    let datagram = |position: i64, count: i64| -> Vec<u8> {
        let frames = (0..count).map(|number| frame_at(position + 64 * number, 64, WHOLE));
        frames.flatten().collect()
    };
    let mut receiving = Receiving::on(CHANNEL, |_| {});
    receiving.join();
    let second = JOIN + 22 * 64;
    receiving.send(&datagram(second, 1));
    receiving.world.run_for(MILLISECOND / 20);
    receiving.send(&datagram(JOIN, 22));
    receiving.send(&datagram(second, 22));
    receiving.live_for(300 * MILLISECOND, WHOLE);
    assert_eq!(receiving.reader.poll().len(), 44);
    // The publisher has been told that all of it is read.
    receiving.live_for(300 * MILLISECOND, WHOLE);
    receiving.send(&datagram(second + 64, 22));
    receiving.live_for(300 * MILLISECOND, WHOLE);
    assert_eq!(receiving.reader.poll().len(), 45);
    assert!(receiving.peer.take_frames(FrameKind::Nak).is_empty());
}
