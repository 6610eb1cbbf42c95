//! The settings of deliberate loss.

use super::modes::ChannelEndpoints;
use super::settings::property;
use super::{ConfigError, DriverConfig};
use crate::interceptors::{FrameSet, Rule, Rules};

/// What a rule can be called: this driver's name, and that by which other drivers load it.
const NAMES: [(&str, &str); 3] = [
    ("loss", "aeron_udp_channel_interceptor_loss_load"),
    ("fixed-loss", "aeron_udp_channel_interceptor_fixed_loss_load"),
    (
        "multi-gap-loss",
        "aeron_udp_channel_interceptor_multi_gap_loss_load",
    ),
];

/// Which way datagrams go that are lost.
enum Way {
    In,
    Out,
}

/// What one setting for debugging loses.
struct DebugLoss<'a> {
    way: Way,
    frames: FrameSet,
    has_endpoints: bool,
    property: &'static str,
    supplier: &'static str,
    rate: Option<&'a str>,
    seed: i64,
}

impl DebugLoss<'_> {
    /// None if nothing is to be lost.
    fn rule(&self, chance: u64) -> Result<Option<Rule>, ConfigError> {
        let text = self.rate.unwrap_or("0");
        let rate: f64 = text.parse().unwrap_or(f64::NAN);
        if !(0.0..=1.0).contains(&rate) {
            let rule = "must be a number from 0.0 to 1.0";
            return Err(ConfigError::new(self.property, text, rule));
        }
        let seed = if self.seed == -1 { chance } else { self.seed as u64 };
        Ok((rate > 0.0).then(|| Rule::part_of(self.frames, rate, seed)))
    }

    fn doubt(&self) -> Option<String> {
        let rate = self.rate?;
        let is_idle = !self.has_endpoints && matches!(self.rule(0), Ok(Some(_)));
        let Self {
            property, supplier, ..
        } = self;
        is_idle.then(|| {
            format!("{property}={rate} has no effect: it is for the class for debugging of {supplier}")
        })
    }
}

impl DriverConfig {
    /// The rules that drop what arrives, and what leaves. `chance` is the seed of those that have none of their own.
    pub(crate) fn interceptors(&self, chance: u64) -> Result<Rules, ConfigError> {
        let mut rules = Rules {
            incoming: self.named_interceptors()?,
            outgoing: Vec::new(),
        };
        for loss in self.debug_losses() {
            let rule = loss.rule(chance)?.filter(|_| loss.has_endpoints);
            match loss.way {
                Way::In => rules.incoming.extend(rule),
                Way::Out => rules.outgoing.extend(rule),
            }
        }
        Ok(rules)
    }

    /// What settings for debugging lose: what a publication sends is not what a subscription sends, so the type of a frame
    /// tells whose socket it is at.
    fn debug_losses(&self) -> [DebugLoss<'_>; 4] {
        let sends = self.send_channel_endpoints == ChannelEndpoints::Debug;
        let receives = self.receive_channel_endpoints == ChannelEndpoints::Debug;
        [
            DebugLoss {
                way: Way::Out,
                frames: FrameSet::DATA,
                has_endpoints: sends,
                property: property::debug_send_data_loss_rate,
                supplier: property::send_channel_endpoints,
                rate: self.debug_send_data_loss_rate.as_deref(),
                seed: self.debug_send_data_loss_seed,
            },
            DebugLoss {
                way: Way::In,
                frames: FrameSet::CONTROL,
                has_endpoints: sends,
                property: property::debug_send_control_loss_rate,
                supplier: property::send_channel_endpoints,
                rate: self.debug_send_control_loss_rate.as_deref(),
                seed: self.debug_send_control_loss_seed,
            },
            DebugLoss {
                way: Way::In,
                frames: FrameSet::DATA,
                has_endpoints: receives,
                property: property::debug_receive_data_loss_rate,
                supplier: property::receive_channel_endpoints,
                rate: self.debug_receive_data_loss_rate.as_deref(),
                seed: self.debug_receive_data_loss_seed,
            },
            DebugLoss {
                way: Way::Out,
                frames: FrameSet::CONTROL,
                has_endpoints: receives,
                property: property::debug_receive_control_loss_rate,
                supplier: property::receive_channel_endpoints,
                rate: self.debug_receive_control_loss_rate.as_deref(),
                seed: self.debug_receive_control_loss_seed,
            },
        ]
    }

    fn named_interceptors(&self) -> Result<Vec<Rule>, ConfigError> {
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
        let rules = self.named_interceptors().unwrap_or_default();
        let idle = rules.iter().filter_map(Rule::doubt);
        let idle = idle.map(|(name, why)| format!("the interceptor {name} drops nothing: {why}"));
        let without = self.debug_losses().into_iter().filter_map(|loss| loss.doubt());
        idle.chain(without).collect()
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
