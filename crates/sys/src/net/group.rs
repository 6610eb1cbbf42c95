//! Multicast: the group a socket takes part in, and the interface it does so through.

use std::io;
use std::net::IpAddr;

use socket2::Socket;

/// Names an interface: IPv4 goes by one of its addresses, IPv6 by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupInterface {
    /// One of its addresses.
    pub address: IpAddr,
    /// Its index.
    pub index: u32,
}

/// What a socket has to do with groups. [`SocketOptions`](super::SocketOptions) without it are those of unicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// Where datagrams to groups leave, and where the group is joined.
    pub interface: GroupInterface,
    /// The group to receive from. Such a socket shares its port with others that also do.
    pub joins: Option<IpAddr>,
    /// Routers that a datagram to a group may pass, plus one; the system's default when `None`, which is 1.
    pub ttl: Option<u8>,
}

impl GroupOptions {
    /// Before the socket is bound.
    pub(super) fn prepare(&self, socket: &Socket) -> io::Result<()> {
        if self.joins.is_some() {
            socket.set_reuse_address(true)?;
        }
        match self.interface.address {
            IpAddr::V4(address) => {
                socket.set_multicast_if_v4(&address)?;
                if let Some(ttl) = self.ttl {
                    socket.set_multicast_ttl_v4(ttl.into())?;
                }
            }
            IpAddr::V6(_) => {
                socket.set_multicast_if_v6(self.interface.index)?;
                if let Some(ttl) = self.ttl {
                    socket.set_multicast_hops_v6(ttl.into())?;
                }
            }
        }
        Ok(())
    }

    /// Once the socket is bound.
    pub(super) fn join(&self, socket: &Socket) -> io::Result<()> {
        match (self.joins, self.interface.address) {
            (None, _) => Ok(()),
            (Some(IpAddr::V4(group)), IpAddr::V4(interface)) => {
                tolerate_missing(socket.set_multicast_all_v4(false))?;
                socket.join_multicast_v4(&group, &interface)
            }
            (Some(IpAddr::V6(group)), IpAddr::V6(_)) => {
                tolerate_missing(socket.set_multicast_all_v6(false))?;
                socket.join_multicast_v6(&group, self.interface.index)
            }
            (Some(group), interface) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "the group {group} cannot be joined on the interface {interface} of the other family"
                ),
            )),
        }
    }

    /// The time to live that the system set.
    pub(super) fn granted_ttl(&self, socket: &Socket) -> io::Result<u32> {
        match self.interface.address {
            IpAddr::V4(_) => socket.multicast_ttl_v4(),
            IpAddr::V6(_) => socket.multicast_hops_v6(),
        }
    }
}

/// A socket bound to all addresses gets the datagrams of every group that any socket of the host joined, unless told
/// otherwise. Kernels without the option deliver them all; the frames tell their streams apart then.
fn tolerate_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_option_is_tolerated_and_other_faults_are_not() {
        let fault = |code| tolerate_missing(Err(io::Error::from_raw_os_error(code)));
        assert!(fault(libc::ENOPROTOOPT).is_ok());
        assert_eq!(fault(libc::EBADF).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
