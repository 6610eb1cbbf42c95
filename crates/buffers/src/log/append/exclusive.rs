//! Appending to a log that has one publisher.
//!
//! The publisher knows where it is without asking, and stores the tail only so that the driver can see it.

use crate::{AtomicBuffer, Memory, align};

use super::claim::{Claim, ClaimResult};
use super::payload::{Gathered, Payload, Whole};
use super::{
    Append, AppendError, Limits, NoReservedValue, ReservedValue, UNFRAGMENTED_DATA, frame_span,
    write_fragments, write_frame,
};
use crate::log::buffers::LogBuffers;
use crate::log::descriptor::framed_length;
use crate::log::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH, TYPE_DATA};
use crate::log::position::index_by_term_count;
use crate::log::raw_tail;
use crate::log::rotation::rotate_exclusive;

mod recorded;

pub use recorded::{RecordedEnd, RecordedResult};

/// Appends to an exclusive publication; there must be no other appender of the log.
#[derive(Debug)]
pub struct ExclusiveAppender<M: Memory = AtomicBuffer> {
    log: LogBuffers<M>,
    limits: Limits,
    max_framed_length: usize,
    partition: usize,
    term_id: i32,
    term_offset: usize,
    term_begin: i64,
}

/// Why a block of frames was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block does not fit the rest of the term, or is no whole number of aligned bytes.
    #[error("length={length} must be a positive multiple of 32 and at most remaining={remaining}")]
    Length {
        /// Length of the block.
        length: usize,
        /// Bytes left in the term.
        remaining: usize,
    },
    /// The first frame was not made for this place in the stream.
    #[error("first frame has {field}={value}, expected {expected}")]
    FirstFrame {
        /// Header field.
        field: &'static str,
        /// Its value.
        value: i32,
        /// What it must be.
        expected: i32,
    },
    /// The frames do not follow on to the end of the block.
    #[error("frame at offset={offset} has frame_length={frame_length}, which does not fit the block")]
    Frame {
        /// Offset in the block.
        offset: usize,
        /// Its length field.
        frame_length: i32,
    },
}

impl<M: Memory> ExclusiveAppender<M> {
    /// Takes up the stream where its active tail stands.
    pub fn new(log: &LogBuffers<M>) -> Result<Self, AppendError> {
        let limits = Limits::of(log);
        let active_term_count = log.metadata().active_term_count_acquire();
        let partition = index_by_term_count(active_term_count);
        let raw_tail = log.metadata().raw_tail_acquire(partition);
        let term_id = raw_tail::term_id(raw_tail);
        let term_offset = raw_tail::term_offset(raw_tail, limits.term_length);
        if limits.geometry.term_count(term_id) != active_term_count
            || active_term_count < 0
            || !term_offset.is_multiple_of(FRAME_ALIGNMENT)
        {
            return Err(AppendError::CorruptTail {
                raw_tail,
                active_term_count,
            });
        }
        Ok(Self {
            max_framed_length: framed_length(limits.max_message_length, limits.max_payload_length),
            term_begin: limits.geometry.position(term_id, 0),
            log: log.clone(),
            limits,
            partition,
            term_id,
            term_offset,
        })
    }

    /// The log appended to.
    pub fn log(&self) -> &LogBuffers<M> {
        &self.log
    }

    /// Longest message.
    pub fn max_message_length(&self) -> usize {
        self.limits.max_message_length
    }

    /// Longest message that is not fragmented, and longest claim.
    pub fn max_payload_length(&self) -> usize {
        self.limits.max_payload_length
    }

    /// Longest padding.
    pub fn max_framed_length(&self) -> usize {
        self.max_framed_length
    }

    /// Position after the last frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.term_begin + self.term_offset as i64
    }

    /// Id of the term that the next frame goes to.
    pub fn term_id(&self) -> i32 {
        self.term_id
    }

    /// Offset of the next frame in its term.
    pub fn term_offset(&self) -> usize {
        self.term_offset
    }

    /// Appends a message gathered from `parts`, if the stream has not reached `limit`.
    #[inline]
    pub fn offer(&mut self, parts: &[&[u8]], limit: i64) -> Result<Append, AppendError> {
        match parts {
            [message] => self.offer_one(message, limit),
            _ => self.append(Gathered::new(parts), limit, NoReservedValue),
        }
    }

    /// Appends a message, if the stream has not reached `limit`.
    #[inline]
    pub fn offer_one(&mut self, message: &[u8], limit: i64) -> Result<Append, AppendError> {
        self.append(Whole(message), limit, NoReservedValue)
    }

    /// As [`Self::offer`], asking `reserved` for the reserved value of each frame.
    #[inline]
    pub fn offer_reserved<R: ReservedValue<M>>(
        &mut self,
        parts: &[&[u8]],
        limit: i64,
        reserved: R,
    ) -> Result<Append, AppendError> {
        self.append(Gathered::new(parts), limit, reserved)
    }

    /// Claims a frame with `length` bytes of payload, to be filled in place.
    #[inline]
    pub fn try_claim(&mut self, length: usize, limit: i64) -> Result<ClaimResult<'_, M>, AppendError> {
        self.limits.check_claim(length)?;
        if self.position() >= limit {
            return Ok(ClaimResult::Refused(self.limits.refusal(
                &self.log,
                self.position(),
                length,
            )));
        }
        let Some(offset) = self.advance(frame_span(length)) else {
            return Ok(ClaimResult::Refused(self.trip()));
        };
        let term = self.log.term(self.partition);
        let frame_length = HEADER_LENGTH + length;
        frame::claim(
            term,
            offset,
            frame_length,
            UNFRAGMENTED_DATA,
            self.log.identity(self.term_id),
        );
        Ok(ClaimResult::Claimed(Claim::new(
            term,
            offset,
            frame_length,
            self.position(),
        )))
    }

    /// Appends a padding frame as long as a frame with `length` bytes of payload.
    pub fn append_padding(&mut self, length: usize, limit: i64) -> Result<Append, AppendError> {
        if length > self.max_framed_length {
            return Err(AppendError::PaddingTooLong {
                length,
                max: self.max_framed_length,
            });
        }
        if self.position() >= limit {
            return Ok(self.limits.refusal(&self.log, self.position(), length));
        }
        let Some(offset) = self.advance(frame_span(length)) else {
            return Ok(self.trip());
        };
        let identity = self.log.identity(self.term_id);
        frame::put_padding(
            self.log.term(self.partition),
            offset,
            HEADER_LENGTH + length,
            identity,
        );
        Ok(Append::Position(self.position()))
    }

    /// Appends frames that were formed for exactly this place of the stream, all visible at once.
    pub fn offer_block(&mut self, block: &[u8], limit: i64) -> Result<Append, AppendError> {
        if self.term_offset >= self.limits.term_length {
            if self.is_last_term() {
                return Ok(Append::MaxPositionExceeded);
            }
            self.rotate();
        }
        if self.position() >= limit {
            return Ok(self.limits.refusal(&self.log, self.position(), block.len()));
        }
        self.check_block(block)?;
        let offset = self.term_offset;
        self.store_tail(offset + block.len());
        let term = self.log.term(self.partition);
        term.put_bytes(offset + HEADER_LENGTH, &block[HEADER_LENGTH..]);
        term.put_bytes(
            offset + frame::VERSION_OFFSET,
            &block[frame::VERSION_OFFSET..HEADER_LENGTH],
        );
        frame::commit(term, offset, word(block, frame::FRAME_LENGTH_OFFSET) as usize);
        self.term_offset = offset + block.len();
        Ok(Append::Position(self.position()))
    }

    #[inline(always)]
    fn append<P: Payload, R: ReservedValue<M>>(
        &mut self,
        mut payload: P,
        limit: i64,
        mut reserved: R,
    ) -> Result<Append, AppendError> {
        let length = payload.length();
        if self.position() >= limit {
            return Ok(self.limits.refusal(&self.log, self.position(), length));
        }
        if length > self.limits.max_payload_length {
            return self.append_fragmented(&mut payload, &mut reserved);
        }
        let Some(offset) = self.advance(frame_span(length)) else {
            return Ok(self.trip());
        };
        let identity = self.log.identity(self.term_id);
        let term = self.log.term(self.partition);
        write_frame(term, offset, identity, &mut payload, length, &mut reserved);
        Ok(Append::Position(self.position()))
    }

    #[inline(never)]
    fn append_fragmented<P: Payload, R: ReservedValue<M>>(
        &mut self,
        payload: &mut P,
        reserved: &mut R,
    ) -> Result<Append, AppendError> {
        let length = payload.length();
        if length > self.limits.max_message_length {
            return Err(self.limits.too_long(length));
        }
        let max_payload_length = self.limits.max_payload_length;
        let Some(offset) = self.advance(framed_length(length, max_payload_length)) else {
            return Ok(self.trip());
        };
        let identity = self.log.identity(self.term_id);
        let term = self.log.term(self.partition);
        write_fragments(term, offset, identity, payload, max_payload_length, reserved);
        Ok(Append::Position(self.position()))
    }

    /// Moves the tail by `framed`; the offset of the space won, or none when the term is full. The tail is
    /// stored before anything is written, even when it overshoots: that tells the driver that the term ended.
    #[inline(always)]
    fn advance(&mut self, framed: usize) -> Option<usize> {
        let offset = self.term_offset;
        let end = offset + framed;
        self.store_tail(end);
        if end > self.limits.term_length {
            return None;
        }
        self.term_offset = end;
        Some(offset)
    }

    #[inline(always)]
    fn store_tail(&self, end: usize) {
        self.log
            .metadata()
            .put_raw_tail_release(self.partition, raw_tail::pack(self.term_id, end));
    }

    #[cold]
    #[inline(never)]
    fn trip(&mut self) -> Append {
        let term_length = self.limits.term_length;
        let offset = self.term_offset;
        if offset < term_length {
            let identity = self.log.identity(self.term_id);
            frame::put_padding(
                self.log.term(self.partition),
                offset,
                term_length - offset,
                identity,
            );
            self.term_offset = term_length;
        }
        if self.is_last_term() {
            return Append::MaxPositionExceeded;
        }
        self.rotate();
        Append::AdminAction
    }

    fn is_last_term(&self) -> bool {
        let end = self.term_begin + self.limits.term_length as i64;
        end >= self.limits.geometry.max_possible_position()
    }

    fn rotate(&mut self) {
        let term_count = self.limits.geometry.term_count(self.term_id);
        rotate_exclusive(self.log.metadata(), term_count, self.term_id);
        self.term_id = self.term_id.wrapping_add(1);
        self.partition = index_by_term_count(term_count.wrapping_add(1));
        self.term_offset = 0;
        self.term_begin += self.limits.term_length as i64;
    }

    fn check_block(&self, block: &[u8]) -> Result<(), BlockError> {
        let length = block.len();
        let remaining = self.limits.term_length - self.term_offset;
        if length == 0 || !length.is_multiple_of(FRAME_ALIGNMENT) || length > remaining {
            return Err(BlockError::Length { length, remaining });
        }
        let identity = self.log.identity(self.term_id);
        let expected = [
            (
                "term_offset",
                word(block, frame::TERM_OFFSET_OFFSET),
                self.term_offset as i32,
            ),
            (
                "session_id",
                word(block, frame::SESSION_ID_OFFSET),
                identity.session_id,
            ),
            (
                "stream_id",
                word(block, frame::STREAM_ID_OFFSET),
                identity.stream_id,
            ),
            ("term_id", word(block, frame::TERM_ID_OFFSET), identity.term_id),
            (
                "type",
                word(block, frame::VERSION_OFFSET) >> 16,
                i32::from(TYPE_DATA),
            ),
        ];
        for (field, value, expected) in expected {
            if value != expected {
                return Err(BlockError::FirstFrame {
                    field,
                    value,
                    expected,
                });
            }
        }
        let mut offset = 0;
        while offset < length {
            let frame_length = word(block, offset);
            let fits = usize::try_from(frame_length)
                .ok()
                .filter(|l| *l >= HEADER_LENGTH && align(*l, FRAME_ALIGNMENT) <= length - offset);
            let Some(fits) = fits else {
                return Err(BlockError::Frame { offset, frame_length });
            };
            offset += align(fits, FRAME_ALIGNMENT);
        }
        Ok(())
    }
}

/// A little-endian word of a block. Blocks are multiples of 32, so a word at a frame start is inside.
fn word(block: &[u8], offset: usize) -> i32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&block[offset..offset + 4]);
    i32::from_le_bytes(bytes)
}
