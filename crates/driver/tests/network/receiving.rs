//! What an image accepts, and what it tells its sender.

use headrace_buffers::counters::system_counter;
use headrace_driver::proxy::{ConductorReply, ConductorRequest};
use headrace_driver::shared::ImageState;
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, RttMeasurement, Setup, StatusMessage, classify, data, rtt,
    status_message,
};

use crate::simulated::{Faults, Network};
use crate::world::{
    MILLISECOND, RECEIVER_ID, SECOND, SESSION_ID, STREAM_ID, Stream, TERM_LENGTH, WINDOW, World, address,
    receiver_address,
};

/// A peer that speaks only through the test.
fn peer() -> std::net::SocketAddr {
    address(60_000)
}

/// A world whose own publication is never heard.
fn receiver_alone() -> World {
    let mut world = World::new(Stream::default(), Network::new(1));
    world.network.set_faults(Faults {
        loss: 1.0,
        ..Faults::default()
    });
    world.remove_publication();
    world.subscribe(None);
    world.run_for(MILLISECOND);
    world.replies.clear();
    world.requests.clear();
    world
}

fn setup_of(session_id: i32) -> Vec<u8> {
    let setup = Setup {
        flags: 0,
        term_offset: 1024,
        session_id,
        stream_id: STREAM_ID,
        initial_term_id: 9,
        active_term_id: 10,
        term_length: TERM_LENGTH as i32,
        mtu: 1408,
        ttl: 0,
    };
    let mut frame = vec![0; Setup::LENGTH];
    setup.encode(&mut frame);
    frame
}

/// Where the injected stream is joined.
const JOIN: i64 = TERM_LENGTH as i64 + 1024;

fn frame_at(position: i64, length: i32, flags: u8) -> Vec<u8> {
    let header = DataHeader {
        frame_length: length,
        flags,
        is_padding: false,
        term_offset: (position % TERM_LENGTH as i64) as i32,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        term_id: 9 + (position / TERM_LENGTH as i64) as i32,
        reserved_value: 0,
    };
    let mut bytes = vec![7; (length.max(32) as usize).next_multiple_of(32)];
    header.encode(&mut bytes);
    bytes
}

fn inject(world: &World, datagram: &[u8]) {
    world.network.inject(peer(), receiver_address(), datagram);
}

fn with_image() -> World {
    let mut world = receiver_alone();
    inject(&world, &setup_of(SESSION_ID));
    world.run_for(2 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Active);
    world
}

fn status_messages(world: &World) -> Vec<StatusMessage> {
    let sent = world.network.take_sent(peer()).into_iter();
    sent.filter(|bytes| classify(bytes).unwrap() == FrameKind::StatusMessage)
        .map(|bytes| StatusMessage::decode(&bytes).unwrap())
        .collect()
}

#[test]
fn unknown_data_asks_for_a_setup_once_a_second() {
    let mut world = receiver_alone();
    for _ in 0..15 {
        inject(&world, &frame_at(JOIN, 64, 0xC0));
        world.run_for(100 * MILLISECOND);
    }
    let expected = StatusMessage::eliciting_setup(SESSION_ID, STREAM_ID, RECEIVER_ID, None);
    assert_eq!(status_messages(&world), [expected, expected]);
    inject(&world, &frame_at(JOIN, 0, 0xE0));
    inject(&world, &{
        let mut other = frame_at(JOIN, 64, 0xC0);
        other[16] ^= 1; // another stream
        other
    });
    world.run_for(2 * SECOND);
    assert!(status_messages(&world).is_empty());
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 0);
}

#[test]
fn a_setup_makes_an_image_whose_first_status_message_goes_at_once() {
    let mut world = receiver_alone();
    inject(&world, &setup_of(SESSION_ID));
    inject(&world, &setup_of(SESSION_ID));
    world.run_for(2 * MILLISECOND);
    let messages = status_messages(&world);
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(
        (message.consumption_term_id, message.consumption_term_offset),
        (10, 1024)
    );
    assert_eq!((message.flags, message.receiver_window_length), (0, WINDOW));
    assert_eq!(
        world
            .image()
            .shared
            .log
            .metadata()
            .active_transport_count_acquire(),
        1
    );
    world.run_for(SECOND);
    let timed = status_messages(&world).len();
    assert!((4..=5).contains(&timed), "{timed} in a second");
}

#[test]
fn setups_that_cannot_be_are_refused() {
    let mut world = receiver_alone();
    for (at, value) in [
        (8, 1),
        (8, -32),
        (28, 65_535),
        (28, i32::MIN),
        (32, 31),
        (32, 65_536),
        (32, 1400),
    ] {
        let mut setup = setup_of(SESSION_ID);
        setup[at..at + 4].copy_from_slice(&i32::to_le_bytes(value));
        inject(&world, &setup);
    }
    world.run_for(MILLISECOND);
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 7);
    assert!(world.image.is_none());
}

#[test]
fn a_stream_takes_no_more_sessions_than_allowed() {
    let mut world = receiver_alone();
    for session_id in 1..=4 {
        inject(&world, &setup_of(session_id));
        world.run_for(MILLISECOND);
    }
    let [
        ConductorRequest::Report { text, .. },
        ConductorRequest::Report { text: again, .. },
    ] = &world.requests[..]
    else {
        panic!("{} requests", world.requests.len());
    };
    assert!(text.contains("exceeded session limit"), "{text}");
    assert_eq!(text, again, "strangers make no new texts");
}

#[test]
fn packets_are_kept_inside_the_window_and_counted_outside() {
    let mut world = with_image();
    let reach = JOIN + TERM_LENGTH as i64 / 2;
    inject(&world, &frame_at(reach, 32, 0xC0));
    inject(&world, &frame_at(JOIN - 64, 64, 0xC0));
    world.run_for(MILLISECOND);
    assert_eq!(world.counter(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(world.counter(system_counter::FLOW_CONTROL_UNDER_RUNS), 1);
    assert_eq!(world.image().shared.high_water_mark.get(), JOIN);
    inject(&world, &frame_at(reach - 32, 32, 0xC0));
    world.run_for(MILLISECOND);
    assert_eq!(world.image().shared.high_water_mark.get(), reach);
    assert_eq!(world.image().position, JOIN, "there is a gap before it");
}

#[test]
fn padding_that_begins_inside_the_window_is_taken_though_it_ends_outside() {
    let mut world = with_image();
    let reach = JOIN + TERM_LENGTH as i64 / 2;
    let term_end = 2 * TERM_LENGTH as i64;
    let padding_at = |position: i64| {
        let mut frame = frame_at(position, 32, 0xC0);
        frame[..4].copy_from_slice(&((term_end - position) as i32).to_le_bytes());
        frame[6] = 0; // the type of padding
        frame
    };
    inject(&world, &padding_at(reach));
    world.run_for(MILLISECOND);
    assert_eq!(world.counter(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(world.image().shared.high_water_mark.get(), JOIN);
    inject(&world, &padding_at(reach - 32));
    world.run_for(MILLISECOND);
    assert_eq!(world.counter(system_counter::FLOW_CONTROL_OVER_RUNS), 1);
    assert_eq!(world.image().shared.high_water_mark.get(), term_end);
}

#[test]
fn broken_data_is_counted_and_dropped() {
    let mut world = with_image();
    let mut wrong_offset = [frame_at(JOIN, 64, 0xC0), frame_at(JOIN + 96, 64, 0xC0)].concat();
    inject(&world, &wrong_offset);
    wrong_offset.truncate(100);
    inject(&world, &wrong_offset);
    inject(&world, &frame_at(JOIN, 1_000_000, 0xC0)[..64]);
    inject(&world, &[]);
    world.run_for(MILLISECOND);
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 4);
    assert_eq!(world.image().shared.high_water_mark.get(), JOIN);
}

#[test]
fn a_finished_stream_says_goodbye_until_it_is_removed() {
    let mut world = with_image();
    inject(&world, &frame_at(JOIN, 64, 0xC0));
    world.run_for(MILLISECOND);
    assert_eq!(world.image().messages, [vec![7; 32]]);
    inject(&world, &frame_at(JOIN + 64, 0, 0xE0));
    world.run_for(2 * MILLISECOND);
    let shared = std::sync::Arc::clone(&world.image().shared);
    assert_eq!(shared.state(), ImageState::Draining);
    assert_eq!(shared.log.metadata().end_of_stream_position_acquire(), JOIN + 64);
    status_messages(&world);
    world.run_for(SECOND);
    let messages = status_messages(&world);
    assert!(messages.len() >= 4 && messages.iter().all(StatusMessage::is_end_of_stream));
    world.remove_image();
    world.run_for(MILLISECOND);
    assert!(matches!(
        world.replies[..],
        [ConductorReply::ImageReleased { .. }]
    ));
    world.run_for(SECOND);
    assert!(status_messages(&world).is_empty());
    // The stream is over, so its heartbeats do not start it again.
    inject(&world, &frame_at(JOIN + 64, 0, 0xE0));
    world.run_for(SECOND);
    assert!(status_messages(&world).is_empty());
}

#[test]
fn an_end_of_stream_waits_for_what_is_missing() {
    let mut world = with_image();
    inject(&world, &frame_at(JOIN + 64, 0, 0xE0));
    world.run_for(5 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Active);
    assert!(world.counter(system_counter::NAK_MESSAGES_SENT) > 0);
    assert_eq!(
        world.image().shared.naks_sent.get(),
        world.counter(system_counter::NAK_MESSAGES_SENT)
    );
    inject(&world, &frame_at(JOIN, 64, 0xC0));
    world.run_for(2 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Draining);
}

#[test]
fn a_revoked_stream_is_marked_and_not_repaired() {
    let mut world = with_image();
    inject(&world, &frame_at(JOIN + 64, 0, data::FLAGS_UNFRAGMENTED | 0x30));
    inject(&world, &frame_at(JOIN + 64, 0, data::FLAGS_UNFRAGMENTED | 0x30));
    world.run_for(20 * MILLISECOND);
    assert!(
        world
            .image()
            .shared
            .log
            .metadata()
            .is_publication_revoked_acquire()
    );
    assert_eq!(world.counter(system_counter::PUBLICATION_IMAGES_REVOKED), 1);
    assert_eq!(world.counter(system_counter::NAK_MESSAGES_SENT), 0);
}

#[test]
fn a_silent_image_is_given_up_and_its_session_cools_down() {
    let mut world = with_image();
    world.run_for(10 * SECOND - 10 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Active);
    world.run_for(20 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Draining);
    status_messages(&world);
    inject(&world, &frame_at(JOIN, 64, 0xC0));
    inject(&world, &setup_of(SESSION_ID));
    world.run_for(SECOND);
    assert!(status_messages(&world).is_empty());
    world.remove_image();
    world.clear_session();
    world.run_for(MILLISECOND);
    inject(&world, &setup_of(SESSION_ID));
    world.run_for(2 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Active, "joined again");
    assert_eq!(status_messages(&world).len(), 1);
}

#[test]
fn an_image_without_subscribers_says_goodbye() {
    let mut world = with_image();
    status_messages(&world);
    world.unsubscribe(None);
    world.run_for(2 * MILLISECOND);
    assert_eq!(world.image().shared.state(), ImageState::Draining);
    let messages = status_messages(&world);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].flags, status_message::FLAG_END_OF_STREAM);
    inject(&world, &frame_at(JOIN, 64, 0xC0));
    world.run_for(MILLISECOND);
    assert_eq!(world.image().shared.high_water_mark.get(), JOIN);
}

#[test]
fn an_image_dropped_while_alive_still_says_goodbye() {
    let mut world = with_image();
    status_messages(&world);
    world.image().shared.set_sends_end_of_stream_status();
    world.image().shared.request_status_message();
    world.remove_image();
    world.run_for(2 * MILLISECOND);
    let messages = status_messages(&world);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].is_end_of_stream());
}

#[test]
fn a_rejected_image_answers_with_errors_and_takes_nothing() {
    let mut world = with_image();
    world.network.take_sent(peer());
    world.reject_image(&"no room ".repeat(200));
    world.run_for(MILLISECOND);
    inject(&world, &frame_at(JOIN, 64, 0xC0));
    world.run_for(SECOND);
    let sent = world.network.take_sent(peer());
    assert!((4..=5).contains(&sent.len()), "{} in a second", sent.len());
    for bytes in &sent {
        let error = ErrorFrame::decode(bytes).unwrap();
        assert_eq!(
            (error.error_code, error.receiver_id, error.text.len()),
            (13, RECEIVER_ID, 1023)
        );
    }
    assert_eq!(
        world.counter(system_counter::ERROR_FRAMES_SENT),
        sent.len() as i64
    );
    assert_eq!(world.image().shared.high_water_mark.get(), JOIN);
    world.run_for(10 * SECOND);
    assert_eq!(world.image().shared.state(), ImageState::Draining);
}

#[test]
fn a_probe_for_this_receiver_is_echoed() {
    let mut world = with_image();
    for receiver_id in [0, RECEIVER_ID, 5] {
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: SESSION_ID,
            stream_id: STREAM_ID,
            echo_timestamp_ns: receiver_id,
            reception_delta_ns: 0,
            receiver_id,
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        probe.encode(&mut frame);
        inject(&world, &frame);
    }
    world.run_for(MILLISECOND);
    let mut sent = world.network.take_sent(peer());
    sent.retain(|bytes| classify(bytes).unwrap() == FrameKind::RttMeasurement);
    let echoed: Vec<i64> = sent
        .iter()
        .map(|bytes| RttMeasurement::decode(bytes).unwrap().echo_timestamp_ns)
        .collect();
    assert_eq!(echoed, [0, RECEIVER_ID]);
}
