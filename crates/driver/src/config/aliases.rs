//! Settings of Aeron's drivers that are older forms of another setting. They are read first, so that the other setting
//! wins if both are set.

use headrace_protocol::settings::Codec;

use super::choices::{MULTICAST_FLOW_CONTROL_CLASS, UNICAST_FLOW_CONTROL_CLASS};
use super::settings::{ANY_SIZE, EVENT_LIMIT_MAX, property};
use super::{ConfigError, DriverConfig};

/// A property that sets the field of another one.
pub(super) struct Alias {
    /// Its name.
    pub(super) property: &'static str,
    /// The property of the field.
    pub(super) sets: &'static str,
    /// What a text must be.
    pub(super) rule: fn() -> String,
    /// Sets the field, unless the text breaks the rule.
    pub(super) set: fn(&mut DriverConfig, &str) -> Option<()>,
}

impl Alias {
    pub(super) fn apply(&self, config: &mut DriverConfig, value: &str) -> Result<(), ConfigError> {
        (self.set)(config, value).ok_or_else(|| {
            let rule = format!("{}; {} is the newer setting", (self.rule)(), self.sets);
            ConfigError::new(self.property, value, rule)
        })
    }
}

pub(super) static ALIASES: &[Alias] = &[
    Alias {
        property: "aeron.multicast.flow.control.strategy",
        sets: property::multicast_flow_control,
        rule: || MULTICAST_FLOW_CONTROL_CLASS.rule(),
        set: |config, text| {
            config.multicast_flow_control = MULTICAST_FLOW_CONTROL_CLASS.parse(text)?;
            Some(())
        },
    },
    Alias {
        property: "aeron.unicast.flow.control.strategy",
        sets: property::unicast_flow_control,
        rule: || UNICAST_FLOW_CONTROL_CLASS.rule(),
        set: |config, text| {
            config.unicast_flow_control = UNICAST_FLOW_CONTROL_CLASS.parse(text)?;
            Some(())
        },
    },
    Alias {
        property: "aeron.PreferredMulticastFlowControl.asf",
        sets: property::flow_control_group_tag,
        rule: hex_rule,
        set: |config, text| {
            config.flow_control_group_tag = hex_tag(text)?;
            Some(())
        },
    },
    Alias {
        property: "aeron.flow.control.sm.applicationSpecificFeedback",
        sets: property::receiver_group_tag,
        rule: hex_rule,
        set: |config, text| {
            config.receiver_group_tag = Some(hex_tag(text)?);
            Some(())
        },
    },
    Alias {
        property: "aeron.event.buffer.length",
        sets: property::event_limit,
        rule: || format!("must be a size, of which an event takes {EVENT_LENGTH} bytes"),
        set: |config, text| {
            config.event_limit = (ANY_SIZE.parse(text)? / EVENT_LENGTH).min(EVENT_LIMIT_MAX);
            Some(())
        },
    },
];

const EVENT_LENGTH: usize = 256;

const TAG_DIGITS: usize = 2 * size_of::<i64>();

fn hex_rule() -> String {
    format!("must be {TAG_DIGITS} hexadecimal digits, the bytes of the tag from the lowest one on")
}

/// The bytes of a tag as status messages carry it.
fn hex_tag(text: &str) -> Option<i64> {
    // The parser would take a sign.
    let is_hex = text.len() == TAG_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = u64::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    Some(value.swap_bytes() as i64)
}
