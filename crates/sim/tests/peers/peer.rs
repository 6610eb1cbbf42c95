//! The end of a stream that a test plays.

use std::net::SocketAddr;

use headrace_protocol::frame::{FrameKind, StatusMessage, classify};
use headrace_sim::{Datagram, Network, Tap};

use crate::common::World;

pub(crate) const SESSION: i32 = -77;
pub(crate) const TERM_LENGTH: i32 = 64 * 1024;
/// What a receiver grants, here and in the channels of the tests.
pub(crate) const WINDOW: i32 = 16 * 1024;

/// An address without a node. What is sent there is the test's to read, and what comes from there the test's to write.
pub(crate) struct Peer {
    network: Network,
    tap: Tap,
    pub(crate) address: SocketAddr,
    /// Where it listens: there, or a group.
    pub(crate) listens_at: SocketAddr,
}

impl Peer {
    pub(crate) fn new(world: &World) -> Self {
        let address = SocketAddr::from(([10, 9, 9, 9], 40_123));
        Self {
            network: world.network().clone(),
            tap: world.network().tap(),
            address,
            listens_at: address,
        }
    }

    /// Sends a datagram of the peer.
    pub(crate) fn send(&self, to: SocketAddr, datagram: &[u8]) {
        self.network.inject(self.address, to, datagram);
    }

    /// What was sent to the peer since the last call.
    pub(crate) fn take_datagrams(&self) -> Vec<Datagram> {
        let mut sent = self.tap.take();
        sent.retain(|datagram| datagram.to == self.listens_at);
        sent
    }

    /// The bytes of it.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        let sent = self.take_datagrams().into_iter();
        sent.map(|datagram| datagram.bytes).collect()
    }

    /// The frames of one kind among them; the others are dropped.
    pub(crate) fn take_frames(&self, kind: FrameKind) -> Vec<Vec<u8>> {
        let mut sent = self.take();
        sent.retain(|datagram| classify(datagram).unwrap() == kind);
        sent
    }

    pub(crate) fn take_status_messages(&self) -> Vec<StatusMessage> {
        let frames = self.take_frames(FrameKind::StatusMessage).into_iter();
        frames
            .map(|frame| StatusMessage::decode(&frame).unwrap())
            .collect()
    }
}
