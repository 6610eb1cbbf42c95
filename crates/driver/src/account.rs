//! How much is said on the word of frames whose source can be forged.

use std::time::Duration;

/// Those that speak pay by the byte, all on one account, for what is said to them: it is no more than came from them, and
/// what the operator allows besides. What is paid and not used adds up to [`Account::MAX`].
#[derive(Debug)]
pub(crate) struct Account {
    credit: usize,
    /// Bytes a second that need not be paid for.
    allowance: usize,
    renewed_ns: i64,
}

impl Account {
    pub(crate) const MAX: usize = 4096;
    /// In this time the allowance is renewed, bit by bit.
    const PERIOD: Duration = Duration::from_secs(1);

    /// All is to be paid for.
    pub(crate) fn new() -> Self {
        Self::with_allowance(0, 0)
    }

    pub(crate) fn with_allowance(allowance: usize, now_ns: i64) -> Self {
        Self {
            credit: allowance,
            allowance,
            renewed_ns: now_ns,
        }
    }

    /// A frame of this length came that asks for an answer.
    pub(crate) fn on_paid(&mut self, length: usize, now_ns: i64) {
        let elapsed_ns = u64::try_from(now_ns - self.renewed_ns).unwrap_or(0);
        let renewed = u128::from(elapsed_ns) * self.allowance as u128 / Self::PERIOD.as_nanos();
        if renewed > 0 {
            self.renewed_ns = now_ns;
        }
        let renewed = usize::try_from(renewed).map_or(self.allowance, |renewed| renewed.min(self.allowance));
        self.credit = (self.credit + renewed).min(Self::MAX.max(self.allowance)) + length;
    }

    /// True if a frame of this length is paid for, with so much to spare. It is taken to be sent.
    pub(crate) fn pay(&mut self, length: usize, to_spare: usize) -> bool {
        let is_paid = self.credit >= length + to_spare;
        if is_paid {
            self.credit -= length;
        }
        is_paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn allowed() -> Account {
        Account::with_allowance(4096, 0)
    }

    fn answers(account: &mut Account) -> usize {
        (0..).take_while(|_| account.pay(32, 0)).count()
    }

    #[test]
    fn what_is_said_is_no_more_than_what_came() {
        let mut account = Account::new();
        assert_eq!(answers(&mut account), 0);
        for number in 1..100 {
            account.on_paid(36, number * SECOND);
            assert!(account.pay(32, 0));
        }
        assert_eq!(answers(&mut account), 99 * 4 / 32, "what was left");
        account.on_paid(32, 100 * SECOND);
        let left = 32 + 99 * 4 % 32;
        assert!(!account.pay(left + 1, 0) && account.pay(left, 0));
    }

    #[test]
    fn an_allowance_is_there_at_once_and_is_renewed_in_a_second() {
        let mut account = allowed();
        assert_eq!(answers(&mut account), 128);
        for _ in 0..8 {
            account.on_paid(36, 0);
            assert!(account.pay(32, 0));
        }
        assert!(
            account.pay(32, 0) && !account.pay(1, 0),
            "8 times 4 bytes were left"
        );
        account.on_paid(0, SECOND / 2);
        assert_eq!(answers(&mut account), 64);
        account.on_paid(0, 9 * SECOND);
        assert_eq!(answers(&mut account), 128, "what is left does not add up");
    }

    #[test]
    fn what_is_paid_and_not_used_adds_up_to_a_limit() {
        let mut account = Account::new();
        (0..200).for_each(|_| account.on_paid(36, 0));
        assert_eq!(answers(&mut account), (4096 + 36) / 32);
    }

    #[test]
    fn what_is_to_be_spared_is_left() {
        let mut account = allowed();
        while account.pay(32, 1024) {}
        assert_eq!(answers(&mut account), 1024 / 32);
    }

    #[test]
    fn frames_in_quick_succession_do_not_keep_an_allowance_from_being_renewed() {
        let mut account = allowed();
        answers(&mut account);
        (1..=20_000).for_each(|step| account.on_paid(0, step * SECOND / 20_000));
        assert!(answers(&mut account) >= 64);
    }
}
