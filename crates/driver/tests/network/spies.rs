//! A stream that spies alone keep going, with the test as the conductor that watches them.

use headrace_protocol::frame::{FrameKind, classify};

use crate::simulated::{Faults, Network};
use crate::world::{MILLISECOND, SECOND, Stream, TERM_LENGTH, WINDOW, World, receiver_address};

/// A world whose publication is connected through its spies.
fn spied(seed: u64) -> World {
    let stream = Stream {
        spies_simulate_connection: true,
        ..Stream::default()
    };
    let mut world = World::new(stream, Network::new(seed));
    world.run_for(MILLISECOND);
    assert!(!world.publication.is_connected());
    world.publication.set_has_spies(true);
    assert!(world.publication.is_connected());
    world
}

/// A message whose bytes tell which one it is.
fn message(index: usize) -> Vec<u8> {
    (0..900 + index % 100).map(|at| (index * 31 + at) as u8).collect()
}

/// The fastest spy reads all there is.
fn spy(world: &World) {
    let written = world.publication.log.producer_position();
    world.publication.advance_spy_position(written);
}

#[test]
fn spies_alone_carry_the_position_and_only_setups_go_out() {
    let mut world = spied(1);
    for index in 0..300 {
        assert!(world.offer(&message(index)), "message {index}");
        spy(&world);
        world.step();
    }
    let position = world.publication.sender_position.get();
    assert_eq!(position, world.publication.log.producer_position());
    assert!(position > 4 * TERM_LENGTH as i64);
    assert_eq!(world.publication.sender_limit.get(), position);
    let sent = world.network.take_sent(receiver_address());
    assert!(!sent.is_empty());
    for datagram in sent {
        assert_eq!(classify(&datagram).unwrap(), FrameKind::Setup);
    }
}

#[test]
fn without_being_asked_to_spies_move_nothing() {
    let mut world = World::new(Stream::default(), Network::new(1));
    world.publication.set_has_spies(true);
    assert!(!world.publication.is_connected());
    assert!(world.offer(&message(0)));
    spy(&world);
    world.run_for(MILLISECOND);
    assert_eq!(world.publication.sender_position.get(), 0);
}

#[test]
fn what_the_last_spy_had_read_is_not_sent_again() {
    let mut world = spied(1);
    assert!(world.offer(&message(0)));
    spy(&world);
    world.publication.set_has_spies(false);
    world.run_for(MILLISECOND);
    assert_eq!(
        world.publication.sender_position.get(),
        world.publication.log.producer_position()
    );
}

/// A receiver joins a spied stream over a bad network: it gets every message from there on, once and in order,
/// however far ahead the spies are.
#[test]
fn a_receiver_joins_where_the_spies_are_and_then_sets_the_pace() {
    for seed in 1..=20 {
        let mut world = spied(seed);
        let spied_count = 40 + seed as usize;
        for index in 0..spied_count {
            assert!(world.offer(&message(index)), "message {index} seed={seed}");
            spy(&world);
            world.step();
        }
        world.subscribe(None);
        world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
        let joined = world.publication.sender_position.get();
        world.network.set_faults(Faults {
            loss: 1.0,
            ..Faults::default()
        });
        let mut next = spied_count;
        while world.offer(&message(next)) {
            next += 1;
            assert!(next < spied_count + 100, "spies set the pace, seed={seed}");
            spy(&world);
            world.step();
        }
        assert!(
            world.publication.spy_position() > joined + i64::from(WINDOW),
            "seed={seed}"
        );
        // Past the limit only by what a padding frame at the end of a term spans.
        let sent = world.publication.sender_position.get();
        assert!(sent < joined + i64::from(WINDOW) + 1056, "seed={seed}");
        world.network.set_faults(Faults {
            loss: 0.1,
            duplication: 0.1,
            delay: 0.1,
            short_send: 0.05,
        });
        let count = 200;
        world.run_until(60 * SECOND, &format!("all messages, seed={seed}"), |world| {
            if next < spied_count + count && world.offer(&message(next)) {
                next += 1;
                spy(world);
            }
            world.image().messages.len() == count
        });
        for (at, received) in world.image().messages.iter().enumerate() {
            assert!(
                *received == message(spied_count + at),
                "message {at} differs, seed={seed}"
            );
        }
    }
}
