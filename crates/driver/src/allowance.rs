//! How much is said on the word of frames whose source can be forged.

use std::time::Duration;

/// Those that speak pay by the byte, all on one account, for what is said to them: it is no more than came from them,
/// and an allowance of [`Allowance::BYTES`] a second. What is left of it does not add up.
#[derive(Debug)]
pub(crate) struct Allowance {
    credit: usize,
    renewed_ns: i64,
}

impl Allowance {
    pub(crate) const BYTES: usize = 4096;
    /// In this time it is renewed, bit by bit.
    const PERIOD: Duration = Duration::from_secs(1);

    pub(crate) fn new(now_ns: i64) -> Self {
        Self {
            credit: Self::BYTES,
            renewed_ns: now_ns,
        }
    }

    /// A frame of this length came that asks for an answer.
    pub(crate) fn on_paid(&mut self, length: usize, now_ns: i64) {
        let elapsed_ns = u64::try_from(now_ns - self.renewed_ns).unwrap_or(0);
        let renewed = u128::from(elapsed_ns) * Self::BYTES as u128 / Self::PERIOD.as_nanos();
        if renewed > 0 {
            self.renewed_ns = now_ns;
        }
        let renewed = usize::try_from(renewed).map_or(Self::BYTES, |renewed| renewed.min(Self::BYTES));
        self.credit = (self.credit + renewed).min(Self::BYTES) + length;
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

    fn answers(allowance: &mut Allowance) -> usize {
        (0..).take_while(|_| allowance.pay(32, 0)).count()
    }

    #[test]
    fn it_is_there_at_once_and_is_renewed_in_a_second() {
        let mut allowance = Allowance::new(0);
        assert_eq!(answers(&mut allowance), 128);
        for _ in 0..8 {
            allowance.on_paid(36, 0);
            assert!(allowance.pay(32, 0));
        }
        assert!(
            allowance.pay(32, 0) && !allowance.pay(1, 0),
            "8 times 4 bytes were left"
        );
        allowance.on_paid(0, SECOND / 2);
        assert_eq!(answers(&mut allowance), 64);
        allowance.on_paid(0, 9 * SECOND);
        assert_eq!(answers(&mut allowance), 128, "what is left does not add up");
    }

    #[test]
    fn what_is_paid_and_not_used_does_not_add_up() {
        let mut allowance = Allowance::new(0);
        (0..200).for_each(|_| allowance.on_paid(36, 0));
        assert_eq!(answers(&mut allowance), (4096 + 36) / 32);
    }

    #[test]
    fn what_is_to_be_spared_is_left() {
        let mut allowance = Allowance::new(0);
        while allowance.pay(32, 1024) {}
        assert_eq!(answers(&mut allowance), 1024 / 32);
    }

    #[test]
    fn frames_in_quick_succession_do_not_keep_it_from_being_renewed() {
        let mut allowance = Allowance::new(0);
        answers(&mut allowance);
        (1..=20_000).for_each(|step| allowance.on_paid(0, step * SECOND / 20_000));
        assert!(answers(&mut allowance) >= 64);
    }
}
