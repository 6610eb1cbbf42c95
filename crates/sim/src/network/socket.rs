//! One end of the network, in the hands of a sender or a receiver.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use headrace_driver::transport::Transport;
use headrace_sys::net::{Coalesced, MAX_DATAGRAM_LENGTH, OffloadMode, ReceiveBatch, Run};

use super::bound::{Datagram, SocketId};
use super::wire::Network;
use crate::time::EPOCH_START_NS;
use crate::trace::Route;

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
        let to = to.or(remote).ok_or(io::ErrorKind::NotConnected)?;
        if !wire.is_reachable(to) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        Ok(to)
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

    fn receive(&self, batch: &mut ReceiveBatch, handler: &mut dyn FnMut(Coalesced<'_>)) -> io::Result<usize> {
        // The handler answers through this network: it must not be locked meanwhile.
        let (joined, stamps_arrivals, keeps_joined) = {
            let mut wire = self.network.wire();
            let wire = &mut *wire;
            if wire.take_refusal(self.id) {
                return Ok(0);
            }
            let now_ns = wire.time.now_ns();
            let Some(bound) = wire.sockets.get_mut(&self.id) else {
                return Ok(0);
            };
            bound.fill_receive_buffer(now_ns, &mut wire.trace);
            let joined = coalesce(bound.take_arrived(), bound.segments_max);
            (joined, bound.stamps_arrivals, bound.keeps_joined)
        };
        let first_datagram = batch
            .first_datagram()
            .filter(|_| keeps_joined && !stamps_arrivals);
        let mut count = 0;
        for mut joined in joined {
            let mut rest = joined.bytes.as_mut_slice();
            loop {
                let end = first_datagram.map_or(rest.len(), |first_datagram| first_datagram(rest));
                let (bytes, others) = rest.split_at_mut(end);
                let datagram_length = first_datagram.map_or(joined.datagram_length, |_| end.max(1));
                count += bytes.len().div_ceil(datagram_length).max(1);
                handler(Coalesced {
                    bytes,
                    datagram_length,
                    source: joined.source,
                    arrived_ns: stamps_arrivals.then_some(EPOCH_START_NS + joined.arrival_ns),
                });
                if others.is_empty() {
                    break;
                }
                rest = others;
            }
        }
        Ok(count)
    }

    fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        let mut wire = self.network.wire();
        if !wire.is_reachable(remote) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
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

/// What a kernel hands over as one: datagrams of one source.
struct Joined {
    source: SocketAddr,
    datagram_length: usize,
    bytes: Vec<u8>,
    /// Of the first of them.
    arrival_ns: i64,
}

impl Joined {
    fn takes(&self, route: &Route, bytes: &[u8], segments_max: usize) -> bool {
        self.source == route.from
            && self.bytes.len() < segments_max * self.datagram_length
            && !bytes.is_empty()
            && !self.bytes.is_empty()
            && self.bytes.len().is_multiple_of(self.datagram_length)
            && bytes.len() <= self.datagram_length
            && self.bytes.len() + bytes.len() <= MAX_DATAGRAM_LENGTH
    }
}

/// Joins neighbours of one source and of equal length, as a kernel does; the last of them may be shorter.
fn coalesce(arrived: VecDeque<Datagram>, segments_max: usize) -> Vec<Joined> {
    let mut joined: Vec<Joined> = Vec::new();
    for Datagram {
        route,
        bytes,
        arrival_ns,
    } in arrived
    {
        match joined.last_mut() {
            Some(before) if before.takes(&route, &bytes, segments_max) => {
                before.bytes.extend_from_slice(&bytes)
            }
            _ => joined.push(Joined {
                source: route.from,
                datagram_length: bytes.len().max(1),
                bytes,
                arrival_ns,
            }),
        }
    }
    joined
}
