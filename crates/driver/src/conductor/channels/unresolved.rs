//! Names that could not be looked up again, so that each is reported once, and not at each of two attempts a second.
//!
//! The specification has an entry for each attempt, of which its drivers make one in 5 s. This driver reports the first
//! attempt that fails, one that fails for another reason, and one a minute.

use crate::endpoint::EndpointId;

/// How long a failure that goes on is not told again.
const SILENCE_NS: i64 = 60_000_000_000;

/// Those of one direction.
#[derive(Debug, Default)]
pub(super) struct Unresolved {
    told: Vec<Told>,
}

#[derive(Debug)]
struct Told {
    endpoint: EndpointId,
    name: String,
    reason: String,
    at_ns: i64,
}

impl Unresolved {
    /// A name could not be looked up. True if that is to be told.
    pub(super) fn fails(&mut self, endpoint: EndpointId, name: &str, reason: &str, now_ns: i64) -> bool {
        let known = self.told.iter_mut().find(|told| told.is(endpoint, name));
        match known {
            Some(told) if told.reason == reason && now_ns.saturating_sub(told.at_ns) < SILENCE_NS => false,
            Some(told) => {
                reason.clone_into(&mut told.reason);
                told.at_ns = now_ns;
                true
            }
            None => {
                self.told.push(Told {
                    endpoint,
                    name: name.to_owned(),
                    reason: reason.to_owned(),
                    at_ns: now_ns,
                });
                true
            }
        }
    }

    /// It has an address.
    pub(super) fn succeeds(&mut self, endpoint: EndpointId, name: &str) {
        self.told.retain(|told| !told.is(endpoint, name));
    }

    /// The channel is closed.
    pub(super) fn forget(&mut self, endpoint: EndpointId) {
        self.told.retain(|told| told.endpoint != endpoint);
    }
}

impl Told {
    fn is(&self, endpoint: EndpointId, name: &str) -> bool {
        self.endpoint == endpoint && self.name == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_failure_is_told_at_first_on_change_and_once_a_minute() {
        let mut unresolved = Unresolved::default();
        let (one, other) = (EndpointId(1), EndpointId(2));
        assert!(unresolved.fails(one, "a:1", "unknown", 0));
        assert!(!unresolved.fails(one, "a:1", "unknown", 59 * S));
        assert!(unresolved.fails(one, "b:1", "unknown", 59 * S));
        assert!(unresolved.fails(other, "a:1", "unknown", 59 * S));
        assert!(unresolved.fails(one, "a:1", "unknown", 60 * S));
        assert!(unresolved.fails(one, "a:1", "timed out", 61 * S));
        assert!(!unresolved.fails(one, "a:1", "timed out", 120 * S));
        unresolved.succeeds(one, "a:1");
        assert!(unresolved.fails(one, "a:1", "timed out", 120 * S));
        unresolved.forget(other);
        assert!(unresolved.fails(other, "a:1", "unknown", 120 * S));
        assert!(!unresolved.fails(one, "b:1", "unknown", 118 * S));
    }
}
