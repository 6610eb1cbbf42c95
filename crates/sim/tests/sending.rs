//! How a driver sends: through sockets that are connected to no one, and little at a time.

mod common;

use common::{CHANNEL, Reader, SECOND, STREAM, World, faults, is_accepted};
use headrace_driver::DriverConfig;
use headrace_driver::config::ConfigError;
use headrace_sim::Node;

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k";

fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % 4_000;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

fn unconnected(config: &mut DriverConfig) -> Result<(), ConfigError> {
    config.set("aeron.driver.connect", "false")
}

/// Publishes 200 messages on a bad network, from a driver with a change of its settings. Returns the world.
fn exchange(channel: &str, change: impl FnOnce(&mut DriverConfig) -> Result<(), ConfigError>) -> World {
    const COUNT: usize = 200;
    let world = World::new(1);
    world.network().set_links(faults());
    let left = world.add_node_with("left", change).unwrap();
    let right = world.add_node("right").unwrap();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, channel, STREAM);
    let publication = publisher.add_publication(channel, STREAM).unwrap();
    let mut sent = 0;
    world.run_until(120 * SECOND, "all messages arrive", || {
        while sent < COUNT && is_accepted(publication.offer(&message(sent))) {
            sent += 1;
        }
        reader.poll().len() >= COUNT
    });
    for (number, read) in reader.messages.iter().enumerate() {
        assert!(*read == message(number), "number={number}");
    }
    world
}

#[test]
fn without_connected_sockets_receivers_and_groups_read_the_same() {
    for channel in [CHANNEL, GROUP] {
        let trace = exchange(channel, unconnected).trace(100_000);
        let opened: Vec<_> = trace.lines().filter(|line| line.contains("left opens")).collect();
        assert!(!opened.is_empty(), "{channel}");
        let is_unconnected = |line: &&str| line.contains(" for None ");
        assert!(opened.iter().all(is_unconnected), "{channel}: {opened:#?}");
    }
}

/// A connected socket is connected anew; of another one only the address changes that it sends to.
#[test]
fn without_connected_sockets_a_name_that_moves_is_followed() {
    let world = World::new(3);
    let left = world.add_node_with("left", unconnected).unwrap();
    let [old, new] = ["old", "new"].map(|name| world.add_node(name).unwrap());
    let name = |node: &Node| world.network().set_name("mover", Some(node.address()));
    name(&old);
    let own = "aeron:udp?endpoint=0.0.0.0:40123";
    let publisher = left.connect().unwrap();
    let named = "aeron:udp?endpoint=mover:40123|term-length=64k";
    let publication = publisher.add_publication(named, STREAM).unwrap();
    let subscriber = old.connect().unwrap();
    let _first = Reader::subscribe(&subscriber, own, STREAM);
    world.run_until(SECOND, "a connection", || publication.is_connected());
    old.crash().unwrap();
    name(&new);
    let subscriber = new.connect().unwrap();
    let mut reader = Reader::subscribe(&subscriber, own, STREAM);
    world.run_until(20 * SECOND, "an image where the name leads now", || {
        reader.subscription.is_connected()
    });
    world.run_until(SECOND, "room", || is_accepted(publication.offer(b"moved")));
    world.run_until(SECOND, "the message", || reader.poll() == [b"moved"]);
}

#[test]
fn few_datagrams_at_a_time_are_all_of_them_in_the_end() {
    exchange(CHANNEL, |config| {
        config.set("aeron.sender.io.vector.capacity", "1")?;
        config.set("aeron.network.publication.max.messages.per.send", "2")
    });
}

/// Of what is ready at once, the most that leaves before the sender looks at its other publications.
fn largest_turn(change: impl FnOnce(&mut DriverConfig) -> Result<(), ConfigError>) -> usize {
    let world = World::new(2);
    let left = world.add_node_with("left", change).unwrap();
    let right = world.add_node("right").unwrap();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let reader = Reader::subscribe(&subscriber, CHANNEL, STREAM);
    let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || {
        publication.is_connected() && reader.subscription.is_connected()
    });
    let tap = world.network().tap();
    for _ in 0..8 {
        assert!(is_accepted(publication.offer(&[7; 1_300])));
    }
    let turns = (0..100).map(|_| {
        world.step();
        let sent = tap.take().into_iter();
        sent.filter(|datagram| datagram.bytes.len() > 1_300).count()
    });
    turns.max().unwrap()
}

#[test]
fn a_publication_leaves_the_sender_to_the_next_one_after_its_share() {
    let limited = largest_turn(|config| config.set("aeron.network.publication.max.messages.per.send", "3"));
    assert_eq!(limited, 3);
    assert!(largest_turn(|_| Ok(())) > 3);
}
