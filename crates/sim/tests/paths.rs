//! Multi-destination subscriptions: one image that several sockets bring, and what becomes of it when one of them does not.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use common::{Reader, SECOND, World, counters_of, errors_of, faults, is_accepted};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_client::{Client, ClientError, Image, Publication};
use headrace_protocol::ErrorCode;
use headrace_sim::{LinkSettings, Node};

const STREAM: i32 = 1001;
const MANUAL: &str = "aeron:udp?control-mode=manual|rcv-wnd=32k";
/// Messages that the faster of two publishers may be ahead of the slower.
const LEAD: usize = 8;
/// The conductor looks once a second: it sees that the stream has ended, and then that all is read.
const END_NS: i64 = 2 * SECOND + SECOND / 10;

fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % 3_000;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// A node with its program.
struct Host {
    node: Node,
    client: Arc<Client>,
}

impl Host {
    fn new(world: &World, name: &str) -> Self {
        let node = world.add_node(name).unwrap();
        let client = node.connect().unwrap();
        Self { node, client }
    }
}

/// Two publishers of the same bytes, each on a host of its own, and a reader that takes them as one stream.
struct Feed {
    world: World,
    sides: [Host; 2],
    publications: [Option<Publication>; 2],
    sent: [usize; 2],
    reader_host: Host,
    reader: Reader,
}

/// Where the publisher of a side sends to.
fn path(side: usize) -> String {
    format!("aeron:udp?endpoint=reader:{}", 40_001 + side)
}

fn feed_channel(side: usize) -> String {
    let stream = "term-length=64k|session-id=7|init-term-id=5|term-id=5|term-offset=0|linger=0";
    format!("{}|{stream}", path(side))
}

impl Feed {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let sides = ["a", "b"].map(|name| Host::new(&world, name));
        let reader_host = Host::new(&world, "reader");
        let reader = Reader::subscribe(&reader_host.client, MANUAL, STREAM);
        for side in 0..2 {
            reader.subscription.destinations().add(&path(side)).unwrap();
        }
        let publications = [0, 1].map(|side| {
            let client = &sides[side].client;
            Some(client.add_publication(&feed_channel(side), STREAM).unwrap())
        });
        let feed = Self {
            world,
            sides,
            publications,
            sent: [0; 2],
            reader_host,
            reader,
        };
        feed.world.run_until(10 * SECOND, "both sides are connected", || {
            let mut publications = feed.publications.iter().flatten();
            publications.all(|publication| publication.is_connected())
                && feed.reader.subscription.is_connected()
        });
        feed
    }

    fn set_link(&self, side: usize, settings: LinkSettings) {
        self.sides[side]
            .node
            .set_link_to(&self.reader_host.node, Some(settings));
    }

    fn cut(&self, side: usize, is_cut: bool) {
        self.sides[side].node.set_cut(&self.reader_host.node, is_cut);
    }

    /// The sides that publish offer up to `count` messages in all, until the reader has all of them.
    fn publish(&mut self, count: usize) {
        let Self {
            world,
            publications,
            sent,
            reader,
            ..
        } = self;
        world.run_until(120 * SECOND, "each message is read", || {
            let read = reader.poll().len();
            for (publication, sent) in publications.iter().zip(&mut *sent) {
                let Some(publication) = publication else { continue };
                while *sent < count.min(read + LEAD) && is_accepted(publication.offer(&message(*sent))) {
                    *sent += 1;
                }
            }
            read == count
        });
        let read = self.reader.poll();
        assert!(
            read.iter()
                .enumerate()
                .all(|(number, read)| *read == message(number))
        );
    }

    fn image(&self) -> Arc<Image> {
        let images = self.reader.subscription.images();
        assert_eq!(images.len(), 1, "{images:?}");
        Arc::clone(&images[0])
    }

    fn naks(&self) -> i64 {
        common::system_counter(&self.reader_host.node, system_counter::NAK_MESSAGES_SENT)
    }
}

#[test]
fn two_paths_are_one_image_that_each_byte_reaches_once() {
    for seed in 0..4 {
        let mut feed = Feed::new(seed);
        feed.world.network().set_links(faults());
        feed.publish(200);
        assert_eq!(feed.image().active_transport_count(), 2);
        assert_eq!(errors_of(&feed.reader_host.node), [""; 0], "seed={seed}");
    }
}

#[test]
fn a_path_that_dies_is_made_up_for_by_the_other_without_loss() {
    let mut feed = Feed::new(1);
    feed.publish(50);
    feed.cut(0, true);
    feed.publications[0] = None; // its window would fill, and its publisher wait
    feed.publish(150);
    let image = feed.image();
    assert_eq!(image.active_transport_count(), 2, "for as long as images live");
    feed.world.run_for(11 * SECOND);
    assert_eq!(image.active_transport_count(), 1);
    feed.publish(200);
    assert_eq!(feed.image().correlation_id(), image.correlation_id());
    assert_eq!(errors_of(&feed.reader_host.node), [""; 0]);
}

#[test]
fn a_path_that_comes_back_brings_the_stream_again() {
    let mut feed = Feed::new(2);
    feed.publish(20);
    feed.cut(0, true);
    feed.world.run_for(12 * SECOND);
    assert_eq!(feed.image().active_transport_count(), 1);
    assert!(!feed.publications[0].as_ref().unwrap().is_connected());
    feed.cut(0, false);
    feed.world
        .run_until(5 * SECOND, "the first side is connected again", || {
            feed.publications[0].as_ref().unwrap().is_connected()
        });
    feed.publish(60);
    assert_eq!(feed.image().active_transport_count(), 2);
    feed.cut(1, true);
    feed.publications[1] = None;
    feed.publish(120);
}

#[test]
fn what_one_path_loses_the_other_repairs_without_being_asked() {
    let mut feed = Feed::new(3);
    let lossy = LinkSettings {
        loss: 0.3,
        ..LinkSettings::default()
    };
    feed.set_link(0, lossy);
    feed.publish(300);
    let received = common::system_counter(&feed.reader_host.node, system_counter::BYTES_RECEIVED);
    assert!(received > 0);
    let naks = feed.naks();
    // The same loss with one path: every gap is asked for.
    let mut single = Feed::new(3);
    single.publications[1] = None;
    single
        .reader
        .subscription
        .destinations()
        .remove(&path(1))
        .unwrap();
    single.set_link(0, lossy);
    single.publish(300);
    assert!(
        naks < single.naks() / 2,
        "{naks} NAKs, and {} without the other path",
        single.naks()
    );
}

#[test]
fn the_stream_ends_when_both_paths_say_so() {
    let mut feed = Feed::new(4);
    feed.publish(20);
    feed.publications[0] = None;
    feed.world.run_for(2 * SECOND);
    assert!(!feed.image().is_end_of_stream(), "the other side goes on");
    feed.publish(60);
    feed.publications[1] = None;
    feed.world
        .run_until(END_NS, "the end", || !feed.reader.subscription.is_connected());
    assert_eq!(feed.reader.poll().len(), 60);
}

#[test]
fn a_dead_path_does_not_hold_the_end() {
    let mut feed = Feed::new(5);
    feed.publish(20);
    feed.cut(0, true);
    feed.publications[0] = None;
    feed.world.run_for(6 * SECOND); // it counts no more
    feed.publish(40);
    feed.publications[1] = None;
    feed.world
        .run_until(END_NS, "the end", || !feed.reader.subscription.is_connected());
}

#[test]
fn a_path_that_falls_silent_after_the_others_end_holds_it_for_five_seconds() {
    let mut feed = Feed::new(6);
    feed.publish(20);
    feed.cut(0, true);
    feed.publications[0] = None;
    feed.publications[1] = None;
    feed.world.run_for(4 * SECOND);
    assert!(!feed.image().is_end_of_stream());
    feed.world
        .run_until(3 * SECOND, "the end", || !feed.reader.subscription.is_connected());
}

#[test]
fn a_removed_path_is_closed_when_the_client_is_answered_and_the_stream_goes_on() {
    let mut feed = Feed::new(7);
    feed.publish(20);
    let sockets = feed.world.socket_count();
    let subscription = &feed.reader.subscription;
    assert_eq!(subscription.status().local_socket_addresses().len(), 2);
    subscription.destinations().remove(&path(0)).unwrap();
    assert_eq!(feed.world.socket_count(), sockets - 1);
    assert_eq!(subscription.status().local_socket_addresses().len(), 1);
    assert_eq!(feed.image().active_transport_count(), 1);
    // Its port is free at once.
    subscription.destinations().add(&path(0)).unwrap();
    feed.world.run_until(2 * SECOND, "the path is there again", || {
        feed.image().active_transport_count() == 2
    });
    feed.publish(60);
    for side in 0..2 {
        feed.reader
            .subscription
            .destinations()
            .remove(&path(side))
            .unwrap();
    }
    feed.publications = [None, None];
    assert_eq!(feed.world.socket_count(), sockets - 2);
    feed.world.run_until(15 * SECOND, "the image is gone", || {
        !feed.reader.subscription.is_connected()
    });
    assert_eq!(errors_of(&feed.reader_host.node), [""; 0]);
}

#[test]
fn paths_come_and_go_while_data_flows_and_no_byte_is_lost_or_read_twice() {
    for seed in 0..6 {
        let world = World::new(100 + seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (center, host) = (Host::new(&world, "a"), Host::new(&world, "reader"));
        let mut reader = Reader::subscribe(&host.client, MANUAL, STREAM);
        let channel = "aeron:udp?control-mode=manual|term-length=64k|linger=0";
        let publication = center.client.add_publication(channel, STREAM).unwrap();
        for side in 0..3 {
            publication.destinations().add(&path(side)).unwrap();
        }
        let mut is_there = [true, false, false];
        reader.subscription.destinations().add(&path(0)).unwrap();
        world.run_until(10 * SECOND, "a connection", || {
            publication.is_connected() && reader.subscription.is_connected()
        });
        world.network().set_links(faults());
        let (mut sent, mut count) = (0, 0);
        for _ in 0..60 {
            let side = random.usize(0..3);
            if !is_there[side] {
                reader.subscription.destinations().add(&path(side)).unwrap();
                is_there[side] = true;
            } else if is_there.iter().filter(|there| **there).count() > 1 {
                reader.subscription.destinations().remove(&path(side)).unwrap();
                is_there[side] = false;
            }
            count += random.usize(0..6);
            world.run_until(60 * SECOND, "each message is read", || {
                while sent < count && is_accepted(publication.offer(&message(sent))) {
                    sent += 1;
                }
                reader.poll().len() == count
            });
        }
        let read = &reader.messages;
        assert!(
            read.iter()
                .enumerate()
                .all(|(number, read)| *read == message(number))
        );
        assert_eq!(reader.subscription.image_count(), 1, "seed={seed}");
        let open = counters_of(&host.node, type_ids::LOCAL_SOCKET_ADDRESS);
        let there = is_there.iter().filter(|there| **there).count();
        assert_eq!(open.len(), there, "seed={seed}");
        assert_eq!(errors_of(&host.node), [""; 0], "seed={seed}");
    }
}

#[test]
fn destinations_of_groups_local_streams_and_spies_feed_one_subscription() {
    let world = World::new(8);
    let host = Host::new(&world, "reader");
    let other = Host::new(&world, "other");
    let mut reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    let destinations = [
        "aeron:udp?endpoint=224.0.1.1:40010",
        "aeron:ipc",
        "aeron-spy:aeron:udp?endpoint=other:40011",
        "aeron:udp?endpoint=reader:0|control=other:40012",
    ];
    for channel in destinations {
        reader.subscription.destinations().add(channel).unwrap();
    }
    let _sink = Reader::subscribe(&other.client, "aeron:udp?endpoint=other:40011", STREAM);
    let publications = [
        (&other, "aeron:udp?endpoint=224.0.1.1:40010|term-length=64k"),
        (&host, "aeron:ipc?term-length=64k"),
        (&host, "aeron:udp?endpoint=other:40011|term-length=64k"),
        (
            &other,
            "aeron:udp?control=other:40012|control-mode=dynamic|term-length=64k",
        ),
    ]
    .map(|(host, channel)| host.client.add_publication(channel, STREAM).unwrap());
    world.run_until(5 * SECOND, "four images", || {
        reader.subscription.image_count() == 4
    });
    for (number, publication) in publications.iter().enumerate() {
        world.run_until(5 * SECOND, "room", || {
            is_accepted(publication.offer(&message(number)))
        });
    }
    world.run_until(5 * SECOND, "four messages", || reader.poll().len() == 4);
    let counters = counters_of(&host.node, type_ids::SUBSCRIBER_POSITION);
    assert_eq!(counters.len(), 4);
    assert!(
        counters
            .iter()
            .all(|counter| counter.registration_id == reader.subscription.registration_id())
    );

    // Local streams are gone for the reader when the client is answered, or a step later.
    for (channel, count) in [(destinations[1], 3), (destinations[2], 2)] {
        reader.subscription.destinations().remove(channel).unwrap();
        world.run_until(SECOND, "an image less", || {
            reader.subscription.image_count() == count
        });
    }
    let refused = reader.subscription.destinations().remove("aeron:ipc");
    assert_eq!(code_of(refused.map(|()| 0)), Some(ErrorCode::UnknownSubscription));
    drop(reader);
    world.run_until(20 * SECOND, "nothing is left", || {
        counters_of(&host.node, type_ids::SUBSCRIBER_POSITION).is_empty()
            && counters_of(&host.node, type_ids::RECEIVE_CHANNEL_STATUS).is_empty()
    });
}

fn code_of(result: Result<i64, ClientError>) -> Option<ErrorCode> {
    match result {
        Err(ClientError::Registration { code, .. }) => Some(code),
        Err(other) => panic!("{other:?}"),
        Ok(_) => None,
    }
}

#[test]
fn the_same_local_stream_is_read_once_however_many_destinations_bring_it() {
    let world = World::new(9);
    let host = Host::new(&world, "reader");
    let mut reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    let publication = host
        .client
        .add_publication("aeron:ipc?term-length=64k", STREAM)
        .unwrap();
    let ids = [(); 2].map(|()| reader.subscription.destinations().add("aeron:ipc").unwrap());
    world.run_until(SECOND, "a connection", || publication.is_connected());
    assert_eq!(reader.subscription.image_count(), 1);
    reader.subscription.destinations().remove_by_id(ids[0]).unwrap();
    assert!(is_accepted(publication.offer(b"still there")));
    world.run_until(SECOND, "the message", || reader.poll().len() == 1);
    reader.subscription.destinations().remove_by_id(ids[1]).unwrap();
    world.run_until(SECOND, "no image", || reader.subscription.image_count() == 0);
    reader.subscription.destinations().remove_by_id(ids[1]).unwrap();
    assert!(!publication.is_connected());
}

#[test]
fn equal_destinations_are_told_apart_by_id() {
    let world = World::new(10);
    let host = Host::new(&world, "reader");
    let reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    let subscription = &reader.subscription;
    let any_port = "aeron:udp?endpoint=reader:0";
    let ids = [(); 3].map(|()| subscription.destinations().add(any_port).unwrap());
    let addresses = subscription.status().local_socket_addresses();
    assert_eq!(addresses.len(), 3);
    subscription.destinations().remove_by_id(ids[1]).unwrap();
    let left = subscription.status().local_socket_addresses();
    assert_eq!(left, [addresses[0].clone(), addresses[2].clone()]);
    subscription.destinations().remove(any_port).unwrap();
    assert_eq!(subscription.status().local_socket_addresses().len(), 1);
}

#[test]
fn subscriptions_share_destinations_by_tag() {
    let world = World::new(11);
    let host = Host::new(&world, "reader");
    let other = Host::new(&world, "other");
    let first = Reader::subscribe(&host.client, "aeron:udp?control-mode=manual|tags=5", STREAM);
    first
        .subscription
        .destinations()
        .add("aeron:udp?endpoint=reader:40001")
        .unwrap();
    let publication = other
        .client
        .add_publication("aeron:udp?endpoint=reader:40001|term-length=64k", STREAM)
        .unwrap();
    world.run_until(SECOND, "a connection", || first.subscription.is_connected());
    let mut second = Reader::subscribe(&host.client, "aeron:udp?tags=5", STREAM);
    world.run_until(SECOND, "its image", || second.subscription.is_connected());
    drop(first);
    world.run_until(SECOND, "room", || is_accepted(publication.offer(b"read on")));
    world.run_until(SECOND, "the message", || second.poll().len() == 1);
    second
        .subscription
        .destinations()
        .remove("aeron:udp?endpoint=reader:40001")
        .unwrap();
    assert!(second.subscription.status().local_socket_addresses().is_empty());
}

#[test]
fn what_is_no_destination_is_refused_with_the_reason_and_the_others_stay() {
    let world = World::new(12);
    let host = Host::new(&world, "reader");
    let reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    let taken = Reader::subscribe(&host.client, "aeron:udp?endpoint=reader:40001", STREAM);
    let subscription = &reader.subscription;
    subscription
        .destinations()
        .add("aeron:udp?endpoint=reader:40002")
        .unwrap();
    for (channel, code, words) in [
        (
            "aeron:udp?endpoint=reader:40001",
            ErrorCode::GenericError,
            "reader:40001",
        ),
        (
            "aeron:udp?endpoint=reader:40002",
            ErrorCode::GenericError,
            "reader:40002",
        ),
        (
            "aeron:udp?endpoint=reader:40003|rcv-wnd=4k",
            ErrorCode::InvalidChannel,
            "the key: rcv-wnd",
        ),
        (
            "aeron:ipc?control-mode=response",
            ErrorCode::InvalidChannel,
            "control-mode=response",
        ),
        (
            "aeron:udp?tags=3",
            ErrorCode::InvalidChannel,
            "endpoint or control",
        ),
        ("aeron:udp?endpoint=nobody:5", ErrorCode::UnknownHost, "nobody"),
        ("aeron:tcp", ErrorCode::InvalidChannel, "tcp"),
    ] {
        match subscription.destinations().add(channel) {
            Err(ClientError::Registration {
                code: found, message, ..
            }) => {
                assert!(found == code && message.contains(words), "{channel}: {message}");
            }
            other => panic!("{channel}: {other:?}"),
        }
    }
    let plain = &taken.subscription;
    let added = plain.destinations().add("aeron:udp?endpoint=reader:40003");
    assert_eq!(code_of(added), Some(ErrorCode::UnknownSubscription));
    let removed = plain.destinations().remove("aeron:udp?endpoint=reader:40003");
    assert_eq!(code_of(removed.map(|()| 0)), Some(ErrorCode::InvalidChannel));
    // One that is not there is gone already.
    subscription
        .destinations()
        .remove("aeron:udp?endpoint=reader:40009")
        .unwrap();
    subscription.destinations().remove_by_id(77).unwrap();
    assert_eq!(subscription.status().local_socket_addresses().len(), 1);
    assert_eq!(errors_of(&host.node).len(), 9);
}

#[test]
fn a_senders_name_that_moves_is_followed_on_its_path_alone() {
    let world = World::new(16);
    let host = Host::new(&world, "reader");
    let [old, new, other] = ["old", "new", "other"].map(|name| Host::new(&world, name));
    let name = |host: &Host| world.network().set_name("sender", Some(host.node.address()));
    name(&old);
    let mut reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    for control in ["sender:40020", "other:40020"] {
        let channel = format!("aeron:udp?endpoint=reader:0|control={control}");
        reader.subscription.destinations().add(&channel).unwrap();
    }
    let publish = |host: &Host, name: &str| {
        let channel = format!("aeron:udp?control={name}:40020|control-mode=dynamic|term-length=64k");
        host.client.add_publication(&channel, STREAM).unwrap()
    };
    let [first, second] = [(&old, "old"), (&other, "other")].map(|(host, name)| publish(host, name));
    world.run_until(5 * SECOND, "both are connected", || {
        first.is_connected() && second.is_connected()
    });
    old.node.crash().unwrap();
    name(&new);
    let moved = publish(&new, "new");
    world.run_until(SECOND, "the sender is found where it moved to", || {
        moved.is_connected()
    });
    assert!(second.is_connected());
    for publication in [&moved, &second] {
        let count = reader.messages.len() + 1;
        world.run_until(SECOND, "room", || is_accepted(publication.offer(b"found")));
        world.run_until(SECOND, "the message", || reader.poll().len() == count);
    }
    let changes = common::system_counter(&host.node, system_counter::RESOLUTION_CHANGES);
    assert_eq!(changes, 1);
}

#[test]
fn a_rejected_stream_is_refused_on_every_path_that_is_heard() {
    let feed = Feed::new(17);
    feed.image().reject("not wanted").unwrap();
    feed.world.run_for(SECOND);
    for side in &feed.sides {
        let errors = errors_of(&side.node);
        assert!(
            errors.len() == 1 && errors[0].contains("not wanted"),
            "{}: {errors:?}",
            side.node.name()
        );
    }
}

#[test]
fn a_thousand_destinations_are_added_read_and_given_back() {
    let world = World::new(13);
    let host = Host::new(&world, "reader");
    let other = Host::new(&world, "other");
    let mut reader = Reader::subscribe(&host.client, MANUAL, STREAM);
    let before = world.socket_count();
    for _ in 0..1_000 {
        reader
            .subscription
            .destinations()
            .add("aeron:udp?endpoint=reader:0")
            .unwrap();
    }
    assert_eq!(world.socket_count(), before + 1_000);
    let addresses = reader.subscription.status().local_socket_addresses();
    for address in [&addresses[0], &addresses[999]] {
        let channel = format!("aeron:udp?endpoint={address}|term-length=64k");
        let publication = other.client.add_publication(&channel, STREAM).unwrap();
        let count = reader.messages.len() + 1;
        world.run_until(5 * SECOND, "room", || {
            is_accepted(publication.offer(address.as_bytes()))
        });
        world.run_until(5 * SECOND, "a message", || reader.poll().len() == count);
    }
    drop(reader);
    world.run_until(20 * SECOND, "nothing is left", || {
        world.socket_count() <= before + 2
    });
}

/// The frames that a test sends as a stranger would.
mod forged {
    use headrace_protocol::frame::Setup;

    use super::STREAM;

    pub(crate) fn setup(initial_term_id: i32) -> Vec<u8> {
        let setup = Setup {
            flags: 0,
            term_offset: 0,
            session_id: 7,
            stream_id: STREAM,
            initial_term_id,
            active_term_id: initial_term_id,
            term_length: 65_536,
            mtu: 1408,
            ttl: 0,
        };
        let mut frame = vec![0; Setup::LENGTH];
        setup.encode(&mut frame);
        frame
    }
}

#[test]
fn a_strangers_setup_on_a_path_takes_nothing_over_and_is_sent_nothing() {
    let mut feed = Feed::new(14);
    feed.publish(20);
    let stranger: SocketAddr = "10.9.9.9:999".parse().unwrap();
    let tap = feed.world.network().tap();
    let second = SocketAddr::new(feed.reader_host.node.address(), 40_002);
    let inject = |initial_term_id| {
        let setup = forged::setup(initial_term_id);
        feed.world.network().inject(stranger, second, &setup);
    };
    inject(6);
    // Status messages leave while the second side, which has nothing to send, is silent.
    for number in 20..40 {
        inject(5);
        assert!(
            feed.publications[0]
                .as_ref()
                .unwrap()
                .offer(&message(number))
                .is_ok()
        );
        feed.world.run_for(2_000_000);
        feed.reader.poll();
    }
    assert_eq!(feed.reader.messages.len(), 40);
    feed.world.run_for(SECOND);
    let sent = tap.take();
    assert!(sent.iter().all(|datagram| datagram.to != stranger));
    assert_eq!(feed.image().active_transport_count(), 2);
    let errors = errors_of(&feed.reader_host.node);
    assert!(
        errors.len() == 1 && errors[0].contains("another publication has the same session"),
        "{errors:?}"
    );
}

#[test]
fn a_publication_of_the_same_session_that_is_another_stream_is_not_joined_with_the_image() {
    let mut feed = Feed::new(15);
    feed.publish(20);
    let stranger = Host::new(&feed.world, "stranger");
    let other = "term-length=64k|session-id=7|init-term-id=9|term-id=9|term-offset=0";
    let other = format!("{}|{other}", path(1));
    let publication = stranger.client.add_publication(&other, STREAM).unwrap();
    feed.world.run_for(2 * SECOND);
    assert!(!publication.is_connected());
    feed.publish(60);
    assert_eq!(
        feed.image().active_transport_count(),
        2,
        "its last frame is not yet too old"
    );
    let errors = errors_of(&feed.reader_host.node);
    assert!(
        errors.iter().any(|text| text.contains("same session")),
        "{errors:?}"
    );
}
