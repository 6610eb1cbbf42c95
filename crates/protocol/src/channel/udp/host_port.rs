//! `host:port`, with IPv6 addresses in brackets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::environment::Resolver;
use crate::ErrorCode;
use crate::channel::ChannelError;

/// An address taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostPort<'a> {
    pub(super) host: Host<'a>,
    pub(super) port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host<'a> {
    Literal(IpAddr),
    Name(&'a str),
}

/// Whether an address may come without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Required,
    Optional,
}

impl<'a> HostPort<'a> {
    /// The error is a text without the channel.
    pub(super) fn parse(text: &'a str, port: Port) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest
                .split_once(']')
                .ok_or_else(|| format!("invalid format: {text}"))?;
            // A scope names a local link; the reference drops it too.
            let address = host.split_once('%').map_or(host, |(address, _)| address);
            let address: Ipv6Addr = address.parse().map_err(|_| format!("invalid format: {text}"))?;
            let port = match (rest.strip_prefix(':'), port) {
                (Some(digits), _) => parse_port(digits, text)?,
                (None, Port::Optional) if rest.is_empty() => 0,
                (None, _) => return Err(format!("[address]:port is required for ipv6: {text}")),
            };
            // An IPv4 address in the notation of IPv6 is reached over IPv4.
            return Ok(Self {
                host: Host::Literal(address.to_canonical()),
                port,
            });
        }
        let (host, port) = match (text.split_once(':'), port) {
            (Some((host, digits)), _) => (host, parse_port(digits, text)?),
            (None, Port::Optional) => (text, 0),
            (None, Port::Required) => return Err(format!("address:port is required for ipv4: {text}")),
        };
        if host.is_empty() {
            return Err(format!("invalid format: {text}"));
        }
        let host = host
            .parse()
            .map_or(Host::Name(host), |address| Host::Literal(IpAddr::V4(address)));
        Ok(Self { host, port })
    }

    /// The address; only a name asks the resolver.
    pub(super) fn resolve(
        &self,
        param: &str,
        text: &str,
        resolver: &dyn Resolver,
    ) -> Result<SocketAddr, ChannelError> {
        match self.host {
            Host::Literal(address) => Ok(SocketAddr::new(address, self.port)),
            Host::Name(host) => resolver.resolve(host, self.port, param).map_err(|error| {
                ChannelError::new(
                    ErrorCode::UnknownHost,
                    format!(
                        "Unable to resolve host=({host}): {}, unresolved - {param}={text}, name-and-port={text}",
                        error.reason
                    ),
                )
            }),
        }
    }
}

fn parse_port(digits: &str, text: &str) -> Result<u16, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid format: {text}"));
    }
    digits
        .parse()
        .map_err(|_| format!("port out of range 0 to 65535: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_may_look_like() {
        let parse = |text| HostPort::parse(text, Port::Required);
        let v4 = |port| HostPort {
            host: Host::Literal(IpAddr::from([127, 0, 0, 1])),
            port,
        };
        assert_eq!(parse("127.0.0.1:40123"), Ok(v4(40123)));
        assert_eq!(
            parse("localhost:0"),
            Ok(HostPort {
                host: Host::Name("localhost"),
                port: 0
            })
        );
        let v6 = HostPort {
            host: Host::Literal(IpAddr::V6(Ipv6Addr::LOCALHOST)),
            port: 7,
        };
        assert_eq!(parse("[::1]:7"), Ok(v6));
        assert_eq!(parse("[::1%eth0]:7"), Ok(v6));
        let mapped = HostPort {
            host: Host::Literal("127.0.0.1".parse().unwrap()),
            port: 7,
        };
        assert_eq!(parse("[::ffff:127.0.0.1]:7"), Ok(mapped));
        assert_eq!(HostPort::parse("127.0.0.1", Port::Optional), Ok(v4(0)));
        assert_eq!(
            HostPort::parse("[::1]", Port::Optional),
            Ok(HostPort { port: 0, ..v6 })
        );
        for text in [
            "",
            ":1",
            "localhost",
            "a:",
            "a:x",
            "a:+1",
            "a:65536",
            "::1:7",
            "[::1]",
            "[::1",
            "[::1]7",
            "[x]:7",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
