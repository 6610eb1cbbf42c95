//! Which local address an `interface` parameter means.
//!
//! ```text
//! interface := address [ ":" port ] [ "/" prefix ] | "{" name "}" [ ":" port ]
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::environment::{Interface, UdpEnvironment};
use super::host_port::{HostPort, Port};
use crate::channel::{ChannelError, ChannelUri, keys};

/// An `interface` parameter taken apart.
enum Wanted<'a> {
    /// The system chooses.
    Any { port: u16 },
    /// The interface with this name.
    Named { name: &'a str, port: u16 },
    /// One whose address begins with the same bits.
    Network { address: SocketAddr, prefix: u8 },
}

/// The address to bind to, of the family of `remote`, the wildcard address if the channel does not say.
pub(super) fn select(
    uri: &ChannelUri,
    remote: IpAddr,
    environment: &UdpEnvironment<'_>,
) -> Result<SocketAddr, ChannelError> {
    match wanted(uri, environment)? {
        Wanted::Any { port } => Ok(SocketAddr::new(wildcard(remote.is_ipv6()), port)),
        Wanted::Named { name, port } => by_name(uri, name, remote.is_ipv6(), environment.interfaces)
            .map(|interface| SocketAddr::new(interface.address, port)),
        Wanted::Network { address, prefix } => by_prefix(address.ip(), prefix, environment.interfaces.iter())
            .map(|interface| SocketAddr::new(interface.address, address.port()))
            .ok_or_else(|| no_match(uri)),
    }
}

/// The local address that a text means which is written like an `interface` parameter. Of a whole address the system
/// knows whether a socket can be bound there: no interface lists 127.0.0.2.
pub(super) fn of_text(text: &str, environment: &UdpEnvironment<'_>) -> Result<SocketAddr, ChannelError> {
    let mut uri = ChannelUri::parse("aeron:udp")?;
    uri.put(keys::INTERFACE, text)?;
    match wanted(&uri, environment)? {
        Wanted::Network { address, prefix } if prefix == bits(address.ip()) => Ok(address),
        _ => select(&uri, wildcard(text.starts_with('[')), environment),
    }
}

/// The interface to reach the group `group` through, and the port that the channel gives with it: without a word of
/// the channel, the best of all.
pub(super) fn select_for_group<'a>(
    uri: &ChannelUri,
    group: IpAddr,
    environment: &UdpEnvironment<'a>,
) -> Result<(&'a Interface, u16), ChannelError> {
    let fit = environment
        .interfaces
        .iter()
        .filter(|interface| interface.carries_groups());
    let (found, port) = match wanted(uri, environment)? {
        Wanted::Any { port } => (by_prefix(wildcard(group.is_ipv6()), 0, fit), port),
        Wanted::Named { name, port } => {
            let found = by_name(uri, name, group.is_ipv6(), environment.interfaces)?;
            (Some(found), port)
        }
        Wanted::Network { address, prefix } if address.is_ipv6() == group.is_ipv6() => {
            (by_prefix(address.ip(), prefix, fit), address.port())
        }
        Wanted::Network { address, .. } => (None, address.port()),
    };
    found.map(|found| (found, port)).ok_or_else(|| no_match(uri))
}

fn wanted<'a>(uri: &'a ChannelUri, environment: &UdpEnvironment<'_>) -> Result<Wanted<'a>, ChannelError> {
    let Some(text) = uri.get(keys::INTERFACE) else {
        return Ok(Wanted::Any { port: 0 });
    };
    let invalid = |fault: &str| invalid(uri, fault);
    if let Some(rest) = text.strip_prefix('{') {
        let (name, rest) = rest
            .split_once('}')
            .ok_or_else(|| invalid("expected format {name} or {name}:port"))?;
        let port = match rest.strip_prefix(':') {
            Some(digits) => digits
                .parse()
                .map_err(|_| invalid("expected format {name}:port"))?,
            None if rest.is_empty() => 0,
            None => return Err(invalid("expected format {name} or {name}:port")),
        };
        return Ok(Wanted::Named { name, port });
    }
    let (address_text, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (
            address,
            Some(
                prefix
                    .parse::<u8>()
                    .map_err(|_| invalid("invalid prefix length"))?,
            ),
        ),
        None => (text, None),
    };
    let host_port = HostPort::parse(address_text, Port::Optional).map_err(|fault| invalid(&fault))?;
    let address = host_port
        .resolve(keys::INTERFACE, address_text, environment.resolver)
        .map_err(|error| with_braces(error, address_text))?;
    if address.ip().is_unspecified() {
        return Ok(Wanted::Any { port: address.port() });
    }
    let bits = bits(address.ip());
    let prefix = prefix.unwrap_or(bits);
    if prefix > bits {
        return Err(invalid("invalid prefix length"));
    }
    Ok(Wanted::Network { address, prefix })
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv6() { 128 } else { 32 }
}

fn invalid(uri: &ChannelUri, fault: &str) -> ChannelError {
    let text = uri.get(keys::INTERFACE).unwrap_or_default();
    ChannelError::invalid(format!("{fault}: interface={text}, channel={uri}"))
}

/// A name that no host has may be that of an interface.
fn with_braces(error: ChannelError, text: &str) -> ChannelError {
    let advice = "an interface is given by its address, or by its name in braces";
    ChannelError::new(
        error.code,
        format!("{}; {advice}: interface={{{text}}}", error.message),
    )
}

fn no_match(uri: &ChannelUri) -> ChannelError {
    let text = uri
        .get(keys::INTERFACE)
        .unwrap_or("any that is up and carries groups");
    ChannelError::invalid(format!(
        "could not find matching interface=({text}), channel={uri}"
    ))
}

pub(super) fn wildcard(is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

fn by_name<'a>(
    uri: &ChannelUri,
    name: &str,
    is_ipv6: bool,
    interfaces: &'a [Interface],
) -> Result<&'a Interface, ChannelError> {
    let mut named = interfaces
        .iter()
        .filter(|interface| interface.name == name)
        .peekable();
    if named.peek().is_none() {
        return Err(invalid(uri, &format!("unknown interface {name}")));
    }
    named
        .find(|interface| interface.address.is_ipv6() == is_ipv6)
        .ok_or_else(|| {
            let family = if is_ipv6 { "INET6" } else { "INET" };
            invalid(uri, &format!("no {family} addresses found on interface {name}"))
        })
}

/// Among the addresses that match: not loopback first, then multicast, then the longest network prefix.
fn by_prefix<'a>(
    wanted: IpAddr,
    prefix: u8,
    interfaces: impl DoubleEndedIterator<Item = &'a Interface>,
) -> Option<&'a Interface> {
    interfaces
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
