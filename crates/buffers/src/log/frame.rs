//! Layout of a frame, and the order of stores that makes one visible.
//!
//! ```text
//!   0                4        5        6        8
//!   +----------------+--------+--------+--------+
//!   | frame length   | version| flags  | type   |
//!   +----------------+--------+--------+--------+
//!   | term offset             | session id      |  8
//!   +-------------------------+-----------------+
//!   | stream id               | term id         | 16
//!   +-------------------------+-----------------+
//!   | reserved value                            | 24
//!   +-------------------------------------------+
//!   | payload, padded to a multiple of 32       | 32
//! ```
//! The length says what the slot holds: 0 nothing yet, `-n` claimed but not committed, `n` a frame that may be
//! read. Its first word is always stored as 32 bits, the width readers load, so that no two threads ever race
//! on accesses of different width.

use crate::{Memory, align};

/// Length of the header of data and padding frames.
pub const HEADER_LENGTH: usize = 32;
/// Frames start at multiples of this.
pub const FRAME_ALIGNMENT: usize = 32;
/// Format version, 0.
pub const VERSION: u8 = 0;

/// First frame of a message.
pub const FLAG_BEGIN: u8 = 0x80;
/// Last frame of a message.
pub const FLAG_END: u8 = 0x40;
/// The only frame of a message.
pub const FLAGS_UNFRAGMENTED: u8 = FLAG_BEGIN | FLAG_END;

/// Padding frame: readers skip it.
pub const TYPE_PAD: u16 = 0;
/// Data frame.
pub const TYPE_DATA: u16 = 1;

/// Offset of the frame length, i32.
pub const FRAME_LENGTH_OFFSET: usize = 0;
/// Offset of the version, u8.
pub const VERSION_OFFSET: usize = 4;
/// Offset of the flags, u8.
pub const FLAGS_OFFSET: usize = 5;
/// Offset of the type, u16.
pub const TYPE_OFFSET: usize = 6;
/// Offset of the term offset, i32.
pub const TERM_OFFSET_OFFSET: usize = 8;
/// Offset of the session id, i32.
pub const SESSION_ID_OFFSET: usize = 12;
/// Offset of the stream id, i32.
pub const STREAM_ID_OFFSET: usize = 16;
/// Offset of the term id, i32.
pub const TERM_ID_OFFSET: usize = 20;
/// Offset of the reserved value, i64.
pub const RESERVED_VALUE_OFFSET: usize = 24;

const _: () = assert!(HEADER_LENGTH == RESERVED_VALUE_OFFSET + 8);
const _: () = assert!(HEADER_LENGTH.is_multiple_of(FRAME_ALIGNMENT));

/// A committed frame that lies wholly inside its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Header and payload.
    pub length: usize,
    /// Distance to the next frame.
    pub span: usize,
}

/// Loads the frame length. Pairs with [`commit`].
#[inline]
pub fn frame_length_acquire<M: Memory>(term: &M, offset: usize) -> i32 {
    term.get_i32_acquire(offset + FRAME_LENGTH_OFFSET)
}

/// The frame at `offset`, a multiple of 32 inside the term, if it is committed and sound.
///
/// Everything that walks a term goes through here: a length that does not fit the term stops the walk just as
/// an empty slot does, so a corrupt log cannot lead a reader out of bounds or round in circles.
#[inline(always)]
pub fn committed<M: Memory>(term: &M, offset: usize) -> Option<Committed> {
    let length = frame_length_acquire(term, offset);
    if length < HEADER_LENGTH as i32 {
        return None;
    }
    let length = length as usize;
    let span = align(length, FRAME_ALIGNMENT);
    (span <= term.capacity() - offset).then_some(Committed { length, span })
}

/// The length found at `offset` if it is positive and yet no frame of that length can be there.
pub fn malformed_length<M: Memory>(term: &M, offset: usize) -> Option<i32> {
    if !offset.is_multiple_of(FRAME_ALIGNMENT) || offset >= term.capacity() {
        return None;
    }
    let length = frame_length_acquire(term, offset);
    (length > 0 && committed(term, offset).is_none()).then_some(length)
}

/// Frame type.
#[inline]
pub fn frame_type<M: Memory>(term: &M, offset: usize) -> u16 {
    (term.get_i32(offset + VERSION_OFFSET) as u32 >> 16) as u16
}

/// Flags.
#[inline]
pub fn flags<M: Memory>(term: &M, offset: usize) -> u8 {
    (term.get_i32(offset + VERSION_OFFSET) >> 8) as u8
}

/// Format version.
#[inline]
pub fn version<M: Memory>(term: &M, offset: usize) -> u8 {
    term.get_i32(offset + VERSION_OFFSET) as u8
}

/// True for a padding frame.
#[inline]
pub fn is_padding<M: Memory>(term: &M, offset: usize) -> bool {
    frame_type(term, offset) == TYPE_PAD
}

/// Session id.
#[inline]
pub fn session_id<M: Memory>(term: &M, offset: usize) -> i32 {
    term.get_i32(offset + SESSION_ID_OFFSET)
}

/// Stream id.
#[inline]
pub fn stream_id<M: Memory>(term: &M, offset: usize) -> i32 {
    term.get_i32(offset + STREAM_ID_OFFSET)
}

/// Term id.
#[inline]
pub fn term_id<M: Memory>(term: &M, offset: usize) -> i32 {
    term.get_i32(offset + TERM_ID_OFFSET)
}

/// Stream and term as written in the frame, in the word that [`claim`] writes them in.
#[inline]
pub(super) fn stream_and_term<M: Memory>(term: &M, offset: usize) -> i64 {
    term.get_i64(offset + STREAM_ID_OFFSET)
}

/// Term offset as written in the frame.
#[inline]
pub fn term_offset<M: Memory>(term: &M, offset: usize) -> i32 {
    term.get_i32(offset + TERM_OFFSET_OFFSET)
}

/// Reserved value.
#[inline]
pub fn reserved_value<M: Memory>(term: &M, offset: usize) -> i64 {
    term.get_i64(offset + RESERVED_VALUE_OFFSET)
}

/// Version, flags and type as they lie in the second half of the first word.
#[inline]
pub const fn kind(flags: u8, frame_type: u16) -> i32 {
    ((frame_type as u32) << 16 | (flags as u32) << 8 | VERSION as u32) as i32
}

/// Overwrites version, flags and type of a frame that this caller claimed.
#[inline]
pub fn put_kind<M: Memory>(term: &M, offset: usize, flags: u8, frame_type: u16) {
    term.put_i32(offset + VERSION_OFFSET, kind(flags, frame_type));
}

/// What every frame of one term has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermIdentity {
    /// Session of the stream.
    pub session_id: i32,
    /// Stream within the channel.
    pub stream_id: i32,
    /// Term that the frame is in.
    pub term_id: i32,
}

/// Marks a slot as claimed and fills its header; the frame stays invisible until [`commit`].
///
/// The negative length is stored first and fenced off from the rest, so that the driver, when it repairs the
/// log after a dead publisher, finds either nothing at all or the length of the hole.
#[inline(always)]
pub fn claim<M: Memory>(term: &M, offset: usize, length: usize, kind: i32, identity: TermIdentity) {
    term.put_i32_release(offset + FRAME_LENGTH_OFFSET, -(length as i32));
    term.release_fence();
    term.put_i32(offset + VERSION_OFFSET, kind);
    put_place(term, offset, identity);
}

/// Publishes a frame. Pairs with [`frame_length_acquire`]: a reader that sees the positive length sees the
/// frame.
#[inline(always)]
pub fn commit<M: Memory>(term: &M, offset: usize, length: usize) {
    term.put_i32_release(offset + FRAME_LENGTH_OFFSET, length as i32);
}

/// As [`commit`] for a frame that others may have ended: false if it is no longer claimed.
#[inline(always)]
pub fn commit_claim<M: Memory>(term: &M, offset: usize, length: usize) -> bool {
    let length = length as i32;
    term.compare_and_set_i32(offset + FRAME_LENGTH_OFFSET, -length, length)
}

/// True while a claim of this length is neither published nor taken away.
#[inline(always)]
pub fn is_claimed<M: Memory>(term: &M, offset: usize, length: usize) -> bool {
    frame_length_acquire(term, offset) == -(length as i32)
}

/// Writes and publishes a padding frame over a slot that this caller owns.
pub fn put_padding<M: Memory>(term: &M, offset: usize, length: usize, identity: TermIdentity) {
    claim(term, offset, length, kind(FLAGS_UNFRAGMENTED, TYPE_PAD), identity);
    commit(term, offset, length);
}

/// Writes all of a padding frame's header but its length.
pub(super) fn put_padding_header<M: Memory>(term: &M, offset: usize, identity: TermIdentity) {
    put_kind(term, offset, FLAGS_UNFRAGMENTED, TYPE_PAD);
    put_place(term, offset, identity);
    term.put_i64(offset + RESERVED_VALUE_OFFSET, 0);
}

/// Says where a frame is and whose, the header's four words after kind.
#[inline(always)]
pub(super) fn put_place<M: Memory>(term: &M, offset: usize, identity: TermIdentity) {
    term.put_i64(
        offset + TERM_OFFSET_OFFSET,
        join(offset as u32 as i32, identity.session_id),
    );
    term.put_i64(
        offset + STREAM_ID_OFFSET,
        join(identity.stream_id, identity.term_id),
    );
}

#[inline]
fn join(low: i32, high: i32) -> i64 {
    i64::from(high) << 32 | i64::from(low as u32)
}

/// All fields of a frame header, copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Header and payload.
    pub frame_length: i32,
    /// Format version.
    pub version: u8,
    /// Begin, end and the heartbeat flags.
    pub flags: u8,
    /// [`TYPE_DATA`] or [`TYPE_PAD`].
    pub frame_type: u16,
    /// Offset of the frame in its term.
    pub term_offset: i32,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream within the channel.
    pub stream_id: i32,
    /// Term that the frame is in.
    pub term_id: i32,
    /// Value set by the application.
    pub reserved_value: i64,
}

impl FrameHeader {
    /// Reads the header at `offset`.
    pub fn read<M: Memory>(term: &M, offset: usize) -> Self {
        let frame_length = frame_length_acquire(term, offset);
        Self {
            frame_length,
            version: version(term, offset),
            flags: flags(term, offset),
            frame_type: frame_type(term, offset),
            term_offset: term_offset(term, offset),
            session_id: session_id(term, offset),
            stream_id: stream_id(term, offset),
            term_id: term_id(term, offset),
            reserved_value: reserved_value(term, offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;

    const IDENTITY: TermIdentity = TermIdentity {
        session_id: -7,
        stream_id: 0x0a0b_0c0d,
        term_id: i32::MIN,
    };

    #[test]
    fn a_frame_is_laid_out_byte_by_byte_as_peers_expect() {
        let term = AtomicBuffer::allocate(128);
        claim(&term, 64, 35, kind(FLAGS_UNFRAGMENTED, TYPE_DATA), IDENTITY);
        assert_eq!(frame_length_acquire(&term, 64), -35);
        assert_eq!(committed(&term, 64), None);
        commit(&term, 64, 35);
        let mut bytes = [0; 24];
        term.get_bytes(64, &mut bytes);
        #[rustfmt::skip]
        assert_eq!(bytes, [
            35, 0, 0, 0, 0, 0xc0, 1, 0,
            64, 0, 0, 0, 0xf9, 0xff, 0xff, 0xff,
            0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0x80,
        ]);
        assert_eq!(committed(&term, 64), Some(Committed { length: 35, span: 64 }));
        let header = FrameHeader::read(&term, 64);
        assert_eq!(
            (header.session_id, header.term_id, header.frame_type),
            (-7, i32::MIN, TYPE_DATA)
        );
    }

    #[test]
    fn a_length_that_does_not_fit_the_term_is_no_frame() {
        let term = AtomicBuffer::allocate(128);
        for bad in [1, 31, 97, i32::MAX] {
            term.put_i32(32, bad);
            assert_eq!(committed(&term, 32), None, "{bad}");
            assert_eq!(malformed_length(&term, 32), Some(bad));
        }
        for absent in [0, -1, i32::MIN] {
            term.put_i32(32, absent);
            assert_eq!((committed(&term, 32), malformed_length(&term, 32)), (None, None));
        }
        term.put_i32(32, 96);
        assert_eq!(committed(&term, 32), Some(Committed { length: 96, span: 96 }));
        assert_eq!(
            (malformed_length(&term, 33), malformed_length(&term, 128)),
            (None, None)
        );
    }
}
