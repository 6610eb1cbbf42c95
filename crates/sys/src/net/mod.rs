//! UDP, batched: many datagrams a system call where the kernel can, one by one where it cannot.

mod address;
mod group;
mod interfaces;
mod offload;
mod path;
mod receive;
mod send;
mod socket;

use std::io;

pub use group::{GroupInterface, GroupOptions};
pub use interfaces::{Interface, interfaces};
pub use offload::{OffloadMode, is_too_long};
pub use path::path_mtu;
pub use receive::{Coalesced, FirstDatagram, ReceiveBatch};
pub use send::Run;
pub use socket::{SocketOptions, UdpSocket};

/// Longest payload of a UDP datagram over IPv4, and so of what one segmented send may carry.
pub const MAX_DATAGRAM_LENGTH: usize = 65_507;

/// Lengths `(send, receive)` of socket buffers that the system gives when none are asked for.
pub fn os_default_buffer_lengths() -> io::Result<(usize, usize)> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    Ok((socket.send_buffer_size()?, socket.recv_buffer_size()?))
}

/// Largest lengths `(send, receive)` of socket buffers that the system grants.
pub fn os_max_buffer_lengths() -> io::Result<(usize, usize)> {
    let options = SocketOptions {
        // The kernel doubles and clamps in 32-bit arithmetic; half the range cannot overflow it.
        send_buffer_length: Some(i32::MAX as usize / 2),
        receive_buffer_length: Some(i32::MAX as usize / 2),
        ..SocketOptions::default()
    };
    let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0).into(), &options)?;
    Ok((socket.send_buffer_length()?, socket.receive_buffer_length()?))
}

/// First IPv4 address of `host`, else its first IPv6 address. Asks the system's resolver and may take long.
pub fn resolve(host: &str, port: u16) -> io::Result<std::net::SocketAddr> {
    use std::net::ToSocketAddrs;
    let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let addresses: Vec<_> = (literal.unwrap_or(host), port).to_socket_addrs()?.collect();
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or_else(|| addresses.first())
        .map(|address| std::net::SocketAddr::new(address.ip().to_canonical(), port))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no address for host {host}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_its_buffer_lengths() {
        let (send, receive) = os_default_buffer_lengths().unwrap();
        assert!(send >= 2048 && receive >= 2048);
        let (send_max, receive_max) = os_max_buffer_lengths().unwrap();
        assert!(send_max >= 2048 && receive_max >= 2048);
    }

    #[test]
    fn literals_and_the_local_host_resolve() {
        assert_eq!(resolve("127.0.0.1", 7).unwrap(), "127.0.0.1:7".parse().unwrap());
        assert_eq!(resolve("[::1]", 7).unwrap(), "[::1]:7".parse().unwrap());
        assert_eq!(
            resolve("[::ffff:127.0.0.1]", 7).unwrap(),
            "127.0.0.1:7".parse().unwrap()
        );
        assert!(resolve("localhost", 7).unwrap().is_ipv4());
    }

    #[test]
    fn a_name_that_cannot_exist_is_an_error() {
        assert!(resolve("no such host", 7).is_err());
    }
}
