//! What a publication puts on the wire, and when, to a receiver that the test plays.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_buffers::log::LogBuffers;
use headrace_client::{Client, ExclusivePublication};
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, Nak, RttMeasurement, Setup, StatusMessage, classify, data, rtt,
    status_message,
};
use headrace_sim::Node;

use crate::common::peer::Peer;
use crate::common::{self, MILLISECOND, SECOND, STREAM, World};
use crate::{SESSION, TERM_LENGTH, WINDOW};

const RECEIVER_ID: i64 = 0x1122_3344_5566_7788;
/// The last there is: each further term wraps.
const FIRST_TERM: i32 = i32::MAX;

/// A publication whose receivers are the test.
pub(crate) struct Sending {
    pub(crate) world: World,
    node: Node,
    pub(crate) client: Arc<Client>,
    pub(crate) publication: ExclusivePublication,
    pub(crate) peer: Peer,
    /// Where it hears answers.
    pub(crate) socket: SocketAddr,
    setups: Vec<Setup>,
}

fn channel(endpoint: &str) -> String {
    format!("aeron:udp?endpoint={endpoint}|term-length=64k")
}

impl Sending {
    /// A publication that has heard nothing yet.
    fn unanswered() -> Self {
        Self::to("10.9.9.9:40123", "")
    }

    pub(crate) fn to(endpoint: &str, parameters: &str) -> Self {
        let position = format!("|init-term-id={FIRST_TERM}|term-id={FIRST_TERM}|term-offset=0");
        Self::at_any_term(endpoint, &(position + parameters))
    }

    /// The same, where the driver chooses the first term.
    pub(crate) fn at_any_term(endpoint: &str, parameters: &str) -> Self {
        let world = World::new(41);
        let mut peer = Peer::new(&world);
        if let Ok(address) = endpoint.parse() {
            peer.listens_at = address;
        }
        world.network().set_name("elsewhere", Some(peer.address.ip()));
        let node = world.add_node("left").unwrap();
        let client = node.connect().unwrap();
        let start = format!("{}|session-id={SESSION}{parameters}", channel(endpoint));
        let publication = client.add_exclusive_publication(&start, STREAM).unwrap();
        world.run_for(MILLISECOND);
        let sent = peer.take_datagrams();
        let setups = sent
            .iter()
            .map(|sent| Setup::decode(&sent.bytes).unwrap())
            .collect();
        Self {
            socket: sent[0].from,
            setups,
            world,
            node,
            client,
            publication,
            peer,
        }
    }

    /// A publication with so many messages of 1024 bytes on the wire.
    pub(crate) fn connected(count: usize) -> Self {
        Self::unanswered().and_sent(count)
    }

    /// The same with so many messages on the wire.
    pub(crate) fn and_sent(self, count: usize) -> Self {
        let mut sending = self;
        sending.answer(&StatusMessage {
            consumption_term_id: sending.first_term(),
            ..status(0, 0)
        });
        sending.world.run_for(2 * MILLISECOND);
        for _ in 0..count {
            assert!(sending.offers(&[5; 992]));
        }
        sending.world.run_for(2 * MILLISECOND);
        sending.peer.take();
        sending
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        self.peer.send(self.socket, datagram);
    }

    pub(crate) fn answer(&self, message: &StatusMessage) {
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = message.encode(&mut frame);
        self.send(&frame[..length]);
    }

    pub(crate) fn offers(&mut self, message: &[u8]) -> bool {
        common::is_accepted(self.publication.offer(message))
    }

    pub(crate) fn system(&self, id: i32) -> i64 {
        common::system_counter(&self.node, id)
    }

    pub(crate) fn counter(&self, type_id: i32) -> i64 {
        common::counter(&self.node, type_id)
    }

    pub(crate) fn first_term(&self) -> i32 {
        self.setups[0].initial_term_id
    }

    /// What publishers write to.
    pub(crate) fn log(&self) -> LogBuffers {
        self.log_of(self.publication.registration_id())
    }

    /// The same, of any publication of the client.
    pub(crate) fn log_of(&self, registration_id: i64) -> LogBuffers {
        let name = format!("publications/{registration_id}.logbuffer");
        LogBuffers::map(&self.node.directory().join(name)).unwrap()
    }

    /// True while the driver has the publication of the test.
    pub(crate) fn has_publication(&self) -> bool {
        let positions = common::counters_of(&self.node, type_ids::SENDER_POSITION);
        let own = self.publication.registration_id();
        positions.iter().any(|position| position.registration_id == own)
    }

    /// Heartbeats since the last call; other data frames have a length.
    fn heartbeats(&self) -> Vec<DataHeader> {
        let frames = self.peer.take_frames(FrameKind::Data).into_iter();
        let headers = frames.map(|frame| DataHeader::decode(&frame).unwrap());
        headers.filter(|header| header.frame_length == 0).collect()
    }
}

pub(crate) fn status(flags: u8, term_offset: i32) -> StatusMessage {
    StatusMessage {
        flags,
        session_id: SESSION,
        stream_id: STREAM,
        consumption_term_id: FIRST_TERM,
        consumption_term_offset: term_offset,
        receiver_window_length: WINDOW,
        receiver_id: RECEIVER_ID,
        group_tag: None,
    }
}

pub(crate) fn nak(term_offset: i32, length: i32) -> Vec<u8> {
    let nak = Nak {
        flags: 0,
        session_id: SESSION,
        stream_id: STREAM,
        term_id: FIRST_TERM,
        term_offset,
        length,
    };
    let mut frame = vec![0; Nak::LENGTH];
    nak.encode(&mut frame);
    frame
}

#[test]
fn setups_repeat_ever_less_often_until_a_status_message_comes() {
    let sending = Sending::unanswered();
    let expected = Setup {
        flags: 0,
        term_offset: 0,
        session_id: SESSION,
        stream_id: STREAM,
        initial_term_id: FIRST_TERM,
        active_term_id: FIRST_TERM,
        term_length: TERM_LENGTH,
        mtu: 1408,
        ttl: 0,
    };
    assert_eq!(sending.setups, [expected], "the first goes out at once");
    sending.world.run_for(SECOND);
    let repeated = sending.peer.take_frames(FrameKind::Setup).len();
    // After 5, 10, 20, 40 and 80 ms, and then each 100 ms.
    assert!((12..=14).contains(&repeated), "{repeated} in a second");
    sending.world.run_for(SECOND);
    let repeated = sending.peer.take_frames(FrameKind::Setup).len();
    assert!((9..=10).contains(&repeated), "{repeated} in the next second");
    assert!(!sending.publication.is_connected());
    sending.answer(&status(0, 0));
    sending.world.run_for(SECOND);
    assert!(sending.peer.take_frames(FrameKind::Setup).len() <= 1);
    assert!(sending.publication.is_connected());
    assert_eq!(sending.counter(type_ids::SENDER_LIMIT), i64::from(WINDOW));
}

#[test]
fn nothing_is_sent_beyond_the_limit_and_running_into_it_counts_once() {
    let mut sending = Sending::connected(0);
    let mut count = 0;
    while sending.offers(&[1; 992]) {
        count += 1;
        sending.world.step();
    }
    assert!(count > WINDOW / 1024, "more is written than may be sent");
    sending.world.run_for(5 * MILLISECOND);
    let positions = |sending: &Sending| {
        [
            sending.counter(type_ids::SENDER_POSITION),
            sending.counter(type_ids::SENDER_BACK_PRESSURE_EVENTS),
            sending.system(system_counter::SENDER_FLOW_CONTROL_LIMITS),
        ]
    };
    assert_eq!(positions(&sending), [i64::from(WINDOW), 1, 1]);
    sending.answer(&status(0, 1024));
    sending.world.run_for(5 * MILLISECOND);
    assert_eq!(positions(&sending), [i64::from(WINDOW) + 1024, 2, 2]);
}

#[test]
fn an_idle_stream_beats_and_says_when_it_has_ended_and_all_is_sent() {
    let mut sending = Sending::unanswered();
    sending.world.run_for(SECOND);
    assert!(sending.heartbeats().is_empty(), "never connected");
    let one_message = StatusMessage {
        receiver_window_length: 160,
        ..status(0, 0)
    };
    sending.answer(&one_message);
    sending.world.run_for(2 * MILLISECOND);
    assert!(sending.offers(&[1; 100]));
    sending.world.run_for(2 * MILLISECOND);
    sending.peer.take();
    sending.world.run_for(SECOND);
    let beats = sending.heartbeats();
    assert!((9..=10).contains(&beats.len()), "{} in a second", beats.len());
    let expected = DataHeader::heartbeat(SESSION, STREAM, FIRST_TERM, 160, data::FLAGS_UNFRAGMENTED);
    assert!(beats.iter().all(|beat| *beat == expected), "{beats:?}");
    assert!(sending.system(system_counter::HEARTBEATS_SENT) >= beats.len() as i64);

    assert!(sending.offers(&[1; 100]), "beyond what the receiver granted");
    sending.publication.close();
    sending.world.run_for(SECOND / 2);
    let beats = sending.heartbeats();
    assert!(
        beats.len() > 3 && beats.iter().all(|beat| *beat == expected),
        "not all is sent: {beats:?}"
    );
    sending.answer(&status(0, 160));
    sending.world.run_for(2 * SECOND); // the conductor's timer may take one of them to see that all is sent
    sending.peer.take();
    sending.world.run_for(SECOND / 2);
    let ends = data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM;
    let expected = DataHeader::heartbeat(SESSION, STREAM, FIRST_TERM, 320, ends);
    let beats = sending.heartbeats();
    assert!(
        beats.len() > 3 && beats.iter().all(|beat| *beat == expected),
        "{beats:?}"
    );
}

#[test]
fn heartbeats_of_a_revoked_stream_say_so() {
    let sending = Sending::connected(1);
    sending.publication.revoke();
    sending.world.run_for(SECOND / 2);
    let beats = sending.heartbeats();
    let revoked = data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM | data::FLAG_REVOKED;
    assert!(
        beats.len() > 3 && beats.iter().all(|beat| beat.flags == revoked),
        "{beats:?}"
    );
}

#[test]
fn a_receiver_counts_until_it_is_silent_for_5_s_or_says_goodbye() {
    let sending = Sending::unanswered();
    let is_connected = || sending.publication.is_connected();
    let connect = || {
        sending.answer(&status(0, 0));
        sending.world.run_until(SECOND, "a connection", is_connected);
    };
    connect();
    sending.world.run_for(5 * SECOND - 2 * MILLISECOND);
    assert!(is_connected());
    sending.world.run_for(4 * MILLISECOND);
    assert!(!is_connected());

    connect();
    sending.answer(&status(status_message::FLAG_END_OF_STREAM, 0));
    sending
        .world
        .run_until(10 * MILLISECOND, "a farewell", || !is_connected());
}

/// A publication without a confirmed end lingers for 5 s.
#[test]
fn a_publication_whose_receiver_confirms_the_end_is_gone_at_once() {
    let sending = Sending::connected(1);
    sending.publication.close();
    sending.world.run_for(3 * SECOND);
    assert!(sending.has_publication());
    sending.answer(&status(status_message::FLAG_END_OF_STREAM, 1024));
    sending
        .world
        .run_until(2 * SECOND - 10 * MILLISECOND, "the publication is gone", || {
            !sending.has_publication()
        });
}

#[test]
fn a_receiver_may_ask_for_the_setup_again() {
    let sending = Sending::connected(0);
    let ask = || {
        sending.answer(&status(status_message::FLAG_SETUP, 0));
        sending.world.run_for(SECOND);
        sending.peer.take_frames(FrameKind::Setup).len()
    };
    sending.world.run_for(SECOND);
    sending.peer.take();
    assert_eq!(ask(), 1);
    sending.publication.close();
    sending.world.run_for(10 * MILLISECOND);
    assert_eq!(ask(), 0, "an ended stream is not joined");
    assert!(sending.has_publication());
}

#[test]
fn status_messages_that_cannot_be_are_refused() {
    let sending = Sending::unanswered();
    sending.answer(&StatusMessage {
        consumption_term_id: FIRST_TERM.wrapping_add(1),
        ..status(0, 0)
    });
    sending.answer(&StatusMessage {
        receiver_window_length: TERM_LENGTH / 2 + 1,
        ..status(0, 0)
    });
    sending.answer(&status(0, 33));
    sending.answer(&StatusMessage {
        session_id: SESSION + 1,
        ..status(0, 0)
    });
    sending.world.run_for(MILLISECOND); // the network may join what comes together
    sending.send(&[1, 2, 3]);
    sending.send(&[]);
    sending.world.run_for(MILLISECOND);
    assert_eq!(sending.counter(type_ids::SENDER_LIMIT), 0);
    assert!(!sending.publication.is_connected());
    assert_eq!(sending.system(system_counter::STATUS_MESSAGES_REJECTED), 1);
    assert_eq!(sending.system(system_counter::STATUS_MESSAGES_RECEIVED), 2);
    assert_eq!(sending.system(system_counter::INVALID_PACKETS), 4);
}

#[test]
fn a_nak_is_answered_with_the_missing_frames_once_per_linger() {
    let sending = Sending::connected(4);
    for _ in 0..3 {
        sending.send(&nak(1024, 2048));
    }
    sending.world.run_for(MILLISECOND);
    let sent = sending.peer.take_frames(FrameKind::Data);
    let offsets: Vec<i32> = sent
        .iter()
        .map(|frame| DataHeader::decode(frame).unwrap().term_offset)
        .collect();
    assert_eq!(offsets, [1024, 2048]);
    assert_eq!(sending.counter(type_ids::SENDER_NAKS_RECEIVED), 3);
    assert_eq!(sending.system(system_counter::RETRANSMITS_SENT), 1);
    assert_eq!(sending.system(system_counter::RETRANSMITTED_BYTES), 2048);
    sending.world.run_for(11 * MILLISECOND);
    sending.send(&nak(1024, 1024));
    sending.world.run_for(MILLISECOND);
    assert_eq!(sending.peer.take_frames(FrameKind::Data).len(), 1);
}

/// Padding at the end of a term takes the sender beyond the window, by as much as the message that found no room there.
#[test]
fn a_receiver_that_is_a_window_and_a_padding_below_is_heard() {
    let mut sending = Sending::to("10.9.9.9:40123", "|mtu=64");
    let grant = |term_offset| StatusMessage {
        receiver_window_length: TERM_LENGTH / 2,
        ..status(0, term_offset)
    };
    let (consumed, term_end) = (23_360, i64::from(TERM_LENGTH));
    for answer in [grant(0), grant(consumed)] {
        sending.answer(&answer);
        sending.world.run_for(5 * MILLISECOND);
        while sending.offers(&[1; 7_000]) {
            sending.world.run_for(MILLISECOND);
        }
    }
    sending.world.run_for(5 * MILLISECOND);
    assert_eq!(sending.counter(type_ids::SENDER_POSITION), term_end);
    sending.peer.take();
    sending.send(&nak(consumed, 64));
    sending.world.run_for(MILLISECOND);
    assert_eq!(sending.peer.take_frames(FrameKind::Data).len(), 1);
    for _ in 0..10 {
        sending.answer(&grant(consumed));
        sending.world.run_for(SECOND);
    }
    assert!(sending.publication.is_connected());
    assert_eq!(sending.system(system_counter::STATUS_MESSAGES_REJECTED), 0);
}

#[test]
fn naks_for_what_was_not_sent_or_cannot_be_are_not_answered() {
    let sending = Sending::connected(2);
    for (term_offset, length) in [(2048, 1024), (0, 0), (-32, 64), (32, TERM_LENGTH), (33, 32)] {
        sending.send(&nak(term_offset, length));
    }
    sending.world.run_for(MILLISECOND);
    assert!(sending.peer.take_frames(FrameKind::Data).is_empty());
    assert_eq!(sending.system(system_counter::INVALID_PACKETS), 3);
    assert_eq!(sending.system(system_counter::NAK_MESSAGES_RECEIVED), 2);
}

/// A message may hold what looks like frames, as one that carries a recorded stream does. Sent again they would be another
/// stream's, and the time of sending would be written into the message.
#[test]
fn nothing_is_sent_again_from_the_middle_of_a_message() {
    let mut sending = Sending::connected(0);
    let mut message = [0; 992];
    let within = DataHeader {
        frame_length: 96,
        term_offset: 640,
        ..DataHeader::heartbeat(1, 2, 3, 0, data::FLAGS_UNFRAGMENTED)
    };
    within.encode(&mut message);
    assert!(sending.offers(&message));
    sending.world.run_for(MILLISECOND);
    sending.peer.take();
    sending.send(&nak(32, 96));
    sending.world.run_for(MILLISECOND);
    assert!(sending.peer.take_frames(FrameKind::Data).is_empty());
    assert_eq!(sending.counter(type_ids::SENDER_NAKS_RECEIVED), 1);
    sending.send(&nak(0, 1024));
    sending.world.run_for(MILLISECOND);
    assert_eq!(sending.peer.take_frames(FrameKind::Data).len(), 1);
}

#[test]
fn a_probe_comes_back_the_way_data_goes() {
    let sending = Sending::connected(0);
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: SESSION,
        stream_id: STREAM,
        echo_timestamp_ns: 123_456,
        reception_delta_ns: 9,
        receiver_id: RECEIVER_ID,
    };
    let mut frame = [0; RttMeasurement::LENGTH];
    for frame_of in [probe, probe.echo()] {
        frame_of.encode(&mut frame);
        sending.send(&frame);
    }
    sending.world.run_for(MILLISECOND);
    let echoes = sending.peer.take_frames(FrameKind::RttMeasurement);
    assert_eq!(echoes.len(), 1, "an echo is not answered");
    let echo = RttMeasurement::decode(&echoes[0]).unwrap();
    assert_eq!(
        (
            echo.asks_for_reply(),
            echo.echo_timestamp_ns,
            echo.reception_delta_ns
        ),
        (false, 123_456, 0)
    );
    assert_eq!(
        echo.receiver_count(),
        Some(1),
        "it tells how many receivers there are"
    );
    assert_eq!(
        sending.system(system_counter::INVALID_PACKETS),
        1,
        "an echo that answers no probe"
    );
}

#[test]
fn a_nak_has_the_sender_measure_round_trips_once_a_second_at_most() {
    let sending = Sending::connected(2);
    let take_probes = || {
        let frames = sending.peer.take_frames(FrameKind::RttMeasurement).into_iter();
        let probes = frames.map(|frame| RttMeasurement::decode(&frame).unwrap());
        probes.collect::<Vec<_>>()
    };
    sending.world.run_for(SECOND);
    assert_eq!(take_probes(), [], "nothing is lost");
    for _ in 0..20 {
        sending.send(&nak(0, 1024));
        sending.world.run_for(20 * MILLISECOND);
    }
    let probes = take_probes();
    assert_eq!(probes.len(), 1);
    assert_eq!(
        (probes[0].flags, probes[0].receiver_id),
        (rtt::FLAG_REPLY, rtt::EVERY_RECEIVER)
    );
    let mut frame = [0; RttMeasurement::LENGTH];
    for (later_ns, refused) in [(1, 1), (0, 1)] {
        let answer = RttMeasurement {
            receiver_id: RECEIVER_ID,
            echo_timestamp_ns: probes[0].echo_timestamp_ns + later_ns,
            ..probes[0].echo()
        };
        answer.encode(&mut frame);
        sending.send(&frame);
        sending.world.run_for(MILLISECOND);
        assert_eq!(sending.system(system_counter::INVALID_PACKETS), refused);
    }
    assert_eq!(take_probes(), [], "an answer brings nothing");
}

#[test]
fn an_error_frame_removes_its_receiver_and_is_reported_once() {
    let sending = Sending::connected(0);
    let error = ErrorFrame {
        session_id: SESSION,
        stream_id: STREAM,
        receiver_id: RECEIVER_ID,
        group_tag: None,
        error_code: 13,
        text: "not wanted".into(),
    };
    let mut frame = [0; ErrorFrame::LENGTH_MAX];
    let length = error.encode(&mut frame);
    for _ in 0..2 {
        sending.send(&frame[..length]);
    }
    sending.world.run_for(MILLISECOND);
    assert!(!sending.publication.is_connected());
    assert_eq!(sending.system(system_counter::ERROR_FRAMES_RECEIVED), 2);
    let reported = common::error_entries(&sending.node);
    let [reported] = &reported[..] else {
        panic!("{reported:?}");
    };
    assert!(
        reported.text.contains("not wanted") && reported.text.contains("10.9.9.9:40123"),
        "{}",
        reported.text
    );
    assert_eq!(reported.observation_count, 1);
}

#[test]
fn a_silent_channel_looks_its_name_up_again_and_follows_it() {
    let mut sending = Sending::to("elsewhere:40123", "");
    let moved = "10.9.9.8:40123".parse().unwrap();
    sending
        .world
        .network()
        .set_name("elsewhere", Some(IpAddr::from([10, 9, 9, 8])));
    sending.world.run_for(SECOND / 4);
    assert_eq!(sending.system(system_counter::RESOLUTION_CHANGES), 0);
    let before = std::mem::replace(&mut sending.peer.listens_at, moved);
    assert!(sending.peer.take().is_empty());
    sending.world.run_for(3 * SECOND);
    assert_eq!(sending.system(system_counter::RESOLUTION_CHANGES), 1);
    assert!(!sending.peer.take().is_empty());
    sending.peer.listens_at = before;
    sending.world.run_for(SECOND);
    assert!(sending.peer.take().is_empty());
}

/// Another stream keeps the socket open that a NAK for the one that is gone comes to.
#[test]
fn a_publication_that_is_gone_answers_nothing() {
    let sending = Sending::connected(1);
    let endpoint = channel("10.9.9.9:40123");
    let _other = sending
        .client
        .add_exclusive_publication(&endpoint, STREAM + 1)
        .unwrap();
    sending.publication.close();
    sending.world.run_for(SECOND);
    sending.answer(&status(status_message::FLAG_END_OF_STREAM, 1024));
    sending
        .world
        .run_until(2 * SECOND, "it is gone", || !sending.has_publication());
    sending.peer.take();
    sending.send(&nak(0, 1024));
    sending.world.run_for(SECOND);
    let sent = sending.peer.take();
    assert!(
        sent.iter().all(|frame| classify(frame) == Ok(FrameKind::Setup)
            && Setup::decode(frame).unwrap().stream_id != STREAM)
    );
}
