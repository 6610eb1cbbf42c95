//! Which receivers of a stream are alive.

use std::collections::HashMap;

/// Receivers of one stream that are told apart. Every datagram could carry another id, so there is an end.
const RECEIVERS_MAX: usize = 4096;

/// Receivers by id with the time of their last status message. Unicast has one, a group a few.
#[derive(Debug, Default)]
pub(super) struct ReceiverLiveness {
    // The ids come from strangers: this map's hashing does not let them choose collisions.
    receivers: HashMap<i64, i64>,
    /// No receiver was heard from before this: until it is too long ago there is nothing to expire.
    earliest_ns: i64,
}

impl ReceiverLiveness {
    pub(super) fn is_live(&self) -> bool {
        !self.receivers.is_empty()
    }

    pub(super) fn contains(&self, receiver_id: i64) -> bool {
        self.receivers.contains_key(&receiver_id)
    }

    /// True when the receiver is known, or there is room for one more.
    pub(super) fn accepts(&self, receiver_id: i64) -> bool {
        self.receivers.len() < RECEIVERS_MAX || self.contains(receiver_id)
    }

    pub(super) fn on_status_message(&mut self, receiver_id: i64, now_ns: i64) {
        if self.receivers.is_empty() {
            self.earliest_ns = now_ns;
        }
        self.receivers.insert(receiver_id, now_ns);
    }

    /// Forgets a receiver that said it is going; true if it was known.
    pub(super) fn remove(&mut self, receiver_id: i64) -> bool {
        self.receivers.remove(&receiver_id).is_some()
    }

    /// Forgets receivers not heard for `timeout_ns`. Looks at them only when one may have been silent so long.
    pub(super) fn expire(&mut self, now_ns: i64, timeout_ns: i64) {
        if self.receivers.is_empty() || now_ns - self.earliest_ns < timeout_ns {
            return;
        }
        self.receivers.retain(|_, last_ns| now_ns - *last_ns < timeout_ns);
        self.earliest_ns = self.receivers.values().copied().min().unwrap_or(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_lives_from_its_first_message_until_silence_or_farewell() {
        let mut receivers = ReceiverLiveness::default();
        assert!(!receivers.is_live());
        receivers.on_status_message(1, 100);
        receivers.on_status_message(2, 150);
        receivers.on_status_message(1, 200);
        receivers.expire(200, 50);
        assert!(!receivers.remove(2), "silent for the whole time-out");
        receivers.expire(249, 50);
        assert!(receivers.is_live());
        receivers.expire(250, 50);
        assert!(!receivers.is_live());
        receivers.on_status_message(3, 300);
        assert!(receivers.remove(3) && !receivers.remove(3) && !receivers.is_live());
    }

    #[test]
    fn strangers_with_ever_new_ids_are_not_all_remembered() {
        let mut receivers = ReceiverLiveness::default();
        let last = RECEIVERS_MAX as i64;
        for id in 1..=last {
            assert!(receivers.accepts(id));
            receivers.on_status_message(id, id);
        }
        assert!(!receivers.accepts(last + 1) && receivers.accepts(1));
        receivers.expire(last + 10, 20);
        assert!(receivers.accepts(last + 1), "the silent ones made room");
    }
}
