//! What the settings are, for `scripts/settings.py`, which writes the Python side and the reference from it.

use headrace_client::config as client;
use headrace_driver::config as driver;
use headrace_protocol::settings::Declaration;
use pyo3::prelude::*;

/// A setting that has an effect.
#[derive(IntoPyObject)]
struct Effective {
    property: Option<&'static str>,
    environment: Option<String>,
    keyword: &'static str,
    kind: &'static str,
    default: String,
    rule: String,
    meaning: String,
}

impl From<Declaration> for Effective {
    fn from(declared: Declaration) -> Self {
        Self {
            property: declared.property,
            environment: declared.environment,
            keyword: declared.keyword,
            kind: declared.kind.name(),
            default: declared.default,
            rule: declared.rule,
            meaning: declared.meaning,
        }
    }
}

/// A setting that has none.
#[derive(IntoPyObject)]
struct Ineffective {
    property: &'static str,
    accepted: Vec<&'static str>,
    is_refused: bool,
    reason: &'static str,
}

/// A setting that sets the field of another one.
#[derive(IntoPyObject)]
struct Alias {
    property: &'static str,
    sets: &'static str,
    rule: String,
}

/// Every setting of the Rust parts, by part.
#[derive(IntoPyObject)]
pub(crate) struct Declarations {
    driver: Vec<Effective>,
    driver_aliases: Vec<Alias>,
    driver_ineffective: Vec<Ineffective>,
    client: Vec<Effective>,
}

fn effective(declared: Vec<Declaration>) -> Vec<Effective> {
    declared.into_iter().map(Effective::from).collect()
}

#[doc = docstring!("setting_declarations")]
#[pyfunction]
pub(crate) fn setting_declarations() -> Declarations {
    let ineffective = driver::ineffective().into_iter().map(|setting| Ineffective {
        property: setting.property,
        accepted: setting.accepted.to_vec(),
        is_refused: setting.is_refused,
        reason: setting.reason,
    });
    let aliases = driver::aliases().into_iter().map(|alias| Alias {
        property: alias.property,
        sets: alias.sets,
        rule: alias.rule,
    });
    Declarations {
        driver: effective(driver::declarations()),
        driver_aliases: aliases.collect(),
        driver_ineffective: ineffective.collect(),
        client: effective(client::declarations()),
    }
}
