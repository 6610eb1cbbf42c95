//! Which streams of a channel one is told of that asks which there are, and is not sent to.
//!
//! An address can be forged, so what is told must stay little. A receiver asks each second: in one second so many asks are
//! answered with many streams that any sensible number of receivers can come at once, and all further ones with one stream
//! each, which is about as long as the ask.

/// Most streams that one ask is answered with. The next ask brings the next ones.
const STREAMS_AN_ANSWER: usize = 16;
/// Asks in a second that are answered with more than one stream.
const FULL_ANSWERS_A_SECOND: usize = 64;
const SECOND_NS: i64 = 1_000_000_000;

/// What was told last, and how much in this second.
pub(super) struct Announcements {
    next: usize,
    second_began_ns: i64,
    full_answers: usize,
}

impl Announcements {
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            next: 0,
            second_began_ns: now_ns,
            full_answers: 0,
        }
    }

    /// The streams, of `count`, that an ask is answered with, by their numbers.
    pub(super) fn take(&mut self, count: usize, now_ns: i64) -> impl Iterator<Item = usize> + use<> {
        if now_ns - self.second_began_ns >= SECOND_NS {
            self.second_began_ns = now_ns;
            self.full_answers = 0;
        }
        let is_full = self.full_answers < FULL_ANSWERS_A_SECOND;
        self.full_answers += usize::from(is_full);
        let told = count.min(if is_full { STREAMS_AN_ANSWER } else { 1 });
        let first = self.next;
        self.next = (first + told).checked_rem(count).unwrap_or(0);
        (first..first + told).map(move |index| index % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_streams_have_their_turn_and_too_many_asks_bring_one_each() {
        let mut announcements = Announcements::new(0);
        let mut take = |count, now_ns| announcements.take(count, now_ns).collect::<Vec<_>>();
        assert_eq!(take(0, 0), [0; 0]);
        assert_eq!(take(3, 0), [0, 1, 2]);
        assert_eq!(take(20, 0), (0..16).collect::<Vec<_>>());
        assert_eq!(
            take(20, 0),
            [16, 17, 18, 19, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        );
        for _ in 4..FULL_ANSWERS_A_SECOND {
            assert_eq!(take(20, SECOND_NS - 1).len(), 16);
        }
        let next = take(20, SECOND_NS - 1);
        assert_eq!(next.len(), 1);
        assert_eq!(take(20, SECOND_NS - 1), [(next[0] + 1) % 20]);
        assert_eq!(take(20, SECOND_NS).len(), 16);
        // A stream that has gone since is not told of.
        assert!(take(2, SECOND_NS).iter().all(|index| *index < 2));
    }
}
