//! The furthest receiver decides: with one receiver that is its own word, in a group the others lose what they cannot
//! take and ask for it again.

use super::FlowControl;
use crate::frame::{ErrorFrame, StatusMessage};

/// The limit is the furthest any status message allowed, and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct MaxFlowControl {
    retransmit_window_multiple: i32,
    furthest: Option<i64>,
}

impl MaxFlowControl {
    /// One NAK may bring back `retransmit_window_multiple` windows: 16 by default for one receiver, 4 for a group.
    pub fn new(retransmit_window_multiple: i32) -> Self {
        Self {
            retransmit_window_multiple,
            furthest: None,
        }
    }
}

impl FlowControl for MaxFlowControl {
    fn on_status_message(&mut self, message: &StatusMessage, position: i64, limit: i64, _now_ns: i64) -> i64 {
        let allowed = position + i64::from(message.receiver_window_length);
        if allowed >= limit {
            self.furthest = Some(message.receiver_id);
        }
        limit.max(allowed)
    }

    fn on_idle(&mut self, _now_ns: i64, limit: i64) -> i64 {
        limit
    }

    fn on_setup(&mut self, _now_ns: i64, _limit: i64) {}

    fn on_trigger_setup(&mut self, _message: &StatusMessage) {}

    fn on_error(&mut self, _frame: &ErrorFrame) {}

    fn has_required_receivers(&self) -> bool {
        true
    }

    fn receiver_count(&self) -> Option<usize> {
        None
    }

    fn limiting_receiver(&self) -> Option<i64> {
        self.furthest
    }

    fn accepts(&self, _message: &StatusMessage) -> bool {
        true
    }

    fn retransmit_length_max(&self, term_length: i32) -> i32 {
        super::retransmit_length_max(self.retransmit_window_multiple, term_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_message(receiver_window_length: i32) -> StatusMessage {
        StatusMessage {
            flags: 0,
            receiver_window_length,
            ..StatusMessage::eliciting_setup(1, 2, 3, None)
        }
    }

    #[test]
    fn the_limit_follows_the_furthest_window_and_never_goes_back() {
        let mut flow = MaxFlowControl::new(16);
        let limit = flow.on_status_message(&status_message(1024), 64, 0, 0);
        assert_eq!(limit, 1088);
        assert_eq!(flow.on_status_message(&status_message(256), 128, limit, 1), 1088);
        assert_eq!(flow.on_status_message(&status_message(1024), 128, limit, 2), 1152);
        assert_eq!(flow.on_idle(i64::MAX, 1152), 1152);
        assert!(flow.has_required_receivers());
        assert_eq!(flow.receiver_count(), None);
        assert_eq!(flow.limiting_receiver(), Some(3));
    }

    #[test]
    fn retransmits_are_clamped_by_a_constant_window_or_half_the_term() {
        let flow = MaxFlowControl::new(16);
        assert_eq!(flow.retransmit_length_max(64 * 1024), 16 * 32 * 1024);
        assert_eq!(flow.retransmit_length_max(1 << 30), 16 * 128 * 1024);
        assert_eq!(
            MaxFlowControl::new(4).retransmit_length_max(1 << 30),
            4 * 128 * 1024
        );
        assert_eq!(
            MaxFlowControl::new(i32::MAX).retransmit_length_max(1 << 30),
            i32::MAX
        );
    }
}
