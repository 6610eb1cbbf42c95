//! Receivers that were sent the SETUP they asked for, and have not spoken yet.
//!
//! The limit stays put for them, so that the sender does not overrun them before they can speak. One that asks and never
//! speaks, since its driver cannot make the image, asks again and again. It is waited for once, and then only after it has
//! asked for nothing for a while.

use std::collections::VecDeque;

/// Newcomers that are told apart. Every datagram could carry another id, so there is an end.
const NEWCOMERS_MAX: usize = 64;

/// One that was waited for is forgotten when it has not asked for so many time-outs.
const FORGOTTEN_AFTER: i64 = 10;

/// The limit in force when newcomers were sent their SETUP.
#[derive(Clone, Copy, Debug)]
struct Hold {
    limit: i64,
    since_ns: i64,
}

/// One that the limit was held for.
#[derive(Clone, Copy, Debug)]
struct WaitedFor {
    id: i64,
    asked_ns: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Newcomers {
    timeout_ns: i64,
    /// Since the last SETUP.
    asking: Vec<i64>,
    hold: Option<Hold>,
    /// The one that came first comes first.
    waited_for: VecDeque<WaitedFor>,
}

impl Newcomers {
    pub(super) fn new(timeout_ns: i64) -> Self {
        Self {
            timeout_ns,
            asking: Vec::new(),
            hold: None,
            waited_for: VecDeque::new(),
        }
    }

    /// A receiver that counts asked for a SETUP.
    pub(super) fn on_asked(&mut self, id: i64) {
        if self.asking.len() < NEWCOMERS_MAX && !self.asking.contains(&id) {
            self.asking.push(id);
        }
    }

    /// The SETUP that they asked for is about to be sent.
    pub(super) fn on_setup(&mut self, limit: i64, now_ns: i64) {
        let forget_ns = self.timeout_ns.saturating_mul(FORGOTTEN_AFTER);
        self.waited_for
            .retain(|known| now_ns.saturating_sub(known.asked_ns) <= forget_ns);
        for id in std::mem::take(&mut self.asking) {
            if let Some(known) = self.waited_for.iter_mut().find(|known| known.id == id) {
                known.asked_ns = now_ns;
                continue;
            }
            if self.waited_for.len() == NEWCOMERS_MAX {
                self.waited_for.pop_front();
            }
            self.waited_for.push_back(WaitedFor { id, asked_ns: now_ns });
            self.hold = Some(Hold {
                limit,
                since_ns: now_ns,
            });
        }
    }

    /// The limit that is held for them, if one is.
    pub(super) fn held_limit(&self, now_ns: i64) -> Option<i64> {
        let holds = |hold: &Hold| hold.since_ns.saturating_add(self.timeout_ns) >= now_ns;
        self.hold.filter(holds).map(|hold| hold.limit)
    }

    /// One has spoken, and counts from now on. Others that have not can follow it.
    pub(super) fn on_admitted(&mut self, id: i64) {
        self.hold = None;
        self.waited_for.retain(|known| known.id != id);
    }
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
        newcomers.on_admitted(3);
        assert_eq!(newcomers.held_limit(10), None);
        ask(&mut newcomers, 4, 8, 20);
        assert_eq!(
            newcomers.held_limit(20),
            None,
            "it was waited for, with the other"
        );
        ask(&mut newcomers, 3, 9, 30);
        assert_eq!(newcomers.held_limit(30), Some(9), "it left, and comes again");
        newcomers.on_admitted(4);
        ask(&mut newcomers, 4, 10, 50);
        assert_eq!(newcomers.held_limit(50), Some(10));
    }

    #[test]
    fn ids_without_end_take_no_more_room_and_the_first_are_forgotten() {
        let mut newcomers = Newcomers::new(TIMEOUT_NS);
        for id in 0..1_000 {
            ask(&mut newcomers, id, 0, id * (TIMEOUT_NS + 1));
        }
        assert!(newcomers.waited_for.len() <= NEWCOMERS_MAX);
        (0..1_000).for_each(|id| newcomers.on_asked(id));
        assert_eq!(newcomers.asking.len(), NEWCOMERS_MAX);
    }
}
