//! A driver that has no turn for long: its process stands still while the network brings what it has to know.

mod common;

use std::net::SocketAddr;

use common::peer::Peer;
use common::{CHANNEL, MILLISECOND, Reader, SECOND, STREAM, World, is_accepted};
use headrace_protocol::frame::{DataHeader, Setup, data};

const SESSION: i32 = -77;
const WHOLE: u8 = data::FLAGS_UNFRAGMENTED;
const ENDS: u8 = WHOLE | data::FLAG_END_OF_STREAM;

/// An image is silent if nothing has come for it, and not if nothing of it was looked at.
#[test]
fn what_lies_in_the_socket_keeps_an_image_alive() {
    let world = World::without_rules(2);
    let left = world.add_node("left").unwrap();
    let right = world.add_node_with("right", |config| {
        config.image_liveness_timeout_ns = 3 * SECOND;
        Ok(())
    });
    let right = right.unwrap();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, CHANNEL, STREAM);
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || {
        publication.is_connected() && reader.subscription.is_connected()
    });
    let image = reader.subscription.images().remove(0);
    right.pause();
    for _ in 0..10 {
        assert!(is_accepted(publication.offer(b"in the pause")));
    }
    world.run_for(4 * SECOND);
    right.resume();
    world.run_until(SECOND, "the messages", || {
        reader.poll();
        reader.messages.len() == 10
    });
    assert!(!image.is_closed());
}

/// One path says that the stream ends, the other goes on.
#[test]
fn a_path_that_lives_holds_a_stream_open_that_another_ends() {
    for living in [0, 1] {
        let world = World::without_rules(1);
        let peer = Peer::at(&world, 8);
        let node = world.add_node("right").unwrap();
        let client = node.connect().unwrap();
        let mut reader = Reader::subscribe(&client, "aeron:udp?control-mode=manual", STREAM);
        let ports = [40_123, 40_124];
        for port in ports {
            let path = format!("aeron:udp?endpoint=right:{port}");
            reader.subscription.destinations().add(&path).unwrap();
        }
        let send = |path: usize, frame: &[u8]| {
            let to = SocketAddr::new(node.address(), ports[path]);
            peer.send_from(ports[path] - 1_000, to, frame);
        };
        let goes_on = |beats: usize| {
            for _ in 0..beats {
                send(1 - living, &frame(1_024, 0, ENDS));
                send(living, &frame(1_024, 0, WHOLE));
                world.run_for(100 * MILLISECOND);
            }
        };
        for path in [0, 1] {
            send(path, &setup());
            world.run_for(5 * MILLISECOND);
        }
        send(0, &frame(0, 1_024, WHOLE));
        goes_on(20);
        reader.poll();
        let image = reader.subscription.images().remove(0);
        node.pause();
        goes_on(60);
        node.resume();
        goes_on(2);
        send(living, &frame(1_024, 1_024, WHOLE));
        goes_on(2);
        assert!(!image.is_end_of_stream() && !image.is_closed(), "{living}");
        assert_eq!(reader.poll().len(), 2, "{living}");
    }
}

fn setup() -> Vec<u8> {
    let setup = Setup {
        flags: 0,
        term_offset: 0,
        session_id: SESSION,
        stream_id: STREAM,
        initial_term_id: 9,
        active_term_id: 9,
        term_length: 65_536,
        mtu: 1408,
        ttl: 0,
    };
    let mut frame = vec![0; Setup::LENGTH];
    setup.encode(&mut frame);
    frame
}

fn frame(offset: i32, length: i32, flags: u8) -> Vec<u8> {
    let header = DataHeader {
        frame_length: length,
        flags,
        is_padding: false,
        term_offset: offset,
        session_id: SESSION,
        stream_id: STREAM,
        term_id: 9,
        reserved_value: 0,
    };
    let mut bytes = vec![7; length.max(32) as usize];
    header.encode(&mut bytes);
    bytes
}
