//! One end of the network, in the hands of a sender or a receiver.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use headrace_driver::transport::Transport;
use headrace_sys::net::{Coalesced, GroupOptions, MAX_DATAGRAM_LENGTH, OffloadMode, ReceiveBatch, Run};

use super::{Addresses, HostId, Network};
use crate::trace::{Fate, Route, Trace};

pub(super) type SocketId = u64;

struct Datagram {
    route: Route,
    bytes: Vec<u8>,
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
        let bytes = bytes.to_vec();
        self.expected
            .insert((arrival_ns, self.last_expected), Datagram { route, bytes });
    }

    pub(super) fn next_arrival_ns(&self) -> Option<i64> {
        self.expected
            .first_key_value()
            .map(|((arrival_ns, _), _)| *arrival_ns)
    }

    /// Puts what has arrived into the receive buffer, as far as there is room.
    pub(super) fn settle(&mut self, now_ns: i64, trace: &mut Trace) {
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

    fn take_arrived(&mut self) -> VecDeque<Datagram> {
        self.arrived_bytes = 0;
        std::mem::take(&mut self.arrived)
    }
}

/// An open socket; dropping it closes it.
pub(super) struct Socket {
    network: Network,
    id: SocketId,
}

impl Socket {
    pub(super) fn new(network: Network, id: SocketId) -> Self {
        Self { network, id }
    }

    fn target(&self, to: Option<SocketAddr>) -> io::Result<SocketAddr> {
        let wire = self.network.wire();
        let remote = wire.sockets.get(&self.id).and_then(|bound| bound.remote);
        to.or(remote).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.network.wire().close(self.id);
    }
}

impl Transport for Socket {
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = self.target(to)?;
        let mut wire = self.network.wire();
        // As the real socket: a refusal of an earlier datagram is no error, but nothing is sent.
        if wire.take_refusal(self.id) {
            return Ok(0);
        }
        let mut accepted = 0;
        for run in runs {
            for datagram in run.region.to_vec().chunks(run.datagram_length) {
                if !wire.send(self.id, to, datagram) {
                    return Ok(accepted);
                }
                accepted += datagram.len();
            }
        }
        Ok(accepted)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = self.target(to)?;
        let mut wire = self.network.wire();
        let is_sent = !wire.take_refusal(self.id) && wire.send(self.id, to, datagram);
        Ok(if is_sent { datagram.len() } else { 0 })
    }

    fn receive(
        &self,
        _batch: &mut ReceiveBatch,
        handler: &mut dyn FnMut(Coalesced<'_>),
    ) -> io::Result<usize> {
        // The handler answers through this network: it must not be locked meanwhile.
        let arrived = {
            let mut wire = self.network.wire();
            let wire = &mut *wire;
            if wire.take_refusal(self.id) {
                return Ok(0);
            }
            let now_ns = wire.time.now_ns();
            let Some(bound) = wire.sockets.get_mut(&self.id) else {
                return Ok(0);
            };
            bound.settle(now_ns, &mut wire.trace);
            bound.take_arrived()
        };
        let count = arrived.len();
        for (source, datagram_length, mut bytes) in coalesce(arrived) {
            handler(Coalesced {
                bytes: &mut bytes,
                datagram_length,
                source,
            });
        }
        Ok(count)
    }

    fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        let mut wire = self.network.wire();
        let bound = wire
            .sockets
            .get_mut(&self.id)
            .ok_or(io::ErrorKind::NotConnected)?;
        if bound.local.is_ipv4() != remote.is_ipv4() {
            return Err(io::ErrorKind::InvalidInput.into()); // as the system: one family a socket
        }
        bound.remote = Some(remote);
        Ok(())
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn send_mode(&self) -> OffloadMode {
        OffloadMode::Segmentation
    }

    fn receive_mode(&self) -> OffloadMode {
        OffloadMode::Segmentation
    }
}

/// Joins neighbours of one source and of equal length, as a kernel does; the last of them may be shorter.
fn coalesce(arrived: VecDeque<Datagram>) -> Vec<(SocketAddr, usize, Vec<u8>)> {
    let mut joined: Vec<(SocketAddr, usize, Vec<u8>)> = Vec::new();
    for Datagram { route, bytes } in arrived {
        match joined.last_mut() {
            Some((source, datagram_length, before))
                if *source == route.from
                    && !bytes.is_empty()
                    && before.len().is_multiple_of(*datagram_length)
                    && !before.is_empty()
                    && bytes.len() <= *datagram_length
                    && before.len() + bytes.len() <= MAX_DATAGRAM_LENGTH =>
            {
                before.extend_from_slice(&bytes);
            }
            _ => joined.push((route.from, bytes.len().max(1), bytes)),
        }
    }
    joined
}
