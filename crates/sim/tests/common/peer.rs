//! The end of a stream that a test plays.

use std::net::SocketAddr;

use headrace_protocol::frame::{FrameKind, StatusMessage, classify};
use headrace_sim::{Datagram, Network, Tap};

use super::World;

/// Where peers listen, and from where they send.
const PEER_PORT: u16 = 40_123;

/// An address without a node. What is sent there is the test's to read, and what comes from there the test's to write.
/// No link carries it: what either end sends is there at once.
pub struct Peer {
    network: Network,
    tap: Tap,
    pub address: SocketAddr,
    /// Where it listens: there, or a group.
    pub listens_at: SocketAddr,
}

impl Peer {
    pub fn new(world: &World) -> Self {
        Self::at(world, 9)
    }

    /// For a world with several peers: the last byte of the address.
    pub fn at(world: &World, host: u8) -> Self {
        let address = SocketAddr::from(([10, 9, 9, host], PEER_PORT));
        Self {
            network: world.network().clone(),
            tap: world.network().tap(),
            address,
            listens_at: address,
        }
    }

    /// Sends a datagram of the peer.
    pub fn send(&self, to: SocketAddr, datagram: &[u8]) {
        self.send_from(self.address.port(), to, datagram);
    }

    /// Sends a datagram from another of its ports.
    pub fn send_from(&self, port: u16, to: SocketAddr, datagram: &[u8]) {
        let from = SocketAddr::new(self.address.ip(), port);
        self.network.inject(from, to, datagram);
    }

    /// What was sent to the peer since the last call.
    pub fn take_datagrams(&self) -> Vec<Datagram> {
        let mut sent = self.tap.take();
        sent.retain(|datagram| datagram.to == self.listens_at);
        sent
    }

    /// The bytes of it.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let sent = self.take_datagrams().into_iter();
        sent.map(|datagram| datagram.bytes).collect()
    }

    /// The frames of one kind among them; the others are dropped.
    pub fn take_frames(&self, kind: FrameKind) -> Vec<Vec<u8>> {
        let mut sent = self.take();
        sent.retain(|datagram| classify(datagram).unwrap() == kind);
        sent
    }

    pub fn take_status_messages(&self) -> Vec<StatusMessage> {
        let frames = self.take_frames(FrameKind::StatusMessage).into_iter();
        frames
            .map(|frame| StatusMessage::decode(&frame).unwrap())
            .collect()
    }
}
