//! How the text of a setting becomes a value and back.
//!
//! A codec knows the syntax and the range of one kind of setting. Its error is the rule that was broken, worded
//! so that it can follow `name=value: `.

use std::path::PathBuf;

use headrace_protocol::channel::units;

/// Reads and prints one kind of value.
pub(crate) trait Codec {
    /// The typed value.
    type Value;
    /// The value of `text`, or the rule it breaks.
    fn parse(&self, text: &str) -> Result<Self::Value, String>;
    /// The text that parses back to `value`.
    fn format(&self, value: &Self::Value) -> String;
}

/// Any text.
pub(crate) struct Text;

impl Codec for Text {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn format(&self, value: &String) -> String {
        value.clone()
    }
}

/// Text that may be absent.
pub(crate) struct OptionalText;

impl Codec for OptionalText {
    type Value = Option<String>;

    fn parse(&self, text: &str) -> Result<Option<String>, String> {
        Ok(Some(text.to_owned()))
    }

    fn format(&self, value: &Option<String>) -> String {
        value.clone().unwrap_or_default()
    }
}

/// A path short enough for every peer's buffers.
pub(crate) struct Directory;

/// Longest path, in bytes, that clients can hold together with its terminator.
const MAX_PATH_LENGTH: usize = 4095;

impl Codec for Directory {
    type Value = PathBuf;

    fn parse(&self, text: &str) -> Result<PathBuf, String> {
        if text.is_empty() || text.len() > MAX_PATH_LENGTH {
            return Err(format!("must be a path of 1 to {MAX_PATH_LENGTH} bytes"));
        }
        Ok(PathBuf::from(text))
    }

    fn format(&self, value: &PathBuf) -> String {
        value.display().to_string()
    }
}

/// `true`, `on`, `1` or `false`, `off`, `0`.
pub(crate) struct Bool;

impl Codec for Bool {
    type Value = bool;

    fn parse(&self, text: &str) -> Result<bool, String> {
        match text {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err("must be true or false".to_owned()),
        }
    }

    fn format(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// A decimal integer within a range.
pub(crate) struct Int<T> {
    pub(crate) min: T,
    pub(crate) max: T,
}

impl<T> Codec for Int<T>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    type Value = T;

    fn parse(&self, text: &str) -> Result<T, String> {
        text.parse::<T>()
            .ok()
            .filter(|value| *value >= self.min && *value <= self.max)
            .ok_or_else(|| format!("must be an integer from {} to {}", self.min, self.max))
    }

    fn format(&self, value: &T) -> String {
        value.to_string()
    }
}

/// An integer that may be absent.
pub(crate) struct OptionalInt64;

impl Codec for OptionalInt64 {
    type Value = Option<i64>;

    fn parse(&self, text: &str) -> Result<Option<i64>, String> {
        text.parse()
            .map(Some)
            .map_err(|_| "must be a 64-bit integer".to_owned())
    }

    fn format(&self, value: &Option<i64>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
}

/// A number of bytes within a range, with an optional suffix k, m or g.
pub(crate) struct Size {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl Size {
    fn rule(&self) -> String {
        format!(
            "must be a size from {} to {} (suffixes k, m, g)",
            units::format_size(self.min as u64),
            units::format_size(self.max as u64)
        )
    }
}

impl Codec for Size {
    type Value = usize;

    fn parse(&self, text: &str) -> Result<usize, String> {
        let value = units::parse_size(text).map_err(|_| self.rule())?;
        usize::try_from(value)
            .ok()
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| self.rule())
    }

    fn format(&self, value: &usize) -> String {
        units::format_size(*value as u64)
    }
}

/// A size that must also be a power of two.
pub(crate) struct PowerOfTwo(pub(crate) Size);

impl Codec for PowerOfTwo {
    type Value = usize;

    fn parse(&self, text: &str) -> Result<usize, String> {
        let value = self.0.parse(text)?;
        if value.is_power_of_two() {
            Ok(value)
        } else {
            Err(format!("{}, a power of two", self.0.rule()))
        }
    }

    fn format(&self, value: &usize) -> String {
        self.0.format(value)
    }
}

/// A power of two plus the fixed trailer of a ring.
pub(crate) struct RingLength {
    pub(crate) trailer: usize,
    pub(crate) min: usize,
}

impl Codec for RingLength {
    type Value = usize;

    fn parse(&self, text: &str) -> Result<usize, String> {
        let size = Size {
            min: self.min,
            max: i32::MAX as usize,
        };
        let value = size.parse(text)?;
        if (value - self.trailer).is_power_of_two() {
            Ok(value)
        } else {
            Err(format!("must be a power of two plus {} bytes", self.trailer))
        }
    }

    fn format(&self, value: &usize) -> String {
        value.to_string()
    }
}

/// Length of the largest frame on a channel.
pub(crate) struct Mtu;

/// Largest UDP payload a frame may fill, itself a multiple of the frame alignment.
pub(crate) const MAX_MTU_LENGTH: usize = 65_504;
const FRAME_ALIGNMENT: usize = 32;
const _: () = assert!(MAX_MTU_LENGTH.is_multiple_of(FRAME_ALIGNMENT));

impl Codec for Mtu {
    type Value = usize;

    fn parse(&self, text: &str) -> Result<usize, String> {
        units::parse_size(text)
            .ok()
            .and_then(|value| usize::try_from(value).ok())
            .filter(|value| *value > FRAME_ALIGNMENT && *value <= MAX_MTU_LENGTH && value.is_multiple_of(FRAME_ALIGNMENT))
            .ok_or_else(|| {
                format!("must be a multiple of {FRAME_ALIGNMENT}, more than {FRAME_ALIGNMENT} and at most {MAX_MTU_LENGTH}")
            })
    }

    fn format(&self, value: &usize) -> String {
        units::format_size(*value as u64)
    }
}

/// A number of nanoseconds, with an optional suffix s, ms, us or ns.
pub(crate) struct Duration {
    pub(crate) min_ns: i64,
}

impl Codec for Duration {
    type Value = i64;

    fn parse(&self, text: &str) -> Result<i64, String> {
        units::parse_duration_ns(text)
            .ok()
            .filter(|value| *value >= self.min_ns)
            .ok_or_else(|| {
                format!(
                    "must be a duration of at least {} (suffixes s, ms, us, ns)",
                    units::format_duration(self.min_ns)
                )
            })
    }

    fn format(&self, value: &i64) -> String {
        units::format_duration(*value)
    }
}

/// A duration that is raised to a floor instead of being refused, as in the reference driver: 0 means "at once".
pub(crate) struct FlooredDuration {
    pub(crate) floor_ns: i64,
}

impl Codec for FlooredDuration {
    type Value = i64;

    fn parse(&self, text: &str) -> Result<i64, String> {
        Duration { min_ns: 0 }
            .parse(text)
            .map(|value| value.max(self.floor_ns))
    }

    fn format(&self, value: &i64) -> String {
        units::format_duration(*value)
    }
}

/// A duration, or -1 or 0 for "not set".
pub(crate) struct OptionalDuration;

impl Codec for OptionalDuration {
    type Value = Option<i64>;

    fn parse(&self, text: &str) -> Result<Option<i64>, String> {
        if text == "-1" {
            return Ok(None);
        }
        let value = Duration { min_ns: 0 }.parse(text)?;
        Ok(Some(value).filter(|value| *value > 0))
    }

    fn format(&self, value: &Option<i64>) -> String {
        value.map_or_else(|| "-1".to_owned(), units::format_duration)
    }
}

/// One of a few names, some of them synonyms.
pub(crate) struct Choice<T: 'static> {
    pub(crate) names: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq> Codec for Choice<T> {
    type Value = T;

    fn parse(&self, text: &str) -> Result<T, String> {
        self.names
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let names: Vec<_> = self.names.iter().map(|(name, _)| *name).collect();
                format!("must be one of {}", names.join(", "))
            })
    }

    fn format(&self, value: &T) -> String {
        self.names
            .iter()
            .find(|(_, known)| known == value)
            .map(|(name, _)| (*name).to_owned())
            .unwrap_or_default()
    }
}

/// Ports a driver may hand out when a channel asks for any: "low high", or "0 0" for the system's choice.
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
pub(crate) struct Ports;

impl Codec for Ports {
    type Value = PortRange;

    fn parse(&self, text: &str) -> Result<PortRange, String> {
        let rule = || "must be two ports, low and high, separated by a space, with low <= high".to_owned();
        let mut parts = text.split_ascii_whitespace().map(str::parse::<u16>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(low)), Some(Ok(high)), None) if low <= high => Ok(PortRange { low, high }),
            _ => Err(rule()),
        }
    }

    fn format(&self, value: &PortRange) -> String {
        format!("{} {}", value.low, value.high)
    }
}
