//! What the addresses of a channel depend on besides its text: the interfaces of this host, and names.

use std::net::{IpAddr, SocketAddr};

/// One address of one interface of this host, as the operating system lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The system's number of the interface.
    pub index: u32,
    /// The system's name of the interface.
    pub name: String,
    /// One of its addresses.
    pub address: IpAddr,
    /// Bits of the address that name the network.
    pub prefix_length: u8,
    /// The interface is switched on.
    pub is_up: bool,
    /// The interface leads back to this host.
    pub is_loopback: bool,
    /// The interface can send to groups.
    pub is_multicast: bool,
}

impl Interface {
    /// Loopback interfaces carry groups too, whatever the system says of them.
    pub(super) fn carries_groups(&self) -> bool {
        self.is_multicast || self.is_loopback
    }
}

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ResolveError {
    /// In the resolver's words.
    pub reason: String,
}

/// Turns names into addresses.
pub trait Resolver {
    /// The address of `host`, with `port`. `param` is the key of the channel parameter that names it.
    fn resolve(&self, host: &str, port: u16, param: &str) -> Result<SocketAddr, ResolveError>;
}

/// What a channel's addresses depend on besides its text.
#[derive(Clone, Copy)]
pub struct UdpEnvironment<'a> {
    /// Addresses of this host.
    pub interfaces: &'a [Interface],
    /// Looks up names.
    pub resolver: &'a dyn Resolver,
}
