//! A non-blocking UDP socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

use super::group::GroupOptions;
use super::offload::{OffloadMode, enable_coalescing, enable_timestamps, probe};

/// Settings of a socket, applied before it is bound.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// SO_SNDBUF; the system's default when `None`.
    pub send_buffer_length: Option<usize>,
    /// SO_RCVBUF; the system's default when `None`.
    pub receive_buffer_length: Option<usize>,
    /// Best mode to try. What the kernel refuses falls back to the next.
    pub offload: OffloadMode,
    /// The group it receives from or sends to; none for unicast.
    pub group: Option<GroupOptions>,
    /// The kernel notes when each datagram arrives (SO_TIMESTAMPNS).
    pub stamps_arrivals: bool,
}

/// A non-blocking UDP socket over IPv4 or IPv6. Usable from several threads; batches stay in order per caller.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    send_mode: AtomicU8,
    receive_mode: AtomicU8,
    expects_several: AtomicBool,
    send_buffer_is_set: bool,
    receive_buffer_is_set: bool,
    group_ttl: u8,
    stamps_arrivals: bool,
}

impl UdpSocket {
    /// Opens a socket and binds it. The error is the system's own: address in use, address not local, and so on.
    pub fn bind(local: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
        socket.set_nonblocking(true)?;
        if let Some(length) = options.send_buffer_length {
            socket.set_send_buffer_size(length)?;
        }
        if let Some(length) = options.receive_buffer_length {
            socket.set_recv_buffer_size(length)?;
        }
        if let Some(group) = &options.group {
            group.prepare(&socket)?;
        }
        if local.is_ipv6() {
            // IPv4 peers have sockets of their own; a shared port would take their packets twice.
            socket.set_only_v6(true)?;
        }
        let send_mode = options.offload.max(probe(socket.as_raw_fd()));
        let receive_mode = options.offload.max(match options.offload {
            OffloadMode::Segmentation => enable_coalescing(socket.as_raw_fd()),
            other => other,
        });
        let stamps_arrivals = options.stamps_arrivals && enable_timestamps(socket.as_raw_fd());
        socket.bind(&SockAddr::from(local))?;
        if let Some(group) = &options.group {
            group.join(&socket)?;
        }
        Ok(Self {
            send_mode: AtomicU8::new(send_mode as u8),
            receive_mode: AtomicU8::new(receive_mode as u8),
            expects_several: AtomicBool::new(true),
            send_buffer_is_set: options.send_buffer_length.is_some(),
            receive_buffer_is_set: options.receive_buffer_length.is_some(),
            group_ttl: granted_ttl(&socket, options)?,
            stamps_arrivals,
            socket,
        })
    }

    /// Fixes the peer: sends without an address go to it, and datagrams of others are not received. May be
    /// called again with another peer.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.socket.connect(&SockAddr::from(remote))
    }

    /// Address the socket is bound to, with the port that the system chose if none was asked for.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("the socket has no internet address"))
    }

    /// SO_SNDBUF in effect, without the doubling that the kernel adds to lengths that were asked for.
    pub fn send_buffer_length(&self) -> io::Result<usize> {
        let length = self.socket.send_buffer_size()?;
        Ok(if self.send_buffer_is_set {
            length / 2
        } else {
            length
        })
    }

    /// SO_RCVBUF in effect, as [`Self::send_buffer_length`].
    pub fn receive_buffer_length(&self) -> io::Result<usize> {
        let length = self.socket.recv_buffer_size()?;
        Ok(if self.receive_buffer_is_set {
            length / 2
        } else {
            length
        })
    }

    /// Time to live in effect for datagrams to groups, if one was asked for; else 0.
    pub fn group_ttl(&self) -> u8 {
        self.group_ttl
    }

    /// True if the kernel notes when datagrams arrive: it was asked to, and can.
    pub fn stamps_arrivals(&self) -> bool {
        self.stamps_arrivals
    }

    /// How sends leave now. Falls at run time when the kernel or the device refuses.
    pub fn send_mode(&self) -> OffloadMode {
        OffloadMode::from_u8(self.send_mode.load(Ordering::Relaxed))
    }

    /// How datagrams arrive now.
    pub fn receive_mode(&self) -> OffloadMode {
        OffloadMode::from_u8(self.receive_mode.load(Ordering::Relaxed))
    }

    pub(super) fn set_send_mode(&self, mode: OffloadMode) {
        self.send_mode.store(mode as u8, Ordering::Relaxed);
    }

    pub(super) fn set_receive_mode(&self, mode: OffloadMode) {
        self.receive_mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Whether the next receive is likely to find more than one message.
    pub(super) fn expects_several(&self) -> bool {
        self.expects_several.load(Ordering::Relaxed)
    }

    pub(super) fn set_expects_several(&self, expects_several: bool) {
        self.expects_several.store(expects_several, Ordering::Relaxed);
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn granted_ttl(socket: &Socket, options: &SocketOptions) -> io::Result<u8> {
    match &options.group {
        Some(group) if group.ttl.is_some() => {
            let ttl = group.granted_ttl(socket)?;
            u8::try_from(ttl)
                .map_err(|_| io::Error::other(format!("the system reports a time to live of {ttl}")))
        }
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;
    use crate::net::ReceiveBatch;

    const LOOPBACK: &str = "127.0.0.1:0";

    fn bind(local: &str) -> io::Result<UdpSocket> {
        UdpSocket::bind(local.parse().unwrap(), &SocketOptions::default())
    }

    #[test]
    fn a_port_in_use_is_refused() {
        let first = bind(LOOPBACK).unwrap();
        let error = bind(&first.local_addr().unwrap().to_string()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_address_of_another_host_is_refused() {
        let error = bind("192.0.2.1:0").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn buffer_lengths_read_back_as_asked() {
        let options = SocketOptions {
            send_buffer_length: Some(64 * 1024),
            receive_buffer_length: Some(96 * 1024),
            ..SocketOptions::default()
        };
        let socket = UdpSocket::bind(LOOPBACK.parse().unwrap(), &options).unwrap();
        assert_eq!(socket.send_buffer_length().unwrap(), 64 * 1024);
        assert_eq!(socket.receive_buffer_length().unwrap(), 96 * 1024);
        let plain = bind(LOOPBACK).unwrap();
        assert_eq!(
            (
                plain.send_buffer_length().unwrap(),
                plain.receive_buffer_length().unwrap()
            ),
            super::super::os_default_buffer_lengths().unwrap()
        );
    }

    #[test]
    fn nobody_listening_is_not_an_error() {
        let gone = bind(LOOPBACK).unwrap().local_addr().unwrap();
        let socket = bind(LOOPBACK).unwrap();
        socket.connect(gone).unwrap();
        let mut batch = ReceiveBatch::new(1);
        for _ in 0..4 {
            assert!(socket.send_to(Region::of(&[0; 32]), None).is_ok());
            assert_eq!(socket.receive(&mut batch).unwrap(), 0);
        }
    }

    #[test]
    fn modes_are_named_and_ordered_best_first() {
        for mode in [
            OffloadMode::Segmentation,
            OffloadMode::Vectored,
            OffloadMode::Single,
        ] {
            assert_eq!(OffloadMode::parse(mode.name()), Some(mode));
            assert_eq!(OffloadMode::from_u8(mode as u8), mode);
        }
        assert!(OffloadMode::Segmentation < OffloadMode::Vectored);
        assert_eq!(OffloadMode::parse("fast"), None);
    }
}
