//! Round trips: probes from an image, echoes from its sender.

use headrace_buffers::counters::system_counter;
use headrace_protocol::frame::{FrameKind, RttMeasurement, classify, rtt};

use crate::simulated::Network;
use crate::world::{
    MILLISECOND, RECEIVER_ID, SECOND, SESSION_ID, STEP_NS, STREAM_ID, Stream, World, receiver_address,
    sender_address,
};

fn connected(initial_rtt_ns: Option<i64>) -> World {
    let stream = Stream {
        initial_rtt_ns,
        ..Stream::default()
    };
    let mut world = World::new(stream, Network::new(1));
    world.subscribe(None);
    world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
    world
}

fn measurements_to(world: &World, to: std::net::SocketAddr) -> Vec<RttMeasurement> {
    let mut sent = world.network.take_sent(to);
    sent.retain(|datagram| classify(datagram) == Ok(FrameKind::RttMeasurement));
    sent.iter()
        .map(|datagram| RttMeasurement::decode(datagram).unwrap())
        .collect()
}

#[test]
fn an_image_measures_the_round_trip_when_asked_to() {
    let mut world = connected(Some(STEP_NS));
    world.run_until(SECOND, "a measurement", |world| {
        world.image().shared.round_trip_after(0).is_some()
    });
    let (_, rtt_ns) = world.image().shared.round_trip_after(0).unwrap();
    assert!(
        rtt_ns > 0 && rtt_ns % STEP_NS == 0 && rtt_ns <= 10 * STEP_NS,
        "{rtt_ns}"
    );
    let probes = measurements_to(&world, sender_address());
    assert!(!probes.is_empty());
    for probe in &probes {
        assert_eq!((probe.flags, probe.receiver_id), (rtt::FLAG_REPLY, RECEIVER_ID));
    }
    world.run_for(SECOND / 10);
    let count = measurements_to(&world, sender_address()).len() as i64;
    let longest_wait_ns = 5 * 10 * STEP_NS;
    assert!(count >= SECOND / 10 / longest_wait_ns - 1, "{count} probes");
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 0);
}

#[test]
fn an_image_that_was_not_asked_to_sends_no_probe() {
    let mut world = connected(None);
    world.run_for(SECOND);
    assert_eq!(measurements_to(&world, sender_address()), []);
}

#[test]
fn echoes_that_answer_no_probe_are_counted_and_measure_nothing() {
    for initial_rtt_ns in [None, Some(100 * SECOND)] {
        let mut world = connected(initial_rtt_ns);
        world.run_for(MILLISECOND);
        let before = world.image().shared.round_trip_after(0).map(|(change, _)| change);
        for receiver_id in [RECEIVER_ID, RECEIVER_ID + 1] {
            let forged = RttMeasurement {
                flags: 0,
                session_id: SESSION_ID,
                stream_id: STREAM_ID,
                echo_timestamp_ns: 1,
                reception_delta_ns: 0,
                receiver_id,
            };
            let mut frame = [0; RttMeasurement::LENGTH];
            forged.encode(&mut frame);
            world.network.inject(sender_address(), receiver_address(), &frame);
        }
        world.run_for(MILLISECOND);
        let after = world.image().shared.round_trip_after(0).map(|(change, _)| change);
        assert_eq!(after, before);
        assert_eq!(
            world.counter(system_counter::INVALID_PACKETS),
            1,
            "one for another receiver of the group is no error"
        );
    }
}
