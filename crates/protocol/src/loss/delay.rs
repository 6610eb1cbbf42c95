//! How long the protocol has a receiver wait before it reports loss.

/// Shortest unicast delay that retries are computed from.
const UNICAST_DELAY_MIN_NS: i64 = 1_000;

/// A driver's settings for loss. [`Default`] is the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossSettings {
    /// `aeron.nak.unicast.delay`
    pub nak_unicast_delay_ns: i64,
    /// `aeron.nak.unicast.retry.delay.ratio`
    pub nak_unicast_retry_delay_ratio: i64,
    /// `aeron.nak.multicast.max.backoff`
    pub nak_multicast_max_backoff_ns: i64,
    /// `aeron.nak.multicast.group.size`
    pub nak_multicast_group_size: i32,
    /// Follow the round trip once one was measured.
    pub is_adaptive: bool,
}

impl Default for LossSettings {
    fn default() -> Self {
        Self {
            nak_unicast_delay_ns: UNICAST_DELAY_MIN_NS,
            nak_unicast_retry_delay_ratio: 100,
            nak_multicast_max_backoff_ns: 10_000_000,
            nak_multicast_group_size: 10,
            is_adaptive: true,
        }
    }
}

/// Where delays come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayGenerator {
    /// Always the same.
    Static {
        /// Before a gap is reported.
        delay_ns: i64,
        /// Before it is reported again.
        retry_delay_ns: i64,
    },
    /// Random, so that of a group of receivers with the same loss usually only one reports it.
    OptimalBackoff(OptimalBackoff),
}

impl DelayGenerator {
    /// For an image: `is_group` once SETUP, channel and setting were considered, `nak_delay_ns` as the channel
    /// gives it.
    pub fn for_image(
        is_reliable: bool,
        is_group: bool,
        nak_delay_ns: Option<i64>,
        settings: &LossSettings,
    ) -> Self {
        if !is_reliable {
            Self::immediate()
        } else if is_group {
            let size = settings.nak_multicast_group_size;
            Self::OptimalBackoff(OptimalBackoff::new(settings.nak_multicast_max_backoff_ns, size))
        } else {
            let delay_ns = nak_delay_ns
                .unwrap_or(settings.nak_unicast_delay_ns.max(UNICAST_DELAY_MIN_NS))
                .max(0);
            let retry_base_ns = delay_ns.max(UNICAST_DELAY_MIN_NS);
            let ratio = settings.nak_unicast_retry_delay_ratio.max(1);
            Self::Static {
                delay_ns,
                retry_delay_ns: retry_base_ns.saturating_mul(ratio),
            }
        }
    }

    /// For a stream that skips what it misses.
    pub const fn immediate() -> Self {
        Self::Static {
            delay_ns: 0,
            retry_delay_ns: 0,
        }
    }

    /// Before a gap is reported.
    pub fn delay_ns(&self, random: &mut fastrand::Rng) -> i64 {
        match self {
            Self::Static { delay_ns, .. } => *delay_ns,
            Self::OptimalBackoff(backoff) => backoff.delay_ns(random.f64()),
        }
    }

    /// Before it is reported again.
    pub fn retry_delay_ns(&self, random: &mut fastrand::Rng) -> i64 {
        match self {
            Self::Static { retry_delay_ns, .. } => *retry_delay_ns,
            Self::OptimalBackoff(backoff) => backoff.delay_ns(random.f64()),
        }
    }
}

/// Back-off whose distribution, exponential towards the longest delay, makes the expected number of reports
/// from a group of the given size smallest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimalBackoff {
    max_backoff_ns: i64,
    lambda: f64,
}

impl OptimalBackoff {
    /// For groups of about `group_size` receivers, with delays below `max_backoff_ns`.
    pub fn new(max_backoff_ns: i64, group_size: i32) -> Self {
        Self {
            max_backoff_ns: max_backoff_ns.max(0),
            lambda: f64::from(group_size.max(1)).ln() + 1.0,
        }
    }

    /// The delay for a number drawn evenly from 0 up to, not including, 1.
    ///
    /// With T the longest delay this is `T / lambda * ln(1 + uniform * (e^lambda - 1))`: 0 for 0, T for 1.
    pub fn delay_ns(&self, uniform: f64) -> i64 {
        let fraction = (uniform * self.lambda.exp_m1()).ln_1p() / self.lambda;
        (fraction * self.max_backoff_ns as f64) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: LossSettings = LossSettings {
        nak_unicast_delay_ns: 2_000,
        nak_unicast_retry_delay_ratio: 100,
        nak_multicast_max_backoff_ns: 10_000_000,
        nak_multicast_group_size: 10,
        is_adaptive: false,
    };

    fn fixed(delay_ns: i64, retry_delay_ns: i64) -> DelayGenerator {
        DelayGenerator::Static {
            delay_ns,
            retry_delay_ns,
        }
    }

    #[test]
    fn images_get_the_delays_of_their_kind() {
        let image =
            |reliable, group, nak_delay| DelayGenerator::for_image(reliable, group, nak_delay, &SETTINGS);
        assert_eq!(image(false, true, Some(5)), fixed(0, 0));
        assert_eq!(image(true, false, None), fixed(2_000, 200_000));
        assert_eq!(image(true, false, Some(5_000)), fixed(5_000, 500_000));
        assert_eq!(
            image(true, false, Some(0)),
            fixed(0, 100_000),
            "retries are at least a microsecond's"
        );
        assert_eq!(image(true, false, Some(i64::MAX)), fixed(i64::MAX, i64::MAX));
        assert!(matches!(
            image(true, true, Some(5)),
            DelayGenerator::OptimalBackoff(_)
        ));
        let defaults = DelayGenerator::for_image(true, false, None, &LossSettings::default());
        assert_eq!(defaults, fixed(1_000, 100_000));
    }

    #[test]
    fn back_off_covers_its_range_and_leans_to_the_end() {
        let backoff = OptimalBackoff::new(10_000_000, 10);
        assert_eq!(backoff.delay_ns(0.0), 0);
        assert!((9_999_999..=10_000_000).contains(&backoff.delay_ns(1.0)));
        let delays: Vec<_> = (0..=10)
            .map(|tenths| backoff.delay_ns(f64::from(tenths) / 10.0))
            .collect();
        assert!(delays.is_sorted_by(|left, right| left < right), "{delays:?}");
        assert!(
            delays[5] > 7_000_000,
            "half of the receivers wait for most of the time: {delays:?}"
        );
        // ln(1 + 0.5 * (e^3.302585 - 1)) / 3.302585, worked out by hand.
        assert!((8_010_580..8_010_600).contains(&delays[5]), "{delays:?}");
    }

    #[test]
    fn back_off_stays_in_range_for_any_settings() {
        let mut random = fastrand::Rng::with_seed(7);
        for (max_backoff_ns, group_size) in [(0, 10), (1, 1), (10_000_000, 0), (i64::MAX, i32::MAX), (-5, -5)]
        {
            let delays = DelayGenerator::OptimalBackoff(OptimalBackoff::new(max_backoff_ns, group_size));
            for _ in 0..100 {
                let delay_ns = delays.delay_ns(&mut random);
                assert!(
                    (0..=max_backoff_ns.max(0)).contains(&delay_ns),
                    "{max_backoff_ns} {group_size}"
                );
            }
        }
    }
}
