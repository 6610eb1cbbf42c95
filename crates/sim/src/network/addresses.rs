//! Which addresses a host has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Index of a host in its network.
pub(crate) type HostId = usize;

/// Where a host is found, in either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Addresses {
    pub(super) fn of(host: HostId) -> Self {
        let number = host as u16 + 1;
        let [high, low] = number.to_be_bytes();
        Self {
            v4: Ipv4Addr::new(10, 0, high, low),
            v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number),
        }
    }

    /// The one that leads to `peer`.
    pub(super) fn towards(self, peer: IpAddr) -> IpAddr {
        match (peer.is_loopback(), peer.is_ipv4()) {
            (true, true) => Ipv4Addr::LOCALHOST.into(),
            (true, false) => Ipv6Addr::LOCALHOST.into(),
            (false, true) => self.v4.into(),
            (false, false) => self.v6.into(),
        }
    }

    pub(super) fn contain(self, address: IpAddr) -> bool {
        address == self.v4 || address == self.v6
    }
}

/// The address of a socket that is bound to all of the same family.
pub(super) fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
