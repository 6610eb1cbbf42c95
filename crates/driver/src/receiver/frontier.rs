//! Where an image ends, behind which old frames lie.

use headrace_buffers::Memory;
use headrace_buffers::log::LogBuffers;

/// Of the word at the frontier, which readers take for the length of the next frame.
const WORD_LENGTH: i64 = 8;

/// The position before which each slot of an image has a frame of it or is empty, and where readers find an empty slot.
///
/// After it lies what the log had three terms ago. Nothing cleans that: it is overwritten by frames, and where frames are
/// missing it is zeroed. So no byte is brought into the caches to be zeroed, and again to be written.
pub(super) struct Frontier {
    position: i64,
}

impl Frontier {
    /// Of an image whose log is zero after the position.
    pub(super) fn new(join_position: i64) -> Self {
        Self {
            position: join_position,
        }
    }

    /// Moves on to the end of frames that are then written from `position` on: those before them are missing. To be called
    /// before a reader can find the frames, or learn of the end.
    #[inline]
    pub(super) fn advance(&mut self, log: &LogBuffers, position: i64, end: i64) {
        if end <= self.position {
            return;
        }
        if position == self.position {
            // What is written where the frontier is leaves no old frame.
            self.zero_word(log, end);
        } else {
            self.zero(log, self.position, end);
        }
    }

    /// Frames begin at multiples of 32 bytes: the word at one lies in one term.
    #[inline]
    fn zero_word(&mut self, log: &LogBuffers, end: i64) {
        let geometry = log.geometry();
        log.term(geometry.partition(end))
            .put_i64(geometry.term_offset(end), 0);
        self.position = end;
    }

    /// Moves on to where the stream is said to be.
    pub(super) fn empty_to(&mut self, log: &LogBuffers, end: i64) {
        if end > self.position {
            self.zero(log, self.position, end);
        }
    }

    fn zero(&mut self, log: &LogBuffers, mut from: i64, end: i64) {
        let geometry = log.geometry();
        while from < end + WORD_LENGTH {
            let offset = geometry.term_offset(from);
            let room = geometry.term_length() - offset;
            let length = room.min((end + WORD_LENGTH - from) as usize);
            log.term(geometry.partition(from)).zero(offset, length);
            from += length as i64;
        }
        self.position = end;
    }
}
