//! What a publication puts on the wire, and when.

use headrace_buffers::counters::system_counter;
use headrace_driver::proxy::{ConductorReply, ConductorRequest};
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, Nak, RttMeasurement, Setup, StatusMessage, classify, data, rtt,
    status_message,
};

use crate::simulated::{Faults, Network};
use crate::world::{
    MILLISECOND, RECEIVER_ID, SECOND, SESSION_ID, STREAM_ID, Stream, TERM_LENGTH, WINDOW, World, address,
    receiver_address, sender_address,
};

/// A world whose receiver hears nothing, so that only what the test injects comes back.
fn sender_alone() -> World {
    let mut world = World::new(Stream::default(), Network::new(1));
    world.network.set_faults(Faults {
        loss: 1.0,
        ..Faults::default()
    });
    world.run_for(MILLISECOND); // one command a duty cycle: until then no receiver is there
    world
}

fn status(flags: u8, term_offset: i32) -> StatusMessage {
    StatusMessage {
        flags,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        consumption_term_id: i32::MAX,
        consumption_term_offset: term_offset,
        receiver_window_length: WINDOW,
        receiver_id: RECEIVER_ID,
        group_tag: None,
    }
}

fn inject(world: &World, message: &StatusMessage) {
    let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
    let length = message.encode(&mut frame);
    world
        .network
        .inject(receiver_address(), sender_address(), &frame[..length]);
}

fn sent_of(world: &World, kind: FrameKind) -> Vec<Vec<u8>> {
    let mut sent = world.network.take_sent(receiver_address());
    sent.retain(|datagram| classify(datagram).unwrap() == kind);
    sent
}

/// Heartbeats only; other data frames have a length.
fn heartbeats(world: &World) -> Vec<DataHeader> {
    let frames = sent_of(world, FrameKind::Data)
        .into_iter()
        .map(|bytes| DataHeader::decode(&bytes).unwrap());
    frames.filter(|frame| frame.frame_length == 0).collect()
}

#[test]
fn setups_repeat_every_100_ms_until_a_status_message_comes() {
    let mut world = sender_alone();
    let first = sent_of(&world, FrameKind::Setup);
    assert_eq!(first.len(), 1, "the first goes out at once");
    let setup = Setup::decode(&first[0]).unwrap();
    assert_eq!(
        (
            setup.initial_term_id,
            setup.active_term_id,
            setup.term_offset,
            setup.flags,
            setup.ttl
        ),
        (i32::MAX, i32::MAX, 0, 0, 0)
    );
    assert_eq!((setup.term_length as usize, setup.mtu), (TERM_LENGTH, 1408));
    world.run_for(SECOND);
    let repeated = sent_of(&world, FrameKind::Setup).len();
    assert!((9..=10).contains(&repeated), "{repeated} in a second");
    assert!(!world.publication.has_receivers());
    inject(&world, &status(0, 0));
    world.run_for(SECOND);
    assert!(sent_of(&world, FrameKind::Setup).len() <= 1);
    assert!(world.publication.has_receivers());
    assert!(world.publication.log.metadata().is_connected_acquire());
    assert_eq!(world.publication.sender_limit.get(), i64::from(WINDOW));
}

#[test]
fn nothing_is_sent_beyond_the_limit_and_running_into_it_counts_once() {
    let mut world = sender_alone();
    inject(&world, &status(0, 0));
    world.run_for(2 * MILLISECOND);
    while world.offer(&[1; 992]) {
        world.step();
    }
    world.run_for(5 * MILLISECOND);
    assert_eq!(world.publication.sender_position.get(), i64::from(WINDOW));
    assert_eq!(world.publication.back_pressure_events.get(), 1);
    assert_eq!(world.counter(system_counter::SENDER_FLOW_CONTROL_LIMITS), 1);
    inject(&world, &status(0, 1024));
    world.run_for(5 * MILLISECOND);
    assert_eq!(world.publication.sender_position.get(), i64::from(WINDOW) + 1024);
    assert_eq!(world.publication.back_pressure_events.get(), 2);
}

#[test]
fn an_idle_stream_beats_and_says_when_it_ended_or_was_revoked() {
    let mut world = sender_alone();
    world.run_for(SECOND);
    assert!(heartbeats(&world).is_empty(), "never connected");
    inject(&world, &status(0, 0));
    world.run_for(2 * MILLISECOND);
    assert!(world.offer(&[1; 100]));
    world.run_for(2 * MILLISECOND);
    world.network.take_sent(receiver_address());
    world.run_for(SECOND);
    let beats = heartbeats(&world);
    assert!((9..=10).contains(&beats.len()), "{} in a second", beats.len());
    let expected = DataHeader::heartbeat(SESSION_ID, STREAM_ID, i32::MAX, 160, data::FLAGS_UNFRAGMENTED);
    assert!(beats.iter().all(|beat| *beat == expected));
    assert!(world.counter(system_counter::HEARTBEATS_SENT) >= beats.len() as i64);

    let metadata = world.publication.log.metadata().clone();
    metadata.put_end_of_stream_position_release(192);
    world.publication.set_end_of_stream();
    world.run_for(SECOND / 5);
    assert!(
        heartbeats(&world).iter().all(|beat| beat.flags == 0xC0),
        "not all is sent"
    );
    metadata.put_end_of_stream_position_release(160);
    world.run_for(SECOND / 5);
    assert!(heartbeats(&world).iter().any(|beat| beat.flags == 0xE0));
    metadata.put_is_publication_revoked_release();
    world.run_for(SECOND / 5);
    assert!(heartbeats(&world).iter().any(|beat| beat.flags == 0xF0));
}

#[test]
fn a_receiver_counts_until_it_is_silent_for_5_s_or_says_goodbye() {
    let mut world = sender_alone();
    inject(&world, &status(0, 0));
    world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
    world.run_for(5 * SECOND - MILLISECOND);
    assert!(world.publication.has_receivers());
    world.run_for(2 * MILLISECOND);
    assert!(!world.publication.has_receivers());
    assert!(!world.publication.log.metadata().is_connected_acquire());

    inject(&world, &status(0, 0));
    world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
    assert!(!world.publication.is_end_of_stream_confirmed());
    inject(&world, &status(status_message::FLAG_END_OF_STREAM, 0));
    world.run_until(SECOND, "a farewell", |world| !world.publication.has_receivers());
    assert!(world.publication.is_end_of_stream_confirmed());
}

#[test]
fn a_receiver_may_ask_for_the_setup_again() {
    let mut world = sender_alone();
    inject(&world, &status(0, 0));
    world.run_for(SECOND);
    sent_of(&world, FrameKind::Setup);
    inject(&world, &status(status_message::FLAG_SETUP, 0));
    world.run_for(SECOND);
    assert_eq!(sent_of(&world, FrameKind::Setup).len(), 1);
    world.publication.set_end_of_stream();
    inject(&world, &status(status_message::FLAG_SETUP, 0));
    world.run_for(SECOND);
    assert_eq!(
        sent_of(&world, FrameKind::Setup).len(),
        0,
        "an ended stream is not joined"
    );
}

#[test]
fn status_messages_that_cannot_be_are_refused() {
    let mut world = sender_alone();
    let mut far = status(0, 0);
    far.consumption_term_id = far.consumption_term_id.wrapping_add(1);
    inject(&world, &far);
    let mut wide = status(0, 0);
    wide.receiver_window_length = TERM_LENGTH as i32 / 2 + 1;
    inject(&world, &wide);
    inject(&world, &status(0, 33));
    let mut unknown = status(0, 0);
    unknown.session_id += 1;
    inject(&world, &unknown);
    world
        .network
        .inject(receiver_address(), sender_address(), &[1, 2, 3]);
    world.network.inject(receiver_address(), sender_address(), &[]);
    world.run_for(MILLISECOND);
    assert_eq!(world.publication.sender_limit.get(), 0);
    assert_eq!(world.counter(system_counter::STATUS_MESSAGES_REJECTED), 1);
    assert_eq!(world.counter(system_counter::STATUS_MESSAGES_RECEIVED), 2);
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 4);
}

fn connected_with_messages(count: usize) -> World {
    let mut world = sender_alone();
    inject(&world, &status(0, 0));
    world.run_for(2 * MILLISECOND);
    for _ in 0..count {
        assert!(world.offer(&[5; 992]));
    }
    world.run_for(2 * MILLISECOND);
    world.network.take_sent(receiver_address());
    world
}

fn nak(term_offset: i32, length: i32) -> Vec<u8> {
    let nak = Nak {
        flags: 0,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        term_id: i32::MAX,
        term_offset,
        length,
    };
    let mut frame = vec![0; Nak::LENGTH];
    nak.encode(&mut frame);
    frame
}

#[test]
fn a_nak_is_answered_with_the_missing_frames_once_per_linger() {
    let mut world = connected_with_messages(4);
    for _ in 0..3 {
        world
            .network
            .inject(receiver_address(), sender_address(), &nak(1024, 2048));
    }
    world.run_for(MILLISECOND);
    let sent = sent_of(&world, FrameKind::Data);
    let offsets: Vec<i32> = sent
        .iter()
        .map(|bytes| DataHeader::decode(bytes).unwrap().term_offset)
        .collect();
    assert_eq!(offsets, [1024, 2048]);
    assert_eq!(world.publication.naks_received.get(), 3);
    assert_eq!(world.counter(system_counter::RETRANSMITS_SENT), 1);
    assert_eq!(world.counter(system_counter::RETRANSMITTED_BYTES), 2048);
    world.run_for(11 * MILLISECOND);
    world
        .network
        .inject(receiver_address(), sender_address(), &nak(1024, 1024));
    world.run_for(MILLISECOND);
    assert_eq!(sent_of(&world, FrameKind::Data).len(), 1);
}

#[test]
fn naks_for_what_was_not_sent_or_cannot_be_are_not_answered() {
    let mut world = connected_with_messages(2);
    for (term_offset, length) in [
        (2048, 1024),
        (0, 0),
        (-32, 64),
        (32, TERM_LENGTH as i32),
        (33, 32),
    ] {
        world
            .network
            .inject(receiver_address(), sender_address(), &nak(term_offset, length));
    }
    world.run_for(MILLISECOND);
    assert_eq!(sent_of(&world, FrameKind::Data).len(), 0);
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 3);
    assert_eq!(world.counter(system_counter::NAK_MESSAGES_RECEIVED), 2);
}

#[test]
fn a_probe_comes_back_the_way_data_goes() {
    let mut world = connected_with_messages(0);
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        echo_timestamp_ns: 123_456,
        reception_delta_ns: 9,
        receiver_id: RECEIVER_ID,
    };
    let mut frame = [0; RttMeasurement::LENGTH];
    probe.encode(&mut frame);
    world.network.inject(receiver_address(), sender_address(), &frame);
    probe.echo().encode(&mut frame);
    world.network.inject(receiver_address(), sender_address(), &frame);
    world.run_for(MILLISECOND);
    let echoes = sent_of(&world, FrameKind::RttMeasurement);
    assert_eq!(echoes.len(), 1);
    let echo = RttMeasurement::decode(&echoes[0]).unwrap();
    assert_eq!(
        (echo.flags, echo.echo_timestamp_ns, echo.reception_delta_ns),
        (0, 123_456, 0)
    );
}

#[test]
fn an_error_frame_removes_its_receiver_and_is_reported_once() {
    let mut world = connected_with_messages(0);
    let error = ErrorFrame {
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        receiver_id: RECEIVER_ID,
        group_tag: None,
        error_code: 13,
        text: "not wanted".into(),
    };
    let mut frame = [0; ErrorFrame::LENGTH_MAX];
    let length = error.encode(&mut frame);
    for _ in 0..2 {
        world
            .network
            .inject(receiver_address(), sender_address(), &frame[..length]);
    }
    world.run_for(MILLISECOND);
    assert!(!world.publication.has_receivers());
    assert_eq!(world.counter(system_counter::ERROR_FRAMES_RECEIVED), 2);
    let [
        ConductorRequest::PublicationError {
            registration_id: 11,
            frame,
            source,
        },
    ] = &world.requests[..]
    else {
        panic!("{} requests", world.requests.len());
    };
    assert_eq!((frame.text.as_ref(), *source), ("not wanted", receiver_address()));
}

#[test]
fn a_silent_channel_asks_for_its_name_and_follows_it() {
    let mut world = sender_alone();
    world.run_for(4 * SECOND);
    assert!(world.requests.is_empty());
    world.run_for(3 * SECOND);
    assert!(matches!(world.requests[..], [ConductorRequest::ReResolve { .. }]));
    world.reconnect(address(7));
    world.run_for(SECOND);
    assert_eq!(world.counter(system_counter::RESOLUTION_CHANGES), 1);
    assert!(!world.network.take_sent(address(7)).is_empty());
}

#[test]
fn a_removed_publication_is_released_and_silent() {
    let mut world = connected_with_messages(1);
    world.remove_publication();
    world.run_for(MILLISECOND);
    assert!(matches!(
        world.replies[..],
        [ConductorReply::PublicationReleased { registration_id: 11 }]
    ));
    world.network.take_sent(receiver_address());
    world
        .network
        .inject(receiver_address(), sender_address(), &nak(0, 1024));
    world.run_for(SECOND);
    assert!(world.network.take_sent(receiver_address()).is_empty());
}
