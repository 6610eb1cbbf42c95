//! The seam between the protocol's agents and the network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use headrace_buffers::doorbell::Interests;
use headrace_sys::Region;
use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch, Run, UdpSocket};

/// What an endpoint needs of a socket. Tests give it a simulated network.
///
/// Methods take `&self` so that a frame can be answered while it is being handled.
pub trait Transport: Send {
    /// Sends runs of datagrams in order; returns the bytes of the whole datagrams that were accepted.
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize>;

    /// Sends one datagram; `Ok(0)` when there is no room for it now.
    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize>;

    /// Hands over what has arrived, and returns the number of datagrams. `batch` is memory to receive into.
    fn receive(&self, batch: &mut ReceiveBatch, handler: &mut dyn FnMut(Coalesced<'_>)) -> io::Result<usize>;

    /// Fixes or changes the peer that sends without an address go to.
    fn connect(&self, remote: SocketAddr) -> io::Result<()>;

    /// What to poll for arrivals; none where there is nothing the system could poll.
    fn descriptor(&self) -> Option<RawFd>;

    /// How sends leave now.
    fn send_mode(&self) -> OffloadMode;

    /// How datagrams arrive now.
    fn receive_mode(&self) -> OffloadMode;
}

impl Transport for UdpSocket {
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        UdpSocket::send_runs(self, runs, to)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        self.send_to(Region::of(datagram), to)
    }

    fn receive(&self, batch: &mut ReceiveBatch, handler: &mut dyn FnMut(Coalesced<'_>)) -> io::Result<usize> {
        let count = UdpSocket::receive(self, batch)?;
        if count > 0 {
            batch.for_each(handler);
        }
        Ok(count)
    }

    fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        UdpSocket::connect(self, remote)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.as_raw_fd())
    }

    fn send_mode(&self) -> OffloadMode {
        UdpSocket::send_mode(self)
    }

    fn receive_mode(&self) -> OffloadMode {
        UdpSocket::receive_mode(self)
    }
}

/// Has a waiting thread look when something arrives on a transport.
pub(crate) fn describe(transport: &dyn Transport, interests: &mut Interests) {
    match transport.descriptor() {
        Some(descriptor) => interests.descriptor(descriptor),
        None => interests.may_come_unrung(),
    }
}
