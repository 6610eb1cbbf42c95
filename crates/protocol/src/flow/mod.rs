//! Flow control: how far a sender may go without overrunning its receivers.
//!
//! One strategy per publication turns status messages into the sender's limit. A receiver says "I consumed up
//! to here and can take this much more".
//!
//! | strategy | for | the limit |
//! |---|---|---|
//! | [`MaxFlowControl`] | one receiver; a group with `fc=max` | the furthest such sum |
//! | [`MinFlowControl`] | a group with `fc=min`, or `fc=tagged`, where only receivers with the tag count | the smallest such sum of the receivers that count |

mod max;
mod min;

pub use max::MaxFlowControl;
pub use min::{Group, MinFlowControl};

use crate::frame::{ErrorFrame, StatusMessage};

/// The window that retransmits are measured in. A constant, not the window a receiver has.
const RETRANSMIT_WINDOW_LENGTH: i32 = 128 * 1024;

/// A strategy. Positions and limits are stream positions; `limit` is the limit in force before the call.
pub trait FlowControl: Send {
    /// A receiver consumed up to `position`. Returns the new limit.
    fn on_status_message(&mut self, message: &StatusMessage, position: i64, limit: i64, now_ns: i64) -> i64;

    /// A duty cycle sent nothing; `limit` is at least the sender's position. Returns the new limit, which may be lower.
    fn on_idle(&mut self, now_ns: i64, limit: i64) -> i64;

    /// A SETUP that a receiver asked for is about to be sent.
    fn on_setup(&mut self, now_ns: i64, limit: i64);

    /// A receiver was sent the SETUP that it asked for, has not spoken yet, and would be the first that counts.
    fn awaits_first_receiver(&self, _now_ns: i64) -> bool {
        false
    }

    /// A receiver asked for a SETUP.
    fn on_trigger_setup(&mut self, message: &StatusMessage);

    /// A receiver refused the stream.
    fn on_error(&mut self, frame: &ErrorFrame);

    /// A receiver is not sent to any more.
    fn on_gone(&mut self, _receiver_id: i64) {}

    /// True if the receivers needed for the stream to count as connected are there, or readers stand in for them.
    fn has_required_receivers(&self) -> bool;

    /// Whether other readers of the stream stand in for receivers that are required and not there yet: those that are
    /// there then move the limit alone.
    fn set_stand_in(&mut self, _is_there: bool) {}

    /// Receivers that hold the sender back, each with its own window; none if the strategy does not tell them apart.
    fn receiver_count(&self) -> Option<usize>;

    /// The receiver whose word is the limit, if one's is.
    fn limiting_receiver(&self) -> Option<i64>;

    /// False for a receiver that the strategy has no room to remember.
    fn accepts(&self, message: &StatusMessage) -> bool;

    /// Most bytes one NAK may bring back, whatever it asks for.
    fn retransmit_length_max(&self, term_length: i32) -> i32;
}

/// The clamp on one NAK: a window, or half the term if that is less, times a multiple.
fn retransmit_length_max(window_multiple: i32, term_length: i32) -> i32 {
    window_multiple.saturating_mul(RETRANSMIT_WINDOW_LENGTH.min(term_length / 2))
}
