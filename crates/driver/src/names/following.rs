//! Decides when to look up an open channel's name again: when its peer has fallen silent, and may have moved.
//!
//! A live peer sends something every 200 ms (receivers) or 100 ms (senders). The specification looks up after 5 s of
//! silence. This driver finds a name that has moved within the time of a setting, by default a second: it looks the
//! name up after half of that time in silence, and as often after that, on threads that nothing waits for (note 14).

/// Shorter silences say nothing.
const SILENCE_MIN_NS: i64 = 500_000_000;
/// How often a silence is looked for while it lasts.
const CHECKS: i64 = 4;

/// How quickly names are followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Following {
    silence_ns: i64,
}

impl Following {
    /// Within this time, or not at all if it is 0.
    pub(crate) fn within(time_ns: i64) -> Option<Self> {
        let silence_ns = (time_ns / 2).max(SILENCE_MIN_NS);
        (time_ns > 0).then_some(Self { silence_ns })
    }

    /// Time between two looks at who is silent.
    pub(crate) fn check_interval_ns(self) -> i64 {
        self.silence_ns / CHECKS
    }

    /// True for a name from which nothing was heard, and which was not asked for, for long enough.
    pub(crate) fn is_due(self, last_heard_ns: i64, last_asked_ns: i64, now_ns: i64) -> bool {
        now_ns.saturating_sub(last_heard_ns.max(last_asked_ns)) > self.silence_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_silent_name_is_asked_for_twice_in_the_time_of_the_setting() {
        for (time_ns, silence_ns) in [(1000 * MS, 500 * MS), (MS, 500 * MS), (10_000 * MS, 5_000 * MS)] {
            let following = Following::within(time_ns).unwrap();
            assert!(!following.is_due(0, -MS, silence_ns));
            assert!(following.is_due(0, -MS, silence_ns + 1));
            assert!(!following.is_due(0, silence_ns, 2 * silence_ns));
            assert!(following.is_due(0, silence_ns, 2 * silence_ns + 1));
            assert!(silence_ns + following.check_interval_ns() < time_ns.max(1000 * MS));
        }
        assert!(Following::within(0).is_none());
    }
}
