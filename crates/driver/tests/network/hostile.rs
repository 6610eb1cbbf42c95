//! Whatever arrives, the agents neither panic nor stop working.

use headrace_driver::proxy::ConductorReply;
use headrace_protocol::frame::{FrameKind, classify};
use proptest::prelude::*;

use crate::simulated::{Faults, Network};
use crate::world::{MILLISECOND, SECOND, Stream, World, receiver_address, sender_address};

/// Frames as both sides really send them, to be bent.
fn specimens() -> Vec<Vec<u8>> {
    let mut world = World::new(Stream::default(), Network::new(2));
    world.subscribe(None);
    world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
    let faults = Faults {
        loss: 0.3,
        ..Faults::default()
    };
    world.network.set_faults(faults);
    for i in 0..40 {
        world.offer(&vec![i; 64 * usize::from(i)]);
        world.run_for(MILLISECOND);
    }
    world.publication.set_end_of_stream();
    world.run_for(SECOND / 2);
    world.reject_image("no thanks");
    world.run_for(SECOND / 2);
    let mut all = world.network.take_sent(receiver_address());
    all.extend(world.network.take_sent(sender_address()));
    for kind in [
        FrameKind::Setup,
        FrameKind::Data,
        FrameKind::StatusMessage,
        FrameKind::Nak,
        FrameKind::Error,
    ] {
        assert!(
            all.iter().any(|bytes| classify(bytes) == Ok(kind)),
            "no specimen of {kind:?}"
        );
    }
    all
}

/// A change to a datagram.
#[derive(Clone, Debug)]
enum Bend {
    Byte(prop::sample::Index, u8),
    Word(prop::sample::Index, i32),
    Truncate(prop::sample::Index),
    Append(Vec<u8>),
}

fn bend() -> impl Strategy<Value = Bend> {
    let word = prop_oneof![
        Just(0),
        Just(-1),
        Just(i32::MIN),
        Just(i32::MAX),
        -64..64i32,
        any::<i32>().prop_map(|word| word & !31),
        any::<i32>()
    ];
    prop_oneof![
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, value)| Bend::Byte(at, value)),
        (any::<prop::sample::Index>(), word).prop_map(|(at, value)| Bend::Word(at, value)),
        any::<prop::sample::Index>().prop_map(Bend::Truncate),
        prop::collection::vec(any::<u8>(), 0..64).prop_map(Bend::Append),
    ]
}

fn apply(bends: &[Bend], datagram: &mut Vec<u8>) {
    for bend in bends {
        match bend {
            Bend::Append(bytes) => datagram.extend_from_slice(bytes),
            _ if datagram.is_empty() => {}
            Bend::Byte(at, value) => {
                let at = at.index(datagram.len());
                datagram[at] = *value;
            }
            Bend::Word(at, value) => {
                let at = at.index(datagram.len()) & !3;
                if let Some(word) = datagram.get_mut(at..at + 4) {
                    word.copy_from_slice(&value.to_le_bytes());
                }
            }
            Bend::Truncate(at) => datagram.truncate(at.index(datagram.len())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bent_frames_do_no_harm(
        attacks in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(bend(), 0..3), any::<bool>()),
            1..200,
        ),
    ) {
        thread_local!(static SPECIMENS: Vec<Vec<u8>> = specimens());
        let mut world = World::new(Stream::default(), Network::new(1));
        world.subscribe(None);
        world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
        world.creates_images = false;
        for (which, bends, to_sender) in &attacks {
            let mut datagram = SPECIMENS.with(|all| which.get(all).clone());
            apply(bends, &mut datagram);
            let (from, to) = (receiver_address(), sender_address());
            let (from, to) = if *to_sender { (from, to) } else { (to, from) };
            world.network.inject(from, to, &datagram);
            world.offer(&[9; 200]);
            world.step();
        }
        // Frames that look right are believed, so the stream may be over; but both agents still obey.
        world.run_for(10 * MILLISECOND);
        world.replies.clear();
        world.remove_publication();
        world.remove_image();
        world.run_for(10 * MILLISECOND);
        let released = |event: &ConductorReply| matches!(
            event,
            ConductorReply::PublicationReleased { .. } | ConductorReply::ImageReleased { .. }
        );
        prop_assert_eq!(world.replies.iter().filter(|event| released(event)).count(), 2);
    }
}
