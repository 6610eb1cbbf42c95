//! Multicast over loopback: who receives what was sent to which group.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use headrace_sys::Region;
use headrace_sys::net::{
    GroupInterface, GroupOptions, OffloadMode, ReceiveBatch, Run, SocketOptions, UdpSocket,
};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 195, 7, 1);
const OTHER_GROUP: Ipv4Addr = Ipv4Addr::new(239, 195, 7, 3);

fn options(joins: Option<IpAddr>, ttl: Option<u8>) -> SocketOptions {
    SocketOptions {
        group: Some(GroupOptions {
            interface: GroupInterface {
                address: Ipv4Addr::LOCALHOST.into(),
                index: 1,
            },
            joins,
            ttl,
        }),
        ..SocketOptions::default()
    }
}

/// A port that is free now, and is asked of the system so that tests at the same time have others.
fn free_port() -> u16 {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &SocketOptions::default()).unwrap();
    any.local_addr().unwrap().port()
}

fn member(group: Ipv4Addr, port: u16) -> UdpSocket {
    UdpSocket::bind(
        (Ipv4Addr::UNSPECIFIED, port).into(),
        &options(Some(group.into()), None),
    )
    .unwrap()
}

fn sender(group: Ipv4Addr, port: u16, ttl: Option<u8>) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &options(None, ttl)).unwrap();
    socket.connect((group, port).into()).unwrap();
    socket
}

/// What has arrived: over loopback, that is everything that was sent.
fn received(socket: &UdpSocket) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut batch = ReceiveBatch::new(4);
    let mut found = Vec::new();
    while socket.receive(&mut batch).unwrap() > 0 {
        batch.for_each(|coalesced| {
            for datagram in coalesced.bytes.chunks(coalesced.datagram_length) {
                found.push((coalesced.source, datagram.to_vec()));
            }
        });
    }
    found
}

#[test]
fn every_member_of_a_group_receives_and_no_member_of_another_on_the_same_port() {
    let port = free_port();
    let (one, two, other) = (
        member(GROUP, port),
        member(GROUP, port),
        member(OTHER_GROUP, port),
    );
    let (to_group, to_other) = (sender(GROUP, port, None), sender(OTHER_GROUP, port, None));
    assert_eq!(to_group.send_to(Region::of(&[1; 32]), None).unwrap(), 32);
    assert_eq!(to_other.send_to(Region::of(&[2; 64]), None).unwrap(), 64);
    let expected = vec![(to_group.local_addr().unwrap(), vec![1; 32])];
    assert!(
        to_group.local_addr().unwrap().ip().is_loopback(),
        "the interface's address"
    );
    assert_eq!(received(&one), expected);
    assert_eq!(received(&two), expected);
    assert_eq!(
        received(&other),
        vec![(to_other.local_addr().unwrap(), vec![2; 64])]
    );
}

#[test]
fn a_member_answers_to_another_group_through_the_same_interface() {
    let (data_port, group) = (free_port(), OTHER_GROUP);
    let (receiver, listener) = (member(GROUP, data_port), member(group, data_port));
    receiver
        .send_to(Region::of(&[3; 36]), Some((group, data_port).into()))
        .unwrap();
    let source = (Ipv4Addr::LOCALHOST, data_port).into();
    assert_eq!(received(&listener), vec![(source, vec![3; 36])]);
    assert_eq!(received(&receiver), vec![]);
}

#[test]
fn runs_of_datagrams_reach_a_group_in_every_mode() {
    for offload in [
        OffloadMode::Segmentation,
        OffloadMode::Vectored,
        OffloadMode::Single,
    ] {
        let port = free_port();
        let members = [member(GROUP, port), member(GROUP, port)];
        let from = UdpSocket::bind(
            (Ipv4Addr::UNSPECIFIED, 0).into(),
            &SocketOptions {
                offload,
                ..options(None, None)
            },
        )
        .unwrap();
        from.connect((GROUP, port).into()).unwrap();
        let bytes: Vec<u8> = (0..10 * 1_376 + 96).map(|at| (at >> 5) as u8).collect();
        let run = Run {
            region: Region::of(&bytes),
            datagram_length: 1_376,
        };
        assert_eq!(from.send_runs(&[run], None).unwrap(), bytes.len());
        for socket in &members {
            let joined: Vec<Vec<u8>> = received(socket).into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(joined.iter().map(Vec::len).max(), Some(1_376));
            assert_eq!(joined.concat(), bytes, "{offload:?}");
        }
    }
}

#[test]
fn the_time_to_live_reads_back_and_is_0_if_none_was_asked_for() {
    let port = free_port();
    for ttl in [0, 1, 7, 255] {
        assert_eq!(sender(GROUP, port, Some(ttl)).group_ttl(), ttl);
    }
    assert_eq!(sender(GROUP, port, None).group_ttl(), 0);
}

#[test]
fn groups_over_ip6_go_by_the_index_of_the_interface() {
    let interfaces = headrace_sys::net::interfaces().unwrap();
    let Some(loopback) = interfaces
        .iter()
        .find(|found| found.address == IpAddr::from(Ipv6Addr::LOCALHOST))
    else {
        eprintln!("skipped: this host has no IPv6");
        return;
    };
    let group: Ipv6Addr = "ff15::7:1".parse().unwrap();
    let options = |joins, ttl| SocketOptions {
        group: Some(GroupOptions {
            interface: GroupInterface {
                address: loopback.address,
                index: loopback.index,
            },
            joins,
            ttl,
        }),
        ..SocketOptions::default()
    };
    let any = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let first = UdpSocket::bind(any(0), &options(Some(group.into()), None)).unwrap();
    let port = first.local_addr().unwrap().port();
    let second = UdpSocket::bind(any(port), &options(Some(group.into()), None)).unwrap();
    let from = UdpSocket::bind(any(0), &options(None, Some(3))).unwrap();
    assert_eq!(from.group_ttl(), 3);
    drop((first, second)); // Linux does not carry groups over its IPv6 loopback: what arrives is not tested here
}

#[test]
fn an_interface_that_is_not_there_is_the_systems_error() {
    let nowhere = SocketOptions {
        group: Some(GroupOptions {
            interface: GroupInterface {
                address: Ipv4Addr::new(192, 0, 2, 77).into(),
                index: 0,
            },
            joins: Some(GROUP.into()),
            ttl: None,
        }),
        ..SocketOptions::default()
    };
    let error = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &nowhere).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
}
