//! What a person is shown of the paths that a subscription has.

mod common;

use common::{Reader, SECOND, World, counters_of};
use headrace_client::Client;
use headrace_sim::Node;

const STREAM: i32 = 1001;
const MANUAL: &str = "aeron:udp?control-mode=manual|rcv-wnd=32k";
/// Type of a counter that is this driver's own.
const RECEIVE_DESTINATION: i32 = 2107;

/// What is shown of the destinations of subscriptions: channel and, with 1, that it brings something.
fn shown_paths(node: &Node) -> Vec<(String, i64)> {
    let mut shown: Vec<_> = counters_of(node, RECEIVE_DESTINATION)
        .into_iter()
        .map(|counter| {
            (
                counter.label.split_once(" of ").unwrap().1.to_owned(),
                counter.value,
            )
        })
        .collect();
    shown.sort();
    shown
}

#[test]
fn each_destination_is_shown_with_its_channel_and_whether_it_brings_something() {
    let world = World::new(10);
    let (node, other) = (
        world.add_node("reader").unwrap(),
        world.add_node("other").unwrap(),
    );
    let (client, other) = (node.connect().unwrap(), other.connect().unwrap());
    let reader = Reader::subscribe(&client, MANUAL, STREAM);
    assert_eq!(shown_paths(&node), []);
    let local = "aeron:ipc";
    let group = "aeron:udp?endpoint=224.0.1.1:40010";
    let socket = "aeron:udp?endpoint=reader:40011|alias=a line of this one";
    let spy = "aeron-spy:aeron:udp?endpoint=other:40012";
    let id = reader.subscription.destinations().add(socket).unwrap();
    for channel in [local, group, spy] {
        reader.subscription.destinations().add(channel).unwrap();
    }
    let states = |live: [i64; 4]| {
        let channels = [spy, local, group, socket].map(str::to_owned);
        channels.into_iter().zip(live).collect::<Vec<_>>()
    };
    assert_eq!(shown_paths(&node), states([0; 4]));
    let (address, _) = counters_of(&node, RECEIVE_DESTINATION)
        .iter()
        .find(|counter| counter.registration_id == id)
        .map(|counter| (counter.label.clone(), counter.value))
        .unwrap();
    assert!(
        address.contains(":40011 of aeron:udp?endpoint=reader:40011"),
        "{address}"
    );
    let feed = |client: &Client, channel: &str| client.add_publication(channel, STREAM).unwrap();
    let to_socket = feed(&other, "aeron:udp?endpoint=reader:40011|term-length=64k|linger=0");
    let spied = feed(&client, "aeron:udp?endpoint=other:40012|term-length=64k|linger=0");
    world.run_until(5 * SECOND, "two bring something", || {
        shown_paths(&node) == states([1, 0, 0, 1])
    });
    drop((to_socket, spied));
    let to_group = feed(&other, "aeron:udp?endpoint=224.0.1.1:40010|term-length=64k");
    let ipc = feed(&client, "aeron:ipc?term-length=64k");
    world.run_until(30 * SECOND, "the two others do", || {
        shown_paths(&node) == states([0, 1, 1, 0])
    });
    reader.subscription.destinations().remove(local).unwrap();
    reader.subscription.destinations().remove_by_id(id).unwrap();
    world.run_until(SECOND, "two are left", || {
        shown_paths(&node) == [(spy.to_owned(), 0), (group.to_owned(), 1)]
    });
    drop((to_group, ipc, reader));
    world.run_until(20 * SECOND, "the counters go with the channel", || {
        shown_paths(&node).is_empty()
    });
}
