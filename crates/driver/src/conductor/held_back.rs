//! Shows operators who holds a stream back, and since when.
//!
//! The conductor checks each stream when its timer is due. A stream without window is held back by the party whose
//! position determines the window. A stream that was never held back has no counter.

use std::fmt;
use std::net::SocketAddr;

use super::marks::Trouble;
use super::subscriptions::links::Link;

/// A publication of this driver that is held back: epoch time in ms since when by the same party, 0 when it goes on. An
/// id of this driver's own, as that of images is, in the range that applications use.
pub(crate) const PUBLISHER_HELD: i32 = 2103;
/// The same of an image, whose sender may send no more.
pub(crate) const IMAGE_HELD: i32 = 2104;

/// A window of which less than this part is left counts as used up: limits are raised in steps of that length.
const STEPS_OF_A_WINDOW: i64 = 8;

/// True when hardly anything of the window below `limit` is left.
pub(crate) fn is_used_up(limit: i64, position: i64, window_length: i64) -> bool {
    limit - position < window_length / STEPS_OF_A_WINDOW
}

/// The party that a stream waits for, as the end of a label tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A subscription of a client of this driver.
    Subscription { id: i64, client_id: i64 },
    /// The receiver whose status messages are the limit, by where they come from.
    Receiver(SocketAddr),
    /// Receivers would take more: this driver's sender, or the network before it.
    Sender,
}

impl Holder {
    /// The subscriber that reads through a link.
    pub(crate) fn reader(link: &Link) -> Self {
        Self::Subscription {
            id: link.subscription_id,
            client_id: link.client_id,
        }
    }
}

impl Trouble for Holder {
    /// Another party would be blamed for all of it.
    fn goes_on_from(self, before: Self) -> bool {
        self == before
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription { id, client_id } => {
                write!(text, "by subscription {id} of client {client_id}")
            }
            Self::Receiver(address) => write!(text, "by receiver at {address}"),
            Self::Sender => text.write_str("by the sender"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_used_up_when_less_than_a_step_is_left() {
        assert!(is_used_up(1_000, 1_000, 800) && is_used_up(1_000, 901, 800));
        assert!(!is_used_up(1_000, 900, 800));
        assert!(is_used_up(1_000, 2_000, 800), "the last message may go beyond");
    }
}
