//! The declarations of settings, from which documentation and other languages are generated.

use headrace_protocol::settings::{self, Declaration};

use super::aliases::ALIASES;
use super::without_effect::WITHOUT_EFFECT;
use super::{DriverConfig, SETTINGS, default_directory};

/// A setting that Aeron's drivers have, and that has no effect here.
#[derive(Clone, Debug)]
pub struct Ineffective {
    /// Name of the property.
    pub property: &'static str,
    /// Values that match this driver's behaviour.
    pub accepted: &'static [&'static str],
    /// Whether other values are refused; otherwise they are noted in the error log.
    pub is_refused: bool,
    /// Why it has no effect, and what to do instead.
    pub reason: &'static str,
}

/// A setting that is an older form of another one.
#[derive(Clone, Debug)]
pub struct AliasDeclaration {
    /// Name of the property.
    pub property: &'static str,
    /// The property of the other setting.
    pub sets: &'static str,
    /// The rule for its value.
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

/// Every setting without an effect.
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
