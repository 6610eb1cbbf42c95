//! Settings, declared once: name, type, default, limits and meaning in one row, from which everything else follows.
//!
//! [`settings!`](crate::settings!) turns rows into a structure with one field each, its defaults, and a table that
//! reads, prints and describes them. What other languages and the documentation say of settings is made from the
//! table; see `docs/design/0023-settings-declared-once.md`.

mod codecs;

pub use codecs::{
    Bool, Choice, Codec, CountOrNone, Directory, Duration, FlooredDuration, Int, Kind, Milliseconds, Mtu,
    Named, Optional, OptionalDuration, OptionalInt64, OptionalText, PowerOfTwo, RingLength, Size, Text,
};

/// One setting of the configuration `C`.
pub struct Setting<C> {
    /// Name of the property that sets it, for those that have one.
    pub property: Option<&'static str>,
    /// Name of its field, and of the keyword in Python.
    pub field: &'static str,
    /// What it means, in pieces, for a person who has to choose a value.
    pub meaning: &'static [&'static str],
    /// Sets the field, or fails with the rule that the text breaks.
    pub set: fn(&mut C, &str) -> Result<(), String>,
    /// The field's value as text.
    pub show: fn(&C) -> String,
    /// What a text must be.
    pub rule: fn() -> String,
    /// What a keyword takes.
    pub kind: fn() -> Kind,
}

/// All that is to know of one setting, for documentation and for other languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Name of the property that sets it, for those that have one.
    pub property: Option<&'static str>,
    /// Name of the variable that sets it, for those that have a property.
    pub environment: Option<String>,
    /// Name of the keyword.
    pub keyword: &'static str,
    /// What the keyword takes.
    pub kind: Kind,
    /// The default as text; empty if there is none.
    pub default: String,
    /// What a text must be.
    pub rule: String,
    /// What it means.
    pub meaning: String,
}

/// What a table of settings declares, in its order; the defaults are those of `defaults`.
pub fn declarations<C>(table: &[Setting<C>], defaults: &C) -> Vec<Declaration> {
    let declaration = |setting: &Setting<C>| Declaration {
        property: setting.property,
        environment: setting.property.map(environment_name),
        keyword: setting.field,
        kind: (setting.kind)(),
        default: (setting.show)(defaults),
        rule: (setting.rule)(),
        // A line of a documentation comment begins with a space.
        meaning: setting.meaning.concat().trim().to_owned(),
    };
    table.iter().map(declaration).collect()
}

/// The environment form of a property's name: upper case, underscores for dots.
pub fn environment_name(property: &str) -> String {
    let mapped = property.replace('.', "_").to_ascii_uppercase();
    // The only setting whose two names differ.
    if mapped == "AERON_NAME_RESOLVER_THRESHOLD" {
        return "AERON_DRIVER_NAME_RESOLVER_THRESHOLD".to_owned();
    }
    mapped
}

/// Declares a configuration: a structure, its defaults and the table of its settings.
///
/// A row is the meaning as a documentation comment, the property, the field with its type and default, and the codec.
/// `property` becomes a module with the property of each field, for errors that name one. Fields that are no settings
/// stand `beside` them.
#[macro_export]
macro_rules! settings {
    (
        $(#[$outer:meta])*
        pub struct $config:ident, table $table:ident;
        $(
            $(#[doc = $meaning:literal])+
            $($property:literal =>)? $field:ident: $type:ty = $default:expr, $codec:expr;
        )+
        $(beside {
            $($(#[$note:meta])* $other:ident: $other_type:ty = $other_default:expr;)+
        })?
    ) => {
        $(#[$outer])*
        pub struct $config {
            $($(#[doc = $meaning])+ pub $field: $type,)+
            $($($(#[$note])* pub $other: $other_type,)+)?
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    $($field: $default,)+
                    $($($other: $other_default,)+)?
                }
            }
        }

        /// The property of each field that has one.
        // Spelt as the fields are; only some are named outside the table.
        #[allow(non_upper_case_globals, dead_code)]
        pub(crate) mod property {
            $($(pub(crate) const $field: &str = $property;)?)+
        }

        /// Every setting, in the order of declaration.
        pub static $table: &[$crate::settings::Setting<$config>] = &[$({
            // Once here, for all that follows.
            #[allow(unused_mut, unused_assignments)]
            const PROPERTY: Option<&str> = { let mut property = None; $(property = Some($property);)? property };
            $crate::settings::Setting {
                property: PROPERTY,
                field: stringify!($field),
                meaning: &[$($meaning),+],
                set: |config, text| {
                    let codec = $codec;
                    config.$field = $crate::settings::Codec::parse(&codec, text)
                        .ok_or_else(|| $crate::settings::Codec::rule(&codec))?;
                    Ok(())
                },
                show: |config| $crate::settings::Codec::format(&$codec, &config.$field),
                rule: || $crate::settings::Codec::rule(&$codec),
                kind: || $crate::settings::Codec::kind(&$codec),
            }
        }),+];
    };
}
