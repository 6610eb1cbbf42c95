//! A machine without a driver: what a test sends from there is up to the test.

use std::io;
use std::net::{IpAddr, SocketAddr};

use headrace_driver::environment::{Network as _, SocketRequest};
use headrace_driver::transport::Transport;
use headrace_sys::net::{ReceiveBatch, SocketOptions};

use crate::network::HostNetwork;

/// A machine of a [`crate::World`] that speaks bytes: it shows what a driver does with datagrams of any making.
pub struct Stranger {
    network: HostNetwork,
}

impl Stranger {
    pub(crate) fn new(network: HostNetwork) -> Self {
        Self { network }
    }

    /// Its IPv4 address, which its name stands for.
    pub fn address(&self) -> IpAddr {
        self.network.addresses().v4.into()
    }

    /// Opens a socket on a port of its IPv4 address; with port 0 on a free one.
    pub fn bind(&self, port: u16) -> io::Result<StrangerSocket> {
        let local = SocketAddr::new(self.address(), port);
        let opened = self.network.open(&SocketRequest {
            local,
            remote: None,
            options: SocketOptions::default(),
        })?;
        Ok(StrangerSocket {
            transport: opened.transport,
            local: opened.local,
        })
    }
}

/// A socket of a [`Stranger`]; dropping it closes it.
pub struct StrangerSocket {
    transport: Box<dyn Transport>,
    local: SocketAddr,
}

impl StrangerSocket {
    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends one datagram. False when the socket's buffer is full.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<bool> {
        Ok(self.transport.send(datagram, Some(to))? == datagram.len())
    }

    /// Takes what has arrived, each datagram with its source.
    pub fn receive(&self) -> io::Result<Vec<(SocketAddr, Vec<u8>)>> {
        let mut datagrams = Vec::new();
        self.transport
            .receive(&mut ReceiveBatch::new(1), &mut |coalesced| {
                for datagram in coalesced.bytes.chunks(coalesced.datagram_length) {
                    datagrams.push((coalesced.source, datagram.to_vec()));
                }
            })?;
        Ok(datagrams)
    }
}
