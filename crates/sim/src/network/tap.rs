//! What goes over the network, for a test that plays one of its ends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use crate::lock::lock;

/// A datagram that was sent, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Address of the socket that sent it.
    pub from: SocketAddr,
    /// Where it was sent to.
    pub to: SocketAddr,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Keeps each datagram that the sockets of a world send, until it is taken. Dropping it ends that.
#[derive(Default)]
pub struct Tap(Arc<Mutex<Vec<Datagram>>>);

impl Tap {
    /// Those since the last call, in order.
    pub fn take(&self) -> Vec<Datagram> {
        std::mem::take(&mut lock(&self.0))
    }
}

/// The taps of a network.
#[derive(Default)]
pub(super) struct Taps(Vec<Weak<Mutex<Vec<Datagram>>>>);

impl Taps {
    pub(super) fn add(&mut self) -> Tap {
        let tap = Tap::default();
        self.0.push(Arc::downgrade(&tap.0));
        tap
    }

    pub(super) fn on_send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.0.retain(|tap| tap.strong_count() > 0);
        for tap in self.0.iter().filter_map(Weak::upgrade) {
            let bytes = bytes.to_vec();
            lock(&tap).push(Datagram { from, to, bytes });
        }
    }
}
