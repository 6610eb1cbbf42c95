//! Whatever the network does, the subscriber reads the publisher's bytes, in order, once.

use headrace_buffers::counters::system_counter;
use headrace_protocol::frame::{DataHeader, FrameKind, classify, validate_data};
use headrace_sys::net::{OffloadMode, SocketOptions, UdpSocket};
use proptest::prelude::*;

use crate::simulated::{Faults, Network};
use crate::world::{Ends, SECOND, Stream, TERM_LENGTH, World, receiver_address};

/// Rules for every datagram on the wire: whole frames of one term, not longer than the MTU.
fn check_wire(world: &World, mtu: usize) {
    for datagram in world.network.take_sent(receiver_address()) {
        if matches!(classify(&datagram).unwrap(), FrameKind::Data | FrameKind::Pad) {
            assert!(
                datagram.len() <= mtu && datagram.len() % 32 == 0,
                "length={}",
                datagram.len()
            );
            let packet = validate_data(&datagram, TERM_LENGTH as i32).unwrap();
            let mut at = 0;
            while at < datagram.len() {
                let frame = DataHeader::decode(&datagram[at..]).unwrap();
                assert_eq!(frame.term_id, packet.term_id);
                at += (frame.frame_length.max(32) as usize).next_multiple_of(32);
            }
        }
    }
}

fn deliver(stream: Stream, faults: Faults, lengths: &[usize], seed: u64) -> World {
    let mut world = World::new(stream, Network::new(seed));
    world.network.set_faults(faults);
    world.subscribe(None);
    let mut random = fastrand::Rng::with_seed(seed);
    let messages: Vec<Vec<u8>> = lengths
        .iter()
        .map(|length| std::iter::repeat_with(|| random.u8(..)).take(*length).collect())
        .collect();
    let mut offered = 0;
    // Twenty per cent of loss hits repairs of repairs too: be patient in simulated, not in real time.
    world.run_until(120 * SECOND, "delivery", |world| {
        while offered < messages.len() && world.offer(&messages[offered]) {
            offered += 1;
        }
        check_wire(world, stream.mtu);
        world
            .image
            .as_ref()
            .is_some_and(|image| image.messages.len() >= messages.len())
    });
    world.run_for(SECOND / 10);
    assert!(
        world.image().messages == messages,
        "the bytes differ from those offered"
    );
    assert_eq!(world.counter(system_counter::INVALID_PACKETS), 0);
    world
}

fn total(lengths: &[usize]) -> usize {
    lengths
        .iter()
        .map(|length| (length + 32).next_multiple_of(32))
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_subscriber_reads_what_was_published_in_order_and_once(
        mtu in prop::sample::select(vec![64usize, 352, 1408, 8192]),
        initial_term_id: i32,
        loss in 0.0..0.2f64,
        duplication in 0.0..0.2f64,
        delay in 0.0..0.4f64,
        short_send in 0.0..0.1f64,
        lengths in prop::collection::vec(prop_oneof![0usize..64, 0usize..2000, 0usize..8193], 1..160),
        seed: u64,
    ) {
        let stream = Stream { mtu, initial_term_id, ..Stream::default() };
        deliver(stream, Faults { loss, duplication, delay, short_send }, &lengths, seed);
    }
}

#[test]
fn a_stream_much_longer_than_its_log_survives_heavy_loss() {
    let lengths = vec![900; 1_000];
    let faults = Faults {
        loss: 0.2,
        duplication: 0.1,
        delay: 0.3,
        short_send: 0.05,
    };
    assert!(total(&lengths) > 12 * TERM_LENGTH);
    let world = deliver(Stream::default(), faults, &lengths, 7);
    for counter in [
        system_counter::NAK_MESSAGES_SENT,
        system_counter::NAK_MESSAGES_RECEIVED,
        system_counter::RETRANSMITS_SENT,
        system_counter::RETRANSMITTED_BYTES,
        system_counter::SHORT_SENDS,
    ] {
        assert!(world.counter(counter) > 0, "system counter {counter}");
    }
}

#[test]
fn a_clean_network_needs_no_repair() {
    let world = deliver(Stream::default(), Faults::default(), &vec![1_000; 500], 1);
    assert_eq!(world.counter(system_counter::NAK_MESSAGES_SENT), 0);
    assert_eq!(world.counter(system_counter::RETRANSMITS_SENT), 0);
    assert_eq!(world.counter(system_counter::SHORT_SENDS), 0);
    let position = world.publication.sender_position.get();
    assert!(world.counter(system_counter::BYTES_SENT) >= position);
    assert_eq!(world.image().position, position);
}

#[test]
fn an_unreliable_stream_skips_what_is_lost() {
    let stream = Stream {
        reliable: false,
        ..Stream::default()
    };
    let mut world = World::new(stream, Network::new(3));
    world.subscribe(None);
    world.run_until(SECOND, "a connection", |world| world.publication.has_receivers());
    world.network.set_faults(Faults {
        loss: 0.3,
        ..Faults::default()
    });
    let mut offered = 0;
    world.run_until(60 * SECOND, "the end of the stream", |world| {
        while offered < 300 && world.offer(&[offered as u8; 1_300]) {
            offered += 1;
        }
        offered == 300 && world.image().position == world.appender.position()
    });
    let read = &world.image().messages;
    assert!(
        read.len() < 300 && read.len() > 100,
        "{} of 300 arrived",
        read.len()
    );
    assert!(world.counter(system_counter::LOSS_GAP_FILLS) > 0);
    assert_eq!(world.counter(system_counter::NAK_MESSAGES_SENT), 0);
}

/// The same over the system's own sockets, whichever way they move datagrams at either end.
#[test]
fn real_sockets_deliver_in_every_mode() {
    let modes = [
        OffloadMode::Segmentation,
        OffloadMode::Vectored,
        OffloadMode::Single,
    ];
    let socket = |offload| {
        let options = SocketOptions {
            offload,
            ..SocketOptions::default()
        };
        UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
    };
    for (send, receive) in modes
        .iter()
        .flat_map(|send| modes.map(|receive| (*send, receive)))
    {
        let (to_receivers, to_senders) = (socket(send), socket(receive));
        let remote = to_senders.local_addr().unwrap();
        to_receivers.connect(remote).unwrap();
        let ends = Ends {
            to_receivers: Box::new(to_receivers),
            to_senders: Box::new(to_senders),
            remote,
        };
        let mut world = World::over(Stream::default(), Network::new(1), ends);
        world.subscribe(None);
        let mut random = fastrand::Rng::with_seed(5);
        let messages: Vec<Vec<u8>> = (0..2_000)
            .map(|i| vec![i as u8; if i % 3 == 0 { random.usize(0..3_000) } else { 100 }])
            .collect();
        let mut offered = 0;
        world.run_until(60 * SECOND, "delivery", |world| {
            while offered < messages.len() && world.offer(&messages[offered]) {
                offered += 1;
            }
            world
                .image
                .as_ref()
                .is_some_and(|image| image.messages.len() >= messages.len())
        });
        assert!(world.image().messages == messages, "{send:?} to {receive:?}");
        assert_eq!(world.counter(system_counter::INVALID_PACKETS), 0);
    }
}
