//! How much may be sent to an unverified address: anyone can forge the source of a datagram.
//!
//! The budget is three times what came from there, and an allowance. A receiver whose status message lies in the window
//! of a stream has packets of it, and needs no budget from then on. Nor does an address that a program named.

use std::collections::BTreeMap;
use std::net::SocketAddr;

const SECOND_NS: i64 = 1_000_000_000;

/// Bytes that may go to one address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    const FACTOR: usize = 3;
    /// Unspent bytes add up to this.
    const MAX: usize = 64 * 1024;

    pub(crate) const fn with_allowance(allowance: usize) -> Self {
        Self { left: allowance }
    }

    /// A frame of this length came.
    pub(crate) fn earn(&mut self, length: usize) {
        let earned = self.left.saturating_add(length.saturating_mul(Self::FACTOR));
        self.left = earned.min(Self::MAX.max(self.left));
    }

    /// True if a frame of this length may be sent, which it is then.
    pub(crate) fn spend(&mut self, length: usize) -> bool {
        let rest = self.left.checked_sub(length);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    pub(crate) fn left(&self) -> usize {
        self.left
    }
}

/// The budgets of those that ask one channel for its streams: each second begins with new ones.
#[derive(Debug)]
pub(crate) struct Budgets {
    allowance: usize,
    since_ns: i64,
    by_address: BTreeMap<SocketAddr, Budget>,
    of_others: Budget,
}

impl Budgets {
    /// Addresses with an allowance, in one second.
    const ADDRESSES_MAX: usize = 1024;

    pub(crate) fn new(allowance: usize, now_ns: i64) -> Self {
        Self {
            allowance,
            since_ns: now_ns,
            by_address: BTreeMap::new(),
            of_others: Budget::default(),
        }
    }

    /// The budget of the address from which a frame of this length came. Where too many have one, it is for this frame
    /// alone.
    pub(crate) fn earn(&mut self, source: SocketAddr, length: usize, now_ns: i64) -> &mut Budget {
        if now_ns - self.since_ns >= SECOND_NS {
            self.since_ns = now_ns;
            self.by_address.clear();
        }
        let has_room = self.by_address.len() < Self::ADDRESSES_MAX || self.by_address.contains_key(&source);
        let budget = if has_room {
            let fresh = Budget::with_allowance(self.allowance);
            self.by_address.entry(source).or_insert(fresh)
        } else {
            self.of_others = Budget::default();
            &mut self.of_others
        };
        budget.earn(length);
        budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port as u16))
    }

    #[test]
    fn three_times_what_came_may_be_sent_and_an_allowance() {
        let mut budget = Budget::with_allowance(10);
        budget.earn(30);
        assert!(!budget.spend(101) && budget.spend(100) && !budget.spend(1));
        budget.earn(usize::MAX);
        assert_eq!(budget.left(), Budget::MAX);
    }

    #[test]
    fn each_address_has_its_own_for_a_second() {
        let mut budgets = Budgets::new(4096, 0);
        assert!(budgets.earn(at(1), 36, 0).spend(4096 + 108));
        assert_eq!(budgets.earn(at(1), 36, SECOND_NS - 1).left(), 108);
        assert_eq!(budgets.earn(at(2), 36, SECOND_NS - 1).left(), 4096 + 108);
        assert_eq!(budgets.earn(at(1), 36, SECOND_NS).left(), 4096 + 108);
    }

    #[test]
    fn addresses_without_end_take_no_more_room_and_have_what_each_frame_earns() {
        let mut budgets = Budgets::new(4096, 0);
        (0..2_000).for_each(|port| assert!(budgets.earn(at(port), 36, 0).left() >= 108));
        assert_eq!(budgets.by_address.len(), Budgets::ADDRESSES_MAX);
        assert_eq!(budgets.earn(at(1_999), 36, 0).left(), 108);
        assert_eq!(budgets.earn(at(0), 36, 0).left(), 4096 + 2 * 108);
    }
}
