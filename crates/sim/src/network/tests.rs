use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use headrace_driver::environment::{Lookups as _, Network as _, SocketRequest};
use headrace_driver::transport::Transport;
use headrace_sys::net::{GroupInterface, GroupOptions, ReceiveBatch, SocketOptions};

use super::addresses::HostId;
use super::wire::{LINK_INDEX, LOOPBACK_INDEX};
use super::{HostNetwork, LinkSettings, Network};
use crate::time::WorldTime;

struct Pair {
    time: WorldTime,
    network: Network,
    hosts: [HostNetwork; 2],
}

impl Pair {
    fn new() -> Self {
        let time = WorldTime::default();
        let network = Network::new(time.clone(), [1, 2].map(fastrand::Rng::with_seed));
        let hosts = ["left", "right"].map(|name| HostNetwork::add(&network, name));
        Self { time, network, hosts }
    }

    fn open(&self, host: HostId, local: &str, remote: Option<&str>) -> Box<dyn Transport> {
        self.hosts[host].open(&request(local, remote)).unwrap().transport
    }

    fn refusal(&self, local: &str) -> io::ErrorKind {
        self.hosts[0].open(&request(local, None)).err().unwrap().kind()
    }
}

fn request(local: &str, remote: Option<&str>) -> SocketRequest {
    SocketRequest {
        local: local.parse().unwrap(),
        remote: remote.map(|remote| remote.parse().unwrap()),
        options: SocketOptions::default(),
    }
}

fn received(socket: &dyn Transport) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut batch = ReceiveBatch::new(1);
    let mut handler = |coalesced: headrace_sys::net::Coalesced<'_>| {
        for datagram in coalesced.bytes.chunks(coalesced.datagram_length) {
            found.push((coalesced.source.to_string(), datagram.to_vec()));
        }
    };
    socket.receive(&mut batch, &mut handler).unwrap();
    found
}

#[test]
fn a_datagram_takes_its_time_and_names_its_source() {
    let pair = Pair::new();
    let left = pair.open(0, "0.0.0.0:0", Some("10.0.0.2:40123"));
    let right = pair.open(1, "10.0.0.2:40123", None);
    left.send(b"hello", None).unwrap();
    assert_eq!(received(right.as_ref()), []);
    let arrival_ns = pair.network.next_arrival_ns().unwrap();
    pair.time.advance_ns(arrival_ns - 1);
    assert_eq!(received(right.as_ref()), []);
    pair.time.advance_ns(1);
    assert_eq!(
        received(right.as_ref()),
        [("10.0.0.1:32768".to_owned(), b"hello".to_vec())]
    );
    assert!(
        pair.network
            .trace(1)
            .contains("10.0.0.1:32768 > 10.0.0.2:40123 5 bytes: arrives after")
    );
}

/// Sockets differ in how many datagrams they join.
#[test]
fn neighbours_of_equal_length_arrive_joined_and_come_apart_again() {
    let pair = Pair::new();
    let left = pair.open(0, "0.0.0.0:0", Some("10.0.0.2:40123"));
    let texts = ["aa", "bb", "c", "dd", "", "ee"];
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        let right = pair.open(1, "0.0.0.0:40123", None);
        for text in texts {
            left.send(text.as_bytes(), None).unwrap();
        }
        pair.time.advance_ns(1_000_000);
        let (mut lengths, mut datagrams) = (Vec::new(), Vec::new());
        let mut batch = ReceiveBatch::new(1);
        right
            .receive(&mut batch, &mut |coalesced| {
                lengths.push(coalesced.bytes.len());
                let parts = coalesced.bytes.chunks(coalesced.datagram_length);
                datagrams.extend(parts.map(<[u8]>::to_vec));
            })
            .unwrap();
        assert_eq!(datagrams.concat(), texts.concat().as_bytes());
        seen.insert(lengths);
    }
    let expected = [vec![2, 2, 1, 2, 0, 2], vec![4, 1, 2, 0, 2], vec![5, 2, 0, 2]];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn what_a_machine_refuses_is_refused() {
    let pair = Pair::new();
    let _bound = pair.open(0, "10.0.0.1:40123", None);
    assert_eq!(pair.refusal("10.0.0.1:40123"), io::ErrorKind::AddrInUse);
    assert_eq!(pair.refusal("0.0.0.0:40123"), io::ErrorKind::AddrInUse);
    assert_eq!(pair.refusal("10.0.0.2:40124"), io::ErrorKind::AddrNotAvailable);
    assert_eq!(pair.refusal("[fd00::2]:40124"), io::ErrorKind::AddrNotAvailable);
    let unconnected = pair.open(0, "127.0.0.1:40123", None);
    let sent = unconnected.send(b"x", None);
    assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::NotConnected);
}

#[test]
fn a_closed_socket_frees_its_port_and_takes_nothing() {
    let pair = Pair::new();
    let left = pair.open(0, "0.0.0.0:0", Some("10.0.0.2:40123"));
    drop(pair.open(1, "0.0.0.0:40123", None));
    left.send(b"hello", None).unwrap();
    left.send(b"hello", Some("10.9.9.9:1".parse().unwrap())).unwrap();
    let trace = pair.network.trace(2);
    assert!(
        trace.contains("no socket takes it") && trace.contains("no node has the address"),
        "{trace}"
    );
    assert_eq!(pair.network.socket_count(), 1);
    pair.open(1, "0.0.0.0:40123", None);
}

#[test]
fn a_connected_socket_takes_datagrams_of_its_peer_alone() {
    let pair = Pair::new();
    let stranger = pair.open(0, "10.0.0.1:5", Some("10.0.0.2:40123"));
    let peer = pair.open(0, "10.0.0.1:6", Some("10.0.0.2:40123"));
    let right = pair.open(1, "10.0.0.2:40123", Some("10.0.0.1:6"));
    stranger.send(b"no", None).unwrap();
    peer.send(b"yes", None).unwrap();
    pair.time.advance_ns(1_000_000);
    assert_eq!(
        received(right.as_ref()),
        [("10.0.0.1:6".to_owned(), b"yes".to_vec())]
    );
}

#[test]
fn a_receive_buffer_that_is_not_emptied_overflows() {
    let pair = Pair::new();
    let left = pair.open(0, "0.0.0.0:0", Some("10.0.0.2:40123"));
    let right = pair.open(1, "0.0.0.0:40123", None);
    for _ in 0..300 {
        left.send(&[0; 1_000], None).unwrap();
    }
    pair.time.advance_ns(1_000_000);
    assert_eq!(received(right.as_ref()).len(), 212);
    assert!(pair.network.trace(1).contains("receive buffer is full"));
}

#[test]
fn one_direction_can_be_cut_and_mended() {
    let pair = Pair::new();
    let left = pair.open(0, "10.0.0.1:1", Some("10.0.0.2:2"));
    let right = pair.open(1, "10.0.0.2:2", Some("10.0.0.1:1"));
    pair.network.set_cut(0, 1, true);
    for round in 0..2 {
        left.send(b"there", None).unwrap();
        right.send(b"back", None).unwrap();
        pair.time.advance_ns(1_000_000);
        assert_eq!(received(right.as_ref()).len(), round);
        assert_eq!(received(left.as_ref()).len(), 1);
        pair.network.set_cut(0, 1, false);
    }
}

#[test]
fn names_of_nodes_are_found() {
    let pair = Pair::new();
    let mut names = pair.hosts[0].names();
    names.begin("right");
    names.begin("nowhere");
    let answers: Vec<_> = std::iter::from_fn(|| names.take_finished())
        .map(|found| found.answer)
        .collect();
    assert_eq!(answers[0], Ok("10.0.0.2".parse().unwrap()));
    assert!(answers[1].is_err());
}

#[test]
fn sockets_of_both_families_share_a_port() {
    let pair = Pair::new();
    let four = pair.open(1, "0.0.0.0:40123", None);
    let six = pair.open(1, "[::]:40123", None);
    let left = pair.open(0, "[::]:0", Some("[fd00::2]:40123"));
    left.send(b"six", None).unwrap();
    pair.time.advance_ns(1_000_000);
    assert_eq!(
        received(six.as_ref()),
        [("[fd00::1]:32768".to_owned(), b"six".to_vec())]
    );
    assert_eq!(received(four.as_ref()), []);
}

/// As on a machine: the call after the refusal has come does nothing, and the one after that sends.
#[test]
fn a_connected_sender_is_told_once_that_a_port_is_closed() {
    let pair = Pair::new();
    let left = pair.open(0, "0.0.0.0:0", Some("10.0.0.2:40123"));
    assert_eq!(left.send(b"hello", None).unwrap(), 5);
    assert_eq!(left.send(b"hello", None).unwrap(), 5, "the answer is under way");
    pair.time.advance_ns(1_000_000);
    assert_eq!(left.send(b"hello", None).unwrap(), 0);
    let _right = pair.open(1, "0.0.0.0:40123", None);
    assert_eq!(left.send(b"hello", None).unwrap(), 5);
    let unconnected = pair.open(0, "0.0.0.0:0", None);
    unconnected
        .send(b"hello", Some("10.0.0.2:1".parse().unwrap()))
        .unwrap();
    pair.time.advance_ns(1_000_000);
    assert_eq!(
        unconnected
            .send(b"hello", Some("10.0.0.2:1".parse().unwrap()))
            .unwrap(),
        5
    );
}

#[test]
fn names_take_as_long_as_they_are_told_to() {
    let pair = Pair::new();
    pair.network.set_lookup_ns(1_000);
    let mut names = pair.hosts[0].names();
    names.begin("right");
    pair.network.set_lookup_ns(i64::MAX);
    names.begin("left");
    pair.time.advance_ns(999);
    assert!(names.take_finished().is_none());
    pair.time.advance_ns(1);
    assert_eq!(names.take_finished().unwrap().host, "right");
    pair.time.advance_ns(i64::MAX / 2);
    assert!(names.take_finished().is_none());
}

const GROUP: &str = "224.0.1.1:40123";

/// Which interface of a host.
#[derive(Clone, Copy)]
enum Through {
    Link,
    Loopback,
}

impl Pair {
    fn in_group(
        &self,
        host: HostId,
        through: Through,
        joins: Option<&str>,
        remote: Option<&str>,
    ) -> Box<dyn Transport> {
        let joined: Option<SocketAddr> = joins.map(|group| group.parse().unwrap());
        let (address, index) = match through {
            Through::Link => (IpAddr::V4(self.hosts[host].addresses().v4), LINK_INDEX),
            Through::Loopback => (Ipv4Addr::LOCALHOST.into(), LOOPBACK_INDEX),
        };
        let mut asked = request("0.0.0.0:0", remote);
        asked.local.set_port(joined.map_or(0, |group| group.port()));
        asked.options.group = Some(GroupOptions {
            interface: GroupInterface { address, index },
            joins: joined.map(|group| group.ip()),
            ttl: None,
        });
        self.hosts[host].open(&asked).unwrap().transport
    }
}

fn bytes_received(socket: &dyn Transport) -> Vec<u8> {
    received(socket)
        .into_iter()
        .flat_map(|(_, bytes)| bytes)
        .collect()
}

#[test]
fn a_group_is_all_sockets_that_joined_it_on_the_same_interface() {
    let pair = Pair::new();
    let sender = pair.in_group(0, Through::Link, None, Some(GROUP));
    let members = [
        pair.in_group(0, Through::Link, Some(GROUP), None),
        pair.in_group(1, Through::Link, Some(GROUP), None),
        pair.in_group(1, Through::Link, Some(GROUP), None),
    ];
    let others = [
        pair.in_group(1, Through::Loopback, Some(GROUP), None),
        pair.in_group(1, Through::Link, Some("224.0.1.3:40123"), None),
        pair.in_group(1, Through::Link, Some("224.0.1.1:40124"), None),
    ];
    assert_eq!(sender.send(b"to all", None).unwrap(), 6);
    pair.time.advance_ns(60_000);
    for member in &members {
        assert_eq!(
            received(member.as_ref()),
            [("10.0.0.1:32768".to_owned(), b"to all".to_vec())]
        );
    }
    for other in &others {
        assert_eq!(received(other.as_ref()), []);
    }
}

#[test]
fn what_is_sent_to_a_group_through_loopback_stays_on_the_host() {
    let pair = Pair::new();
    let sender = pair.in_group(0, Through::Loopback, None, Some(GROUP));
    let members = [0, 1].map(|host| pair.in_group(host, Through::Loopback, Some(GROUP), None));
    sender.send(b"near", None).unwrap();
    pair.time.advance_ns(60_000);
    assert_eq!(bytes_received(members[0].as_ref()), b"near");
    assert_eq!(bytes_received(members[1].as_ref()), b"");
}

#[test]
fn each_member_has_the_losses_and_delays_of_its_own_link() {
    let pair = Pair::new();
    let sender = pair.in_group(0, Through::Link, None, Some(GROUP));
    let members = [0, 1].map(|host| pair.in_group(host, Through::Link, Some(GROUP), None));
    pair.network.set_link(
        0,
        1,
        Some(LinkSettings {
            loss: 0.5,
            duplication: 0.2,
            ..LinkSettings::default()
        }),
    );
    for number in 0..100 {
        sender.send(&[number], None).unwrap();
    }
    pair.time.advance_ns(10_000);
    assert_eq!(bytes_received(members[0].as_ref()), (0..100).collect::<Vec<u8>>());
    assert_eq!(bytes_received(members[1].as_ref()), b"", "still under way");
    pair.time.advance_ns(100_000);
    let mut over_there = bytes_received(members[1].as_ref());
    let with_duplicates = over_there.len();
    over_there.sort_unstable();
    over_there.dedup();
    assert!((30..70).contains(&over_there.len()), "{over_there:?}");
    assert!(with_duplicates > over_there.len(), "some came twice");
    pair.network.set_cut(0, 1, true);
    sender.send(b"x", None).unwrap();
    pair.time.advance_ns(100_000);
    assert_eq!(
        (
            bytes_received(members[0].as_ref()),
            bytes_received(members[1].as_ref())
        ),
        (b"x".to_vec(), vec![])
    );
}

#[test]
fn members_share_a_port_that_no_one_else_may_have_and_leave_when_they_close() {
    let pair = Pair::new();
    let sender = pair.in_group(0, Through::Link, None, Some(GROUP));
    let first = pair.in_group(0, Through::Link, Some(GROUP), None);
    let second = pair.in_group(0, Through::Link, Some(GROUP), None);
    assert_eq!(pair.refusal("10.0.0.1:40123"), io::ErrorKind::AddrInUse);
    drop(first);
    sender.send(b"x", None).unwrap();
    pair.time.advance_ns(60_000);
    assert_eq!(bytes_received(second.as_ref()), b"x");
    drop(second);
    assert_eq!(sender.send(b"lost", None).unwrap(), 4);
    let alone = pair.open(0, "10.0.0.1:40123", None);
    drop(alone);
}
