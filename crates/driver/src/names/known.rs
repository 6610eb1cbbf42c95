//! What a host's text says of its address, and what a source may say of a name.

use std::net::{IpAddr, Ipv4Addr};

/// What is known of a name at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Its address.
    Address(IpAddr),
    /// It has none, for this reason.
    Refused(String),
    /// The name servers are to be asked for this host.
    Ask(String),
}

impl Known {
    /// What the host's own text says.
    pub(super) fn of(host: &str) -> Self {
        by_itself(host).map_or_else(|| Self::Ask(host.to_owned()), Self::Address)
    }
}

/// The address of a host that no one has to be asked for: a literal, or this machine (RFC 6761, section 6.3).
pub(crate) fn by_itself(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    literal(host)
}

/// The address that a host's text is.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// The parts of `host:port`.
pub(crate) fn host_and_port(name: &str) -> Result<(&str, u16), String> {
    name.rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| format!("not host:port: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_name_server() {
        for (host, expected) in [
            ("localhost", Some("127.0.0.1")),
            ("LocalHost", Some("127.0.0.1")),
            ("10.0.0.7", Some("10.0.0.7")),
            ("[::1]", Some("::1")),
            ("localhost.example", None),
        ] {
            let expected = expected.map(|ip| ip.parse().unwrap());
            assert_eq!(by_itself(host), expected, "{host}");
        }
    }
}
