//! Two publishers of one stream, lines A and B.

mod common;

use std::sync::Arc;

use common::{MILLISECOND, Reader, SECOND, STREAM, World, errors_of, is_accepted, system_counter, trouble};
use headrace_buffers::counters::system_counter;
use headrace_client::{Client, ExclusivePublication};
use headrace_sim::Node;

const SAME: &str = "session-id=7|init-term-id=5|term-id=5|term-offset=0|term-length=64k|linger=0";

/// Of the reader and of each line.
fn nodes(world: &World) -> [Node; 3] {
    ["reader", "a", "b"].map(|name| world.add_node(name).unwrap())
}

/// A reader of both lines, and their publishers.
fn connected(world: &World, clients: &[Arc<Client>; 3]) -> (Reader, [ExclusivePublication; 2]) {
    let reader = Reader::subscribe(&clients[0], "aeron:udp?control-mode=manual", STREAM);
    let lines = [1, 2].map(|line| {
        let endpoint = format!("aeron:udp?endpoint=reader:4000{line}");
        reader.subscription.destinations().add(&endpoint).unwrap();
        clients[line]
            .add_exclusive_publication(&format!("{endpoint}|{SAME}"), STREAM)
            .unwrap()
    });
    world.run_until(12 * SECOND, "connections", || {
        lines.iter().all(|line| line.is_connected())
    });
    (reader, lines)
}

#[test]
fn a_line_that_is_left_behind_says_so_in_the_error_log_of_its_driver() {
    let world = World::new(3);
    let nodes = nodes(&world);
    let clients = nodes.each_ref().map(|node| node.connect().unwrap());
    let (mut reader, [ahead, behind]) = connected(&world, &clients);
    assert_eq!(errors_of(&nodes[2]), [""; 0]);
    world.run_until(SECOND, "more than half a term", || {
        reader.poll();
        while is_accepted(ahead.offer(&[7; 1_000])) {}
        ahead.position() > Some(40_000)
    });
    world.run_until(10 * SECOND, "the other one is left behind", || {
        reader.poll();
        !behind.is_connected()
    });
    let errors = errors_of(&nodes[2]);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = "a receiver is more than half a term ahead of a publication with streamId=1001";
    assert!(errors[0].contains(text), "{errors:?}");
    assert_eq!(errors_of(&nodes[1]), [""; 0]);
}

/// Each driver sends what its publisher has written since it last looked, so that the lines cut the stream elsewhere.
#[test]
fn two_lines_without_loss_ask_for_nothing() {
    let world = World::new(4);
    let nodes = nodes(&world);
    let clients = nodes.each_ref().map(|node| node.connect().unwrap());
    let (mut reader, lines) = connected(&world, &clients);
    let mut random = fastrand::Rng::with_seed(4);
    let mut written = [0u16; 2];
    for _ in 0..2_000 {
        for (line, next) in lines.iter().zip(&mut written) {
            for _ in 0..random.u16(0..4) {
                if is_accepted(line.offer(&next.to_le_bytes())) {
                    *next += 1;
                }
            }
        }
        world.run_for(MILLISECOND);
        reader.poll();
        if written[0].abs_diff(written[1]) > 10 {
            let behind = usize::from(written[0] > written[1]);
            while written[behind] < written[1 - behind]
                && is_accepted(lines[behind].offer(&written[behind].to_le_bytes()))
            {
                written[behind] += 1;
            }
        }
    }
    let expected: Vec<_> = (0..reader.messages.len() as u16).map(u16::to_le_bytes).collect();
    assert_eq!(reader.messages, expected);
    assert_eq!(system_counter(&nodes[0], system_counter::NAK_MESSAGES_SENT), 0);
}

/// It counts its positions from 0 again: none of what it brings can be what the other line brings there.
#[test]
fn a_line_that_begins_again_is_told_of_at_the_receiver() {
    let world = World::new(5);
    let nodes = nodes(&world);
    let clients = nodes.each_ref().map(|node| node.connect().unwrap());
    let (mut reader, [going_on, restarted]) = connected(&world, &clients);
    drop(restarted);
    world.run_until(20 * SECOND, "more than a term", || {
        reader.poll();
        while is_accepted(going_on.offer(&[7; 1_000])) {}
        going_on.position() > Some(200_000)
    });
    world.run_for(8 * SECOND); // the session of the old one is free
    assert_eq!(trouble(&nodes[0], "rcv-drops", " from "), None);
    let endpoint = "aeron:udp?endpoint=reader:40002";
    let _restarted = clients[2]
        .add_exclusive_publication(&format!("{endpoint}|{SAME}"), STREAM)
        .unwrap();
    world.run_for(4 * SECOND);
    let (text, _) = trouble(&nodes[0], "rcv-drops", " from ").unwrap();
    assert!(text.starts_with(&format!("{}:", nodes[2].address())), "{text}");
    assert!(
        text.ends_with(", more than a window older than what was read"),
        "{text}"
    );
}
