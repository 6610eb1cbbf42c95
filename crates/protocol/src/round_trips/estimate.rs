//! What a few round trips say of the next one.

/// A smoothed round trip and how far the single ones are from it, as RFC 6298 computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripEstimate {
    smoothed_ns: i64,
    deviation_ns: i64,
}

impl RoundTripEstimate {
    /// After the first round trip. Half of it is the deviation until there are more.
    pub fn first(rtt_ns: i64) -> Self {
        let rtt_ns = rtt_ns.max(0);
        Self {
            smoothed_ns: rtt_ns,
            deviation_ns: rtt_ns / 2,
        }
    }

    /// After another.
    #[must_use]
    pub fn with(self, rtt_ns: i64) -> Self {
        let off_ns = rtt_ns.max(0) - self.smoothed_ns;
        Self {
            smoothed_ns: self.smoothed_ns + off_ns / 8,
            deviation_ns: self.deviation_ns + (off_ns.abs() - self.deviation_ns) / 4,
        }
    }

    /// After a round trip that is the first if there is no estimate.
    pub fn updated(estimate: Option<Self>, rtt_ns: i64) -> Self {
        estimate.map_or_else(|| Self::first(rtt_ns), |before| before.with(rtt_ns))
    }

    /// Written in two numbers: the round trip to expect, and how far the single ones are from it.
    pub fn to_parts(self) -> [i64; 2] {
        [self.smoothed_ns, self.deviation_ns]
    }

    /// What [`Self::to_parts`] gave.
    pub fn from_parts([smoothed_ns, deviation_ns]: [i64; 2]) -> Self {
        Self {
            smoothed_ns,
            deviation_ns,
        }
    }

    /// Whether a round trip, longer or shorter, is one that was not to be expected.
    pub fn is_far_off(&self, rtt_ns: i64) -> bool {
        rtt_ns.abs_diff(self.smoothed_ns) > self.deviation_ns.saturating_mul(4).unsigned_abs()
    }

    /// The round trip to expect.
    pub fn smoothed_ns(&self) -> i64 {
        self.smoothed_ns
    }

    /// The time after which an answer is late.
    pub fn late_after_ns(&self) -> i64 {
        self.smoothed_ns
            .saturating_add(self.deviation_ns.saturating_mul(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_trip_is_doubted_and_even_ones_are_believed() {
        let mut estimate = RoundTripEstimate::updated(None, 1_000);
        assert_eq!((estimate.smoothed_ns(), estimate.late_after_ns()), (1_000, 3_000));
        for _ in 0..40 {
            estimate = RoundTripEstimate::updated(Some(estimate), 1_000);
        }
        assert_eq!(estimate.smoothed_ns(), 1_000);
        assert!(estimate.late_after_ns() < 1_020, "{estimate:?}");
    }

    #[test]
    fn an_estimate_follows_a_change_and_one_far_off_raises_the_doubt_more_than_the_estimate() {
        let steady = RoundTripEstimate {
            smoothed_ns: 1_000,
            deviation_ns: 0,
        };
        let disturbed = steady.with(9_000);
        assert_eq!(
            (disturbed.smoothed_ns(), disturbed.late_after_ns()),
            (2_000, 10_000)
        );
        let followed = (0..60).fold(steady, |estimate, _| estimate.with(9_000));
        assert!((8_900..=9_000).contains(&followed.smoothed_ns()), "{followed:?}");
    }

    #[test]
    fn no_round_trip_overflows_it() {
        for rtt_ns in [i64::MIN, -1, 0, i64::MAX] {
            let estimate = RoundTripEstimate::first(rtt_ns).with(i64::MAX).with(0);
            assert!(estimate.smoothed_ns() >= 0 && estimate.late_after_ns() >= 0);
        }
    }
}
