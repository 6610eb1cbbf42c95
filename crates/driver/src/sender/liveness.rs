//! Which receivers of a stream are alive.

use std::collections::HashMap;
use std::net::SocketAddr;

use headrace_protocol::round_trips::{RARE_PROBE_INTERVAL_NS, RoundTripEstimate};

/// Most receivers of one stream that the sender tells apart: every datagram could carry another id.
const RECEIVERS_MAX: usize = 4096;

/// Addresses of one receiver that are remembered: it may have several paths, each with a socket of its own.
const ADDRESSES_MAX: usize = 8;

#[derive(Debug)]
struct Receiver {
    last_heard_ns: i64,
    /// Where it speaks from, and so asks for repairs from, with the time when it last did. Those of the paths that
    /// were heard last.
    asks_from: Vec<(SocketAddr, i64)>,
    round_trip: Option<RoundTripEstimate>,
    /// The probe that it answered last.
    answered_ns: Option<i64>,
}

impl Receiver {
    fn note_address(&mut self, address: SocketAddr) {
        let now_ns = self.last_heard_ns;
        let list = &mut self.asks_from;
        if let Some((_, heard_ns)) = list.iter_mut().find(|(known, _)| *known == address) {
            *heard_ns = now_ns;
            return;
        }
        if list.len() >= ADDRESSES_MAX
            && let Some(longest) = (0..list.len()).min_by_key(|index| list[*index].1)
        {
            list.swap_remove(longest);
        }
        list.push((address, now_ns));
    }

    /// False for one that is silent. Paths that are go from its addresses.
    fn is_heard_since(&mut self, oldest_ns: i64) -> bool {
        self.asks_from.retain(|(_, heard_ns)| *heard_ns > oldest_ns);
        self.last_heard_ns > oldest_ns
    }
}

/// Receivers by id with what is known of them. Unicast has one, a group a few.
#[derive(Debug, Default)]
pub(super) struct ReceiverLiveness {
    // The ids come from strangers: this map's hashing does not let them choose collisions.
    receivers: HashMap<i64, Receiver>,
    /// See [`Self::late_after_ns`]; none when something has changed since.
    late_after_ns: Option<Option<i64>>,
    /// When the last probe left that all of them answer.
    probe_ns: Option<i64>,
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
        if !self.contains(receiver_id) {
            self.late_after_ns = None;
        }
        let receiver = self.receivers.entry(receiver_id).or_insert(Receiver {
            last_heard_ns: now_ns,
            asks_from: Vec::new(),
            round_trip: None,
            answered_ns: None,
        });
        receiver.last_heard_ns = now_ns;
    }

    /// A receiver that has just been heard of speaks from this address.
    pub(super) fn note_address(&mut self, receiver_id: i64, address: SocketAddr) {
        if let Some(receiver) = self.receivers.get_mut(&receiver_id) {
            receiver.note_address(address);
        }
    }

    /// Whether one of them speaks from this address.
    pub(super) fn is_address_of_one(&self, address: SocketAddr) -> bool {
        let mut addresses = self.receivers.values().flat_map(|receiver| &receiver.asks_from);
        addresses.any(|(known, _)| *known == address)
    }

    /// Whether this one speaks from this address.
    pub(super) fn is_address_of(&self, receiver_id: i64, address: SocketAddr) -> bool {
        let receiver = self.receivers.get(&receiver_id);
        receiver.is_some_and(|receiver| receiver.asks_from.iter().any(|(known, _)| *known == address))
    }

    /// How many are alive.
    pub(super) fn count(&self) -> usize {
        self.receivers.len()
    }

    /// True when a probe may leave that carries `now_ns`, which counts as sent. Each has a second to be answered.
    pub(super) fn begin_probe(&mut self, now_ns: i64) -> bool {
        let is_due = self
            .probe_ns
            .is_none_or(|sent_ns| now_ns > sent_ns.saturating_add(RARE_PROBE_INTERVAL_NS));
        if is_due {
            self.probe_ns = Some(now_ns);
        }
        is_due
    }

    /// A receiver answers a probe. Only the last one counts, once for each receiver that is alive. False for one that
    /// never left.
    pub(super) fn on_answer(&mut self, receiver_id: i64, sent_ns: i64, now_ns: i64) -> bool {
        if self.probe_ns != Some(sent_ns) {
            return false;
        }
        if let Some(receiver) = self.receivers.get_mut(&receiver_id)
            && receiver.answered_ns != Some(sent_ns)
        {
            receiver.answered_ns = Some(sent_ns);
            self.late_after_ns = None;
            receiver.round_trip = Some(RoundTripEstimate::updated(receiver.round_trip, now_ns - sent_ns));
        }
        true
    }

    /// The time after which what was sent should have reached each receiver, and its answer come back. None while one of
    /// them has not answered a probe.
    pub(super) fn late_after_ns(&mut self) -> Option<i64> {
        let mut each = self.receivers.values().map(|receiver| receiver.round_trip);
        *self.late_after_ns.get_or_insert_with(|| {
            each.try_fold(0, |latest_ns: i64, round_trip| {
                Some(latest_ns.max(round_trip?.late_after_ns()))
            })
        })
    }

    /// Forgets a receiver that said it is going; true if it was known.
    pub(super) fn remove(&mut self, receiver_id: i64) -> bool {
        let was_known = self.receivers.remove(&receiver_id).is_some();
        if was_known {
            self.late_after_ns = None;
        }
        was_known
    }

    /// Forgets receivers not heard for `timeout_ns`. Looks at them only when one may have been silent so long.
    pub(super) fn expire(&mut self, now_ns: i64, timeout_ns: i64) {
        if self.receivers.is_empty() || now_ns - self.earliest_ns < timeout_ns {
            return;
        }
        self.late_after_ns = None;
        self.receivers
            .retain(|_, receiver| receiver.is_heard_since(now_ns - timeout_ns));
        self.earliest_ns = self
            .receivers
            .values()
            .map(|receiver| receiver.last_heard_ns)
            .min()
            .unwrap_or(now_ns);
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
    fn a_receiver_asks_from_each_of_its_paths_that_was_heard_lately() {
        let at = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        let mut receivers = ReceiverLiveness::default();
        let mut hear = |now_ns: i64, port| {
            receivers.on_status_message(1, now_ns);
            receivers.note_address(1, at(port));
        };
        hear(0, 5);
        hear(0, 6);
        hear(50, 6);
        assert!(receivers.is_address_of_one(at(5)) && receivers.is_address_of_one(at(6)));
        assert!(!receivers.is_address_of_one(at(7)));
        receivers.expire(100, 100);
        assert!(!receivers.is_address_of_one(at(5)) && receivers.is_address_of_one(at(6)));
        let mut hear = |now_ns: i64, port| {
            receivers.on_status_message(1, now_ns);
            receivers.note_address(1, at(port));
        };
        (0..ADDRESSES_MAX as u16).for_each(|path| hear(60, 100 + path));
        assert!(!receivers.is_address_of_one(at(6)), "there is an end to them");
        assert!((0..ADDRESSES_MAX as u16).all(|path| receivers.is_address_of_one(at(100 + path))));
        assert!(receivers.remove(1) && !receivers.is_address_of_one(at(100)));
    }

    #[test]
    fn a_repair_is_late_when_it_is_for_the_furthest_and_no_one_knows_while_one_is_silent() {
        const RTT_NS: i64 = 1_000;
        let mut receivers = ReceiverLiveness::default();
        receivers.on_status_message(1, 0);
        receivers.on_status_message(2, 0);
        assert!(!receivers.on_answer(1, 100, 200), "no probe left");
        assert!(receivers.begin_probe(100) && !receivers.begin_probe(100 + RARE_PROBE_INTERVAL_NS));
        assert!(receivers.on_answer(1, 100, 100 + RTT_NS));
        assert_eq!(receivers.late_after_ns(), None, "the second has not answered");
        assert!(receivers.on_answer(2, 100, 100 + 4 * RTT_NS));
        assert_eq!(
            receivers.late_after_ns(),
            Some(12 * RTT_NS),
            "three times the first measurement"
        );
        assert!(
            receivers.on_answer(2, 100, 100 + 90 * RTT_NS),
            "another way brought it again"
        );
        assert!(
            receivers.on_answer(3, 100, 100 + 90 * RTT_NS),
            "a stranger measures nothing"
        );
        assert_eq!(receivers.late_after_ns(), Some(12 * RTT_NS));
        receivers.on_status_message(4, 0);
        assert_eq!(receivers.late_after_ns(), None, "a new one is not known");
        assert!(receivers.remove(4) && receivers.remove(2));
        assert_eq!(receivers.late_after_ns(), Some(3 * RTT_NS));
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
