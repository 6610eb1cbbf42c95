//! Receivers that were sent the SETUP they asked for, and have not spoken yet.
//!
//! The limit stays put for them, so that the sender does not overrun them before they can speak. One that asks and never
//! speaks, since its driver cannot make the image, asks again and again. It is waited for once, and then only after it has
//! asked for nothing for a while.

use std::collections::VecDeque;

/// Newcomers that are told apart. Every datagram could carry another id, so there is an end.
const NEWCOMERS_MAX: usize = 64;

/// One that was waited for in vain is forgotten when it has not asked for so many time-outs.
const FORGOTTEN_AFTER: i64 = 10;

/// The limit in force when newcomers were sent their SETUP.
#[derive(Clone, Copy, Debug)]
struct Hold {
    limit: i64,
    since_ns: i64,
}

/// One that was waited for in vain.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    id: i64,
    asked_ns: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Newcomers {
    timeout_ns: i64,
    /// Since the last SETUP.
    asking: Vec<i64>,
    hold: Option<Hold>,
    /// Those that it is for.
    awaited: Vec<i64>,
    /// The one that was given up first comes first.
    given_up: VecDeque<GivenUp>,
}

impl Newcomers {
    pub(super) fn new(timeout_ns: i64) -> Self {
        Self {
            timeout_ns,
            asking: Vec::new(),
            hold: None,
            awaited: Vec::new(),
            given_up: VecDeque::new(),
        }
    }

    /// A receiver that counts asked for a SETUP.
    pub(super) fn on_asked(&mut self, id: i64) {
        note(&mut self.asking, id);
    }

    /// The SETUP that they asked for is about to be sent.
    pub(super) fn on_setup(&mut self, limit: i64, now_ns: i64) {
        self.expire(now_ns);
        let forget_ns = self.timeout_ns.saturating_mul(FORGOTTEN_AFTER);
        self.given_up
            .retain(|given_up| now_ns.saturating_sub(given_up.asked_ns) <= forget_ns);
        let mut is_any_new = false;
        for id in std::mem::take(&mut self.asking) {
            if let Some(given_up) = self.given_up.iter_mut().find(|given_up| given_up.id == id) {
                given_up.asked_ns = now_ns;
            } else {
                is_any_new |= note(&mut self.awaited, id);
            }
        }
        if is_any_new {
            self.hold = Some(Hold {
                limit,
                since_ns: now_ns,
            });
        }
    }

    /// The limit that is held for them, if one is.
    pub(super) fn held_limit(&mut self, now_ns: i64) -> Option<i64> {
        self.expire(now_ns);
        self.hold.map(|hold| hold.limit)
    }

    /// True while one of them is waited for.
    pub(super) fn are_awaited(&self, now_ns: i64) -> bool {
        self.hold.is_some_and(|hold| !self.is_over(hold, now_ns))
    }

    /// One has spoken, and counts from now on. Others that have not can follow it.
    pub(super) fn on_admitted(&mut self, id: i64, now_ns: i64) {
        self.give_up(now_ns);
        self.given_up.retain(|given_up| given_up.id != id);
    }

    fn is_over(&self, hold: Hold, now_ns: i64) -> bool {
        hold.since_ns.saturating_add(self.timeout_ns) < now_ns
    }

    fn expire(&mut self, now_ns: i64) {
        if self.hold.is_some_and(|hold| self.is_over(hold, now_ns)) {
            self.give_up(now_ns);
        }
    }

    fn give_up(&mut self, now_ns: i64) {
        self.hold = None;
        for id in self.awaited.drain(..) {
            if self.given_up.len() == NEWCOMERS_MAX {
                self.given_up.pop_front();
            }
            self.given_up.push_back(GivenUp { id, asked_ns: now_ns });
        }
    }
}

/// False for one that is known, or has no room.
fn note(ids: &mut Vec<i64>, id: i64) -> bool {
    let is_new = ids.len() < NEWCOMERS_MAX && !ids.contains(&id);
    if is_new {
        ids.push(id);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: i64 = 1_000;

    fn ask(newcomers: &mut Newcomers, id: i64, limit: i64, now_ns: i64) {
        newcomers.on_asked(id);
        newcomers.on_setup(limit, now_ns);
    }

    #[test]
    fn one_that_asks_and_never_speaks_is_waited_for_once() {
        let mut newcomers = Newcomers::new(TIMEOUT_NS);
        for now_ns in (0..=10_000).step_by(100) {
            ask(&mut newcomers, 3, now_ns, now_ns);
            let expected = (now_ns <= TIMEOUT_NS).then_some(0);
            assert_eq!(newcomers.held_limit(now_ns), expected, "now_ns={now_ns}");
            assert_eq!(newcomers.are_awaited(now_ns), expected.is_some());
        }
        ask(&mut newcomers, 4, 77, 10_000);
        assert_eq!(newcomers.held_limit(10_000), Some(77), "another one");
        ask(&mut newcomers, 3, 88, 20_000);
        assert_eq!(newcomers.held_limit(20_000), None, "it asked not long ago");
        ask(&mut newcomers, 3, 99, 30_001);
        assert_eq!(newcomers.held_limit(30_001), Some(99), "it was forgotten");
    }

    #[test]
    fn one_that_speaks_frees_the_limit_and_may_come_again() {
        let mut newcomers = Newcomers::new(TIMEOUT_NS);
        newcomers.on_asked(3);
        ask(&mut newcomers, 4, 7, 0);
        newcomers.on_admitted(3, 10);
        assert_eq!(newcomers.held_limit(10), None);
        ask(&mut newcomers, 4, 8, 20);
        assert_eq!(
            newcomers.held_limit(20),
            None,
            "it was waited for, with the other"
        );
        ask(&mut newcomers, 3, 9, 30);
        assert_eq!(newcomers.held_limit(30), Some(9), "it left, and comes again");
        newcomers.on_admitted(4, 40);
        ask(&mut newcomers, 4, 10, 50);
        assert_eq!(newcomers.held_limit(50), Some(10));
    }

    #[test]
    fn ids_without_end_take_no_more_room_and_the_first_are_forgotten() {
        let mut newcomers = Newcomers::new(TIMEOUT_NS);
        for id in 0..1_000 {
            ask(&mut newcomers, id, 0, id * (TIMEOUT_NS + 1));
        }
        assert!(newcomers.given_up.len() <= NEWCOMERS_MAX);
        (0..1_000).for_each(|id| newcomers.on_asked(id));
        assert_eq!(newcomers.asking.len(), NEWCOMERS_MAX);
    }
}
