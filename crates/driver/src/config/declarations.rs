//! What documentation and other languages are made from.

use headrace_protocol::settings::{self, Declaration};

use super::without_effect::{Unbuilt, WITHOUT_EFFECT};
use super::{DriverConfig, SETTINGS, default_directory};

/// A setting that Aeron's drivers have, and that has no effect here.
#[derive(Clone, Debug)]
pub struct Ineffective {
    /// Name of the property.
    pub property: &'static str,
    /// What a value must be; none if any may be given.
    pub rule: Option<String>,
    /// Values that are accepted.
    pub accepted: &'static [&'static str],
}

/// Every setting that has an effect, with its default for a user named USER.
pub fn declarations() -> Vec<Declaration> {
    let defaults = DriverConfig {
        directory: default_directory::directory_of("USER"),
        ..DriverConfig::default()
    };
    settings::declarations(SETTINGS, &defaults)
}

/// Every setting that has none.
pub fn ineffective() -> Vec<Ineffective> {
    let ineffective = WITHOUT_EFFECT.iter().map(|setting| Ineffective {
        property: setting.property,
        rule: setting.unbuilt.as_ref().map(Unbuilt::rule),
        accepted: setting.unbuilt.as_ref().map_or(&[], |unbuilt| unbuilt.accepted),
    });
    ineffective.collect()
}
