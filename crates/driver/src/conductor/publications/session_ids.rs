//! Session ids of publications whose channel does not choose one.

/// Hands out session ids one after another from a random start.
pub(crate) struct SessionIds {
    next: i32,
    reserved_low: i32,
    reserved_high: i32,
}

impl SessionIds {
    /// Starts at `first` and skips the inclusive range of reserved ids, at most half of all: the settings are checked.
    pub(crate) fn new(first: i32, reserved_low: i32, reserved_high: i32) -> Self {
        Self {
            next: first,
            reserved_low,
            reserved_high,
        }
    }

    /// The next id that is neither reserved nor `in_use`.
    pub(crate) fn allocate(&mut self, in_use: impl Fn(i32) -> bool) -> i32 {
        loop {
            let candidate = self.skip_reserved(self.next);
            self.next = candidate.wrapping_add(1);
            if !in_use(candidate) {
                return candidate;
            }
        }
    }

    fn skip_reserved(&self, candidate: i32) -> i32 {
        if (self.reserved_low..=self.reserved_high).contains(&candidate) {
            self.reserved_high.wrapping_add(1)
        } else {
            candidate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_used_ids_are_skipped_and_ids_wrap() {
        let mut ids = SessionIds::new(-3, -1, 1000);
        assert_eq!(ids.allocate(|_| false), -3);
        assert_eq!(ids.allocate(|_| false), -2);
        assert_eq!(ids.allocate(|id| id == 1001), 1002);
        let mut ids = SessionIds::new(i32::MAX, -1, 1000);
        assert_eq!(ids.allocate(|_| false), i32::MAX);
        assert_eq!(ids.allocate(|_| false), i32::MIN);
        let mut ids = SessionIds::new(i32::MAX - 1, 0, i32::MAX);
        assert_eq!(ids.allocate(|_| false), i32::MIN);
        let mut ids = SessionIds::new(-1, i32::MIN, -1);
        assert_eq!(ids.allocate(|_| false), 0);
    }
}
