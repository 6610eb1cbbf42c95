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

pub mod delay;
mod delays;

pub use delay::{DelayGenerator, LossSettings};
pub use delays::{Delays, MeasuredRoundTrip};
pub use headrace_buffers::log::gap::Gap;

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
            },
        };
        let is_loss_found = self.watched.is_none_or(|before| before.gap != gap);
        let is_due = now_ns >= watched.deadline_ns;
        if is_due {
            watched.deadline_ns = now_ns.saturating_add(self.delays.retry_delay_ns(random));
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
