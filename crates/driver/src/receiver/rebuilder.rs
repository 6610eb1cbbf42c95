//! Writes what arrives into the log of an image.

use headrace_buffers::log::rebuild;

use super::frontier::Frontier;
use crate::shared::ImageShared;

/// How far a stream has arrived, and where bytes of it are missing.
pub(super) struct Rebuilder {
    frontier: Frontier,
    /// Up to here datagrams came one after the other.
    in_order_position: i64,
    /// Something came after bytes that are missing, and the conductor has not been woken since.
    pub(super) has_new_gap: bool,
}

impl Rebuilder {
    /// Of an image whose log is zero after the position.
    pub(super) fn new(join_position: i64) -> Self {
        Self {
            frontier: Frontier::new(join_position),
            in_order_position: join_position,
            has_new_gap: false,
        }
    }

    /// Puts frames into the log that lie in the window.
    #[inline]
    pub(super) fn insert(&mut self, shared: &ImageShared, frames: &[u8], position: i64, end: i64) {
        self.frontier.advance(&shared.log, position, end);
        let geometry = shared.log.geometry();
        let term = shared.log.term(geometry.partition(position));
        let inserted = rebuild::insert(term, geometry.term_offset(position), frames);
        self.has_new_gap |= position > shared.high_water_mark.get();
        shared.high_water_mark.propose_max_release(end);
        // What was there already may end earlier: repairs are cut into datagrams in another way.
        if inserted == rebuild::Insert::Inserted {
            self.track_order(shared, position, end);
        }
        shared.log.doorbells().data.ring();
    }

    /// Spares the conductor the walk over frames that came in order. After a gap, order begins again where the conductor
    /// has found that all has arrived.
    #[inline]
    fn track_order(&mut self, shared: &ImageShared, position: i64, end: i64) {
        if position > self.in_order_position {
            let rebuilt = shared.rebuild_position.get_acquire();
            self.in_order_position = self.in_order_position.max(rebuilt);
        }
        if position == self.in_order_position {
            self.in_order_position = end;
            shared.set_in_order_position(end);
        }
    }

    /// The stream is said to have come to a position.
    pub(super) fn empty_to(&mut self, shared: &ImageShared, position: i64) {
        self.frontier.empty_to(&shared.log, position);
        self.has_new_gap |= position > shared.high_water_mark.get();
        shared.high_water_mark.propose_max_release(position);
    }
}
