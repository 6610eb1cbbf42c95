//! Whether the publisher of an image is there.

use headrace_protocol::frame::Setup;

use crate::budget::Budget;

/// When an image heard its publisher. A SETUP alone does not count: anyone can forge it.
pub(super) struct ImageLiveness {
    made_ns: i64,
    pub(super) last_packet_ns: i64,
    /// When something came that is too far ahead to be taken.
    pub(super) last_overrun_ns: Option<i64>,
    /// It has asked for what is missing, and no data came since.
    pub(super) is_asking: bool,
    /// Bounds the feedback to the address that announced the stream until data comes. None where the subscriber names
    /// the address.
    budget: Option<Budget>,
}

impl ImageLiveness {
    /// Of an image made for a SETUP. `is_named`: the subscriber names the address that gets feedback.
    pub(super) fn new(is_named: bool, now_ns: i64) -> Self {
        let mut liveness = Self {
            made_ns: now_ns,
            last_packet_ns: now_ns,
            last_overrun_ns: None,
            is_asking: false,
            budget: (!is_named).then(Budget::default),
        };
        liveness.on_setup();
        liveness
    }

    /// Something arrived for the image within the liveness time-out.
    pub(super) fn is_connected(&self, now_ns: i64, timeout_ns: i64) -> bool {
        now_ns - self.last_packet_ns <= timeout_ns
    }

    /// The image had no room for the last packet.
    pub(super) fn is_overrun(&self) -> bool {
        self.last_overrun_ns > Some(self.last_packet_ns)
    }

    /// Data came that is taken.
    #[inline]
    pub(super) fn on_data(&mut self, now_ns: i64) {
        self.last_packet_ns = now_ns;
        self.is_asking = false;
    }

    /// A heartbeat came. One from so far ahead that the sender may not have all that is missing any more keeps the image
    /// only until it is asked for that in vain: senders of Aeron repair nothing so far back, and heartbeats never end.
    pub(super) fn on_heartbeat(&mut self, is_far: bool, now_ns: i64) {
        if is_far && self.is_asking {
            self.last_overrun_ns = Some(now_ns);
        } else {
            self.last_packet_ns = now_ns;
        }
    }

    /// A SETUP came, whatever becomes of it.
    pub(super) fn on_setup(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.earn(Setup::LENGTH);
        }
    }

    /// Nothing of the stream has come but its SETUP.
    pub(super) fn is_announced_only(&self) -> bool {
        self.last_packet_ns == self.made_ns
    }

    /// True if feedback of this length may be sent; the caller then sends it.
    pub(super) fn may_send(&mut self, length: usize) -> bool {
        let is_announced_only = self.is_announced_only();
        match &mut self.budget {
            Some(budget) if is_announced_only => budget.spend(length),
            _ => true,
        }
    }
}
