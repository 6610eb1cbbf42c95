//! How the text of a setting becomes a value and back.
//!
//! A codec knows the syntax and the limits of one kind of setting, and says them as a rule, worded so that it can
//! follow `name=value: `.

use std::path::PathBuf;

use crate::channel::units;

/// What a program gives that sets a setting by a typed keyword, and in which unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A path.
    Path,
    /// True or false.
    Boolean,
    /// A whole number of nothing in particular.
    Number,
    /// A whole number of bytes.
    Bytes,
    /// A whole number of nanoseconds.
    Nanoseconds,
    /// A whole number of milliseconds.
    Milliseconds,
}

impl Kind {
    /// The name in declarations that other languages read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Path => "path",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "nanoseconds",
            Self::Milliseconds => "milliseconds",
        }
    }
}

/// Reads, prints and describes one kind of value.
pub trait Codec {
    /// The typed value.
    type Value;
    /// The value of `text`, unless it breaks the rule.
    fn parse(&self, text: &str) -> Option<Self::Value>;
    /// The text that parses back to `value`.
    fn format(&self, value: &Self::Value) -> String;
    /// What a text must be: "must be ...".
    fn rule(&self) -> String;
    /// What a keyword takes.
    fn kind(&self) -> Kind;
}

/// Any text.
pub struct Text;

impl Codec for Text {
    type Value = String;

    fn parse(&self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn format(&self, value: &String) -> String {
        value.clone()
    }

    fn rule(&self) -> String {
        "must be text".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}

/// Text that may be absent.
pub struct OptionalText;

impl Codec for OptionalText {
    type Value = Option<String>;

    fn parse(&self, text: &str) -> Option<Option<String>> {
        Some(Some(text.to_owned()))
    }

    fn format(&self, value: &Option<String>) -> String {
        value.clone().unwrap_or_default()
    }

    fn rule(&self) -> String {
        Text.rule()
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}

/// A text whose rule other code keeps, because it needs more than this text to judge it.
pub struct Named {
    /// The rule.
    pub rule: fn() -> String,
}

impl Codec for Named {
    type Value = String;

    fn parse(&self, text: &str) -> Option<String> {
        Text.parse(text)
    }

    fn format(&self, value: &String) -> String {
        Text.format(value)
    }

    fn rule(&self) -> String {
        (self.rule)()
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}

/// A path short enough for every peer's buffers.
pub struct Directory;

/// Longest path, in bytes, that clients can hold together with its terminator.
const MAX_PATH_LENGTH: usize = 4095;

impl Codec for Directory {
    type Value = PathBuf;

    fn parse(&self, text: &str) -> Option<PathBuf> {
        (1..=MAX_PATH_LENGTH)
            .contains(&text.len())
            .then(|| PathBuf::from(text))
    }

    fn format(&self, value: &PathBuf) -> String {
        value.display().to_string()
    }

    fn rule(&self) -> String {
        format!("must be a path of 1 to {MAX_PATH_LENGTH} bytes")
    }

    fn kind(&self) -> Kind {
        Kind::Path
    }
}

/// `true`, `on`, `1` or `false`, `off`, `0`.
pub struct Bool;

impl Codec for Bool {
    type Value = bool;

    fn parse(&self, text: &str) -> Option<bool> {
        match text {
            "true" | "on" | "1" => Some(true),
            "false" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    fn format(&self, value: &bool) -> String {
        value.to_string()
    }

    fn rule(&self) -> String {
        "must be true or false".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Boolean
    }
}

/// A decimal integer within limits.
pub struct Int<T> {
    /// Smallest.
    pub min: T,
    /// Largest.
    pub max: T,
}

impl<T> Codec for Int<T>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    type Value = T;

    fn parse(&self, text: &str) -> Option<T> {
        text.parse::<T>()
            .ok()
            .filter(|value| *value >= self.min && *value <= self.max)
    }

    fn format(&self, value: &T) -> String {
        value.to_string()
    }

    fn rule(&self) -> String {
        format!("must be an integer from {} to {}", self.min, self.max)
    }

    fn kind(&self) -> Kind {
        Kind::Number
    }
}

/// A decimal number of things, where less than none counts as none: some programs write -1 for "not set".
pub struct CountOrNone {
    /// Largest.
    pub max: usize,
}

impl Codec for CountOrNone {
    type Value = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        let count = usize::try_from(text.parse::<i64>().ok()?.max(0)).ok()?;
        (count <= self.max).then_some(count)
    }

    fn format(&self, value: &usize) -> String {
        value.to_string()
    }

    fn rule(&self) -> String {
        format!("must be an integer up to {}; less than 0 counts as 0", self.max)
    }

    fn kind(&self) -> Kind {
        Kind::Number
    }
}

/// A value that may be absent.
pub struct Optional<C>(pub C);

impl<C: Codec> Codec for Optional<C> {
    type Value = Option<C::Value>;

    fn parse(&self, text: &str) -> Option<Self::Value> {
        self.0.parse(text).map(Some)
    }

    fn format(&self, value: &Self::Value) -> String {
        value
            .as_ref()
            .map(|value| self.0.format(value))
            .unwrap_or_default()
    }

    fn rule(&self) -> String {
        self.0.rule()
    }

    fn kind(&self) -> Kind {
        self.0.kind()
    }
}

/// A number of milliseconds, without a suffix.
pub struct Milliseconds {
    /// Shortest.
    pub min: i64,
    /// Longest.
    pub max: i64,
}

impl Codec for Milliseconds {
    type Value = i64;

    fn parse(&self, text: &str) -> Option<i64> {
        let Self { min, max } = *self;
        Int { min, max }.parse(text)
    }

    fn format(&self, value: &i64) -> String {
        value.to_string()
    }

    fn rule(&self) -> String {
        format!(
            "must be a number of milliseconds from {} to {}",
            self.min, self.max
        )
    }

    fn kind(&self) -> Kind {
        Kind::Milliseconds
    }
}

/// An integer that may be absent.
pub struct OptionalInt64;

impl Codec for OptionalInt64 {
    type Value = Option<i64>;

    fn parse(&self, text: &str) -> Option<Option<i64>> {
        text.parse().ok().map(Some)
    }

    fn format(&self, value: &Option<i64>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }

    fn rule(&self) -> String {
        "must be a 64-bit integer".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Number
    }
}

/// A number of bytes within limits, with an optional suffix k, m or g.
pub struct Size {
    /// Smallest.
    pub min: usize,
    /// Largest.
    pub max: usize,
}

impl Codec for Size {
    type Value = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        let value = usize::try_from(units::parse_size(text).ok()?).ok()?;
        (self.min..=self.max).contains(&value).then_some(value)
    }

    fn format(&self, value: &usize) -> String {
        units::format_size(*value as u64)
    }

    fn rule(&self) -> String {
        format!(
            "must be a size from {} to {} (suffixes k, m, g)",
            units::format_size(self.min as u64),
            units::format_size(self.max as u64)
        )
    }

    fn kind(&self) -> Kind {
        Kind::Bytes
    }
}

/// A size that must also be a power of two.
pub struct PowerOfTwo(pub Size);

impl Codec for PowerOfTwo {
    type Value = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        self.0.parse(text).filter(|value| value.is_power_of_two())
    }

    fn format(&self, value: &usize) -> String {
        self.0.format(value)
    }

    fn rule(&self) -> String {
        format!("{}, a power of two", self.0.rule())
    }

    fn kind(&self) -> Kind {
        Kind::Bytes
    }
}

/// A power of two plus the fixed trailer of a ring.
pub struct RingLength {
    /// Length of the trailer.
    pub trailer: usize,
    /// Smallest length, with the trailer.
    pub min: usize,
}

impl RingLength {
    fn size(&self) -> Size {
        Size {
            min: self.min,
            max: i32::MAX as usize,
        }
    }
}

impl Codec for RingLength {
    type Value = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        self.size()
            .parse(text)
            .filter(|value| (value - self.trailer).is_power_of_two())
    }

    fn format(&self, value: &usize) -> String {
        value.to_string()
    }

    fn rule(&self) -> String {
        format!(
            "{}, a power of two plus {} bytes",
            self.size().rule(),
            self.trailer
        )
    }

    fn kind(&self) -> Kind {
        Kind::Bytes
    }
}

/// Length of the largest frame on a channel.
pub struct Mtu;

/// Largest UDP payload a frame may fill, itself a multiple of the frame alignment.
const MAX_MTU_LENGTH: usize = 65_504;
const FRAME_ALIGNMENT: usize = 32;
const _: () = assert!(MAX_MTU_LENGTH.is_multiple_of(FRAME_ALIGNMENT));

impl Codec for Mtu {
    type Value = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        let value = usize::try_from(units::parse_size(text).ok()?).ok()?;
        let is_allowed =
            value > FRAME_ALIGNMENT && value <= MAX_MTU_LENGTH && value.is_multiple_of(FRAME_ALIGNMENT);
        is_allowed.then_some(value)
    }

    fn format(&self, value: &usize) -> String {
        units::format_size(*value as u64)
    }

    fn rule(&self) -> String {
        format!(
            "must be a multiple of {FRAME_ALIGNMENT}, more than {FRAME_ALIGNMENT} and at most {MAX_MTU_LENGTH}"
        )
    }

    fn kind(&self) -> Kind {
        Kind::Bytes
    }
}

/// A number of nanoseconds within limits, with an optional suffix s, ms, us or ns.
pub struct Duration {
    /// Shortest.
    pub min_ns: i64,
    /// Longest.
    pub max_ns: i64,
}

impl Duration {
    /// Any duration.
    pub const ANY: Self = Self {
        min_ns: 0,
        max_ns: i64::MAX,
    };
}

impl Codec for Duration {
    type Value = i64;

    fn parse(&self, text: &str) -> Option<i64> {
        units::parse_duration_ns(text)
            .ok()
            .filter(|value| (self.min_ns..=self.max_ns).contains(value))
    }

    fn format(&self, value: &i64) -> String {
        units::format_duration(*value)
    }

    fn rule(&self) -> String {
        let limits = match (self.min_ns, self.max_ns) {
            (min, i64::MAX) => format!("of at least {}", units::format_duration(min)),
            (min, max) => format!(
                "from {} to {}",
                units::format_duration(min),
                units::format_duration(max)
            ),
        };
        format!("must be a duration {limits} (suffixes s, ms, us, ns)")
    }

    fn kind(&self) -> Kind {
        Kind::Nanoseconds
    }
}

/// A duration that is raised to a floor instead of being refused, as in the reference driver: 0 means "at once".
pub struct FlooredDuration {
    /// Shortest that has an effect.
    pub floor_ns: i64,
}

impl Codec for FlooredDuration {
    type Value = i64;

    fn parse(&self, text: &str) -> Option<i64> {
        Duration::ANY.parse(text).map(|value| value.max(self.floor_ns))
    }

    fn format(&self, value: &i64) -> String {
        Duration::ANY.format(value)
    }

    fn rule(&self) -> String {
        let floor = units::format_duration(self.floor_ns);
        format!("must be a duration (suffixes s, ms, us, ns); less than {floor} counts as {floor}")
    }

    fn kind(&self) -> Kind {
        Kind::Nanoseconds
    }
}

/// A duration, or -1 or 0 for "not set".
pub struct OptionalDuration;

impl Codec for OptionalDuration {
    type Value = Option<i64>;

    fn parse(&self, text: &str) -> Option<Option<i64>> {
        if text == "-1" {
            return Some(None);
        }
        let value = Duration::ANY.parse(text)?;
        Some(Some(value).filter(|value| *value > 0))
    }

    fn format(&self, value: &Option<i64>) -> String {
        value.map_or_else(|| "-1".to_owned(), units::format_duration)
    }

    fn rule(&self) -> String {
        "must be a duration (suffixes s, ms, us, ns), or -1 or 0 for none".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Nanoseconds
    }
}

/// One of a few names.
pub struct Choice<T: 'static> {
    /// Names and what they mean; the first of a value's names is the one that is shown.
    pub names: &'static [(&'static str, T)],
    /// Names that Aeron's drivers have for the same: of functions in C, of classes in Java.
    pub synonyms: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq> Codec for Choice<T> {
    type Value = T;

    fn parse(&self, text: &str) -> Option<T> {
        self.names
            .iter()
            .chain(self.synonyms)
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
    }

    fn format(&self, value: &T) -> String {
        self.names
            .iter()
            .find(|(_, known)| known == value)
            .map(|(name, _)| (*name).to_owned())
            .unwrap_or_default()
    }

    fn rule(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|(name, _)| *name).collect();
        let others = if self.synonyms.is_empty() {
            ""
        } else {
            ", or a name that Aeron has for it"
        };
        format!("must be one of {}{others}", names.join(", "))
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}
