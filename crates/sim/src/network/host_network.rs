//! The network as the driver of one host sees it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use headrace_driver::environment::{BufferLengths, OpenSocket, SocketRequest};
use headrace_protocol::channel::Interface;

use super::addresses::{Addresses, HostId};
use super::names::Names;
use super::socket::Socket;
use super::wire::{BUFFER_LENGTH, BUFFER_LENGTH_MAX, LINK_INDEX, LOOPBACK_INDEX, Network};

/// The network as the driver of one host sees it.
#[derive(Clone)]
pub(crate) struct HostNetwork {
    network: Network,
    host: HostId,
}

impl HostNetwork {
    /// Of one more host.
    pub(crate) fn add(network: &Network, name: &str) -> Self {
        Self {
            host: network.add_host(name),
            network: network.clone(),
        }
    }

    pub(crate) fn host(&self) -> HostId {
        self.host
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.network.wire().hosts[self.host].addresses
    }

    pub(crate) fn names(&self) -> Names {
        Names::new(self.network.clone(), self.host)
    }
}

impl headrace_driver::environment::Network for HostNetwork {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let mut wire = self.network.wire();
        let remote = request.remote.filter(|remote| wire.is_reachable(*remote));
        let (id, local) = wire.bind(
            self.host,
            &SocketRequest {
                remote,
                ..request.clone()
            },
        )?;
        let bound = &wire.sockets[&id];
        Ok(OpenSocket {
            transport: Box::new(Socket::new(self.network.clone(), id)),
            // As the system tells it: connecting chooses the address, being bound to all leaves it open.
            local: remote.map_or(local, |remote| {
                bound.source(wire.hosts[self.host].addresses, remote)
            }),
            is_connected: remote.is_some(),
            send_buffer_length: bound.send_buffer_length,
            receive_buffer_length: bound.receive_buffer_length,
            group_ttl: bound.group.and_then(|group| group.ttl).unwrap_or(0),
            stamps_arrivals: request.options.stamps_arrivals,
        })
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        Ok(BufferLengths {
            default_send_length: BUFFER_LENGTH,
            default_receive_length: BUFFER_LENGTH,
            max_send_length: BUFFER_LENGTH_MAX,
            max_receive_length: BUFFER_LENGTH_MAX,
        })
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        let interface = |name: &str, address: IpAddr, prefix_length| Interface {
            index: if address.is_loopback() {
                LOOPBACK_INDEX
            } else {
                LINK_INDEX
            },
            name: name.to_owned(),
            address,
            prefix_length,
            is_up: true,
            is_loopback: address.is_loopback(),
            is_multicast: !address.is_loopback(),
        };
        Ok(vec![
            interface("lo", IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
            interface("lo", IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
            interface("sim0", self.addresses().v4.into(), 16),
            interface("sim0", self.addresses().v6.into(), 64),
        ])
    }

    fn path_mtu(&self, _to: SocketAddr) -> Option<usize> {
        self.network.wire().path_mtu
    }
}
