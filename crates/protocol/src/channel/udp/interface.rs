//! Which local address an `interface` parameter means.
//!
//! ```text
//! interface := address [ ":" port ] [ "/" prefix ] | "{" name "}" [ ":" port ]
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::UdpEnvironment;
use super::host_port::{HostPort, Port};
use crate::channel::{ChannelError, ChannelUri, keys};

/// One address of one interface of this host, as the operating system lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
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

/// The address to bind to, of the family of `remote`, the wildcard address if the channel does not say.
pub(super) fn select(
    uri: &ChannelUri,
    remote: IpAddr,
    environment: &UdpEnvironment<'_>,
) -> Result<SocketAddr, ChannelError> {
    let Some(text) = uri.get(keys::INTERFACE) else {
        return Ok(SocketAddr::new(wildcard(remote.is_ipv6()), 0));
    };
    let invalid = |fault: String| ChannelError::invalid(format!("{fault}: interface={text}, channel={uri}"));
    if let Some(rest) = text.strip_prefix('{') {
        let (name, rest) = rest
            .split_once('}')
            .ok_or_else(|| invalid("expected format {name} or {name}:port".to_owned()))?;
        let port = match rest.strip_prefix(':') {
            Some(digits) => digits
                .parse()
                .map_err(|_| invalid("expected format {name}:port".to_owned()))?,
            None if rest.is_empty() => 0,
            None => return Err(invalid("expected format {name} or {name}:port".to_owned())),
        };
        return by_name(name, remote.is_ipv6(), environment.interfaces)
            .map(|address| SocketAddr::new(address, port))
            .map_err(invalid);
    }
    let (address_text, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (
            address,
            Some(
                prefix
                    .parse::<u8>()
                    .map_err(|_| invalid("invalid prefix length".to_owned()))?,
            ),
        ),
        None => (text, None),
    };
    let host_port = HostPort::parse(address_text, Port::Optional).map_err(invalid)?;
    let wanted = host_port.resolve(keys::INTERFACE, address_text, environment.resolver)?;
    if wanted.ip().is_unspecified() {
        return Ok(wanted);
    }
    let bits = if wanted.is_ipv6() { 128 } else { 32 };
    let prefix = prefix.unwrap_or(bits);
    if prefix > bits {
        return Err(invalid("invalid prefix length".to_owned()));
    }
    by_prefix(wanted.ip(), prefix, environment.interfaces)
        .map(|address| SocketAddr::new(address, wanted.port()))
        .ok_or_else(|| {
            ChannelError::invalid(format!(
                "could not find matching interface=({text}), channel={uri}"
            ))
        })
}

pub(super) fn wildcard(is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

fn by_name(name: &str, is_ipv6: bool, interfaces: &[Interface]) -> Result<IpAddr, String> {
    let mut named = interfaces
        .iter()
        .filter(|interface| interface.name == name)
        .peekable();
    if named.peek().is_none() {
        return Err(format!("unknown interface {name}"));
    }
    named
        .find(|interface| interface.address.is_ipv6() == is_ipv6)
        .map(|interface| interface.address)
        .ok_or_else(|| {
            let family = if is_ipv6 { "INET6" } else { "INET" };
            format!("no {family} addresses found on interface {name}")
        })
}

/// Among the addresses that match: not loopback first, then multicast, then the longest network prefix.
fn by_prefix(wanted: IpAddr, prefix: u8, interfaces: &[Interface]) -> Option<IpAddr> {
    interfaces
        .iter()
        .filter(|interface| interface.is_up && is_same_network(interface.address, wanted, prefix))
        // The first of equals wins, as listed by the system; `max_by_key` alone would take the last.
        .rev()
        .max_by_key(|interface| {
            (
                !interface.is_loopback,
                interface.is_multicast,
                interface.prefix_length,
            )
        })
        .map(|interface| interface.address)
}

fn is_same_network(left: IpAddr, right: IpAddr, prefix: u8) -> bool {
    match (left, right) {
        (IpAddr::V4(left), IpAddr::V4(right)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            (left.to_bits() ^ right.to_bits()) & mask == 0
        }
        (IpAddr::V6(left), IpAddr::V6(right)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            (left.to_bits() ^ right.to_bits()) & mask == 0
        }
        _ => false,
    }
}
