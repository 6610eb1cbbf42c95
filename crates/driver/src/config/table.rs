//! The table of settings: which name sets which field, which values are refused and which settings have no effect.

use headrace_protocol::channel::units;
use headrace_protocol::settings::{Kind, Setting, environment_name};
use headrace_protocol::text;

use super::aliases::{ALIASES, Alias};
use super::settings::{MILLISECOND, SETTINGS};
use super::without_effect::{WITHOUT_EFFECT, WithoutEffect};
use super::{ConfigError, DriverConfig};

/// A setting that has a name.
pub(crate) enum Known {
    /// Sets a field.
    Effective(&'static Setting<DriverConfig>),
    /// Sets the field of another one.
    Alias(&'static Alias),
    /// Is accepted, noted or refused, and no more.
    WithoutEffect(&'static WithoutEffect),
}

impl Known {
    /// Every setting: aliases first, so that what they stand for wins where both are given.
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let aliases = ALIASES.iter().map(|alias| (alias.property, Self::Alias(alias)));
        let effective = SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.property?, Self::Effective(setting))));
        let others = WITHOUT_EFFECT
            .iter()
            .map(|setting| (setting.property, Self::WithoutEffect(setting)));
        aliases.chain(effective).chain(others)
    }

    pub(crate) fn apply(
        &self,
        config: &mut DriverConfig,
        property: &str,
        value: &str,
    ) -> Result<(), ConfigError> {
        match self {
            Self::Effective(setting) => {
                (setting.set)(config, value).map_err(|rule| ConfigError::new(property, value, rule))?;
                note_missing_unit(config, setting, value);
                Ok(())
            }
            Self::Alias(alias) => alias.apply(config, value),
            Self::WithoutEffect(setting) => setting.apply(config, value),
        }
    }
}

/// A number below a millisecond was probably not meant in nanoseconds where the default is longer.
fn note_missing_unit(config: &mut DriverConfig, setting: &'static Setting<DriverConfig>, value: &str) {
    let Some(property) = setting.property.filter(|_| (setting.kind)() == Kind::Nanoseconds) else {
        return;
    };
    let usual = || units::parse_duration_ns(&(setting.show)(&DriverConfig::default()));
    match value.parse::<i64>() {
        Ok(number)
            if (1..MILLISECOND).contains(&number) && usual().is_ok_and(|usual| usual >= MILLISECOND) =>
        {
            let text = format!(
                "{property}={value} means {number} nanoseconds: give a unit, as in {value}ms or {value}s"
            );
            config.noted.insert(property, text);
        }
        _ => {
            config.noted.remove(property);
        }
    }
}

/// The setting of a property or environment name, and its property.
pub(crate) fn find(name: &str) -> Option<(&'static str, Known)> {
    let wanted = environment_name(name);
    Known::all().find(|(property, _)| environment_name(property) == wanted)
}

/// The names of all settings, spelt as a name is: as properties, or as variables of the environment.
fn spelt_as(name: &str) -> Vec<String> {
    let spell = |property: &str| match name.contains('.') {
        true => property.to_owned(),
        false => environment_name(property),
    };
    Known::all().map(|(property, _)| spell(property)).collect()
}

/// The setting that was probably meant by a name that is none.
fn nearest(name: &str) -> Option<String> {
    text::nearest(name, spelt_as(name).iter().map(String::as_str)).map(str::to_owned)
}

/// The setting of which a name is a slip.
pub(crate) fn slipped(name: &str) -> Option<String> {
    text::slipped(name, spelt_as(name).iter().map(String::as_str)).map(str::to_owned)
}

/// Why a name that no setting has is refused.
pub(crate) fn unknown(name: &str, value: &str) -> ConfigError {
    let advice = nearest(name).map_or_else(String::new, |known| format!(", did you mean {known}?"));
    let rule = format!("is not a setting of the media driver{advice}");
    ConfigError::new(name, value, rule)
}

/// Applies a set of values, keyed by environment name, in the table's order. Names not in the table are left to
/// other programs that read the same sources.
pub(crate) fn apply_all(
    config: &mut DriverConfig,
    value_of: impl Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    for (property, known) in Known::all() {
        if let Some(value) = value_of(&environment_name(property)) {
            known.apply(config, property, &value)?;
        }
    }
    Ok(())
}
