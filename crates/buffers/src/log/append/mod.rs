//! Appending messages to a log.
//!
//! A refusal that a publisher meets in normal running (no receiver, no room, a term change) is a value of
//! [`Append`]; a message that no log could take, or a log that makes no sense, is an [`AppendError`].

mod claim;
mod concurrent;
mod exclusive;
mod payload;

pub use claim::{Claim, ClaimResult};
pub use concurrent::ConcurrentAppender;
pub use exclusive::{BlockError, ExclusiveAppender, RecordedEnd, RecordedResult};

use crate::{Memory, align};

use super::buffers::LogBuffers;
use super::descriptor::{max_message_length, max_payload_length};
use super::frame::{
    self, FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, FRAME_ALIGNMENT, HEADER_LENGTH, TYPE_DATA, TermIdentity,
};
use super::position::TermGeometry;
use payload::Payload;

/// What became of an append. None of these is a fault; the caller decides whether to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Append {
    /// Accepted; the stream position after the message.
    Position(i64),
    /// The receivers have no room yet.
    BackPressured,
    /// There is no receiver.
    NotConnected,
    /// The stream is moving to its next term; retry at once.
    AdminAction,
    /// The publication is closed. Never returned by an appender: its owner knows.
    Closed,
    /// The stream is exhausted; only a new publication can go on.
    MaxPositionExceeded,
}

/// What became of several messages offered in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages accepted, from the first on.
    pub accepted: usize,
    /// Stream position after the last message accepted, if any was.
    pub position: Option<i64>,
    /// What the next message met; nothing when all were accepted.
    pub refused: Option<Append>,
}

impl Progress {
    /// Adds the outcome of offering `count` more messages; true when they were accepted.
    #[inline]
    pub fn add(&mut self, count: usize, outcome: Append) -> bool {
        if let Append::Position(position) = outcome {
            self.accepted += count;
            self.position = Some(position);
            return true;
        }
        self.refused = Some(outcome);
        false
    }
}

/// An append that can never succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The message exceeds what the terms can take.
    #[error("message length={length} exceeds max_message_length={max}")]
    MessageTooLong {
        /// Asked for.
        length: usize,
        /// Largest possible.
        max: usize,
    },
    /// A claim is a single frame.
    #[error("claim length={length} exceeds max_payload_length={max}")]
    ClaimTooLong {
        /// Asked for.
        length: usize,
        /// Largest possible.
        max: usize,
    },
    /// Padding is at most what the longest message occupies.
    #[error("padding length={length} exceeds max_framed_length={max}")]
    PaddingTooLong {
        /// Asked for.
        length: usize,
        /// Largest possible.
        max: usize,
    },
    /// A block of frames was refused.
    #[error("block refused: {0}")]
    Block(#[from] BlockError),
    /// The metadata was written by no sound publisher.
    #[error("log is corrupt: raw_tail={raw_tail:#018x} active_term_count={active_term_count}")]
    CorruptTail {
        /// Tail as found.
        raw_tail: i64,
        /// Rotations as found.
        active_term_count: i32,
    },
}

/// Computes the reserved value of each frame, once its payload is in place and before it is visible.
///
/// Implemented by functions of the term, the offset of the frame and its length.
pub trait ReservedValue<M: Memory> {
    /// False compiles the store away.
    const SUPPLIED: bool;
    /// The value to store.
    fn value(&mut self, term: &M, offset: usize, length: usize) -> i64;
}

impl<M: Memory, F: FnMut(&M, usize, usize) -> i64> ReservedValue<M> for F {
    const SUPPLIED: bool = true;
    #[inline]
    fn value(&mut self, term: &M, offset: usize, length: usize) -> i64 {
        self(term, offset, length)
    }
}

/// Leaves the reserved value zero, as the clean term has it.
#[derive(Clone, Copy, Debug)]
pub struct NoReservedValue;

impl<M: Memory> ReservedValue<M> for NoReservedValue {
    const SUPPLIED: bool = false;
    #[inline]
    fn value(&mut self, _: &M, _: usize, _: usize) -> i64 {
        0
    }
}

/// Constants of a publication that every append needs.
#[derive(Clone, Copy, Debug)]
struct Limits {
    geometry: TermGeometry,
    term_length: usize,
    max_payload_length: usize,
    max_message_length: usize,
}

impl Limits {
    fn of<M: Memory>(log: &LogBuffers<M>) -> Self {
        Self {
            geometry: log.geometry(),
            term_length: log.term_length(),
            max_payload_length: max_payload_length(log.mtu()),
            max_message_length: max_message_length(log.term_length()),
        }
    }

    /// Why there is no room at `position`.
    #[cold]
    fn refusal<M: Memory>(&self, log: &LogBuffers<M>, position: i64, length: usize) -> Append {
        let needed = align(length.saturating_add(HEADER_LENGTH).min(1 << 40), FRAME_ALIGNMENT);
        if position.saturating_add(needed as i64) >= self.geometry.max_possible_position() {
            Append::MaxPositionExceeded
        } else if log.metadata().is_connected_acquire() {
            Append::BackPressured
        } else {
            Append::NotConnected
        }
    }

    #[cold]
    fn too_long(&self, length: usize) -> AppendError {
        AppendError::MessageTooLong {
            length,
            max: self.max_message_length,
        }
    }

    fn check_claim(&self, length: usize) -> Result<(), AppendError> {
        if length > self.max_payload_length {
            return Err(AppendError::ClaimTooLong {
                length,
                max: self.max_payload_length,
            });
        }
        Ok(())
    }
}

const UNFRAGMENTED_DATA: i32 = frame::kind(FLAGS_UNFRAGMENTED, TYPE_DATA);

/// Bytes that a frame with `length` bytes of payload occupies.
#[inline(always)]
const fn frame_span(length: usize) -> usize {
    align(length + HEADER_LENGTH, FRAME_ALIGNMENT)
}

/// Writes one message as one frame into space that this caller owns, and publishes it.
#[inline(always)]
fn write_frame<M: Memory, P: Payload, R: ReservedValue<M>>(
    term: &M,
    offset: usize,
    identity: TermIdentity,
    payload: &mut P,
    length: usize,
    reserved: &mut R,
) {
    let frame_length = HEADER_LENGTH + length;
    frame::claim(term, offset, frame_length, UNFRAGMENTED_DATA, identity);
    payload.put_all(term, offset + HEADER_LENGTH);
    finish(term, offset, frame_length, reserved);
}

/// Writes one message as a run of frames, full but for the last, publishing each before the next.
fn write_fragments<M: Memory, P: Payload, R: ReservedValue<M>>(
    term: &M,
    offset: usize,
    identity: TermIdentity,
    payload: &mut P,
    max_payload_length: usize,
    reserved: &mut R,
) {
    let mut remaining = payload.length();
    let mut at = offset;
    let mut flags = FLAG_BEGIN;
    while remaining > 0 {
        let length = remaining.min(max_payload_length);
        remaining -= length;
        if remaining == 0 {
            flags |= FLAG_END;
        }
        let frame_length = HEADER_LENGTH + length;
        frame::claim(term, at, frame_length, frame::kind(flags, TYPE_DATA), identity);
        payload.put_next(term, at + HEADER_LENGTH, length);
        finish(term, at, frame_length, reserved);
        at += frame_span(length);
        flags = 0;
    }
}

#[inline(always)]
fn finish<M: Memory, R: ReservedValue<M>>(term: &M, offset: usize, frame_length: usize, reserved: &mut R) {
    if R::SUPPLIED {
        let value = reserved.value(term, offset, frame_length);
        term.put_i64(offset + frame::RESERVED_VALUE_OFFSET, value);
    }
    frame::commit(term, offset, frame_length);
}

#[cfg(test)]
mod tests;
