//! Which receivers of a stream are alive.

/// Receivers by id with the time of their last status message. Unicast has one, a group a few.
#[derive(Debug, Default)]
pub(super) struct ReceiverLiveness {
    receivers: Vec<(i64, i64)>,
}

impl ReceiverLiveness {
    pub(super) fn is_live(&self) -> bool {
        !self.receivers.is_empty()
    }

    pub(super) fn contains(&self, receiver_id: i64) -> bool {
        self.receivers.iter().any(|(id, _)| *id == receiver_id)
    }

    pub(super) fn on_status_message(&mut self, receiver_id: i64, now_ns: i64) {
        match self.receivers.iter_mut().find(|(id, _)| *id == receiver_id) {
            Some((_, last_ns)) => *last_ns = now_ns,
            None => self.receivers.push((receiver_id, now_ns)),
        }
    }

    /// Forgets a receiver that said it is going; true if it was known.
    pub(super) fn remove(&mut self, receiver_id: i64) -> bool {
        let found = self.receivers.iter().position(|(id, _)| *id == receiver_id);
        found.map(|index| self.receivers.swap_remove(index)).is_some()
    }

    /// Forgets receivers not heard for `timeout_ns`.
    pub(super) fn expire(&mut self, now_ns: i64, timeout_ns: i64) {
        self.receivers
            .retain(|(_, last_ns)| *last_ns > now_ns - timeout_ns);
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
}
