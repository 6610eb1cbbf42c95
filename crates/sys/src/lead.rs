//! When a reader lets the publisher of a fast stream get ahead.
//!
//! A reader that keeps up with its publisher reads each frame while the publisher writes the next ones. The cache lines
//! of both then go to and fro between two cores, or the two threads slow each other down on one. A short sleep of the
//! reader lets the publisher write many messages alone, which the reader then reads in one go: `docs/internals/client.md`.

use std::time::{Duration, Instant};

/// Messages between two looks at the clock.
const SAMPLE: usize = 1 << 16;
/// A stream is fast while it brings a sample in less than this: 4 million messages a second.
const FAST_SAMPLE: Duration = Duration::from_millis(16);

/// The length of a lead.
pub(crate) const LEAD: Duration = Duration::from_micros(100);

/// How fast the stream is, as its polls say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    taken: usize,
    sampled_at: Option<Instant>,
    is_fast: bool,
    is_after_lead: bool,
}

impl Pace {
    /// Whether the reader has reason to wait now, after a poll that took `taken` of at most `limit` messages.
    ///
    /// It has where it has caught up with a fast stream. A poll that comes after such a wait and still takes little shows
    /// that the stream is fast no longer.
    #[inline]
    pub(crate) fn is_lead_due(&mut self, taken: usize, limit: usize, now: impl FnOnce() -> Instant) -> bool {
        self.taken += taken;
        if self.taken >= SAMPLE {
            self.sample(now());
        }
        if !self.is_fast {
            return false;
        }
        let has_caught_up = taken < limit.div_ceil(2);
        if has_caught_up && self.is_after_lead {
            *self = Self::default();
            return false;
        }
        self.is_after_lead = has_caught_up;
        has_caught_up
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.is_fast = self
            .sampled_at
            .is_some_and(|sampled_at| now.duration_since(sampled_at) < FAST_SAMPLE);
        self.sampled_at = Some(now);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 256;

    /// A pace that has seen two samples, the second of them after `sample_time`.
    fn sampled(sample_time: Duration) -> Pace {
        let mut pace = Pace::default();
        let start = Instant::now();
        for polls in 1..=2 * SAMPLE / LIMIT {
            let time = sample_time * u32::from(polls > SAMPLE / LIMIT);
            assert!(!pace.is_lead_due(LIMIT, LIMIT, || start + time), "{polls}");
        }
        pace
    }

    fn is_lead_due(pace: &mut Pace, taken: usize) -> bool {
        pace.is_lead_due(taken, LIMIT, || unreachable!("less than a sample"))
    }

    #[test]
    fn a_reader_that_has_caught_up_with_a_fast_stream_waits_after_each_full_poll() {
        let mut pace = sampled(FAST_SAMPLE - Duration::from_nanos(1));
        for taken in [LIMIT / 2 - 1, 1, 0] {
            assert!(is_lead_due(&mut pace, taken), "{taken}");
            assert!(!is_lead_due(&mut pace, LIMIT / 2), "{taken}");
        }
    }

    #[test]
    fn a_wait_that_brings_little_is_the_last_one() {
        let mut pace = sampled(Duration::ZERO);
        assert!(is_lead_due(&mut pace, 1));
        for taken in [1, LIMIT, 0, 0, 5] {
            assert!(!is_lead_due(&mut pace, taken), "{taken}");
        }
    }

    #[test]
    fn a_reader_of_a_slow_stream_never_waits() {
        let mut pace = sampled(FAST_SAMPLE);
        for taken in [1, 0, LIMIT, 1] {
            assert!(!is_lead_due(&mut pace, taken), "{taken}");
        }
    }

    #[test]
    fn a_reader_that_lags_never_waits_whatever_its_limit() {
        let mut pace = sampled(Duration::ZERO);
        for limit in [1, 2, 10] {
            assert!(!pace.is_lead_due(limit, limit, Instant::now), "{limit}");
        }
    }
}
