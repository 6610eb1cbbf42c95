//! What a rule is, and what is told of one that does not hold.

use std::fmt::Debug;

/// A rule about `S`, which knows its values now and at the check before.
pub(super) struct Rule<S> {
    /// How the documentation and a failure call it.
    pub(super) name: &'static str,
    /// True when it holds. Only asked when there was a check before.
    pub(super) holds: fn(&S) -> bool,
}

/// A rule that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    /// The values that contradict it.
    pub(crate) what: String,
}

/// The first rule of a table that does not hold.
pub(super) fn broken<S: Debug>(rules: &[Rule<S>], subject: &S) -> Result<(), Violation> {
    match rules.iter().find(|rule| !(rule.holds)(subject)) {
        None => Ok(()),
        Some(rule) => Err(Violation {
            rule: rule.name,
            what: format!("{subject:?}"),
        }),
    }
}
