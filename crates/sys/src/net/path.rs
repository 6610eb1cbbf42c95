//! How long packets to an address may be.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The path MTU that the kernel knows of now, headers included: at first that of the route or the interface.
pub fn path_mtu(to: SocketAddr) -> io::Result<usize> {
    let (local, level, name) = match to {
        SocketAddr::V4(_) => (
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            libc::IPPROTO_IP,
            libc::IP_MTU,
        ),
        SocketAddr::V6(_) => (
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU,
        ),
    };
    let socket = UdpSocket::bind(local)?;
    socket.connect(to)?;
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and value and length are live locals that fit each other.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    usize::try_from(value).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_to_this_host_takes_long_packets_and_one_that_is_forbidden_is_an_error() {
        assert!(path_mtu("127.0.0.1:7".parse().unwrap()).unwrap() >= 1280);
        assert!(path_mtu("255.255.255.255:7".parse().unwrap()).is_err());
    }
}
