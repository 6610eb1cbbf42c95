//! One publisher and many destinations: those that say where they are, and those that a client adds.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use common::{MILLISECOND, Reader, SECOND, World, errors_of, faults, is_accepted};
use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{CountersReader, system_counter, type_ids};
use headrace_client::{Client, ClientError, Offer, Publication};
use headrace_protocol::ErrorCode;
use headrace_protocol::frame::{FrameKind, Nak, RttMeasurement, StatusMessage, classify, rtt};
use headrace_sim::{LinkSettings, Node};
use headrace_sys::Access;

const STREAM: i32 = 1001;
const DYNAMIC: &str = "aeron:udp?control=center:24325|control-mode=dynamic|term-length=64k|linger=0";
const MANUAL: &str = "aeron:udp?control-mode=manual|term-length=64k|linger=0";
/// Types of counters that are this driver's own.
const SEND_DESTINATION: i32 = 2105;
const SENDER_RETRANSMITS: i32 = 2106;
/// Messages that the furthest reader may be ahead of the last one: what the network holds up must still be in the log.
const LEAD: usize = 8;

struct Center {
    node: Node,
    _client: Arc<Client>,
    publication: Publication,
}

impl Center {
    fn new(world: &World, channel: &str) -> Self {
        let node = world.add_node("center").unwrap();
        let client = node.connect().unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        Self {
            node,
            _client: client,
            publication,
        }
    }

    fn counters(&self) -> CountersReader {
        let file = self.node.directory().join(cnc::FILE_NAME);
        let cnc = CncFile::map(&file, Access::ReadOnly).unwrap();
        CountersReader::new(cnc.counters_metadata(), cnc.counters_values())
    }

    fn value(&self, type_id: i32) -> Option<i64> {
        let counters = self.counters();
        let id = counters.find(type_id, self.publication.registration_id())?;
        counters.value(id)
    }

    fn destination_count(&self) -> i64 {
        self.value(type_ids::MULTI_DESTINATION_COUNT).unwrap_or(-1)
    }

    /// The destinations that have a counter: address, or the name that has none, and value.
    fn destinations(&self) -> Vec<(String, i64)> {
        let mut shown = Vec::new();
        self.counters().for_each(|record| {
            if record.type_id == SEND_DESTINATION {
                let (_, text) = record.label.split_once(": ").unwrap();
                shown.push((text.split_once(' ').unwrap().1.to_owned(), record.value));
            }
        });
        shown.sort();
        shown
    }
}

struct Member {
    node: Node,
    client: Arc<Client>,
    reader: Reader,
}

impl Member {
    fn new(world: &World, name: &str, channel: &str) -> Self {
        let node = world.add_node(name).unwrap();
        let client = node.connect().unwrap();
        let reader = Reader::subscribe(&client, channel, STREAM);
        Self { node, client, reader }
    }

    /// A receiver that says where it is.
    fn dynamic(world: &World, name: &str) -> Self {
        let channel = format!("aeron:udp?endpoint={name}:40123|control=center:24325|control-mode=dynamic");
        Self::new(world, name, &channel)
    }

    /// A receiver that waits for what comes.
    fn plain(world: &World, name: &str) -> Self {
        Self::new(world, name, &format!("aeron:udp?endpoint={name}:40123"))
    }
}

fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % 3_000;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// Publishes messages `first..first + count` and waits until each member has read them.
fn publish(world: &World, center: &Center, members: &mut [Member], first: usize, count: usize) {
    let end = first + count;
    let before: Vec<usize> = members
        .iter()
        .map(|member| member.reader.messages.len())
        .collect();
    let mut sent = first;
    world.run_until(300 * SECOND, "each receiver reads each message", || {
        let read = |(member, before): (&mut Member, &usize)| first + member.reader.poll().len() - before;
        let slowest = members.iter_mut().zip(&before).map(read).min().unwrap_or(end);
        while sent < end.min(slowest + LEAD)
            && matches!(center.publication.offer(&message(sent)), Ok(Offer::Position(_)))
        {
            sent += 1;
        }
        slowest >= end
    });
    for (member, before) in members.iter().zip(before) {
        let read = &member.reader.messages[before..];
        assert_eq!(read.len(), count, "{}", member.node.name());
        for (number, read) in (first..end).zip(read) {
            assert!(*read == message(number), "{} number={number}", member.node.name());
        }
    }
}

fn connected(world: &World, center: &Center, members: &[Member]) {
    world.run_until(10 * SECOND, "all receivers are connected", || {
        let all = members
            .iter()
            .all(|member| member.reader.subscription.is_connected());
        all && center.publication.is_connected()
    });
}

#[test]
fn receivers_that_say_where_they_are_read_the_same_bytes_whatever_the_network_does() {
    for seed in 0..4 {
        let world = World::new(seed);
        let center = Center::new(&world, DYNAMIC);
        assert_eq!(center.destination_count(), 0);
        let mut members = ["one", "two", "three"].map(|name| Member::dynamic(&world, name));
        connected(&world, &center, &members);
        world.run_until(SECOND, "each is sent to", || center.destination_count() == 3);
        world.run_until(SECOND, "each is shown", || center.destinations().len() == 3);
        assert!(
            center
                .destinations()
                .iter()
                .all(|(address, value)| address.ends_with(":40123") && *value == 1)
        );
        assert_eq!(center.value(SENDER_RETRANSMITS), Some(0));
        world.network().set_links(faults());
        publish(&world, &center, &mut members, 0, 200);
        assert!(world.trace(100_000).contains("NAK"), "seed={seed} had no faults");
        assert!(center.value(SENDER_RETRANSMITS) > Some(0));
    }
}

#[test]
fn a_receiver_that_comes_late_joins_where_the_stream_is_and_one_that_dies_is_forgotten() {
    let world = World::new(1);
    let center = Center::new(&world, DYNAMIC);
    let mut members = vec![Member::dynamic(&world, "one")];
    connected(&world, &center, &members);
    publish(&world, &center, &mut members, 0, 50);
    members.push(Member::dynamic(&world, "two"));
    connected(&world, &center, &members);
    publish(&world, &center, &mut members, 50, 50);
    assert_eq!(center.destination_count(), 2);
    members.remove(0).node.crash().unwrap();
    world.run_until(10 * SECOND, "the dead receiver is forgotten", || {
        center.destination_count() == 1
    });
    assert!(center.publication.is_connected());
    publish(&world, &center, &mut members, 100, 50);
    drop(members);
}

#[test]
fn a_client_adds_and_removes_destinations_while_data_flows() {
    for seed in 0..4 {
        let world = World::new(seed);
        let center = Center::new(&world, MANUAL);
        let mut members: Vec<_> = ["one", "two"].map(|name| Member::plain(&world, name)).into();
        assert!(matches!(
            center.publication.offer(b"lost"),
            Ok(Offer::NotConnected)
        ));
        for name in ["one", "two"] {
            let channel = format!("aeron:udp?endpoint={name}:40123");
            center.publication.destinations().add(&channel).unwrap();
        }
        connected(&world, &center, &members);
        assert_eq!(center.destination_count(), 2);
        world.network().set_links(faults());
        publish(&world, &center, &mut members, 0, 100);

        let third = Member::plain(&world, "three");
        let id = center
            .publication
            .destinations()
            .add("aeron:udp?endpoint=three:40123")
            .unwrap();
        center
            .publication
            .destinations()
            .remove("aeron:udp?endpoint=one:40123")
            .unwrap();
        let mut first = members.remove(0);
        members.push(third);
        connected(&world, &center, &members);
        publish(&world, &center, &mut members, 100, 100);
        assert_eq!(
            first.reader.poll().len(),
            100,
            "seed={seed}: removed, and still sent to"
        );

        center.publication.destinations().remove_by_id(id).unwrap();
        members.pop();
        publish(&world, &center, &mut members, 200, 50);
        assert_eq!(center.destination_count(), 1);
        world.run_until(SECOND, "one is shown", || center.destinations().len() == 1);
        let (shown, _) = &center.destinations()[0];
        assert!(shown.ends_with(":40123 of two:40123"), "{shown}");
    }
}

/// A program removes a destination because its receiver is stuck.
#[test]
fn a_receiver_whose_destination_is_removed_holds_the_others_back_no_longer() {
    let world = World::new(5);
    let center = Center::new(&world, &format!("{MANUAL}|fc=min"));
    let mut members = Vec::from(["one", "two"].map(|name| Member::plain(&world, name)));
    let ids = ["one", "two"].map(|name| {
        let channel = format!("aeron:udp?endpoint={name}:40123");
        center.publication.destinations().add(&channel).unwrap()
    });
    connected(&world, &center, &members);
    let stuck = members.remove(0);
    let is_full = || !is_accepted(center.publication.offer(&[7; 1000]));
    world.run_until(SECOND, "the stuck one's window", || {
        members[0].reader.poll();
        is_full()
    });
    world.run_for(SECOND);
    members[0].reader.poll();
    assert!(is_full());
    center.publication.destinations().remove_by_id(ids[0]).unwrap();
    world.run_until(10 * MILLISECOND, "room", || !is_full());
    // It may be sent to once more, and the last one to go leaves none.
    center.publication.destinations().remove_by_id(ids[1]).unwrap();
    world.run_until(10 * MILLISECOND, "the end", || !center.publication.is_connected());
    drop(stuck);
}

#[test]
fn a_receiver_that_closes_leaves_the_group_at_once() {
    let world = World::new(3);
    let center = Center::new(&world, DYNAMIC);
    let members = [Member::dynamic(&world, "one")];
    connected(&world, &center, &members);
    let [
        Member {
            node: _node,
            client,
            reader,
        },
    ] = members;
    reader.subscription.close();
    world.run_until(3 * SECOND, "the publication is not connected", || {
        !center.publication.is_connected()
    });
    client.close().unwrap();
}

#[test]
fn a_destination_is_removed_by_its_name_wherever_the_name_leads_now() {
    for leads_to_other in [true, false] {
        let world = World::new(11);
        let center = Center::new(&world, MANUAL);
        let mut members: Vec<_> = ["one", "two"].map(|name| Member::plain(&world, name)).into();
        let at = |host: &str| format!("aeron:udp?endpoint={host}:40123");
        let [one, two] = [0, 1].map(|member: usize| members[member].node.address());
        let name = |address| world.network().set_name("named", address);
        name(Some(one));
        for host in [at("named"), at(&two.to_string())] {
            center.publication.destinations().add(&host).unwrap();
        }
        connected(&world, &center, &members);
        publish(&world, &center, &mut members, 0, 10);

        // What comes from the first member is heard, so that the driver does not look the name up.
        name(leads_to_other.then_some(two));
        center.publication.destinations().remove(&at("named")).unwrap();
        world.run_until(SECOND, "it is removed", || center.destination_count() == 1);
        let mut first = members.remove(0);
        publish(&world, &center, &mut members, 10, 10);
        assert_eq!(first.reader.poll().len(), 10, "removed, and still sent to");

        // By an address too, with whatever text it was added.
        center.publication.destinations().remove(&at("two")).unwrap();
        world.run_until(SECOND, "it is removed", || center.destination_count() == 0);
    }
}

#[test]
fn a_destination_without_an_address_is_sent_to_once_its_name_has_one() {
    let world = World::new(4);
    let center = Center::new(&world, MANUAL);
    center
        .publication
        .destinations()
        .add("aeron:udp?endpoint=late:40123")
        .unwrap();
    world.run_for(7 * SECOND);
    assert_eq!(center.destination_count(), 1);
    assert_eq!(center.destinations(), [(" of late:40123".to_owned(), 0)]);
    let mut members = [Member::plain(&world, "late")];
    world.run_until(20 * SECOND, "the name is found", || {
        center.publication.is_connected()
    });
    connected(&world, &center, &members);
    publish(&world, &center, &mut members, 0, 20);
    let (shown, value) = &center.destinations()[0];
    assert!(!shown.starts_with(' ') && *value == 1, "{shown}");
    center.publication.close();
    world.run_until(10 * SECOND, "its channel is closed", || {
        center.destinations().is_empty()
    });
}

#[test]
fn what_is_no_destination_is_refused_with_the_reason() {
    let world = World::new(5);
    let center = Center::new(&world, MANUAL);
    let refused = |publication: &Publication, channel: &str| match publication.destinations().add(channel) {
        Err(ClientError::Registration { code, message, .. }) => (code, message),
        other => panic!("{channel}: {other:?}"),
    };
    let (code, message) = refused(&center.publication, "aeron:udp?endpoint=one:0");
    assert!(
        code == ErrorCode::GenericError && message.contains("port=0"),
        "{message}"
    );
    let (code, message) = refused(&center.publication, "aeron:ipc");
    assert!(
        code == ErrorCode::GenericError && message.contains("destination"),
        "{message}"
    );
    let (code, message) = refused(&center.publication, "aeron:udp?endpoint=[fd00::9]:5");
    assert!(
        code == ErrorCode::InvalidChannel && message.contains("IPv6") && message.contains("[fd00::9]:5"),
        "{message}"
    );
    let plain = center
        ._client
        .add_publication("aeron:udp?endpoint=center:9", 7)
        .unwrap();
    let (code, message) = refused(&plain, "aeron:udp?endpoint=one:5");
    assert!(
        code == ErrorCode::InvalidChannel && message.contains("control-mode=manual"),
        "{message}"
    );
    let local = center
        ._client
        .add_publication("aeron:ipc?term-length=64k", 7)
        .unwrap();
    let (code, _) = refused(&local, "aeron:udp?endpoint=one:5");
    assert_eq!(code, ErrorCode::UnknownPublication);
    // One that is not there is gone already.
    center
        .publication
        .destinations()
        .remove("aeron:udp?endpoint=center:5")
        .unwrap();
    center.publication.destinations().remove_by_id(77).unwrap();
    assert_eq!(errors_of(&center.node).len(), 5);
    assert_eq!(center.destination_count(), 0);
}

/// Members of a group, on hosts of their own.
fn group_members(world: &World, names: &[&str]) -> Vec<Member> {
    let channel = "aeron:udp?endpoint=224.0.1.1:40123";
    names
        .iter()
        .map(|name| Member::new(world, name, channel))
        .collect()
}

#[test]
fn the_receivers_of_a_group_among_the_destinations_are_heard_and_their_losses_repaired() {
    for seed in 0..4 {
        let world = World::new(seed);
        let center = Center::new(&world, MANUAL);
        let mut members = group_members(&world, &["one", "two"]);
        let group = "aeron:udp?endpoint=224.0.1.1:40123|ttl=7";
        let added = center.publication.destinations().add(group).unwrap();
        connected(&world, &center, &members);
        let opened = world.trace(100_000);
        assert_eq!(opened.matches("center opens 0.0.0.0:").count(), 3, "{opened}");
        assert_eq!(opened.matches("ttl: Some(7)").count(), 2, "{opened}");
        members.push(Member::plain(&world, "alone"));
        let alone = "aeron:udp?endpoint=alone:40123";
        center.publication.destinations().add(alone).unwrap();
        connected(&world, &center, &members);
        world.network().set_links(faults());
        publish(&world, &center, &mut members, 0, 150);
        assert!(center.value(SENDER_RETRANSMITS) > Some(0), "seed={seed}");
        // The sockets go with the destination; the receivers of the group hear no more.
        let sockets = world.socket_count();
        center.publication.destinations().remove_by_id(added).unwrap();
        world.run_until(SECOND, "the sockets of the group are closed", || {
            world.socket_count() == sockets - 2
        });
        let mut rest = members.split_off(2);
        publish(&world, &center, &mut rest, 150, 20);
        assert_eq!(errors_of(&center.node), [""; 0], "seed={seed}");
    }
}

#[test]
fn a_group_is_reached_through_the_interface_of_the_destination_or_else_of_the_publication() {
    let world = World::new(2);
    let center = Center::new(&world, MANUAL);
    let away = group_members(&world, &["away"]).remove(0);
    let here = "aeron:udp?endpoint=224.0.1.1:40123|interface=127.0.0.1";
    let mut here = [Reader::subscribe(&center._client, here, STREAM)];
    let on = |publication: &Publication, interface: &str| {
        let channel = format!("aeron:udp?endpoint=224.0.1.1:40123{interface}");
        publication.destinations().add(&channel).unwrap();
        channel
    };
    let local = on(&center.publication, "|interface=127.0.0.1");
    world.run_until(10 * SECOND, "the receiver on the interface reads", || {
        here[0].subscription.is_connected() && center.publication.is_connected()
    });
    world.run_for(SECOND);
    assert!(!away.reader.subscription.is_connected());
    on(&center.publication, "|interface={sim0}");
    world.run_until(10 * SECOND, "the other interface too", || {
        away.reader.subscription.is_connected()
    });
    // Of a group through two interfaces the one goes that the channel names.
    center.publication.destinations().remove(&local).unwrap();
    assert!(is_accepted(center.publication.offer(b"for those away")));
    let mut away = [away.reader];
    world.run_until(10 * SECOND, "the other one still reads", || {
        away[0].poll().len() == 1
    });
    world.run_for(SECOND);
    assert_eq!(here[0].poll().len(), 0);

    // As the publication says, for a destination that does not.
    let manual = format!("{MANUAL}|interface=127.0.0.1|ttl=3");
    let bound = center._client.add_publication(&manual, STREAM + 1).unwrap();
    let channel = "aeron:udp?endpoint=224.0.1.1:40123|interface=127.0.0.1";
    let inside = Reader::subscribe(&center._client, channel, STREAM + 1);
    on(&bound, "");
    world.run_until(10 * SECOND, "it goes through the publication's interface", || {
        inside.subscription.is_connected()
    });
    assert!(world.trace(100_000).contains("ttl: Some(3)"));
}

#[test]
fn a_stranger_that_measures_its_round_trip_is_answered_and_no_receiver_is_troubled() {
    let world = World::new(6);
    let center = Center::new(&world, DYNAMIC);
    let mut members = ["one", "two", "three"].map(|name| Member::dynamic(&world, name));
    connected(&world, &center, &members);
    publish(&world, &center, &mut members, 0, 5);
    let stranger: SocketAddr = "10.9.9.9:999".parse().unwrap();
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: center.publication.session_id(),
        stream_id: STREAM,
        echo_timestamp_ns: 5,
        reception_delta_ns: 0,
        receiver_id: 77,
    };
    let mut frame = [0; RttMeasurement::LENGTH];
    probe.encode(&mut frame);
    let tap = world.network().tap();
    for _ in 0..3 {
        let control = SocketAddr::new(center.node.address(), 24325);
        world.network().inject(stranger, control, &frame);
    }
    world.run_for(SECOND);
    let echoed_to: Vec<SocketAddr> = tap
        .take()
        .iter()
        .filter(|datagram| classify(&datagram.bytes) == Ok(FrameKind::RttMeasurement))
        // The receivers measure, too.
        .filter(|datagram| RttMeasurement::decode(&datagram.bytes).is_ok_and(|echo| echo.receiver_id == 77))
        .map(|datagram| datagram.to)
        .collect();
    assert_eq!(echoed_to, [stranger; 3]);
    assert_eq!(center.destination_count(), 3);
}

/// It asks for repairs on each of them, from another socket.
#[test]
fn a_receiver_with_several_paths_is_repaired_for_on_each() {
    let world = World::new(8);
    let center = Center::new(&world, MANUAL);
    let mut members = [Member::new(&world, "one", "aeron:udp?control-mode=manual")];
    for port in [40_123, 40_124] {
        let path = format!("aeron:udp?endpoint=one:{port}");
        let subscription = &members[0].reader.subscription;
        subscription.destinations().add(&path).unwrap();
        center.publication.destinations().add(&path).unwrap();
    }
    connected(&world, &center, &members);
    world.run_for(SECOND); // each path is heard
    center.node.set_link_to(
        &members[0].node,
        Some(LinkSettings {
            loss: 0.5,
            ..LinkSettings::default()
        }),
    );
    publish(&world, &center, &mut members, 0, 200);
    let of_center = |id| common::system_counter(&center.node, id);
    assert!(of_center(system_counter::NAK_MESSAGES_RECEIVED) > 20);
    assert_eq!(of_center(system_counter::INVALID_PACKETS), 0);
}

/// A NAK is 28 bytes long and a repair as long as a term, once for each destination.
#[test]
fn a_strangers_naks_bring_nothing_to_any_receiver() {
    for channel in [DYNAMIC, MANUAL] {
        let world = World::new(7);
        let center = Center::new(&world, channel);
        let mut members = ["one", "two"].map(|name| match channel {
            MANUAL => Member::plain(&world, name),
            _ => Member::dynamic(&world, name),
        });
        if channel == MANUAL {
            for name in ["one", "two"] {
                let destination = format!("aeron:udp?endpoint={name}:40123");
                center.publication.destinations().add(&destination).unwrap();
            }
        }
        connected(&world, &center, &members);
        publish(&world, &center, &mut members, 0, 5);
        let tap = world.network().tap();
        world.run_for(SECOND);
        // Where receivers speak to, and one of those that do.
        let (control, member) = tap
            .take()
            .iter()
            .find(|sent| classify(&sent.bytes) == Ok(FrameKind::StatusMessage))
            .map(|sent| (sent.to, sent.from))
            .unwrap();
        let (session_id, term_id) = (
            center.publication.session_id(),
            center.publication.limits().initial_term_id,
        );
        let nak = Nak {
            flags: 0,
            session_id,
            stream_id: STREAM,
            term_id,
            term_offset: 0,
            length: 8 * 1024,
        };
        let mut asked = [0; Nak::LENGTH];
        nak.encode(&mut asked);
        let mut said = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let message = StatusMessage {
            flags: 0,
            session_id,
            stream_id: STREAM,
            consumption_term_id: term_id,
            consumption_term_offset: 0,
            receiver_window_length: 4096,
            receiver_id: 77,
            group_tag: None,
        };
        let length = message.encode(&mut said);
        let stranger: SocketAddr = "10.9.9.9:999".parse().unwrap();
        let repairs = || common::system_counter(&center.node, system_counter::RETRANSMITS_SENT);
        let before = repairs();
        world.network().inject(stranger, control, &asked);
        if channel == MANUAL {
            // It is no destination, so what it says of itself makes it none that is repaired for.
            world.network().inject(stranger, control, &said[..length]);
            world.run_for(SECOND);
            world.network().inject(stranger, control, &asked);
        }
        world.run_for(SECOND);
        assert_eq!(repairs(), before, "{channel}");
        let invalid = common::system_counter(&center.node, system_counter::INVALID_PACKETS);
        assert_eq!(invalid, 1 + i64::from(channel == MANUAL));
        world.network().inject(member, control, &asked);
        world.run_for(SECOND);
        assert!(repairs() > before, "a receiver is repaired for: {channel}");
    }
}
