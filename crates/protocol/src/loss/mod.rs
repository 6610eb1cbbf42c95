//! When a receiver reports what it is missing.
//!
//! Only the first gap of a stream is watched. A gap that is not the one watched so far is new: it starts a
//! delay, because a reordered datagram often fills it. When the delay is over the gap is reported, and again
//! after each retry delay for as long as the very same gap is found.
//!
//! | watched       | found            | then                                             |
//! |---------------|------------------|--------------------------------------------------|
//! | nothing       | a gap            | watch it; it is new; start the delay             |
//! | a gap         | another, or another length | watch that; it is new; start the delay |
//! | a gap         | the same         | deadline reached: report it, start the retry delay |
//! | a gap         | none             | watch nothing                                    |
//!
//! A delay that has no length is over at once, in the same look.
//!
//! The longer a repair does not come, the longer it takes until it is asked for again: an eighth of the time since the
//! first report, if that is more than the retry delay. A publisher that was away for a while loses little by that, and
//! one that never answers hears little.

pub mod delay;
mod delays;

pub use delay::{DelayGenerator, LossSettings};
pub use delays::{Delays, MeasuredRoundTrip};
pub use headrace_buffers::log::gap::Gap;

/// Of the time that a repair has not come, what passes before it is asked for again, and how long that can get.
const PATIENCE: i64 = 8;
const PATIENCE_MAX_NS: i64 = 1_000_000_000;

/// What one look at a stream leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossOutcome {
    /// The gap found is new; congestion control wants to know.
    pub is_loss_found: bool,
    /// Report this: ask for it again, or skip it where the stream is not reliable.
    pub report: Option<Gap>,
}

/// Watches the first gap of one image.
#[derive(Clone, Debug)]
pub struct LossDetector {
    delays: Delays,
    watched: Option<Watched>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    gap: Gap,
    deadline_ns: i64,
    first_report_ns: Option<i64>,
}

impl LossDetector {
    /// Watches nothing yet.
    pub fn new(delays: impl Into<Delays>) -> Self {
        Self {
            delays: delays.into(),
            watched: None,
        }
    }

    /// When and how the delays follow the round trip.
    pub fn delays(&mut self) -> &mut Delays {
        &mut self.delays
    }

    /// When the gap that is watched is to be looked at again.
    pub fn deadline_ns(&self) -> Option<i64> {
        self.watched.map(|watched| watched.deadline_ns)
    }

    /// Takes the first gap found in this look, if there is one.
    #[inline]
    pub fn on_scan(&mut self, found: Option<Gap>, now_ns: i64, random: &mut fastrand::Rng) -> LossOutcome {
        let Some(gap) = found else {
            self.watched = None;
            return LossOutcome::default();
        };
        let mut watched = match self.watched {
            Some(watched) if watched.gap == gap => watched,
            _ => Watched {
                gap,
                deadline_ns: now_ns.saturating_add(self.delays.delay_ns(random)),
                first_report_ns: None,
            },
        };
        let is_loss_found = self.watched.is_none_or(|before| before.gap != gap);
        let is_due = now_ns >= watched.deadline_ns;
        if is_due {
            let first_ns = *watched.first_report_ns.get_or_insert(now_ns);
            let patience_ns = ((now_ns - first_ns) / PATIENCE).min(PATIENCE_MAX_NS);
            let retry_ns = self.delays.retry_delay_ns(random);
            watched.deadline_ns = now_ns.saturating_add(retry_ns.max(patience_ns));
        }
        self.watched = Some(watched);
        LossOutcome {
            is_loss_found,
            report: is_due.then_some(gap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY_NS: i64 = 20;
    const RETRY_NS: i64 = 100;
    const GAP: Gap = Gap {
        term_id: 7,
        offset: 64,
        length: 1024,
    };

    /// A detector, and what it said last.
    struct Watch {
        detector: LossDetector,
        random: fastrand::Rng,
    }

    impl Watch {
        fn new(delays: DelayGenerator) -> Self {
            Self {
                detector: LossDetector::new(delays),
                random: fastrand::Rng::with_seed(1),
            }
        }

        fn look(&mut self, found: impl Into<Option<Gap>>, now_ns: i64) -> (bool, Option<Gap>) {
            let outcome = self.detector.on_scan(found.into(), now_ns, &mut self.random);
            (outcome.is_loss_found, outcome.report)
        }
    }

    fn fixed() -> Watch {
        Watch::new(DelayGenerator::Static {
            delay_ns: DELAY_NS,
            retry_delay_ns: RETRY_NS,
        })
    }

    #[test]
    fn a_gap_is_reported_after_the_delay_then_after_each_retry_delay() {
        let mut watch = fixed();
        assert_eq!(watch.look(None, 0), (false, None));
        assert_eq!(watch.look(GAP, 10), (true, None));
        assert_eq!(watch.look(GAP, 10 + DELAY_NS - 1), (false, None));
        assert_eq!(watch.look(GAP, 10 + DELAY_NS), (false, Some(GAP)));
        let again = 10 + DELAY_NS + RETRY_NS;
        assert_eq!(watch.look(GAP, again - 1), (false, None));
        assert_eq!(watch.look(GAP, again), (false, Some(GAP)));
    }

    #[test]
    fn a_gap_that_stays_is_reported_ever_more_rarely_and_no_later_than_a_second() {
        let mut watch = fixed();
        watch.look(GAP, 0);
        let (mut now_ns, mut waits) = (DELAY_NS, Vec::new());
        for _ in 0..200 {
            assert_eq!(watch.look(GAP, now_ns).1, Some(GAP));
            let deadline_ns = watch.detector.deadline_ns().unwrap();
            waits.push(deadline_ns - now_ns);
            now_ns = deadline_ns;
        }
        assert_eq!(waits[..9], [RETRY_NS; 9], "eight retry delays pass first");
        assert!(waits[8..].is_sorted() && waits[9] > RETRY_NS, "{waits:?}");
        assert_eq!(waits[199], PATIENCE_MAX_NS);
        let moved = Gap { offset: 96, ..GAP };
        watch.look(moved, now_ns);
        assert_eq!(watch.look(moved, now_ns + DELAY_NS).1, Some(moved));
        let again_ns = now_ns + DELAY_NS + RETRY_NS;
        assert_eq!(
            watch.detector.deadline_ns(),
            Some(again_ns),
            "the next begins anew"
        );
    }

    #[test]
    fn a_gap_filled_in_time_is_never_reported() {
        let mut watch = fixed();
        watch.look(GAP, 0);
        assert_eq!(watch.look(None, DELAY_NS), (false, None));
        assert_eq!(watch.look(GAP, DELAY_NS), (true, None), "the delay starts anew");
    }

    #[test]
    fn a_gap_that_changes_in_any_way_is_new() {
        for changed in [
            Gap { term_id: 8, ..GAP },
            Gap { offset: 96, ..GAP },
            Gap { length: 992, ..GAP },
        ] {
            let mut watch = fixed();
            watch.look(GAP, 0);
            assert_eq!(watch.look(changed, DELAY_NS), (true, None), "{changed:?}");
            assert_eq!(
                watch.look(changed, 2 * DELAY_NS),
                (false, Some(changed)),
                "{changed:?}"
            );
        }
    }

    #[test]
    fn an_unreliable_stream_reports_at_once_and_at_every_look() {
        let mut watch = Watch::new(DelayGenerator::immediate());
        assert_eq!(watch.look(GAP, 5), (true, Some(GAP)));
        assert_eq!(watch.look(GAP, 5), (false, Some(GAP)));
    }

    #[test]
    fn a_delay_as_long_as_can_be_is_never_over() {
        let mut watch = Watch::new(DelayGenerator::Static {
            delay_ns: i64::MAX,
            retry_delay_ns: i64::MAX,
        });
        watch.look(GAP, 1);
        assert_eq!(watch.look(GAP, i64::MAX - 1), (false, None));
    }
}
