//! Which positions of a stream an image takes.

use headrace_buffers::log::rebuild;
use headrace_protocol::frame::Packet;

use crate::shared::drops::Outside;
use crate::shared::{ImageShared, LossRange};

/// It moves with the status messages that leave.
pub(super) struct Window {
    /// The subscribers have read everything before it.
    pub(super) begin: i64,
    /// The log has no room after it.
    pub(super) end: i64,
    length_max: i64,
    half_term_length: i64,
}

impl Window {
    pub(super) fn new(shared: &ImageShared) -> Self {
        let mut window = Self {
            begin: 0,
            end: 0,
            length_max: shared.window_length_max.into(),
            half_term_length: shared.log.term_length() as i64 / 2,
        };
        window.move_to(shared.join_position);
        window
    }

    pub(super) fn move_to(&mut self, position: i64) {
        self.begin = position;
        self.end = position + self.half_term_length;
    }

    /// On which side of the window a position lies, if a sender that hears this receiver cannot be there.
    pub(super) fn side_of(&self, position: i64) -> Option<Outside> {
        if position > self.end {
            Some(Outside::Ahead)
        } else if position < self.begin - self.length_max {
            Some(Outside::Old)
        } else {
            None
        }
    }

    /// The frames at the start of a datagram that the log has room for. A datagram may end outside the window because
    /// the kernel joins datagrams, and because a publisher may follow a faster receiver.
    #[cold]
    pub(super) fn frames_inside<'a>(&self, datagram: &'a [u8], position: i64) -> Option<&'a [u8]> {
        let room = usize::try_from(self.end - position).ok()?;
        rebuild::frames_within(datagram, room)
    }

    /// A heartbeat may come from further ahead: its sender may have followed a faster receiver, or its last frame was
    /// padding. An image that lacks everything before it learns from it what to ask for. The sender still has the bytes
    /// of the last term before it.
    #[cold]
    pub(super) fn can_be_asked_for(&self, packet: &Packet, position: i64) -> bool {
        packet.is_heartbeat && position - self.end < self.half_term_length
    }

    /// The part of a gap that would be taken if it came. A heartbeat may say that more is missing.
    pub(super) fn part_with_room(&self, loss: LossRange, position: i64) -> Option<LossRange> {
        let room = self.end - position;
        (room > 0).then(|| LossRange {
            length: i64::from(loss.length).min(room) as i32,
            ..loss
        })
    }
}
