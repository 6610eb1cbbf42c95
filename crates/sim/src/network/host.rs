//! A host of the network, and which of its ports are taken.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::addresses::Addresses;
use super::bound::SocketId;

/// First port that is handed out, as on Linux.
const EPHEMERAL_FIRST: u16 = 32_768;

/// A host: its name, its addresses and the ports of its sockets.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) addresses: Addresses,
    pub(super) bound: BTreeMap<(u16, IpAddr), SocketId>,
    /// Ports of sockets that joined groups; several may have one.
    pub(super) shared: Vec<(u16, SocketId)>,
    next_port: u16,
}

impl Host {
    pub(super) fn new(name: &str, addresses: Addresses) -> Self {
        Self {
            name: name.to_owned(),
            addresses,
            bound: BTreeMap::new(),
            shared: Vec::new(),
            next_port: EPHEMERAL_FIRST,
        }
    }

    /// The port of a socket that joins a group: others that do may have it, too.
    pub(super) fn shared_port(&mut self, local: SocketAddr) -> io::Result<u16> {
        let is_shared = self.shared.iter().any(|(port, _)| *port == local.port());
        if is_shared {
            Ok(local.port())
        } else {
            self.port(local)
        }
    }

    /// The port to bind: the one asked for if it is free, else the next free one.
    pub(super) fn port(&mut self, local: SocketAddr) -> io::Result<u16> {
        let is_free = |port: u16| {
            // Sockets of one family do not take what is sent to the other.
            let same = |(taken, ip): &&(u16, IpAddr)| *taken == port && ip.is_ipv4() == local.is_ipv4();
            if self.shared.iter().any(|(shared, _)| *shared == port) {
                return false;
            }
            let mut bound = self.bound.keys().filter(same);
            bound.all(|(_, ip)| *ip != local.ip() && !ip.is_unspecified() && !local.ip().is_unspecified())
        };
        if local.port() != 0 {
            let port = local.port();
            return is_free(port)
                .then_some(port)
                .ok_or_else(|| io::ErrorKind::AddrInUse.into());
        }
        let next = self.next_port;
        let port = (next..=u16::MAX)
            .chain(EPHEMERAL_FIRST..next)
            .find(|port| is_free(*port))
            .ok_or(io::ErrorKind::AddrInUse)?;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL_FIRST);
        Ok(port)
    }
}
