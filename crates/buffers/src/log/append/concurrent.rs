//! Appending to a log that any number of threads and processes share.
//!
//! Space is claimed by adding to the raw tail of the active partition. Of all claims in a term exactly one
//! begins inside it and ends beyond it; that claimant pads the term out. Each claimant that runs past the end
//! rotates, and all but one of them find it done.

use crate::{AtomicBuffer, Memory};

use super::claim::{Claim, ClaimResult};
use super::payload::{Gathered, Payload, Whole};
use super::{
    Append, AppendError, Limits, NoReservedValue, Progress, ReservedValue, UNFRAGMENTED_DATA, frame_span,
    write_fragments, write_frame,
};
use crate::log::buffers::LogBuffers;
use crate::log::descriptor::framed_length;
use crate::log::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH};
use crate::log::position::index_by_term_count;
use crate::log::raw_tail;
use crate::log::rotation::rotate;

/// How far after a claim the line is that is asked for. The add of each claim waits for all stores before it, and so for
/// each line of the frame before; a line that is already there costs no wait.
const PREFETCH_LENGTH: usize = 1024;

/// Appends to a concurrent publication. May be shared and cloned freely.
#[derive(Clone, Debug)]
pub struct ConcurrentAppender<M: Memory = AtomicBuffer> {
    log: LogBuffers<M>,
    limits: Limits,
}

/// A place that a claim won.
struct Slot<'a, M> {
    term: &'a M,
    term_id: i32,
    offset: usize,
    position: i64,
}

/// Where the stream stood when an append was let in.
struct Admission {
    partition: usize,
    offset: usize,
    position: i64,
}

/// Why there is no slot.
enum Stop {
    Refused(Append),
    Fault(AppendError),
}

impl<M: Memory> ConcurrentAppender<M> {
    /// Over a log that publications share.
    pub fn new(log: &LogBuffers<M>) -> Self {
        Self {
            log: log.clone(),
            limits: Limits::of(log),
        }
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

    /// Position after the last space claimed by any publisher.
    #[inline]
    pub fn position(&self) -> i64 {
        self.log.producer_position()
    }

    /// Appends a message gathered from `parts`, if the stream has not reached `limit`.
    #[inline]
    pub fn offer(&self, parts: &[&[u8]], limit: i64) -> Result<Append, AppendError> {
        match parts {
            [message] => self.offer_one(message, limit),
            _ => self.append(Gathered::new(parts), limit, NoReservedValue),
        }
    }

    /// Appends a message, if the stream has not reached `limit`.
    #[inline]
    pub fn offer_one(&self, message: &[u8], limit: i64) -> Result<Append, AppendError> {
        self.append(Whole(message), limit, NoReservedValue)
    }

    /// Appends messages in order until one is refused.
    ///
    /// A run of messages that need no fragments is claimed at once, so that the cost of claiming is shared. Each
    /// is published before the next is written, as the fragments of a long message are.
    pub fn offer_many(&self, messages: &[&[u8]], limit: i64) -> Result<Progress, AppendError> {
        let mut progress = Progress::default();
        while progress.accepted < messages.len() {
            let (count, outcome) = self.append_run(&messages[progress.accepted..], limit)?;
            if !progress.add(count, outcome) {
                break;
            }
        }
        Ok(progress)
    }

    /// Appends at least the first message, and with it those that fit into the same claim.
    fn append_run(&self, messages: &[&[u8]], limit: i64) -> Result<(usize, Append), AppendError> {
        let admission = match self.admit(messages[0].len(), limit) {
            Ok(admission) => admission,
            Err(stop) => return Result::from(stop).map(|refusal| (1, refusal)),
        };
        // A run never passes the limit by more than one message would, nor wastes the end of a term.
        let room = usize::try_from(limit - admission.position).unwrap_or(usize::MAX);
        let run_max = room
            .min(self.limits.term_length - admission.offset)
            .min(self.limits.max_message_length);
        let mut framed = 0;
        let mut count = 0;
        for message in messages {
            let span = frame_span(message.len());
            if message.len() > self.limits.max_payload_length || framed + span > run_max {
                break;
            }
            framed += span;
            count += 1;
        }
        if count < 2 {
            return Ok((1, self.append(Whole(messages[0]), limit, NoReservedValue)?));
        }
        match self.claim(admission.partition, framed) {
            Ok(slot) => {
                let identity = self.log.identity(slot.term_id);
                let mut at = slot.offset;
                for message in &messages[..count] {
                    write_frame(
                        slot.term,
                        at,
                        identity,
                        &mut Whole(message),
                        message.len(),
                        &mut NoReservedValue,
                    );
                    at += frame_span(message.len());
                }
                Ok((count, Append::Position(slot.position)))
            }
            Err(stop) => Result::from(stop).map(|refusal| (count, refusal)),
        }
    }

    /// As [`Self::offer`], asking `reserved` for the reserved value of each frame.
    #[inline]
    pub fn offer_reserved<R: ReservedValue<M>>(
        &self,
        parts: &[&[u8]],
        limit: i64,
        reserved: R,
    ) -> Result<Append, AppendError> {
        self.append(Gathered::new(parts), limit, reserved)
    }

    /// Claims a frame with `length` bytes of payload, to be filled in place.
    #[inline]
    pub fn try_claim(&self, length: usize, limit: i64) -> Result<ClaimResult<'_, M>, AppendError> {
        self.limits.check_claim(length)?;
        let slot = match self
            .admit(length, limit)
            .and_then(|admission| self.claim(admission.partition, frame_span(length)))
        {
            Ok(slot) => slot,
            Err(Stop::Refused(refusal)) => return Ok(ClaimResult::Refused(refusal)),
            Err(Stop::Fault(error)) => return Err(error),
        };
        let frame_length = HEADER_LENGTH + length;
        let identity = self.log.identity(slot.term_id);
        frame::claim(slot.term, slot.offset, frame_length, UNFRAGMENTED_DATA, identity);
        Ok(ClaimResult::Claimed(Claim::new(
            slot.term,
            slot.offset,
            frame_length,
            slot.position,
        )))
    }

    #[inline(always)]
    fn append<P: Payload, R: ReservedValue<M>>(
        &self,
        mut payload: P,
        limit: i64,
        mut reserved: R,
    ) -> Result<Append, AppendError> {
        let length = payload.length();
        let partition = match self.admit(length, limit) {
            Ok(admission) => admission.partition,
            Err(stop) => return stop.into(),
        };
        if length > self.limits.max_payload_length {
            return self.append_fragmented(&mut payload, partition, &mut reserved);
        }
        match self.claim(partition, frame_span(length)) {
            Ok(slot) => {
                let identity = self.log.identity(slot.term_id);
                write_frame(
                    slot.term,
                    slot.offset,
                    identity,
                    &mut payload,
                    length,
                    &mut reserved,
                );
                Ok(Append::Position(slot.position))
            }
            Err(stop) => stop.into(),
        }
    }

    #[inline(never)]
    fn append_fragmented<P: Payload, R: ReservedValue<M>>(
        &self,
        payload: &mut P,
        partition: usize,
        reserved: &mut R,
    ) -> Result<Append, AppendError> {
        let length = payload.length();
        if length > self.limits.max_message_length {
            return Err(self.limits.too_long(length));
        }
        let max_payload_length = self.limits.max_payload_length;
        match self.claim(partition, framed_length(length, max_payload_length)) {
            Ok(slot) => {
                let identity = self.log.identity(slot.term_id);
                write_fragments(
                    slot.term,
                    slot.offset,
                    identity,
                    payload,
                    max_payload_length,
                    reserved,
                );
                Ok(Append::Position(slot.position))
            }
            Err(stop) => stop.into(),
        }
    }

    /// The active partition and how far it is written, if the stream is below the limit.
    #[inline(always)]
    fn admit(&self, length: usize, limit: i64) -> Result<Admission, Stop> {
        let metadata = self.log.metadata();
        let geometry = self.limits.geometry;
        let term_count = metadata.active_term_count_acquire();
        let partition = index_by_term_count(term_count);
        let raw = metadata.raw_tail_acquire(partition);
        let term_id = raw_tail::term_id(raw);
        if term_count != geometry.term_count(term_id) {
            // Another publisher is between the two steps of a rotation.
            return Err(Stop::Refused(Append::AdminAction));
        }
        let offset = raw_tail::term_offset(raw, self.limits.term_length);
        let position = geometry.position(term_id, offset);
        // No claim at the end of all positions: each would add to a tail that no rotation sets back.
        if position >= limit.min(geometry.max_possible_position()) {
            return Err(Stop::Refused(self.limits.refusal(&self.log, position, length)));
        }
        Ok(Admission {
            partition,
            offset,
            position,
        })
    }

    /// Claims `framed` bytes. The partition may have moved on to a later term meanwhile, so where the claim
    /// lies is read from the value that the add returned.
    #[inline(always)]
    fn claim(&self, partition: usize, framed: usize) -> Result<Slot<'_, M>, Stop> {
        let raw = self.log.metadata().get_and_add_raw_tail(partition, framed);
        let offset = raw_tail::term_offset(raw, self.limits.term_length);
        let end = offset + framed;
        if (end > self.limits.term_length) | (!offset.is_multiple_of(FRAME_ALIGNMENT)) {
            return Err(self.trip(partition, raw, framed));
        }
        let term_id = raw_tail::term_id(raw);
        let term = self.log.term(partition);
        term.prefetch_to_write(end + PREFETCH_LENGTH);
        Ok(Slot {
            term,
            term_id,
            offset,
            position: self.limits.geometry.position(term_id, end),
        })
    }

    #[cold]
    #[inline(never)]
    fn trip(&self, partition: usize, raw: i64, framed: usize) -> Stop {
        let Limits {
            geometry,
            term_length,
            ..
        } = self.limits;
        let term_id = raw_tail::term_id(raw);
        let offset = raw_tail::term_offset(raw, term_length);
        if !offset.is_multiple_of(FRAME_ALIGNMENT) {
            return Stop::Fault(AppendError::CorruptTail {
                raw_tail: raw,
                active_term_count: self.log.metadata().active_term_count_acquire(),
            });
        }
        if offset < term_length {
            let identity = self.log.identity(term_id);
            frame::put_padding(self.log.term(partition), offset, term_length - offset, identity);
        }
        if geometry.position(term_id, offset + framed) >= geometry.max_possible_position() {
            return Stop::Refused(Append::MaxPositionExceeded);
        }
        rotate(self.log.metadata(), geometry.term_count(term_id), term_id);
        Stop::Refused(Append::AdminAction)
    }
}

impl From<Stop> for Result<Append, AppendError> {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => Ok(refusal),
            Stop::Fault(error) => Err(error),
        }
    }
}
