//! A socket as the network knows it: where it is bound, and what is under way to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use headrace_sys::net::GroupOptions;

use super::addresses::{Addresses, HostId};
use crate::trace::{Fate, Route, Trace};

pub(super) type SocketId = u64;

/// A datagram under way to a socket, or in its buffer.
pub(super) struct Datagram {
    pub(super) route: Route,
    pub(super) bytes: Vec<u8>,
    /// On the world's clock.
    pub(super) arrival_ns: i64,
}

/// What the network knows of a socket.
pub(super) struct Bound {
    pub(super) host: HostId,
    pub(super) local: SocketAddr,
    pub(super) remote: Option<SocketAddr>,
    /// Its group and interface, if it takes part in multicast.
    pub(super) group: Option<GroupOptions>,
    /// When it is told that a datagram of its was refused.
    pub(super) refused_at_ns: Option<i64>,
    /// It hands over datagrams with the time of their arrival.
    pub(super) stamps_arrivals: bool,
    /// Most datagrams that its kernel joins.
    pub(super) segments_max: usize,
    /// What was joined comes apart where the frames say, not where the kernel noted it.
    pub(super) keeps_joined: bool,
    pub(super) send_buffer_length: usize,
    pub(super) receive_buffer_length: usize,
    /// Under way, by time of arrival and then in order of sending.
    expected: BTreeMap<(i64, u64), Datagram>,
    last_expected: u64,
    arrived: VecDeque<Datagram>,
    arrived_bytes: usize,
}

impl Bound {
    pub(super) fn new(
        host: HostId,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        group: Option<GroupOptions>,
        [send_buffer_length, receive_buffer_length]: [usize; 2],
    ) -> Self {
        Self {
            host,
            local,
            remote,
            group,
            refused_at_ns: None,
            stamps_arrivals: false,
            segments_max: 1,
            keeps_joined: false,
            send_buffer_length,
            receive_buffer_length,
            expected: BTreeMap::new(),
            last_expected: 0,
            arrived: VecDeque::new(),
            arrived_bytes: 0,
        }
    }

    /// Where a datagram to `to` comes from: of a socket bound to all addresses, the one that leads there.
    pub(super) fn source(&self, own: Addresses, to: SocketAddr) -> SocketAddr {
        let ip = match (self.local.ip(), self.group) {
            (ip, _) if !ip.is_unspecified() => ip,
            (_, Some(group)) if to.ip().is_multicast() => group.interface.address,
            _ => own.towards(to.ip()),
        };
        SocketAddr::new(ip, self.local.port())
    }

    /// A connected socket takes datagrams of its peer alone.
    pub(super) fn accepts(&self, source: SocketAddr) -> bool {
        self.remote.is_none_or(|remote| remote == source)
    }

    /// A member takes what is sent to its group and port, on the interface where it joined.
    pub(super) fn is_member(&self, group: SocketAddr, interface_index: u32) -> bool {
        self.local.port() == group.port()
            && self
                .group
                .is_some_and(|own| own.joins == Some(group.ip()) && own.interface.index == interface_index)
    }

    /// It has joined a group, and shares its port with others that have.
    pub(super) fn shares_port(&self) -> bool {
        self.group.is_some_and(|group| group.joins.is_some())
    }

    pub(super) fn expect(&mut self, route: Route, bytes: &[u8], arrival_ns: i64) {
        self.last_expected += 1;
        let datagram = Datagram {
            route,
            bytes: bytes.to_vec(),
            arrival_ns,
        };
        self.expected.insert((arrival_ns, self.last_expected), datagram);
    }

    pub(super) fn next_arrival_ns(&self) -> Option<i64> {
        self.expected
            .first_key_value()
            .map(|((arrival_ns, _), _)| *arrival_ns)
    }

    pub(super) fn has_arrived(&self, now_ns: i64) -> bool {
        !self.arrived.is_empty()
            || self
                .next_arrival_ns()
                .is_some_and(|arrival_ns| arrival_ns <= now_ns)
    }

    /// Puts what has arrived into the receive buffer, as far as there is room.
    pub(super) fn fill_receive_buffer(&mut self, now_ns: i64, trace: &mut Trace) {
        while let Some(entry) = self.expected.first_entry() {
            let (arrival_ns, _) = *entry.key();
            if arrival_ns > now_ns {
                return;
            }
            let datagram = entry.remove();
            let arrived_bytes = self.arrived_bytes + datagram.bytes.len();
            if arrived_bytes > self.receive_buffer_length {
                trace.on_datagram(arrival_ns, datagram.route, &datagram.bytes, Fate::Overflow);
            } else {
                self.arrived_bytes = arrived_bytes;
                self.arrived.push_back(datagram);
            }
        }
    }

    pub(super) fn take_arrived(&mut self) -> VecDeque<Datagram> {
        self.arrived_bytes = 0;
        std::mem::take(&mut self.arrived)
    }
}
