//! Who holds a stream back, as the driver's counters name it.

mod common;

use std::sync::Arc;

use common::{CHANNEL, Reader, SECOND, STREAM, Stream, World, counters, errors_of, is_accepted, trouble};
use headrace_client::{Client, Publication};
use headrace_sim::Node;

const IPC: &str = "aeron:ipc?term-length=64k";
const PUBLISHER: &str = "pub-held";
const IMAGE: &str = "rcv-held";
const DROPS: &str = "rcv-drops";

/// Who holds the only stream of that kind back, and since when; none when none does.
fn holder(node: &Node, kind: &str) -> Option<(String, i64)> {
    trouble(node, kind, " by ")
}

/// What the only image that drops something drops, and since when.
fn dropped(node: &Node) -> Option<(String, i64)> {
    trouble(node, DROPS, " from ")
}

fn name_of(node: &Node, kind: &str) -> Option<String> {
    holder(node, kind).map(|(name, _)| name)
}

/// A publisher and two receivers, each on a node of its own.
struct Group {
    nodes: [Node; 3],
    _clients: [Arc<Client>; 3],
    publication: Publication,
    fast: Reader,
    slow: Reader,
}

impl Group {
    fn connected(world: &World, channel: &str) -> Self {
        let nodes = ["publisher", "fast", "slow"].map(|name| world.add_node(name).unwrap());
        let clients = nodes.each_ref().map(|node| node.connect().unwrap());
        let publication = clients[0].add_publication(channel, STREAM).unwrap();
        let [fast, slow] = [1, 2].map(|at| Reader::subscribe(&clients[at], channel, STREAM));
        world.run_until(SECOND, "connections", || {
            publication.is_connected()
                && [&fast, &slow]
                    .iter()
                    .all(|reader| reader.subscription.is_connected())
        });
        Self {
            nodes,
            _clients: clients,
            publication,
            fast,
            slow,
        }
    }
}

/// A publisher that offers a hundred messages a second for a time, and readers that read.
fn publish(world: &World, publication: &Publication, readers: &mut [&mut Reader], duration_ns: i64) {
    let end_ns = world.now_ns() + duration_ns;
    while world.now_ns() < end_ns {
        let _no_room_is_what_is_tested = is_accepted(publication.offer(&[7; 1_000]));
        world.run_for(SECOND / 100);
        for reader in readers.iter_mut() {
            reader.poll();
        }
    }
}

#[test]
fn a_subscriber_that_stops_is_named_with_its_client_until_it_goes_on() {
    let world = World::new(1);
    let node = world.add_node("left").unwrap();
    let client = node.connect().unwrap();
    let slow_client = node.connect().unwrap();
    let mut fast = Reader::subscribe(&client, IPC, STREAM);
    let mut slow = Reader::subscribe(&slow_client, IPC, STREAM);
    let publication = client.add_publication(IPC, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || publication.is_connected());
    world.run_for(2 * SECOND);
    assert!(
        counters(&node)
            .iter()
            .all(|(label, _)| !label.starts_with(PUBLISHER))
    );
    publish(&world, &publication, &mut [&mut fast], 3 * SECOND);
    let (name, since_ms) = holder(&node, PUBLISHER).unwrap();
    let id = slow.subscription.registration_id();
    assert_eq!(
        name,
        format!("subscription {id} of client {}", slow_client.client_id())
    );
    publish(&world, &publication, &mut [&mut fast], 3 * SECOND);
    assert_eq!(
        holder(&node, PUBLISHER),
        Some((name, since_ms)),
        "still, since then"
    );
    slow.poll();
    fast.poll();
    world.run_for(2 * SECOND);
    assert_eq!(holder(&node, PUBLISHER), None);
}

#[test]
fn a_reader_without_tether_is_named_until_the_others_go_on_without_it() {
    let world = World::new(2);
    let node = world.add_node("left").unwrap();
    let client = node.connect().unwrap();
    let mut fast = Reader::subscribe(&client, IPC, STREAM);
    let slow = Reader::subscribe(&client, "aeron:ipc?tether=false", STREAM);
    let publication = client.add_publication(IPC, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || publication.is_connected());
    publish(&world, &publication, &mut [&mut fast], 3 * SECOND);
    let slow_id = slow.subscription.registration_id();
    let name = name_of(&node, PUBLISHER).unwrap();
    assert!(name.starts_with(&format!("subscription {slow_id} of ")), "{name}");
    publish(&world, &publication, &mut [&mut fast], 15 * SECOND);
    let name = name_of(&node, PUBLISHER);
    assert!(name.is_none_or(|name| !name.starts_with(&format!("subscription {slow_id} "))));
}

#[test]
fn of_a_group_the_receiver_is_named_at_the_publisher_and_its_reader_at_the_receiver() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k|fc=min";
    let world = World::new(3);
    let Group {
        nodes,
        _clients,
        publication,
        mut fast,
        slow,
    } = Group::connected(&world, GROUP);
    publish(&world, &publication, &mut [&mut fast], 4 * SECOND);
    let at_publisher = name_of(&nodes[0], PUBLISHER).unwrap();
    let address = at_publisher.strip_prefix("receiver at ").unwrap();
    let slow_ip = nodes[2].address().to_string();
    assert!(
        address.starts_with(&format!("{slow_ip}:")),
        "{address} is not of {slow_ip}"
    );
    let reader = slow.subscription.registration_id();
    let at_receiver = name_of(&nodes[2], IMAGE).unwrap();
    assert!(
        at_receiver.starts_with(&format!("subscription {reader} of ")),
        "{at_receiver}"
    );
    assert_eq!(name_of(&nodes[1], IMAGE), None, "the other one waits for data");
}

#[test]
fn a_spy_that_stops_is_named_and_an_idle_or_unconnected_stream_is_held_by_none() {
    let world = World::new(4);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    let spy = Reader::subscribe(&stream.publisher, &format!("aeron-spy:{CHANNEL}"), STREAM);
    world.run_until(SECOND, "a spy", || spy.subscription.is_connected());
    world.run_for(2 * SECOND);
    assert_eq!(holder(&stream.left, PUBLISHER), None);
    publish(&world, &stream.publication, &mut [&mut stream.reader], 3 * SECOND);
    let name = name_of(&stream.left, PUBLISHER).unwrap();
    let id = spy.subscription.registration_id();
    assert!(name.starts_with(&format!("subscription {id} of ")), "{name}");
    drop(spy);
    drop(stream.reader);
    world.run_until(20 * SECOND, "no reader", || !stream.publication.is_connected());
    world.run_for(2 * SECOND);
    assert_eq!(holder(&stream.left, PUBLISHER), None, "it is not connected");
}

/// Spies that stand in for receivers set the sender's position: they, and not the sender, are what the publisher waits for.
#[test]
fn the_only_reader_of_a_simulated_connection_is_named() {
    let world = World::new(4);
    let [node, _right] = world.pair();
    let client = node.connect().unwrap();
    let publication = client
        .add_publication(&format!("{CHANNEL}|ssc=true"), STREAM)
        .unwrap();
    let spy = Reader::subscribe(&client, &format!("aeron-spy:{CHANNEL}"), STREAM);
    world.run_until(SECOND, "a connection", || publication.is_connected());
    publish(&world, &publication, &mut [], 3 * SECOND);
    let id = spy.subscription.registration_id();
    let expected = format!("subscription {id} of client {}", client.client_id());
    assert_eq!(name_of(&node, PUBLISHER), Some(expected));
}

/// With the default flow control the publisher goes by its fastest receiver, and what the slow one cannot take is lost to it.
#[test]
fn a_receiver_that_drops_what_comes_says_so_while_it_does() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k";
    let world = World::new(5);
    let Group {
        nodes,
        _clients,
        publication,
        mut fast,
        mut slow,
    } = Group::connected(&world, GROUP);
    publish(&world, &publication, &mut [&mut fast, &mut slow], 3 * SECOND);
    assert_eq!(dropped(&nodes[2]), None);
    publish(&world, &publication, &mut [&mut fast], 3 * SECOND);
    let (text, since_ms) = dropped(&nodes[2]).unwrap();
    let source = format!("{}:", nodes[0].address());
    assert!(text.starts_with(&source), "{text}");
    assert!(
        text.ends_with(", more than half a term ahead of the slowest reader"),
        "{text}"
    );
    publish(&world, &publication, &mut [&mut fast, &mut slow], 3 * SECOND);
    assert_eq!(
        dropped(&nodes[2]),
        Some((text, since_ms)),
        "it has read all that it has, and is none the nearer"
    );
    assert_eq!(dropped(&nodes[1]), None);
    publish(&world, &publication, &mut [&mut fast, &mut slow], 12 * SECOND);
    assert_eq!(dropped(&nodes[2]), None, "it has joined again");
}

/// The publisher went on with the fast one by more than half a term, and still has all of it.
#[test]
fn a_receiver_that_reads_again_gets_what_the_publisher_still_has() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k";
    for fast_leaves in [false, true] {
        let world = World::new(7);
        let Group {
            nodes: _nodes,
            _clients,
            publication,
            mut fast,
            mut slow,
        } = Group::connected(&world, GROUP);
        publish(&world, &publication, &mut [&mut fast], 8 * SECOND / 10);
        // The slow one has half a term.
        assert!(publication.position() > Some(70_000));
        world.run_for(SECOND / 10);
        fast.poll();
        let sent = fast.messages.clone();
        if fast_leaves {
            drop(fast);
        }
        world.run_until(SECOND, "what the other one has", || {
            slow.poll();
            slow.messages == sent
        });
        world.run_until(SECOND, "room", || is_accepted(publication.offer(b"again")));
        world.run_until(SECOND, "the message", || slow.poll().contains(&b"again".to_vec()));
        assert_eq!(slow.subscription.image_count(), 1);
    }
}

/// Its driver cannot make the image, and asks again and again.
#[test]
fn a_group_waits_once_for_a_receiver_that_cannot_join() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k|fc=min";
    let world = World::new(6);
    let nodes = ["publisher", "reader", "unable"].map(|name| world.add_node(name).unwrap());
    let clients = nodes.each_ref().map(|node| node.connect().unwrap());
    let publication = clients[0].add_publication(GROUP, STREAM).unwrap();
    let mut reader = Reader::subscribe(&clients[1], GROUP, STREAM);
    world.run_until(SECOND, "a connection", || publication.is_connected());
    let unable = Reader::subscribe(&clients[2], &format!("{GROUP}|rcv-wnd=1k"), STREAM);
    publish(&world, &publication, &mut [&mut reader], 7 * SECOND);
    assert!(!unable.subscription.is_connected());
    let errors = errors_of(&nodes[2]);
    assert!(errors[0].contains("give the subscription rcv-wnd"), "{errors:?}");
    let before = reader.messages.len();
    publish(&world, &publication, &mut [&mut reader], 10 * SECOND);
    let count = reader.messages.len() - before;
    assert!(
        count >= 950,
        "a hundred a second but for one a term, and {count} in ten seconds"
    );
}
