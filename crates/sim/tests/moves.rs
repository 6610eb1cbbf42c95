//! Names that stand for another address from one moment on: streams go on there within a second, and whatever the name
//! servers do nothing waits for them.

mod common;

use std::net::IpAddr;
use std::sync::Arc;

use common::{MILLISECOND, Reader, SECOND, World, errors_of, is_accepted, system_counter};
use headrace_buffers::counters::system_counter;
use headrace_client::{ChannelStatus, Client, Publication, SubscriptionHandlers};
use headrace_sim::Node;

const STREAM: i32 = 1001;
const PLAIN: &str = "aeron:udp?endpoint=moves.test:40123|term-length=64k";
const ADDED: &str = "aeron:udp?control-mode=manual|term-length=64k";
const DESTINATION: &str = "aeron:udp?endpoint=moves.test:40123";
const CONTROL: &str = "aeron:udp?endpoint=here:40123|control=moves.test:24325|control-mode=dynamic";

/// A client on a node of its own.
struct Place {
    node: Node,
    client: Arc<Client>,
}

impl Place {
    fn new(world: &World, name: &str) -> Self {
        let node = world.add_node(name).unwrap();
        let client = node.connect().unwrap();
        Self { node, client }
    }

    fn reader(&self) -> Reader {
        let channel = format!("aeron:udp?endpoint={}:40123", self.node.address());
        Reader::subscribe(&self.client, &channel, STREAM)
    }

    /// A publication that receivers report to here.
    fn publication(&self) -> Publication {
        let channel = format!(
            "aeron:udp?control={}:24325|control-mode=dynamic|term-length=64k",
            self.node.address()
        );
        self.client.add_publication(&channel, STREAM).unwrap()
    }

    fn resolution_changes(&self) -> i64 {
        system_counter(&self.node, system_counter::RESOLUTION_CHANGES)
    }
}

fn leads_to(world: &World, address: IpAddr) {
    world.network().set_name("moves.test", Some(address));
}

fn flows(world: &World, within_ns: i64, publication: &Publication, reader: &mut Reader) {
    world.run_until(within_ns, "a message", || {
        let _ = is_accepted(publication.offer(b"here"));
        !reader.poll().is_empty()
    });
}

#[test]
fn a_publication_follows_its_receiver_within_a_second() {
    for channel in [PLAIN, ADDED] {
        for phase in 0..5 {
            let world = World::new(phase);
            let [from, old, new] = ["from", "old", "new"].map(|name| Place::new(&world, name));
            leads_to(&world, old.node.address());
            let (mut at_old, mut at_new) = (old.reader(), new.reader());
            let publication = from.client.add_publication(channel, STREAM).unwrap();
            if channel == ADDED {
                publication.destinations().add(DESTINATION).unwrap();
            }
            flows(&world, 5 * SECOND, &publication, &mut at_old);
            world.run_for(SECOND + phase as i64 * 70 * MILLISECOND);
            drop(at_old);
            old.node.crash().unwrap();
            leads_to(&world, new.node.address());
            flows(&world, SECOND, &publication, &mut at_new);
            assert_eq!(from.resolution_changes(), 1, "{channel} phase={phase}");
        }
    }
}

/// Its heartbeats keep the image alive, and come from another port than those before.
#[test]
fn a_publisher_that_comes_again_where_it_stopped_is_answered_when_its_old_address_is_silent() {
    for subscribed in [
        "aeron:udp?endpoint=here:40123",
        "aeron:udp?endpoint=here:40123|control-mode=manual",
    ] {
        let world = World::new(13);
        let [here, from] = ["here", "from"].map(|name| Place::new(&world, name));
        let mut reader = if subscribed.ends_with("manual") {
            let reader = Reader::subscribe(&here.client, "aeron:udp?control-mode=manual", STREAM);
            let destination = "aeron:udp?endpoint=here:40123";
            reader.subscription.destinations().add(destination).unwrap();
            reader
        } else {
            Reader::subscribe(&here.client, subscribed, STREAM)
        };
        let publish = |client: &Client, position: i64| {
            let same =
                format!("session-id=7|init-term-id=0|term-id=0|term-offset={position}|term-length=64k");
            let channel = format!("aeron:udp?endpoint=here:40123|{same}");
            client.add_exclusive_publication(&channel, STREAM).unwrap()
        };
        let before = publish(&from.client, 0);
        world.run_until(5 * SECOND, "room", || is_accepted(before.offer(b"before")));
        world.run_until(SECOND, "the message", || !reader.poll().is_empty());
        let stopped_at = before.position().unwrap();
        from.node.crash().unwrap();
        from.node.start().unwrap();
        let client = from.node.connect().unwrap();
        let again = publish(&client, stopped_at);
        world.run_until(7 * SECOND, "room", || is_accepted(again.offer(b"again")));
        world.run_until(SECOND, "the message", || reader.poll().len() == 2);
        assert_eq!(reader.subscription.image_count(), 1, "{subscribed}");
    }
}

/// A name server can be quicker than a route.
#[test]
fn an_address_that_cannot_be_used_at_first_is_tried_until_it_can() {
    let world = World::new(12);
    let [from, old, new] = ["from", "old", "new"].map(|name| Place::new(&world, name));
    leads_to(&world, old.node.address());
    let (mut at_old, mut at_new) = (old.reader(), new.reader());
    let publication = from.client.add_publication(PLAIN, STREAM).unwrap();
    flows(&world, 5 * SECOND, &publication, &mut at_old);
    drop(at_old);
    old.node.crash().unwrap();
    world.network().set_route(new.node.address(), false);
    leads_to(&world, new.node.address());
    world.run_for(20 * SECOND);
    assert!(at_new.poll().is_empty());
    assert_eq!(publication.status().state(), ChannelStatus::Errored);
    let errors = errors_of(&from.node);
    assert_eq!(errors.len(), 1, "told once a minute: {errors:?}");
    assert!(errors[0].contains("failed to reconnect"), "{errors:?}");
    world.network().set_route(new.node.address(), true);
    flows(&world, SECOND, &publication, &mut at_new);
    assert_eq!(publication.status().state(), ChannelStatus::Active);
    assert_eq!(from.resolution_changes(), 1);
}

/// A machine's network may come up after its programs.
#[test]
fn a_publication_to_where_no_way_leads_yet_sends_as_soon_as_one_does() {
    const FIXED: &str = "aeron:udp?endpoint=there:40123|term-length=64k";
    let group = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k";
    for channel in [FIXED, PLAIN, ADDED, group] {
        let world = World::new(13);
        let [from, there] = ["from", "there"].map(|name| Place::new(&world, name));
        let address = there.node.address();
        leads_to(&world, address);
        for to in [address, "224.0.1.1".parse().unwrap()] {
            world.network().set_route(to, false);
        }
        let mut reader = if channel == group {
            Reader::subscribe(&there.client, channel, STREAM)
        } else {
            there.reader()
        };
        let publication = from.client.add_publication(channel, STREAM).unwrap();
        if channel == ADDED {
            publication.destinations().add(DESTINATION).unwrap();
        }
        world.run_for(5 * SECOND);
        assert!(!publication.is_connected() && reader.poll().is_empty());
        assert_eq!(publication.status().state(), ChannelStatus::Active);
        let errors = errors_of(&from.node);
        let is_named = errors.len() == 1 && errors[0].contains("WARN - failed to send datagram to ");
        assert!(is_named, "{channel}: {errors:?}");
        for to in [address, "224.0.1.1".parse().unwrap()] {
            world.network().set_route(to, true);
        }
        flows(&world, SECOND, &publication, &mut reader);
    }
}

/// The old address fell silent before anyone knew where the new one is.
#[test]
fn a_change_that_comes_long_after_the_silence_is_followed_within_a_second() {
    let world = World::new(11);
    let [from, old, new] = ["from", "old", "new"].map(|name| Place::new(&world, name));
    leads_to(&world, old.node.address());
    let (mut at_old, mut at_new) = (old.reader(), new.reader());
    let publication = from.client.add_publication(PLAIN, STREAM).unwrap();
    flows(&world, 5 * SECOND, &publication, &mut at_old);
    drop(at_old);
    old.node.crash().unwrap();
    world.network().set_name("moves.test", None);
    world.run_for(22 * SECOND);
    assert!(at_new.poll().is_empty());
    leads_to(&world, new.node.address());
    flows(&world, SECOND, &publication, &mut at_new);
}

#[test]
fn a_subscription_follows_the_control_address_of_its_publisher_within_a_second() {
    for phase in 0..5 {
        let world = World::new(20 + phase);
        let [here, old, new] = ["here", "old", "new"].map(|name| Place::new(&world, name));
        leads_to(&world, old.node.address());
        let (at_old, at_new) = (old.publication(), new.publication());
        let mut reader = Reader::subscribe(&here.client, CONTROL, STREAM);
        flows(&world, 5 * SECOND, &at_old, &mut reader);
        world.run_for(SECOND + phase as i64 * 70 * MILLISECOND);
        reader.poll();
        reader.messages.clear();
        drop(at_old);
        old.node.crash().unwrap();
        leads_to(&world, new.node.address());
        flows(&world, SECOND, &at_new, &mut reader);
        assert_eq!(here.resolution_changes(), 1, "phase={phase}");
    }
}

/// A receiver that is heard is where it is, whatever the name says.
#[test]
fn a_name_whose_address_is_heard_is_not_looked_up() {
    let world = World::new(31);
    let [from, old, new] = ["from", "old", "new"].map(|name| Place::new(&world, name));
    leads_to(&world, old.node.address());
    let mut at_old = old.reader();
    let publication = from.client.add_publication(PLAIN, STREAM).unwrap();
    flows(&world, 5 * SECOND, &publication, &mut at_old);
    leads_to(&world, new.node.address());
    world.run_for(20 * SECOND);
    assert_eq!(from.resolution_changes(), 0);
    flows(&world, SECOND, &publication, &mut at_old);
}

#[test]
fn name_servers_that_never_answer_hold_up_nothing() {
    let world = World::new(41);
    let [from, old, new] = ["from", "old", "new"].map(|name| Place::new(&world, name));
    leads_to(&world, old.node.address());
    let at_old = old.reader();
    let publication = from.client.add_publication(PLAIN, STREAM).unwrap();
    world.run_until(5 * SECOND, "a connection", || publication.is_connected());
    let other = from
        .client
        .add_publication(&PLAIN.replace("moves.test", "new"), STREAM)
        .unwrap();
    let mut at_new = new.reader();
    flows(&world, 5 * SECOND, &other, &mut at_new);
    drop(at_old);
    old.node.crash().unwrap();
    world.network().set_lookup_ns(i64::MAX);
    for _ in 0..15 {
        at_new.poll();
        at_new.messages.clear();
        flows(&world, 100 * MILLISECOND, &other, &mut at_new);
        world.run_for(SECOND);
    }
}

#[test]
fn a_path_is_removed_by_the_channel_it_was_added_with_when_its_name_has_no_address_any_more() {
    let world = World::new(12);
    let [_, right] = world.pair();
    let client = right.connect().unwrap();
    let subscription = client
        .add_subscription(
            "aeron:udp?control-mode=manual",
            10,
            SubscriptionHandlers::default(),
        )
        .unwrap();
    let channel = "aeron:udp?endpoint=right:40123|control=named:24325";
    world.network().set_name("named", Some(right.address()));
    let sockets = world.socket_count();
    subscription.destinations().add(channel).unwrap();
    assert_eq!(world.socket_count(), sockets + 1);
    world.network().set_name("named", None);
    subscription.destinations().remove(channel).unwrap();
    assert_eq!(world.socket_count(), sockets);
}
