//! Ports that a driver chooses.

use headrace_protocol::settings::{Codec, Kind};

/// Ports from which a driver chooses when a channel asks for any: "low high", or "0 0" for the system's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortRange {
    /// First port.
    pub low: u16,
    /// Last port.
    pub high: u16,
}

impl PortRange {
    /// True when the operating system chooses.
    pub fn is_wildcard(&self) -> bool {
        self.low == 0 && self.high == 0
    }
}

/// Two ports separated by a space.
pub(super) struct Ports;

impl Codec for Ports {
    type Value = PortRange;

    fn parse(&self, text: &str) -> Option<PortRange> {
        let mut parts = text.split_ascii_whitespace().map(str::parse::<u16>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(low)), Some(Ok(high)), None) if low <= high => Some(PortRange { low, high }),
            _ => None,
        }
    }

    fn format(&self, value: &PortRange) -> String {
        format!("{} {}", value.low, value.high)
    }

    fn rule(&self) -> String {
        "must be two ports, low and high, separated by a space, with low <= high".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}
