//! Addresses that follow from a host's text alone, and the possible results of a source of names.

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

/// The address of a host that needs no name server: a literal, or this machine (RFC 6761, section 6.3), also with the dot
/// of the root after it.
pub(crate) fn by_itself(host: &str) -> Option<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    literal(host).or_else(|| short(host).map(IpAddr::V4))
}

/// An IPv4 address as the system's resolver also takes it (`inet_aton`): of one to four numbers, decimal, hexadecimal or
/// octal, the last of which stands for all the bytes that are left, as in `127.1`. One plain number alone is left to be
/// the name of a driver.
fn short(host: &str) -> Option<Ipv4Addr> {
    if host.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() < 4)?;
    let left = 32 - 8 * first.len() as u32;
    let fits = first.iter().all(|part| *part < 256) && u64::from(*last) < 1 << left;
    let high = first
        .iter()
        .fold(0, |bits: u64, part| bits << 8 | u64::from(*part));
    fits.then(|| Ipv4Addr::from_bits((high << left) as u32 | last))
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None; // a sign is none
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u32::from_str_radix(digits, 16).ok()
    } else if text.len() > 1 && text.starts_with('0') {
        u32::from_str_radix(text, 8).ok()
    } else {
        text.parse().ok()
    }
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
            ("localhost.", Some("127.0.0.1")),
            ("localhost..", None),
            ("localhost.example", None),
            ("127.1", Some("127.0.0.1")),
            ("0x7f000001", Some("127.0.0.1")),
            ("2130706433", None),
            ("0177.0.0.1", Some("127.0.0.1")),
            ("10.1.65535", Some("10.1.255.255")),
            ("10.1.65536", None),
            ("256.1", None),
            ("1.2.3.4.5", None),
            ("0x100000000", None),
            ("+1", None),
            ("1..2", None),
            ("", None),
            (".", None),
            ("0x", None),
            ("prices", None),
        ] {
            let expected = expected.map(|ip| ip.parse().unwrap());
            assert_eq!(by_itself(host), expected, "{host}");
        }
    }
}
