//! Which positions of a stream an image takes.

use headrace_buffers::log::rebuild;
use headrace_protocol::frame::Packet;

use crate::shared::drops::Outside;
use crate::shared::{ImageShared, LossRange};

/// It moves with the status messages that leave.
pub(super) struct Window {
    /// What lies before it is read.
    pub(super) begin: i64,
    /// There is no room for what lies after it.
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

    /// Where a position lies from which no sender goes on that is answered.
    pub(super) fn side_of(&self, position: i64) -> Option<Outside> {
        if position > self.end {
            Some(Outside::Ahead)
        } else if position < self.begin - self.length_max {
            Some(Outside::Old)
        } else {
            None
        }
    }

    /// What there is room for of a datagram that ends outside. The kernel joins datagrams, and a publisher may follow another
    /// receiver.
    #[cold]
    pub(super) fn frames_inside<'a>(&self, datagram: &'a [u8], position: i64) -> Option<&'a [u8]> {
        let room = usize::try_from(self.end - position).ok()?;
        rebuild::frames_within(datagram, room)
    }

    /// A heartbeat may come from further ahead: of a sender that has gone on with a faster receiver, or whose last frame was
    /// padding. Without it an image that lacks all before it would have nothing to ask for, and end. The sender still has what
    /// lies less than a term below it.
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
