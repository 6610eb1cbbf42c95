//! The slowest receiver decides. Which receivers count is a filter: all of them (`fc=min`), or those that carry a tag
//! (`fc=tagged`).
//!
//! A receiver is known from its first status message that counts until it says that it leaves, refuses the stream, or
//! is silent for the time-out. One that reports from more than its window below the slowest is not let in, so that a
//! stale receiver does not stop the group. Where receivers have equal windows that is the specification's rule, which
//! compares ends of windows and would keep out a newcomer with a smaller window. From the SETUP that a newcomer asked
//! for until its first status message the limit stays put. The first receiver of a stream that spies move holds them in the
//! same way.

mod newcomers;

use self::newcomers::Newcomers;
use super::FlowControl;
use crate::frame::{ErrorFrame, StatusMessage};

/// Receivers that are told apart. Every datagram could carry another id, so there is an end.
const RECEIVERS_MAX: usize = 4096;

/// Nothing holds the sender back.
const UNLIMITED: i64 = i64::MAX;

/// Which receivers count, how many must be there, and for how long a silent one still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Receivers count that carry this tag; all of them if there is none.
    pub tag: Option<i64>,
    /// Receivers needed for the limit to move and the stream to count as connected.
    pub min_size: usize,
    /// A receiver silent for longer no longer counts.
    pub receiver_timeout_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Receiver {
    id: i64,
    position: i64,
    limit: i64,
    last_heard_ns: i64,
    is_leaving: bool,
}

/// The limit is the smallest of those that the receivers that count gave last. It may go back.
#[derive(Clone, Debug)]
pub struct MinFlowControl {
    group: Group,
    retransmit_window_multiple: i32,
    receivers: Vec<Receiver>,
    newcomers: Newcomers,
    has_stand_in: bool,
}

impl MinFlowControl {
    /// One NAK may bring back `retransmit_window_multiple` windows.
    pub fn new(group: Group, retransmit_window_multiple: i32) -> Self {
        Self {
            group,
            retransmit_window_multiple,
            receivers: Vec::new(),
            newcomers: Newcomers::new(group.receiver_timeout_ns),
            has_stand_in: false,
        }
    }

    fn counts(&self, tag: Option<i64>) -> bool {
        self.group.tag.is_none() || tag == self.group.tag
    }

    /// Newcomers hold back receivers only: the first of all is let in wherever it is.
    fn held_limit(&self, now_ns: i64) -> i64 {
        let held = self.newcomers.held_limit(now_ns);
        held.filter(|_| !self.receivers.is_empty()).unwrap_or(UNLIMITED)
    }

    fn slowest(&self) -> i64 {
        let limits = self.receivers.iter().map(|receiver| receiver.limit);
        limits.min().unwrap_or(UNLIMITED)
    }

    /// The position that a newcomer's window must reach, or it is too far behind.
    fn entrance(&self, held: i64, window: i64) -> i64 {
        let positions = self.receivers.iter().map(|receiver| receiver.position);
        positions.fold(held.saturating_sub(window), i64::min)
    }

    fn is_known(&self, receiver_id: i64) -> bool {
        self.receivers.iter().any(|receiver| receiver.id == receiver_id)
    }

    /// Notes what a receiver that counts says; false if it is not known.
    fn update(&mut self, message: &StatusMessage, position: i64, now_ns: i64) -> bool {
        let mut receivers = self.receivers.iter_mut();
        let Some(receiver) = receivers.find(|receiver| receiver.id == message.receiver_id) else {
            return false;
        };
        receiver.position = position;
        receiver.limit = position + i64::from(message.receiver_window_length);
        receiver.last_heard_ns = now_ns;
        receiver.is_leaving = message.is_end_of_stream();
        true
    }
}

impl FlowControl for MinFlowControl {
    fn on_status_message(&mut self, message: &StatusMessage, position: i64, limit: i64, now_ns: i64) -> i64 {
        let window = i64::from(message.receiver_window_length);
        let allowed = position + window;
        let counts = self.counts(message.group_tag);
        let held = self.held_limit(now_ns);
        let is_known = counts && self.update(message, position, now_ns);
        let mut lowest = held.min(self.slowest());
        let is_newcomer = counts && !is_known && !message.is_end_of_stream();
        if is_newcomer && (self.receivers.is_empty() || allowed >= self.entrance(held, window)) {
            self.receivers.push(Receiver {
                id: message.receiver_id,
                position,
                limit: allowed,
                last_heard_ns: now_ns,
                is_leaving: false,
            });
            lowest = lowest.min(allowed);
            self.newcomers.on_admitted(message.receiver_id);
        }
        if !self.has_required_receivers() {
            limit
        } else if self.receivers.is_empty() {
            limit.max(allowed)
        } else {
            limit.max(lowest)
        }
    }

    fn on_idle(&mut self, now_ns: i64, limit: i64) -> i64 {
        let timeout_ns = self.group.receiver_timeout_ns;
        self.receivers.retain(|receiver| {
            !receiver.is_leaving && receiver.last_heard_ns.saturating_add(timeout_ns) >= now_ns
        });
        let held = self.held_limit(now_ns);
        if self.receivers.is_empty() || !self.has_required_receivers() {
            return limit;
        }
        held.min(self.slowest())
    }

    fn on_setup(&mut self, now_ns: i64, limit: i64) {
        self.newcomers.on_setup(limit, now_ns);
    }

    fn awaits_first_receiver(&self, now_ns: i64) -> bool {
        self.receivers.is_empty() && self.newcomers.held_limit(now_ns).is_some()
    }

    fn on_trigger_setup(&mut self, message: &StatusMessage) {
        if self.counts(message.group_tag) {
            self.newcomers.on_asked(message.receiver_id);
        }
    }

    fn on_error(&mut self, frame: &ErrorFrame) {
        if self.counts(frame.group_tag) {
            self.on_gone(frame.receiver_id);
        }
    }

    fn on_gone(&mut self, receiver_id: i64) {
        let mut receivers = self.receivers.iter_mut();
        if let Some(receiver) = receivers.find(|receiver| receiver.id == receiver_id) {
            receiver.is_leaving = true;
        }
    }

    fn has_required_receivers(&self) -> bool {
        self.has_stand_in || self.receivers.len() >= self.group.min_size
    }

    fn set_stand_in(&mut self, is_there: bool) {
        self.has_stand_in = is_there;
    }

    fn receiver_count(&self) -> Option<usize> {
        Some(self.receivers.len())
    }

    fn limiting_receiver(&self) -> Option<i64> {
        let slowest = self.receivers.iter().min_by_key(|receiver| receiver.limit);
        slowest.map(|receiver| receiver.id)
    }

    fn accepts(&self, message: &StatusMessage) -> bool {
        self.receivers.len() < RECEIVERS_MAX
            || !self.counts(message.group_tag)
            || self.is_known(message.receiver_id)
    }

    fn retransmit_length_max(&self, term_length: i32) -> i32 {
        super::retransmit_length_max(self.retransmit_window_multiple, term_length)
    }
}

#[cfg(test)]
mod tests;
