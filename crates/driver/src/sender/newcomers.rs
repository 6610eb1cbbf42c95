//! What is said to those that a channel does not send to.
//!
//! One that asks for no stream in particular is told of all of them, as far as newcomers have paid: Aeron's receivers
//! cannot say which they want. Where that does not reach, each address has its own order, which no other can change and
//! which brings each stream soon: it asks once a second, and begins each time at another part of the list.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use headrace_protocol::frame::{DataHeader, Setup, StatusMessage};

use crate::account::Account;

/// Bytes that are kept for those that ask for a stream by name.
const FOR_SETUPS: usize = Account::MAX / 4;

/// What a requester has paid with its SETUP for the first answers to it: that is longer than the status message it was answered with.
const PAID_WITH_REQUESTS: usize = Setup::LENGTH - StatusMessage::LENGTH;

/// Between two asks, of 2^32 places on the list: the golden ratio leaves no part out for long.
const STRIDE: u64 = 0x9e37_79b9;

const SECOND_NS: i64 = 1_000_000_000;

/// One channel's account.
pub(super) struct Newcomers {
    account: Account,
}

impl Newcomers {
    /// With so many bytes a second that they need not pay for.
    pub(super) fn new(allowance: usize, now_ns: i64) -> Self {
        Self {
            account: Account::with_allowance(allowance, now_ns),
        }
    }

    /// A program answers a requester.
    pub(super) fn on_answers(&mut self, now_ns: i64) {
        self.account.on_paid(PAID_WITH_REQUESTS, now_ns);
    }

    /// One asks for a stream by name, with a frame of this length. True if it may be told what it looks like.
    pub(super) fn may_introduce(&mut self, length: usize, now_ns: i64) -> bool {
        self.account.on_paid(length, now_ns);
        self.account.pay(Setup::LENGTH, 0)
    }

    /// One asks which streams there are, of `count`, with a frame of this length: the numbers of those that it is told of.
    pub(super) fn announced(
        &mut self,
        count: usize,
        source: SocketAddr,
        length: usize,
        now_ns: i64,
    ) -> impl Iterator<Item = usize> {
        self.account.on_paid(length, now_ns);
        let first = first_of(count, source, now_ns);
        let spared = move |index| if index == 0 { 0 } else { FOR_SETUPS };
        let account = &mut self.account;
        (0..count)
            .take_while(move |index| account.pay(DataHeader::LENGTH, spared(*index)))
            .map(move |index| (first + index) % count)
    }
}

fn first_of(count: usize, source: SocketAddr, now_ns: i64) -> usize {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let asks = (now_ns / SECOND_NS) as u64;
    let place = hasher.finish().wrapping_add(asks.wrapping_mul(STRIDE)) & u64::from(u32::MAX);
    ((place * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn one_that_asks_is_told_of_all_and_a_named_stream_is_paid_for_besides() {
        let mut newcomers = Newcomers::new(4096, 0);
        let mut told: Vec<_> = newcomers.announced(90, at(1), 36, 0).collect();
        told.sort_unstable();
        assert_eq!(told, (0..90).collect::<Vec<_>>());
        assert_eq!(
            newcomers.announced(90, at(2), 36, 0).count(),
            8,
            "the rest is for SETUPs"
        );
        assert_eq!(
            newcomers.announced(90, at(2), 36, 0).count(),
            1,
            "which it pays for itself"
        );
        assert!((0..100).all(|_| newcomers.may_introduce(36, 0)));
        assert_eq!(newcomers.announced(0, at(2), 36, 0).count(), 0);
    }

    #[test]
    fn where_each_ask_brings_one_stream_all_come_soon() {
        for (count, port) in (1..200).flat_map(|count| [(count, 1), (count, 40_123)]) {
            let told: Vec<_> = (0..3 * count as i64)
                .map(|second| first_of(count, at(port), second * SECOND_NS))
                .collect();
            assert!((0..count).all(|stream| told.contains(&stream)), "{count} {port}");
        }
    }
}
