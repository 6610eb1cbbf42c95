//! Delays that follow the round trip to the sender, or stay as the protocol fixes them.
//!
//! Design page 35 says where the formulas come from.

use super::delay::{DelayGenerator, LossSettings, OptimalBackoff};
use crate::round_trips::RoundTripEstimate;

/// Shortest and longest wait for a repair that was asked for. The shortest is what the protocol fixes for unicast.
const RETRY_MIN_NS: i64 = 100_000;
const RETRY_MAX_NS: i64 = 1_000_000_000;

/// A round trip to the sender, and what came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredRoundTrip {
    /// How long it took.
    pub rtt_ns: i64,
    /// What it and those before it say of the next one.
    pub estimate: RoundTripEstimate,
    /// Receivers of the stream at most, if the sender says so.
    pub receiver_count: Option<u32>,
}

/// When one image asks for what is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    fixed: DelayGenerator,
    /// None: the delays stay fixed.
    follows: Option<Follows>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Follows {
    is_group: bool,
    max_backoff_ns: i64,
    /// The number of receivers until the sender says it.
    group_size: i32,
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    round_trip: RoundTripEstimate,
    /// Spreads the requests of a group.
    backoff: Option<OptimalBackoff>,
}

impl Delays {
    /// For an image: `is_group` once SETUP, channel and setting were considered, `nak_delay_ns` as the channel gives it.
    pub fn for_image(
        is_reliable: bool,
        is_group: bool,
        nak_delay_ns: Option<i64>,
        settings: &LossSettings,
    ) -> Self {
        let follows = Follows {
            is_group,
            max_backoff_ns: settings.nak_multicast_max_backoff_ns,
            group_size: settings.nak_multicast_group_size,
            measured: None,
        };
        let is_adaptive = is_reliable && nak_delay_ns.is_none() && settings.is_adaptive;
        Self {
            fixed: DelayGenerator::for_image(is_reliable, is_group, nak_delay_ns, settings),
            follows: is_adaptive.then_some(follows),
        }
    }

    /// True if [`Self::on_round_trip`] has an effect.
    pub fn wants_round_trips(&self) -> bool {
        self.follows.is_some()
    }

    /// A round trip was measured.
    pub fn on_round_trip(&mut self, measured: MeasuredRoundTrip) {
        if let Some(follows) = &mut self.follows {
            follows.on_round_trip(measured);
        }
    }

    /// Before a gap is reported.
    pub(super) fn delay_ns(&self, random: &mut fastrand::Rng) -> i64 {
        match self.measured().and_then(|measured| measured.backoff) {
            Some(backoff) => backoff.delay_ns(random.f64()),
            None => self.fixed.delay_ns(random),
        }
    }

    /// Before it is reported again.
    pub(super) fn retry_delay_ns(&self, random: &mut fastrand::Rng) -> i64 {
        let Some(measured) = self.measured() else {
            return self.fixed.retry_delay_ns(random);
        };
        let spread_ns = measured
            .backoff
            .map_or(0, |backoff| backoff.delay_ns(random.f64()));
        let late_ns = measured.round_trip.late_after_ns();
        late_ns
            .clamp(RETRY_MIN_NS, RETRY_MAX_NS)
            .saturating_add(spread_ns)
    }

    fn measured(&self) -> Option<&Measured> {
        self.follows.as_ref()?.measured.as_ref()
    }
}

impl From<DelayGenerator> for Delays {
    fn from(fixed: DelayGenerator) -> Self {
        Self { fixed, follows: None }
    }
}

impl Follows {
    fn on_round_trip(&mut self, measured: MeasuredRoundTrip) {
        let round_trip = measured.estimate;
        let told = measured
            .receiver_count
            .and_then(|count| i32::try_from(count).ok());
        let group_size = told.unwrap_or(self.group_size).max(1);
        let spread_ns = round_trip.smoothed_ns() as f64 * f64::from(group_size).ln();
        let backoff = OptimalBackoff::new((spread_ns as i64).min(self.max_backoff_ns), group_size);
        self.measured = Some(Measured {
            round_trip,
            backoff: self.is_group.then_some(backoff),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_NS: i64 = 200_000;

    fn image(is_group: bool) -> Delays {
        Delays::for_image(true, is_group, None, &LossSettings::default())
    }

    fn measured(rtt_ns: i64, receiver_count: impl Into<Option<u32>>) -> MeasuredRoundTrip {
        MeasuredRoundTrip {
            rtt_ns,
            estimate: RoundTripEstimate::first(rtt_ns),
            receiver_count: receiver_count.into(),
        }
    }

    /// The delays of many images with the same measurements.
    fn spread(delays: &Delays) -> Vec<i64> {
        let mut random = fastrand::Rng::with_seed(3);
        (0..1_000).map(|_| delays.delay_ns(&mut random)).collect()
    }

    fn retry_ns(delays: &Delays) -> i64 {
        delays.retry_delay_ns(&mut fastrand::Rng::with_seed(3))
    }

    #[test]
    fn nothing_measured_means_the_fixed_delays() {
        for is_group in [false, true] {
            let fixed = DelayGenerator::for_image(true, is_group, None, &LossSettings::default());
            assert_eq!(spread(&image(is_group)), spread(&fixed.into()));
            assert_eq!(retry_ns(&image(is_group)), retry_ns(&fixed.into()));
        }
    }

    #[test]
    fn one_receiver_asks_at_once_and_again_when_the_repair_is_late() {
        let mut delays = image(false);
        delays.on_round_trip(measured(RTT_NS, 1));
        assert!(spread(&delays).iter().all(|&delay_ns| delay_ns == 1_000));
        assert_eq!(retry_ns(&delays), 3 * RTT_NS, "the first measurement is doubted");
        for (rtt_ns, expected) in [(1, RETRY_MIN_NS), (i64::MAX, RETRY_MAX_NS)] {
            let mut delays = image(false);
            delays.on_round_trip(measured(rtt_ns, 1));
            assert_eq!(retry_ns(&delays), expected);
        }
    }

    #[test]
    fn a_group_spreads_its_requests_over_more_round_trips_the_more_receivers_it_has() {
        let longest = |told: Option<u32>| {
            let mut delays = image(true);
            delays.on_round_trip(measured(RTT_NS, told));
            spread(&delays).into_iter().max().unwrap()
        };
        assert_eq!(longest(Some(1)), 0);
        for (count, round_trips) in [(2, 0.69), (4, 1.38), (16, 2.77), (64, 4.15)] {
            let (longest_ns, expected_ns) = (longest(Some(count)), round_trips * RTT_NS as f64);
            assert!(
                (0.97 * expected_ns..1.01 * expected_ns).contains(&(longest_ns as f64)),
                "{count}: {longest_ns}"
            );
        }
        let untold = longest(None);
        assert!(
            untold > longest(Some(8)) && untold < longest(Some(16)),
            "the setting is 10"
        );
    }

    /// Of receivers that lost the same, how many have asked before the first repair can be there.
    #[test]
    fn few_of_many_receivers_ask_for_the_same_loss() {
        for count in [16, 64, 512, 4096] {
            let mut delays = image(true);
            delays.on_round_trip(measured(RTT_NS, count));
            let mut random = fastrand::Rng::with_seed(5);
            let asked = (0..100).map(|_| {
                let group: Vec<_> = (0..count).map(|_| delays.delay_ns(&mut random)).collect();
                let first_ns = group.iter().min().copied().unwrap();
                group
                    .iter()
                    .filter(|&&delay_ns| delay_ns <= first_ns + RTT_NS)
                    .count()
            });
            let mean = asked.sum::<usize>() / 100;
            assert!(mean <= 8, "{mean} of {count}");
        }
    }

    #[test]
    fn no_measurement_makes_a_receiver_slower_than_the_fixed_delays_or_greedier() {
        for rtt_ns in [0, 1, 20_000, 20_000_000, i64::MAX] {
            for receiver_count in [None, Some(0), Some(1), Some(50), Some(u32::MAX)] {
                let mut delays = image(true);
                delays.on_round_trip(measured(rtt_ns, receiver_count));
                assert!(
                    spread(&delays)
                        .iter()
                        .all(|delay_ns| (0..=10_000_000).contains(delay_ns))
                );
                assert!((RETRY_MIN_NS..=RETRY_MAX_NS + 10_000_000).contains(&retry_ns(&delays)));
            }
        }
    }

    #[test]
    fn an_explicit_word_keeps_the_delays_fixed() {
        let settings = LossSettings::default();
        let fixed = LossSettings {
            is_adaptive: false,
            ..settings
        };
        assert!(Delays::for_image(true, true, None, &settings).wants_round_trips());
        for delays in [
            Delays::for_image(true, true, None, &fixed),
            Delays::for_image(true, true, Some(1_000), &settings),
            Delays::for_image(false, true, None, &settings),
        ] {
            assert!(!delays.wants_round_trips());
            let mut told = delays;
            told.on_round_trip(measured(RTT_NS, 3));
            assert_eq!(told, delays);
        }
    }
}
