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
    rule: Option<String>,
    accepted: Vec<&'static str>,
}

/// Every setting of the Rust parts, by part.
#[derive(IntoPyObject)]
pub(crate) struct Declarations {
    driver: Vec<Effective>,
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
        rule: setting.rule,
        accepted: setting.accepted.to_vec(),
    });
    Declarations {
        driver: effective(driver::declarations()),
        driver_ineffective: ineffective.collect(),
        client: effective(client::declarations()),
    }
}
