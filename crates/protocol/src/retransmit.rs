//! What a sender does about NAKs.
//!
//! A NAK starts an action on the range it names. While the action lives, NAKs that start inside its range are
//! dropped: the bytes are on their way, or the receiver has not seen them yet. One receiver needs one action;
//! a group needs a pool, because its members lose different things.
//!
//! | state     | NAK inside | NAK elsewhere, no action free             | deadline passed               |
//! |-----------|------------|-------------------------------------------|-------------------------------|
//! | inactive  |            |                                           |                               |
//! | delayed   | dropped    | unicast: replaced; group: dropped, counted | resend, lingering             |
//! | lingering | dropped    | unicast: replaced; group: dropped, counted | inactive                      |
//!
//! A NAK that takes an action resends at once and lingers if there is no delay, otherwise it is delayed.

use crate::frame::Nak;

/// Bytes of a term to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResendRange {
    /// Term of the range.
    pub term_id: i32,
    /// First byte.
    pub term_offset: i32,
    /// Bytes.
    pub length: i32,
}

impl ResendRange {
    fn contains(&self, term_id: i32, term_offset: i32) -> bool {
        self.term_id == term_id
            && self.term_offset <= term_offset
            && i64::from(term_offset) < i64::from(self.term_offset) + i64::from(self.length)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Inactive,
    Delayed { deadline_ns: i64 },
    Lingering { deadline_ns: i64 },
}

#[derive(Clone, Copy, Debug)]
struct Action {
    state: State,
    range: ResendRange,
}

/// The actions of one publication.
#[derive(Clone, Debug)]
pub struct RetransmitHandler {
    actions: Vec<Action>,
    /// A single receiver's next NAK is news about the same stream, so it takes over the action.
    replaces: bool,
    delay_ns: i64,
    linger_ns: i64,
}

impl RetransmitHandler {
    /// For a publication with one receiver.
    pub fn unicast(delay_ns: i64, linger_ns: i64) -> Self {
        Self::new(1, true, delay_ns, linger_ns)
    }

    /// For a publication with a group of receivers; `max_resend` actions can live at once.
    pub fn group(max_resend: usize, delay_ns: i64, linger_ns: i64) -> Self {
        Self::new(max_resend, false, delay_ns, linger_ns)
    }

    fn new(action_count: usize, replaces: bool, delay_ns: i64, linger_ns: i64) -> Self {
        let range = ResendRange {
            term_id: 0,
            term_offset: 0,
            length: 0,
        };
        Self {
            actions: vec![
                Action {
                    state: State::Inactive,
                    range
                };
                action_count
            ],
            replaces,
            delay_ns,
            linger_ns,
        }
    }

    /// Changes how long requests for what was sent again are dropped, from the next repair on.
    pub fn set_linger_ns(&mut self, linger_ns: i64) {
        self.linger_ns = linger_ns;
    }

    /// A NAK that passed [`Nak::check`]. `length_max` is what flow control allows one NAK to bring back.
    ///
    /// Calls `resend` if the range is to be sent now. Returns true if the NAK was dropped because every action
    /// is busy, which is counted.
    pub fn on_nak(
        &mut self,
        nak: &Nak,
        length_max: i32,
        now_ns: i64,
        mut resend: impl FnMut(ResendRange),
    ) -> bool {
        let length = nak.length.min(length_max);
        if length <= 0 || self.is_in_progress(nak) {
            return false;
        }
        let free = self
            .actions
            .iter()
            .position(|action| action.state == State::Inactive);
        let Some(index) = free.or_else(|| self.replaces.then_some(0)) else {
            return true;
        };
        let range = ResendRange {
            term_id: nak.term_id,
            term_offset: nak.term_offset,
            length,
        };
        let state = if self.delay_ns == 0 {
            resend(range);
            State::Lingering {
                deadline_ns: now_ns.saturating_add(self.linger_ns),
            }
        } else {
            State::Delayed {
                deadline_ns: now_ns.saturating_add(self.delay_ns),
            }
        };
        self.actions[index] = Action { state, range };
        false
    }

    /// True when no timer runs.
    pub fn is_idle(&self) -> bool {
        self.actions.iter().all(|action| action.state == State::Inactive)
    }

    /// Ends delays, calling `resend` for each, and ends lingering.
    pub fn on_timers(&mut self, now_ns: i64, mut resend: impl FnMut(ResendRange)) {
        for action in &mut self.actions {
            match action.state {
                State::Delayed { deadline_ns } if now_ns > deadline_ns => {
                    resend(action.range);
                    action.state = State::Lingering {
                        deadline_ns: now_ns.saturating_add(self.linger_ns),
                    };
                }
                State::Lingering { deadline_ns } if now_ns > deadline_ns => action.state = State::Inactive,
                _ => {}
            }
        }
    }

    fn is_in_progress(&self, nak: &Nak) -> bool {
        self.actions.iter().any(|action| {
            action.state != State::Inactive && action.range.contains(nak.term_id, nak.term_offset)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINGER_NS: i64 = 10_000_000;
    const DELAY_NS: i64 = 1_000;
    const NO_LIMIT: i32 = i32::MAX;

    fn nak(term_offset: i32, length: i32) -> Nak {
        Nak {
            flags: 0,
            session_id: 1,
            stream_id: 2,
            term_id: 7,
            term_offset,
            length,
        }
    }

    /// Feeds a NAK; returns the offsets and lengths resent and whether it overflowed.
    fn feed(handler: &mut RetransmitHandler, nak: &Nak, now_ns: i64) -> (Vec<(i32, i32)>, bool) {
        let mut resent = Vec::new();
        let overflowed = handler.on_nak(nak, NO_LIMIT, now_ns, |range| {
            resent.push((range.term_offset, range.length))
        });
        (resent, overflowed)
    }

    fn tick(handler: &mut RetransmitHandler, now_ns: i64) -> Vec<i32> {
        let mut resent = Vec::new();
        handler.on_timers(now_ns, |range| resent.push(range.term_offset));
        resent
    }

    #[test]
    fn inactive_resends_at_once_without_a_delay() {
        let mut handler = RetransmitHandler::unicast(0, LINGER_NS);
        assert_eq!(feed(&mut handler, &nak(64, 1024), 0), (vec![(64, 1024)], false));
    }

    #[test]
    fn an_empty_range_does_nothing() {
        let mut handler = RetransmitHandler::unicast(0, LINGER_NS);
        assert_eq!(feed(&mut handler, &nak(64, 0), 0), (vec![], false));
        assert_eq!(
            feed(&mut handler, &nak(64, 32), 0),
            (vec![(64, 32)], false),
            "the action stayed free"
        );
    }

    #[test]
    fn a_long_range_is_clamped_and_what_lies_behind_is_another_range() {
        let mut handler = RetransmitHandler::unicast(0, LINGER_NS);
        let mut resent = Vec::new();
        handler.on_nak(&nak(0, 4096), 1024, 0, |range| resent.push(range.length));
        assert_eq!(resent, [1024]);
        assert_eq!(feed(&mut handler, &nak(992, 32), 1).0, vec![]);
        assert_eq!(feed(&mut handler, &nak(1024, 32), 1).0, vec![(1024, 32)]);
    }

    #[test]
    fn lingering_drops_naks_inside_until_the_deadline_has_passed() {
        let mut handler = RetransmitHandler::unicast(0, LINGER_NS);
        feed(&mut handler, &nak(64, 1024), 0);
        assert_eq!(tick(&mut handler, LINGER_NS), vec![] as Vec<i32>);
        assert_eq!(feed(&mut handler, &nak(64, 1024), LINGER_NS), (vec![], false));
        assert_eq!(feed(&mut handler, &nak(1056, 32), LINGER_NS), (vec![], false));
        tick(&mut handler, LINGER_NS + 1);
        assert_eq!(
            feed(&mut handler, &nak(64, 1024), LINGER_NS + 1),
            (vec![(64, 1024)], false)
        );
    }

    #[test]
    fn a_range_of_another_term_is_another_range() {
        let mut handler = RetransmitHandler::group(2, 0, LINGER_NS);
        feed(&mut handler, &nak(64, 1024), 0);
        let other_term = Nak {
            term_id: 8,
            ..nak(64, 1024)
        };
        assert_eq!(feed(&mut handler, &other_term, 0), (vec![(64, 1024)], false));
    }

    #[test]
    fn delayed_resends_when_the_deadline_has_passed_then_lingers() {
        let mut handler = RetransmitHandler::unicast(DELAY_NS, LINGER_NS);
        assert_eq!(feed(&mut handler, &nak(64, 1024), 0), (vec![], false));
        assert_eq!(
            feed(&mut handler, &nak(64, 1024), 1),
            (vec![], false),
            "dropped while delayed"
        );
        assert_eq!(tick(&mut handler, DELAY_NS), vec![] as Vec<i32>);
        assert_eq!(tick(&mut handler, DELAY_NS + 1), vec![64]);
        assert_eq!(tick(&mut handler, DELAY_NS + 2), vec![] as Vec<i32>);
        assert_eq!(
            feed(&mut handler, &nak(64, 1024), DELAY_NS + 2),
            (vec![], false),
            "dropped while lingering"
        );
    }

    #[test]
    fn one_receivers_next_nak_takes_over_the_action() {
        for delay_ns in [0, DELAY_NS] {
            let mut handler = RetransmitHandler::unicast(delay_ns, LINGER_NS);
            feed(&mut handler, &nak(64, 32), 0);
            let (_, overflowed) = feed(&mut handler, &nak(128, 32), 1);
            assert!(!overflowed);
            let repeated = feed(&mut handler, &nak(128, 32), 2).0;
            assert_eq!(repeated, vec![], "the newer range is in progress");
            let expected = if delay_ns == 0 { vec![] } else { vec![128] };
            assert_eq!(
                tick(&mut handler, 2 + DELAY_NS),
                expected,
                "the older range is forgotten"
            );
        }
    }

    #[test]
    fn a_group_drops_and_reports_what_its_pool_cannot_hold() {
        let mut handler = RetransmitHandler::group(2, 0, LINGER_NS);
        assert_eq!(feed(&mut handler, &nak(0, 32), 0), (vec![(0, 32)], false));
        assert_eq!(feed(&mut handler, &nak(64, 32), 0), (vec![(64, 32)], false));
        assert_eq!(
            feed(&mut handler, &nak(64, 32), 0),
            (vec![], false),
            "a repeat is not an overflow"
        );
        assert_eq!(feed(&mut handler, &nak(128, 32), 0), (vec![], true));
        tick(&mut handler, LINGER_NS + 1);
        assert_eq!(
            feed(&mut handler, &nak(128, 32), LINGER_NS + 1),
            (vec![(128, 32)], false)
        );
    }
}
