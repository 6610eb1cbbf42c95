//! How much is said on the word of frames whose source can be forged.

/// Those that speak pay by the byte, all on one account, for what is said to them: it is no more than came from them,
/// and an allowance. What they pay beyond that does not add up.
#[derive(Debug)]
pub(crate) struct Allowance {
    credit: usize,
}

impl Allowance {
    /// Bytes that may be said before anything is paid.
    pub(crate) const BYTES: usize = 4096;

    pub(crate) fn new() -> Self {
        Self { credit: Self::BYTES }
    }

    /// A frame of this length came that asks for an answer.
    pub(crate) fn on_paid(&mut self, length: usize) {
        self.credit = self.credit.min(Self::BYTES) + length;
    }

    /// One has shown that its address is its own: it is as if nothing had been said yet.
    pub(crate) fn refill(&mut self) {
        self.credit = self.credit.max(Self::BYTES);
    }

    /// True if a frame of this length is paid for. It is taken to be sent.
    pub(crate) fn pay(&mut self, length: usize) -> bool {
        let is_paid = self.credit >= length;
        if is_paid {
            self.credit -= length;
        }
        is_paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(allowance: &mut Allowance) -> usize {
        (0..).take_while(|_| allowance.pay(32)).count()
    }

    #[test]
    fn it_is_there_once_and_then_again_when_it_is_filled_up() {
        let mut allowance = Allowance::new();
        assert_eq!(answers(&mut allowance), 128);
        for _ in 0..8 {
            allowance.on_paid(36);
            assert!(allowance.pay(32));
        }
        assert!(
            allowance.pay(32) && !allowance.pay(1),
            "8 times 4 bytes were left"
        );
        allowance.refill();
        assert_eq!(answers(&mut allowance), 128);
    }

    #[test]
    fn what_is_not_used_does_not_add_up() {
        let mut allowance = Allowance::new();
        (0..200).for_each(|_| allowance.on_paid(36));
        assert_eq!(answers(&mut allowance), (4096 + 36) / 32);
    }
}
