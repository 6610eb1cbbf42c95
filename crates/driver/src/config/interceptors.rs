//! The settings of loss on purpose.

use super::settings::property;
use super::{ConfigError, DriverConfig};
use crate::interceptors::Rule;

/// What a rule can be called: this driver's name, and that by which other drivers load it.
const NAMES: [(&str, &str); 3] = [
    ("loss", "aeron_udp_channel_interceptor_loss_load"),
    ("fixed-loss", "aeron_udp_channel_interceptor_fixed_loss_load"),
    (
        "multi-gap-loss",
        "aeron_udp_channel_interceptor_multi_gap_loss_load",
    ),
];

impl DriverConfig {
    /// The rules that drop what arrives.
    pub(crate) fn interceptors(&self) -> Result<Vec<Rule>, ConfigError> {
        // What leaves passes all of them.
        names(
            self.outgoing_interceptors.as_deref(),
            property::outgoing_interceptors,
        )?;
        let incoming = names(
            self.incoming_interceptors.as_deref(),
            property::incoming_interceptors,
        )?;
        incoming.into_iter().map(|name| self.rule(name)).collect()
    }

    fn rule(&self, name: &str) -> Result<Rule, ConfigError> {
        match name {
            "loss" => Ok(Rule::random(self.loss_args.as_deref())),
            "multi-gap-loss" => Ok(Rule::gaps(self.multi_gap_loss_args.as_deref())),
            _ => Rule::fixed(self.fixed_loss_args.as_deref()).map_err(|rule| {
                let text = self.fixed_loss_args.as_deref().unwrap_or_default();
                ConfigError::new(property::fixed_loss_args, text, rule)
            }),
        }
    }

    /// What to tell of rules that drop nothing.
    pub(super) fn interceptor_doubts(&self) -> Vec<String> {
        let rules = self.interceptors().unwrap_or_default();
        let idle = rules.iter().filter_map(Rule::doubt);
        idle.map(|(name, why)| format!("the interceptor {name} drops nothing: {why}"))
            .collect()
    }
}

fn names(text: Option<&str>, setting: &str) -> Result<Vec<&'static str>, ConfigError> {
    let text = text.unwrap_or_default();
    let given = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    given
        .map(|name| {
            let known = NAMES.iter().find(|(own, symbol)| *own == name || *symbol == name);
            known.map(|(own, _)| *own).ok_or_else(|| {
                let rule = "must name interceptors of this driver: loss, fixed-loss, multi-gap-loss";
                ConfigError::new(setting, text, rule)
            })
        })
        .collect()
}
