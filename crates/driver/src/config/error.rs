//! The error of a wrong setting.

use headrace_protocol::text::excerpt;
use thiserror::Error;

/// A setting whose value breaks its rule. Names all three so that the reader can act on it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid setting: {setting}={value}: {rule}")]
pub struct ConfigError {
    /// Property name of the setting.
    pub setting: String,
    /// The value.
    pub value: String,
    /// The rule for values.
    pub rule: String,
}

impl ConfigError {
    pub(crate) fn new(setting: &str, value: impl ToString, rule: impl Into<String>) -> Self {
        Self {
            setting: excerpt(setting).into_owned(),
            value: excerpt(&value.to_string()).into_owned(),
            rule: rule.into(),
        }
    }
}
