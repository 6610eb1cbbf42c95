//! The table of settings: which text sets which field, what is refused and what has no effect.

use headrace_protocol::text;

use super::settings::SETTINGS;
use super::{ConfigError, DriverConfig};

/// One row.
pub(crate) struct Setting {
    pub(super) property: &'static str,
    pub(super) effect: Effect,
}

pub(super) enum Effect {
    /// Sets a field.
    Built {
        apply: fn(&mut DriverConfig, &str) -> Result<(), String>,
        show: fn(&DriverConfig) -> String,
    },
    /// Belongs to a feature this release does not have; only the listed values ask for what it does.
    Unbuilt {
        accepted: &'static [&'static str],
        feature: &'static str,
    },
    /// Known to other drivers or to test harnesses, and without effect here.
    Inert,
}

impl Setting {
    pub(crate) fn apply(&self, config: &mut DriverConfig, value: &str) -> Result<(), ConfigError> {
        match &self.effect {
            Effect::Built { apply, .. } => {
                apply(config, value).map_err(|rule| ConfigError::new(self.property, value, rule))
            }
            Effect::Unbuilt { accepted, feature } if !accepted.contains(&value) => Err(ConfigError::new(
                self.property,
                value,
                format!("{feature} is not supported in this release, leave the setting out"),
            )),
            Effect::Unbuilt { .. } | Effect::Inert => Ok(()),
        }
    }
}

macro_rules! built {
    ($property:literal, $($field:ident).+, $codec:expr) => {
        $crate::config::table::Setting {
            property: $property,
            effect: $crate::config::table::Effect::Built {
                apply: |config, value| {
                    config.$($field).+ = $codec.parse(value)?;
                    Ok(())
                },
                show: |config| $codec.format(&config.$($field).+),
            },
        }
    };
}

pub(super) use built;

pub(super) const fn unbuilt(
    property: &'static str,
    accepted: &'static [&'static str],
    feature: &'static str,
) -> Setting {
    Setting {
        property,
        effect: Effect::Unbuilt { accepted, feature },
    }
}

pub(super) const fn inert(property: &'static str) -> Setting {
    Setting {
        property,
        effect: Effect::Inert,
    }
}

/// The environment form of a name: upper case, underscores for dots.
pub(crate) fn environment_name(name: &str) -> String {
    let mapped = name.replace('.', "_").to_ascii_uppercase();
    // The only setting whose two names differ.
    if mapped == "AERON_NAME_RESOLVER_THRESHOLD" {
        return "AERON_DRIVER_NAME_RESOLVER_THRESHOLD".to_owned();
    }
    mapped
}

/// The row of a property or environment name.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    let wanted = environment_name(name);
    SETTINGS
        .iter()
        .find(|setting| environment_name(setting.property) == wanted)
}

/// The setting that was probably meant by a name that is none, spelt as the name is.
pub(crate) fn nearest(name: &str) -> Option<String> {
    let properties = SETTINGS.iter().map(|setting| setting.property);
    if name.contains('.') {
        return text::nearest(name, properties).map(str::to_owned);
    }
    let names: Vec<String> = properties.map(environment_name).collect();
    text::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Applies a set of values, keyed by environment name, in the table's order. Names not in the table are left to
/// other programs that read the same sources.
pub(crate) fn apply_all(
    config: &mut DriverConfig,
    value_of: impl Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    for setting in SETTINGS {
        if let Some(value) = value_of(&environment_name(setting.property)) {
            setting.apply(config, &value)?;
        }
    }
    Ok(())
}

/// Name and value of each setting that has an effect.
pub(crate) fn shown(config: &DriverConfig) -> Vec<(&'static str, String)> {
    SETTINGS
        .iter()
        .filter_map(|setting| match &setting.effect {
            Effect::Built { show, .. } => Some((setting.property, show(config))),
            Effect::Unbuilt { .. } | Effect::Inert => None,
        })
        .collect()
}
