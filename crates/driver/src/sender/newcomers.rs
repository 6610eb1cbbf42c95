//! What is said to those that a channel does not send to.
//!
//! A newcomer that shows that it has a stream, which only one that got an answer can, fills the allowance up again. So
//! it is there for each of them, enough to be told of 128 streams at once, and strangers have it once.

use crate::allowance::Allowance;

/// One channel's account, and which of its streams has its turn.
pub(super) struct Newcomers {
    allowance: Allowance,
    next: usize,
}

impl Newcomers {
    pub(super) fn new() -> Self {
        Self {
            allowance: Allowance::new(),
            next: 0,
        }
    }

    /// One asks, with a frame of this length.
    pub(super) fn on_asked(&mut self, length: usize) {
        self.allowance.on_paid(length);
    }

    /// One has got an answer.
    pub(super) fn on_admitted(&mut self) {
        self.allowance.refill();
    }

    /// True if a frame of this length may be said to one.
    pub(super) fn pay(&mut self, length: usize) -> bool {
        self.allowance.pay(length)
    }

    /// The stream, of `count`, whose turn it is, by its number.
    pub(super) fn turn(&mut self, count: usize) -> usize {
        let turn = self.next % count;
        self.next = turn + 1;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_streams_have_their_turn() {
        let mut newcomers = Newcomers::new();
        let turns: Vec<_> = (0..5).map(|_| newcomers.turn(3)).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1]);
        assert_eq!(newcomers.turn(1), 0, "the others have gone since");
    }
}
