//! Flow control: how far a sender may go without overrunning its receivers.
//!
//! One strategy per publication turns status messages into the sender's limit. A receiver says "I consumed up
//! to here and can take this much more"; with one receiver the limit is simply the furthest such sum.

use crate::frame::{ErrorFrame, StatusMessage};

/// The window that retransmits are measured in. A constant, not the window a receiver has.
const RETRANSMIT_WINDOW_LENGTH: i32 = 128 * 1024;

/// A strategy. Positions and limits are stream positions; `limit` is the limit in force before the call.
pub trait FlowControl: Send {
    /// A receiver consumed up to `position`. Returns the new limit.
    fn on_status_message(&mut self, message: &StatusMessage, position: i64, limit: i64, now_ns: i64) -> i64;

    /// A duty cycle sent nothing; `position` is the sender's. Returns the new limit, which may be lower.
    fn on_idle(&mut self, now_ns: i64, limit: i64, position: i64) -> i64;

    /// A SETUP that a receiver asked for is about to be sent.
    fn on_setup(&mut self, now_ns: i64, limit: i64, position: i64);

    /// A receiver asked for a SETUP.
    fn on_trigger_setup(&mut self, message: &StatusMessage, now_ns: i64);

    /// A receiver refused the stream.
    fn on_error(&mut self, frame: &ErrorFrame, now_ns: i64);

    /// True if the receivers needed for the stream to count as connected are there.
    fn has_required_receivers(&self) -> bool;

    /// Most bytes one NAK may bring back, whatever it asks for.
    fn retransmit_length_max(&self, term_length: i32) -> i32;
}

/// One receiver: the limit is the furthest any status message allowed, and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct UnicastFlowControl {
    retransmit_window_multiple: i32,
}

impl UnicastFlowControl {
    /// `retransmit_window_multiple` is the setting `aeron.unicast.flow.control.rrwm`.
    pub fn new(retransmit_window_multiple: i32) -> Self {
        Self {
            retransmit_window_multiple,
        }
    }
}

impl Default for UnicastFlowControl {
    fn default() -> Self {
        const RETRANSMIT_WINDOW_MULTIPLE: i32 = 16;
        Self::new(RETRANSMIT_WINDOW_MULTIPLE)
    }
}

impl FlowControl for UnicastFlowControl {
    fn on_status_message(&mut self, message: &StatusMessage, position: i64, limit: i64, _now_ns: i64) -> i64 {
        limit.max(position + i64::from(message.receiver_window_length))
    }

    fn on_idle(&mut self, _now_ns: i64, limit: i64, _position: i64) -> i64 {
        limit
    }

    fn on_setup(&mut self, _now_ns: i64, _limit: i64, _position: i64) {}

    fn on_trigger_setup(&mut self, _message: &StatusMessage, _now_ns: i64) {}

    fn on_error(&mut self, _frame: &ErrorFrame, _now_ns: i64) {}

    fn has_required_receivers(&self) -> bool {
        true
    }

    fn retransmit_length_max(&self, term_length: i32) -> i32 {
        self.retransmit_window_multiple
            .saturating_mul(RETRANSMIT_WINDOW_LENGTH.min(term_length / 2))
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
        let mut flow = UnicastFlowControl::default();
        let limit = flow.on_status_message(&status_message(1024), 64, 0, 0);
        assert_eq!(limit, 1088);
        assert_eq!(flow.on_status_message(&status_message(256), 128, limit, 1), 1088);
        assert_eq!(flow.on_status_message(&status_message(1024), 128, limit, 2), 1152);
        assert_eq!(flow.on_idle(i64::MAX, 1152, 128), 1152);
        assert!(flow.has_required_receivers());
    }

    #[test]
    fn retransmits_are_clamped_by_a_constant_window_or_half_the_term() {
        let flow = UnicastFlowControl::default();
        assert_eq!(flow.retransmit_length_max(64 * 1024), 16 * 32 * 1024);
        assert_eq!(flow.retransmit_length_max(1 << 30), 16 * 128 * 1024);
        assert_eq!(
            UnicastFlowControl::new(i32::MAX).retransmit_length_max(1 << 30),
            i32::MAX
        );
    }
}
