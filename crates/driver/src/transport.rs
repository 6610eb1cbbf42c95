//! The seam between the protocol's agents and the network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use headrace_buffers::doorbell::Interests;
use headrace_sys::Region;
use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch, Run, UdpSocket};

/// The socket of an endpoint. Tests use a simulated network.
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

/// Sends of one send channel in one turn: of a frame, or of a run of datagrams.
///
/// What many streams of an endpoint owe falls due at once after a pause of the process, and so again and again. Sent in
/// one go, it is more than the buffer of a socket holds; and since the streams have an order, what is lost is that of the
/// same streams each time, until they count as dead. So a turn ends here, the other end reads, and the next turn goes on.
pub(crate) const SENDS_A_TURN: usize = 64;

/// Receives until nothing waits, or until `budget` messages have come; returns how many came.
///
/// An endpoint of many streams hears more in a turn than one call takes. With what is left in it, its socket overflows.
pub(crate) fn receive(
    transport: &dyn Transport,
    batch: &mut ReceiveBatch,
    budget: usize,
    handler: &mut dyn FnMut(Coalesced<'_>),
) -> io::Result<usize> {
    let mut count = 0;
    loop {
        let received = transport.receive(batch, handler)?;
        count += received;
        if received < batch.capacity() || count >= budget {
            return Ok(count);
        }
    }
}

/// Has a waiting thread look when something arrives on a transport.
pub(crate) fn describe(transport: &dyn Transport, interests: &mut Interests) {
    match transport.descriptor() {
        Some(descriptor) => interests.descriptor(descriptor),
        None => interests.may_come_unrung(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A socket in which this number of messages wait.
    struct Waiting(Cell<usize>);

    impl Transport for Waiting {
        fn receive(
            &self,
            batch: &mut ReceiveBatch,
            _handler: &mut dyn FnMut(Coalesced<'_>),
        ) -> io::Result<usize> {
            let taken = self.0.get().min(batch.capacity());
            self.0.set(self.0.get() - taken);
            Ok(taken)
        }

        fn send_runs(&self, _runs: &[Run<'_>], _to: Option<SocketAddr>) -> io::Result<usize> {
            Ok(0)
        }

        fn send(&self, _datagram: &[u8], _to: Option<SocketAddr>) -> io::Result<usize> {
            Ok(0)
        }

        fn connect(&self, _remote: SocketAddr) -> io::Result<()> {
            Ok(())
        }

        fn descriptor(&self) -> Option<RawFd> {
            None
        }

        fn send_mode(&self) -> OffloadMode {
            OffloadMode::Single
        }

        fn receive_mode(&self) -> OffloadMode {
            OffloadMode::Single
        }
    }

    #[test]
    fn a_poll_takes_what_waits_up_to_its_budget() {
        let mut batch = ReceiveBatch::new(4);
        for (waiting, budget, taken) in [
            (0, 9, 0),
            (3, 9, 3),
            (4, 9, 4),
            (7, 9, 7),
            (40, 9, 12),
            (40, 1, 4),
        ] {
            let socket = Waiting(Cell::new(waiting));
            assert_eq!(
                receive(&socket, &mut batch, budget, &mut |_| ()).unwrap(),
                taken,
                "{waiting} wait, {budget} are wanted"
            );
        }
    }
}
