//! Multicast groups: one publisher, many receivers, each on a link of its own.

mod common;

use std::sync::Arc;

use common::{Reader, SECOND, STREAM, World, faults, is_accepted};
use headrace_buffers::counters::system_counter;
use headrace_client::{Client, Publication};
use headrace_sim::{LinkSettings, Node};

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k";

fn message(publisher: usize, number: usize) -> Vec<u8> {
    let length = 16 + number * 37 % 4_000;
    let words = [publisher.to_le_bytes(), number.to_le_bytes()].concat();
    words.into_iter().cycle().take(length).collect()
}

fn messages(publisher: usize, numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    numbers.map(|number| message(publisher, number)).collect()
}

/// A node with its program.
struct Host {
    node: Node,
    client: Arc<Client>,
}

fn hosts(world: &World, names: &[&str]) -> Vec<Host> {
    let host = |name: &&str| {
        let node = world.add_node(name).unwrap();
        let client = node.connect().unwrap();
        Host { node, client }
    };
    names.iter().map(host).collect()
}

/// One publisher and three receivers.
struct Group {
    world: World,
    publisher: Host,
    receivers: Vec<Host>,
    publication: Publication,
    readers: Vec<Reader>,
    sent: usize,
}

impl Group {
    fn new(seed: u64, channel: &str) -> Self {
        let world = World::new(seed);
        let publisher = hosts(&world, &["publisher"]).remove(0);
        let receivers = hosts(&world, &["one", "two", "three"]);
        let readers = receivers
            .iter()
            .map(|host| Reader::subscribe(&host.client, channel, STREAM))
            .collect();
        let publication = publisher.client.add_publication(channel, STREAM).unwrap();
        let group = Self {
            world,
            publisher,
            receivers,
            publication,
            readers,
            sent: 0,
        };
        group.world.run_until(SECOND, "three connections", || {
            let mut readers = group.readers.iter();
            group.publication.is_connected() && readers.all(|reader| reader.subscription.is_connected())
        });
        group
    }

    /// Publishes until all have read `count` messages in all.
    fn send(&mut self, count: usize) {
        let Self {
            world,
            publication,
            readers,
            sent,
            ..
        } = self;
        world.run_until(120 * SECOND, "all messages are read", || {
            // No faster than all can follow: the fastest of a group leads.
            let slowest = readers.iter_mut().map(|reader| reader.poll().len()).min();
            while *sent < count
                && slowest.is_none_or(|slowest| *sent < slowest + 4)
                && is_accepted(publication.offer(&message(0, *sent)))
            {
                *sent += 1;
            }
            slowest == Some(count)
        });
    }
}

#[test]
fn every_receiver_reads_the_same_bytes_in_order_and_once_whatever_its_link_does() {
    for seed in 0..4 {
        let mut group = Group::new(seed, GROUP);
        for (index, host) in group.receivers.iter().enumerate() {
            let bad = LinkSettings {
                loss: 0.02 * (index + 1) as f64,
                ..faults()
            };
            group.publisher.node.set_link_to(&host.node, Some(bad));
            host.node.set_link_to(&group.publisher.node, Some(faults()));
        }
        group.send(200);
        group.world.run_for(SECOND);
        for (reader, host) in group.readers.iter_mut().zip(&group.receivers) {
            let name = host.node.name();
            assert!(*reader.poll() == messages(0, 0..200), "seed={seed} {name}");
            let naks = common::system_counter(&host.node, system_counter::NAK_MESSAGES_SENT);
            assert!(naks > 0, "seed={seed} {name} had no loss");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let mut group = Group::new(seed, GROUP);
        group.world.network().set_links(faults());
        group.send(50);
        group.world.digest()
    };
    assert_eq!(run(3), run(3));
}

#[test]
fn a_receiver_that_comes_late_reads_from_then_on_and_one_that_leaves_holds_no_one_back() {
    let mut group = Group::new(5, GROUP);
    group.send(20);
    let late = hosts(&group.world, &["late"]).remove(0);
    let mut reader = Reader::subscribe(&late.client, GROUP, STREAM);
    group.world.run_until(SECOND, "the late one has an image", || {
        reader.subscription.is_connected()
    });
    group.send(40);
    group.world.run_until(SECOND, "the late one reads the rest", || {
        reader.poll() == messages(0, 20..40)
    });
    let leaving = group.readers.remove(1);
    drop(leaving);
    group.send(60);
    assert!(group.publication.is_connected());
    group
        .world
        .run_until(SECOND, "the others and the late one go on", || {
            reader.poll() == messages(0, 20..60)
        });
    group.readers.clear();
    drop(reader);
    // Each says that it is going: no time-out has to pass.
    group
        .world
        .run_until(2 * SECOND, "the publisher sees that none is left", || {
            !group.publication.is_connected()
        });
}

#[test]
fn the_end_of_the_stream_reaches_every_receiver() {
    let mut group = Group::new(6, GROUP);
    group.world.network().set_links(faults());
    group.send(30);
    for number in 30..40 {
        assert!(is_accepted(group.publication.offer(&message(0, number))));
    }
    let Group {
        world,
        publication,
        mut readers,
        ..
    } = group;
    drop(publication);
    world.run_until(10 * SECOND, "all read to the end, and the images go", || {
        readers
            .iter_mut()
            .all(|reader| reader.poll().len() == 40 && !reader.subscription.is_connected())
    });
}

#[test]
fn a_receiver_that_dies_disturbs_no_other() {
    let mut group = Group::new(7, GROUP);
    group.world.network().set_links(faults());
    group.send(20);
    group.readers.remove(2);
    let dead = group.receivers.remove(2);
    dead.node.crash().unwrap();
    group.send(120);
    group.world.run_for(8 * SECOND);
    assert!(group.publication.is_connected());
    group.send(150);
    for reader in &mut group.readers {
        assert!(*reader.poll() == messages(0, 0..150));
    }
}

#[test]
fn two_publishers_on_two_nodes_share_a_group() {
    let world = World::new(8);
    world.network().set_links(faults());
    let publishers = hosts(&world, &["first", "second"]);
    let receivers = hosts(&world, &["one", "two"]);
    let mut readers: Vec<_> = receivers
        .iter()
        .map(|host| Reader::subscribe(&host.client, GROUP, STREAM))
        .collect();
    let publications: Vec<_> = publishers
        .iter()
        .map(|host| host.client.add_publication(GROUP, STREAM).unwrap())
        .collect();
    world.run_until(5 * SECOND, "each reader knows both", || {
        readers
            .iter()
            .all(|reader| reader.subscription.images().len() == 2)
            && publications.iter().all(|publication| publication.is_connected())
    });
    let mut sent = [0; 2];
    world.run_until(60 * SECOND, "both streams", || {
        let slowest = readers
            .iter_mut()
            .map(|reader| reader.poll().len())
            .min()
            .unwrap();
        for (index, publication) in publications.iter().enumerate() {
            while sent[index] < 60
                && sent[index] * 2 < slowest + 8
                && is_accepted(publication.offer(&message(index, sent[index])))
            {
                sent[index] += 1;
            }
        }
        slowest == 120
    });
    for reader in &readers {
        for publisher in 0..2_usize {
            let of_one: Vec<_> = reader
                .messages
                .iter()
                .filter(|read| read[..8] == publisher.to_le_bytes())
                .cloned()
                .collect();
            assert!(of_one == messages(publisher, 0..60), "{publisher}");
        }
    }
}

/// Receivers say whether they join a stream again that they lost.
#[test]
fn a_stream_that_was_lost_is_joined_again_unless_the_channel_says_no() {
    for (channel, joins_again) in [(GROUP.to_owned(), true), (format!("{GROUP}|rejoin=false"), false)] {
        let mut group = Group::new(9, &channel);
        group.send(10);
        let (publisher, cut_off) = (&group.publisher.node, &group.receivers[0].node);
        publisher.set_cut_to(cut_off, true);
        let lost = &group.readers[0].subscription;
        group
            .world
            .run_until(20 * SECOND, "the image goes", || !lost.is_connected());
        // What is left of it lingers.
        group.world.run_for(15 * SECOND);
        publisher.set_cut_to(cut_off, false);
        group.world.run_for(3 * SECOND);
        assert_eq!(lost.is_connected(), joins_again, "{channel}");
        for other in &group.readers[1..] {
            assert!(other.subscription.is_connected(), "{channel}");
        }
    }
}

#[test]
fn a_publisher_that_reaches_further_than_its_receivers_is_counted() {
    for (of_publisher, of_receivers, expected) in [
        ("|ttl=8", "", 1),
        ("|ttl=8", "|ttl=8", 0),
        ("", "|ttl=8", 0),
        ("", "", 0),
    ] {
        let world = World::new(10);
        let [left, right] = world.pair();
        let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
        let reader = Reader::subscribe(&subscriber, &format!("{GROUP}{of_receivers}"), STREAM);
        let _publication = publisher
            .add_publication(&format!("{GROUP}{of_publisher}"), STREAM)
            .unwrap();
        world.run_until(SECOND, "an image", || reader.subscription.is_connected());
        let counted = common::system_counter(&right, system_counter::POSSIBLE_TTL_ASYMMETRY);
        assert_eq!(counted, expected, "{of_publisher} {of_receivers}");
    }
}

#[test]
fn publisher_and_receivers_of_one_node_find_each_other_and_leave_nothing() {
    let world = World::new(11);
    let node = world.add_node("alone").unwrap();
    let fresh = node.holdings();
    let client = node.connect().unwrap();
    let channel = format!("{GROUP}|interface=127.0.0.1");
    let mut readers = [0, 1].map(|_| Reader::subscribe(&client, &channel, STREAM));
    let publication = client.add_publication(&channel, STREAM).unwrap();
    world.run_until(SECOND, "connections", || publication.is_connected());
    assert_eq!(world.socket_count(), 3, "data out, answers in, data in");
    assert!(is_accepted(publication.offer(b"here")));
    world.run_until(SECOND, "the message", || {
        readers.iter_mut().all(|reader| reader.poll() == [b"here"])
    });
    drop((readers, publication, client));
    world.run_until(40 * SECOND, "a driver as it was at the start", || {
        world.socket_count() == 0 && node.holdings() == fresh
    });
}

#[test]
fn the_setting_gives_the_time_to_live_that_channels_leave_out() {
    for (of_channel, expected) in [("", 1), ("|ttl=0", 0)] {
        let world = World::new(12);
        let node = world.add_node_with("alone", |config| config.set("aeron.socket.multicast.ttl", "4"));
        let client = node.unwrap().connect().unwrap();
        let other = world.add_node("other").unwrap();
        let subscriber = other.connect().unwrap();
        let reader = Reader::subscribe(&subscriber, GROUP, STREAM);
        let _publication = client
            .add_publication(&format!("{GROUP}{of_channel}"), STREAM)
            .unwrap();
        // With 0 nothing leaves the host.
        world.run_for(SECOND);
        let is_reached = expected == 1;
        assert_eq!(reader.subscription.is_connected(), is_reached, "{of_channel}");
        let counted = common::system_counter(&other, system_counter::POSSIBLE_TTL_ASYMMETRY);
        assert_eq!(counted, expected, "{of_channel}");
    }
}

#[test]
fn a_control_address_means_nothing_to_the_receivers_of_a_group() {
    let world = World::new(13);
    let node = world.add_node("alone").unwrap();
    let client = node.connect().unwrap();
    let with_control = format!("{GROUP}|control=127.0.0.1:9");
    let reader = Reader::subscribe(&client, &with_control, STREAM);
    let tap = world.network().tap();
    world.run_for(5 * SECOND);
    let sent = tap.take();
    assert!(sent.is_empty(), "it asks no one: {sent:?}");
    let _publication = client.add_publication(GROUP, STREAM).unwrap();
    world.run_until(SECOND, "an image", || reader.subscription.is_connected());
}
