//! Sessions whose data arrived before their SETUP, which was asked for.

use std::collections::VecDeque;

/// How long an answer is waited for before the next packet may ask again.
pub(super) const PENDING_SETUP_TIMEOUT_NS: i64 = 1_000_000_000;

/// Requests under way on one endpoint: every datagram could carry another session id.
const PENDING_SETUPS_MAX: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct PendingSetup {
    stream_id: i32,
    session_id: i32,
    asked_ns: i64,
}

/// Requests in the order they were made, and so in the order they expire.
#[derive(Debug, Default)]
pub(super) struct PendingSetups {
    pending: VecDeque<PendingSetup>,
}

impl PendingSetups {
    /// Where there is no room for one more, the oldest, which may be asked again: `(stream id, session id)`.
    pub(super) fn make_room(&mut self) -> Option<(i32, i32)> {
        if self.pending.len() < PENDING_SETUPS_MAX {
            return None;
        }
        let oldest = self.pending.pop_front()?;
        Some((oldest.stream_id, oldest.session_id))
    }

    pub(super) fn add(&mut self, stream_id: i32, session_id: i32, now_ns: i64) {
        self.pending.push_back(PendingSetup {
            stream_id,
            session_id,
            asked_ns: now_ns,
        });
    }

    /// Takes the next request that went unanswered for too long: `(stream id, session id)`.
    pub(super) fn expire(&mut self, now_ns: i64) -> Option<(i32, i32)> {
        let oldest = self.pending.front()?;
        if now_ns - oldest.asked_ns <= PENDING_SETUP_TIMEOUT_NS {
            return None;
        }
        self.pending
            .pop_front()
            .map(|expired| (expired.stream_id, expired.session_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_expire_in_order_once_their_time_is_over() {
        let mut pending = PendingSetups::default();
        pending.add(1, 10, 0);
        pending.add(1, 11, 5);
        assert_eq!(pending.expire(PENDING_SETUP_TIMEOUT_NS), None);
        assert_eq!(pending.expire(PENDING_SETUP_TIMEOUT_NS + 1), Some((1, 10)));
        assert_eq!(pending.expire(PENDING_SETUP_TIMEOUT_NS + 1), None);
        assert_eq!(pending.expire(PENDING_SETUP_TIMEOUT_NS + 6), Some((1, 11)));
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut pending = PendingSetups::default();
        for session_id in 0..PENDING_SETUPS_MAX as i32 {
            assert_eq!(pending.make_room(), None);
            pending.add(1, session_id, 0);
        }
        assert_eq!(pending.make_room(), Some((1, 0)));
        assert_eq!(pending.make_room(), None);
    }
}
