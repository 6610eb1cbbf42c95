//! What documentation and other languages are made from.

use headrace_protocol::settings::{self, Declaration};

use super::aliases::ALIASES;
use super::without_effect::WITHOUT_EFFECT;
use super::{DriverConfig, SETTINGS, default_directory};

/// A setting that Aeron's drivers have, and that has no effect here.
#[derive(Clone, Debug)]
pub struct Ineffective {
    /// Name of the property.
    pub property: &'static str,
    /// Values that ask for what this driver does anyway.
    pub accepted: &'static [&'static str],
    /// Another value is refused; else it is noted in the error log.
    pub is_refused: bool,
    /// Why, and what to do instead.
    pub reason: &'static str,
}

/// A setting that says in an older form what another one says.
#[derive(Clone, Debug)]
pub struct AliasDeclaration {
    /// Name of the property.
    pub property: &'static str,
    /// The property of the other one.
    pub sets: &'static str,
    /// What a text must be.
    pub rule: String,
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
        accepted: setting.accepted,
        is_refused: setting.is_refused,
        reason: setting.reason,
    });
    ineffective.collect()
}

/// Every setting that sets the field of another one.
pub fn aliases() -> Vec<AliasDeclaration> {
    let aliases = ALIASES.iter().map(|alias| AliasDeclaration {
        property: alias.property,
        sets: alias.sets,
        rule: (alias.rule)(),
    });
    aliases.collect()
}
