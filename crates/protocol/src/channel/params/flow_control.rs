//! The value of `fc=`: a strategy and its options, as `tagged,g:1001/3,t:10s`.

use crate::channel::{ChannelError, ChannelUri, keys, units};

/// How the status messages of several receivers become one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowControlStrategy {
    /// The furthest receiver decides.
    #[default]
    Max,
    /// The slowest receiver decides.
    Min,
    /// The slowest receiver decides of those that carry the group's tag.
    Tagged,
}

impl FlowControlStrategy {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "max" => Some(Self::Max),
            "min" => Some(Self::Min),
            "tagged" => Some(Self::Tagged),
            _ => None,
        }
    }

    /// The options that it has.
    fn options(self) -> &'static str {
        match self {
            Self::Max => "rrwm",
            Self::Min | Self::Tagged => "g, t and rrwm",
        }
    }
}

/// Flow control of a group of receivers. [`Default`] is the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlParam {
    /// Who decides.
    pub strategy: FlowControlStrategy,
    /// Tag of the receivers that count; of `tagged` only.
    pub group_tag: i64,
    /// Receivers needed for the stream to be connected; not of `max`.
    pub group_min_size: usize,
    /// A receiver silent for longer no longer counts; not of `max`.
    pub receiver_timeout_ns: i64,
    /// Windows that one NAK may bring back.
    pub retransmit_window_multiple: i32,
}

impl Default for FlowControlParam {
    fn default() -> Self {
        Self {
            strategy: FlowControlStrategy::Max,
            group_tag: -1,
            group_min_size: 0,
            receiver_timeout_ns: 5_000_000_000,
            retransmit_window_multiple: 4,
        }
    }
}

/// Longest value of one option.
const OPTION_LENGTH_MAX: usize = 63;

impl FlowControlParam {
    /// What the channel says, if it says something, and `defaults` for what it leaves out.
    pub(super) fn from_uri(uri: &ChannelUri, defaults: &Self) -> Result<Option<Self>, ChannelError> {
        let Some(value) = uri.get(keys::FLOW_CONTROL) else {
            return Ok(None);
        };
        let parsed = Self::parse(value, defaults);
        parsed.map(Some).map_err(|fault| {
            ChannelError::generic(format!("{fault}: {}={value}, channel={uri}", keys::FLOW_CONTROL))
        })
    }

    fn parse(value: &str, defaults: &Self) -> Result<Self, String> {
        let mut parts = value.split(',');
        let name = parts.next().unwrap_or_default();
        let strategy = FlowControlStrategy::parse(name).ok_or_else(|| {
            format!("Invalid flow control strategy name '{name}', must be max, min or tagged")
        })?;
        let mut param = Self {
            strategy,
            ..*defaults
        };
        parts.try_for_each(|option| param.set(option))?;
        Ok(param)
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        if value.len() > OPTION_LENGTH_MAX {
            return Err(format!(
                "value of flow control option '{name}' is longer than {OPTION_LENGTH_MAX} characters"
            ));
        }
        match (name, self.strategy) {
            ("rrwm", _) => {
                let multiple = value.parse().ok().filter(|&multiple: &i32| multiple >= 1);
                self.retransmit_window_multiple = multiple
                    .ok_or_else(|| format!("invalid rrwm '{value}', must be a number of at least 1"))?;
            }
            ("t", FlowControlStrategy::Min | FlowControlStrategy::Tagged) => {
                self.receiver_timeout_ns = units::parse_duration_ns(value)
                    .map_err(|fault| format!("invalid timeout '{value}', a duration {fault}"))?;
            }
            ("g", FlowControlStrategy::Min | FlowControlStrategy::Tagged) => self.set_group(value)?,
            _ => {
                return Err(format!(
                    "unrecognised option '{option}', this strategy has {}",
                    self.strategy.options()
                ));
            }
        }
        Ok(())
    }

    /// `<tag>`, `<tag>/<size>` or `/<size>`.
    fn set_group(&mut self, value: &str) -> Result<(), String> {
        let (tag, size) = match value.split_once('/') {
            Some((tag, size)) => (tag, Some(size)),
            None => (value, None),
        };
        if !tag.is_empty() || size.is_none() {
            self.group_tag = tag
                .parse()
                .map_err(|_| format!("invalid group '{value}', must be a tag, tag/size or /size"))?;
        }
        if let Some(size) = size {
            let count = size.parse().ok().filter(|count| i32::try_from(*count).is_ok());
            self.group_min_size = count
                .ok_or_else(|| format!("Group count invalid '{size}', must be from 0 to {}", i32::MAX))?;
        }
        Ok(())
    }
}
