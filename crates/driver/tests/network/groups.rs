//! A publication whose receivers form a group, with the test as its receivers.

use headrace_buffers::counters::system_counter;
use headrace_protocol::flow::Group;
use headrace_protocol::frame::{
    ErrorFrame, FrameKind, Nak, Setup, StatusMessage, classify, setup, status_message,
};

use crate::simulated::{Faults, Network};
use crate::world::{
    GROUP_MAX_RESEND, MILLISECOND, SECOND, SESSION_ID, STREAM_ID, Stream, WINDOW, World, receiver_address,
    sender_address,
};

const TAG: i64 = 1001;
const TIMEOUT_NS: i64 = 2 * SECOND;

/// A world whose receiver hears nothing, so that only what the test injects comes back.
fn world(tag: Option<i64>, min_size: usize) -> World {
    let group = Group {
        tag,
        min_size,
        receiver_timeout_ns: TIMEOUT_NS,
    };
    let stream = Stream {
        group: Some(group),
        ..Stream::default()
    };
    let mut world = World::new(stream, Network::new(1));
    world.network.set_faults(Faults {
        loss: 1.0,
        ..Faults::default()
    });
    world.run_for(MILLISECOND);
    world
}

fn status(receiver_id: i64, position: i32) -> StatusMessage {
    StatusMessage {
        flags: 0,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        consumption_term_id: i32::MAX,
        consumption_term_offset: position,
        receiver_window_length: WINDOW,
        receiver_id,
        group_tag: None,
    }
}

fn receive(world: &mut World, message: StatusMessage) {
    let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
    let length = message.encode(&mut frame);
    inject(world, &frame[..length]);
}

fn inject(world: &mut World, frame: &[u8]) {
    world.network.inject(receiver_address(), sender_address(), frame);
    world.run_for(MILLISECOND);
}

fn counted(world: &World) -> i64 {
    world.publication.flow_control_receivers.as_ref().unwrap().get()
}

fn limit(world: &World) -> i64 {
    world.publication.sender_limit.get()
}

#[test]
fn a_group_is_connected_when_it_has_its_size_and_its_slowest_receiver_decides() {
    let mut world = world(None, 2);
    let window = i64::from(WINDOW);
    receive(&mut world, status(1, 0));
    assert!(!world.publication.has_receivers() && !world.publication.log.metadata().is_connected_acquire());
    assert_eq!((counted(&world), limit(&world)), (1, 0));
    receive(&mut world, status(2, 0));
    assert!(world.publication.has_receivers() && world.publication.log.metadata().is_connected_acquire());
    assert_eq!((counted(&world), limit(&world)), (2, window));
    assert!(world.offer(&[7; 4000]));
    world.run_for(MILLISECOND);
    receive(&mut world, status(1, 4032));
    assert_eq!(limit(&world), window, "the other has not moved");
    receive(&mut world, status(2, 1408));
    assert_eq!(limit(&world), window + 1408);
    let farewell = StatusMessage {
        flags: status_message::FLAG_END_OF_STREAM,
        ..status(2, 1408)
    };
    receive(&mut world, farewell);
    assert_eq!(counted(&world), 1, "gone within a duty cycle");
    assert!(!world.publication.has_receivers(), "too few are left");
    assert!(
        !world.publication.is_end_of_stream_confirmed(),
        "one of a group does not speak for all"
    );
}

#[test]
fn a_receiver_that_leaves_refuses_or_falls_silent_frees_the_others() {
    let window = i64::from(WINDOW);
    for way in ["leaves", "refuses", "falls silent"] {
        let mut world = world(None, 0);
        receive(&mut world, status(1, 0));
        receive(&mut world, status(2, 0));
        assert!(world.offer(&[7; 4000]));
        world.run_for(MILLISECOND);
        receive(&mut world, status(1, 4032));
        assert_eq!((limit(&world), counted(&world)), (window, 2), "{way}");
        match way {
            "leaves" => receive(
                &mut world,
                StatusMessage {
                    flags: status_message::FLAG_END_OF_STREAM,
                    ..status(2, 0)
                },
            ),
            "refuses" => {
                let error = ErrorFrame {
                    session_id: SESSION_ID,
                    stream_id: STREAM_ID,
                    receiver_id: 2,
                    group_tag: None,
                    error_code: 13,
                    text: String::new(),
                };
                let mut bytes = [0; ErrorFrame::LENGTH_MAX];
                let length = error.encode(&mut bytes);
                inject(&mut world, &bytes[..length]);
            }
            _ => {
                world.run_for(TIMEOUT_NS - MILLISECOND);
                receive(&mut world, status(1, 4032));
                world.run_for(2 * MILLISECOND);
            }
        }
        assert_eq!((limit(&world), counted(&world)), (window + 4032, 1), "{way}");
        assert!(world.publication.has_receivers(), "{way}");
    }
}

#[test]
fn only_receivers_with_the_tag_hold_a_tagged_group_back() {
    let mut world = world(Some(TAG), 1);
    receive(&mut world, status(1, 0));
    assert!(!world.publication.has_receivers(), "the wrong tag");
    let tagged = StatusMessage {
        group_tag: Some(TAG),
        ..status(2, 0)
    };
    receive(&mut world, tagged);
    assert!(world.publication.has_receivers());
    assert_eq!((counted(&world), limit(&world)), (1, i64::from(WINDOW)));
}

#[test]
fn a_newcomer_that_asks_for_a_setup_is_not_overrun_before_it_speaks() {
    let mut world = world(None, 0);
    let window = i64::from(WINDOW);
    receive(&mut world, status(1, 0));
    world.network.take_sent(receiver_address());
    receive(
        &mut world,
        StatusMessage {
            flags: status_message::FLAG_SETUP,
            ..status(2, 0)
        },
    );
    world.run_for(SECOND / 5);
    let mut sent = world.network.take_sent(receiver_address());
    sent.retain(|datagram| classify(datagram) == Ok(FrameKind::Setup));
    assert_eq!(Setup::decode(&sent[0]).unwrap().flags, setup::FLAG_GROUP);
    assert!(world.offer(&[7; 4000]));
    world.run_for(MILLISECOND);
    receive(&mut world, status(1, 4032));
    assert_eq!(limit(&world), window, "held where the SETUP was sent");
    receive(&mut world, status(2, 4032));
    receive(&mut world, status(1, 4032));
    assert_eq!(limit(&world), window + 4032);
}

#[test]
fn a_group_has_as_many_repairs_at_a_time_as_its_channel_says() {
    let mut world = world(None, 0);
    receive(&mut world, status(1, 0));
    for _ in 0..4 {
        assert!(world.offer(&[7; 1000]));
    }
    world.run_for(MILLISECOND);
    world.network.take_sent(receiver_address());
    for index in 0..4 {
        let nak = Nak {
            flags: 0,
            session_id: SESSION_ID,
            stream_id: STREAM_ID,
            term_id: i32::MAX,
            term_offset: index * 1056,
            length: 1056,
        };
        let mut frame = [0; Nak::LENGTH];
        nak.encode(&mut frame);
        inject(&mut world, &frame);
    }
    assert_eq!(
        world.counter(system_counter::RETRANSMITS_SENT),
        GROUP_MAX_RESEND as i64
    );
    assert_eq!(world.counter(system_counter::RETRANSMIT_OVERFLOW), 2);
}

#[test]
fn strangers_beyond_the_bound_are_counted_and_not_remembered() {
    let mut world = world(None, 0);
    let forever = 5000;
    for id in 0..forever {
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = status(id, 0).encode(&mut frame);
        world
            .network
            .inject(receiver_address(), sender_address(), &frame[..length]);
    }
    world.run_until(SECOND, "all status messages", |world| {
        world.counter(system_counter::STATUS_MESSAGES_RECEIVED) == forever
    });
    assert_eq!(
        world.counter(system_counter::STATUS_MESSAGES_REJECTED),
        forever - counted(&world)
    );
    assert_eq!(counted(&world), 4096);
}
