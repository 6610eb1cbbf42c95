//! The queue of commands from many clients to one driver.
//!
//! ```text
//! 0                C                                                             C + 768
//! | records        | trailer: each field alone on a 128-byte line                |
//!                    +128 tail position       producers, compare-and-set
//!                    +256 head cache          producers, a head they have seen
//!                    +384 head position       consumer
//!                    +512 correlation counter any client, fetch-and-add
//!                    +640 consumer heartbeat  consumer, epoch ms
//! ```
//!
//! Positions only grow; `position & (C - 1)` is the offset. The length of a record tells its state: 0 while it is
//! free, negative while a producer fills it, positive once it may be read. The consumer zeroes what it has read
//! before it moves the head, so a freshly claimed record always starts out free.
//!
//! The other side may be broken or hostile. A record whose length cannot be right makes [`ManyToOneRing::read`]
//! discard everything queued, because no record after it can be found any more, and say so.

use crate::AtomicBuffer;
use crate::align;
use crate::error::BufferError;
use crate::memory::Memory;
use crate::record::{self, ALIGNMENT, HEADER_LENGTH, PADDING_TYPE_ID};

/// Length of the fields after the data area.
pub const TRAILER_LENGTH: usize = 768;
/// Smallest data area. In a smaller one the longest message could fit neither after the tail nor before
/// the head of an empty ring, and would never be written.
pub const CAPACITY_MIN: usize = 32;

const TAIL_OFFSET: usize = 128;
const HEAD_CACHE_OFFSET: usize = 256;
const HEAD_OFFSET: usize = 384;
const CORRELATION_OFFSET: usize = 512;
const HEARTBEAT_OFFSET: usize = 640;

/// What a handler wants done with the message it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAction {
    /// The message is handled; go on.
    Continue,
    /// Leave the message in the ring, to be shown again, and stop.
    Abort,
}

/// A view of the ring. Any number of threads and processes may write; only one may read.
#[derive(Debug)]
pub struct ManyToOneRing<M: Memory = AtomicBuffer> {
    memory: M,
    capacity: usize,
    // Messages are handed out as private copies: their sender could still scribble over the shared ones.
    scratch: Vec<u8>,
}

impl<M: Memory + Clone> Clone for ManyToOneRing<M> {
    fn clone(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            capacity: self.capacity,
            scratch: Vec::new(),
        }
    }
}

impl<M: Memory> ManyToOneRing<M> {
    /// Lays a ring over a section, whose length includes the trailer.
    pub fn new(memory: M) -> Result<Self, BufferError> {
        let section_length = memory.capacity();
        let capacity = section_length.saturating_sub(TRAILER_LENGTH);
        if !capacity.is_power_of_two() || !(CAPACITY_MIN..=record::CAPACITY_MAX).contains(&capacity) {
            return Err(BufferError::Capacity {
                section_length,
                minimum: CAPACITY_MIN,
                maximum: record::CAPACITY_MAX,
            });
        }
        Ok(Self {
            memory,
            capacity,
            scratch: Vec::new(),
        })
    }

    /// Length of the data area.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Longest message that can be written.
    pub fn max_message_length(&self) -> usize {
        (self.capacity / 8).max(8)
    }

    /// Appends a message, from any thread. False when there is no room now.
    pub fn try_write(&self, type_id: i32, message: &[u8]) -> Result<bool, BufferError> {
        if type_id < 1 {
            return Err(BufferError::TypeId { type_id });
        }
        if message.len() > self.max_message_length() {
            return Err(BufferError::MessageTooLong {
                length: message.len(),
                maximum: self.max_message_length(),
            });
        }
        let record_length = HEADER_LENGTH + message.len();
        let Some(record) = self.claim(record_length)? else {
            return Ok(false);
        };
        let length = record_length as i32;
        self.memory.put_i32_release(record, -length);
        // The negative length must be seen before any of the rest, or the record could not be unblocked.
        self.memory.release_fence();
        self.memory
            .put_bytes_relaxed(record::message_offset(record), message);
        self.memory.put_i32(record::type_offset(record), type_id);
        // Pairs with the acquire in `read`.
        self.memory.put_i32_release(record, length);
        Ok(true)
    }

    /// Shows up to `limit` messages to `handler` and frees them; returns how many. For the one consumer only.
    ///
    /// On an error nothing was shown. After [`BufferError::CorruptRecord`] the ring is usable again, what was
    /// queued is gone; [`BufferError::CorruptPositions`] is permanent.
    pub fn read<F>(&mut self, limit: usize, mut handler: F) -> Result<usize, BufferError>
    where
        F: FnMut(i32, &[u8]) -> ReadAction,
    {
        let head = self.consumer_head();
        if !record::is_aligned(head) {
            return Err(self.corrupt_positions(head));
        }
        let start = self.index(head);
        let block = self.capacity - start;
        let (mut consumed, mut count) = (0, 0);
        while consumed < block && count < limit {
            let at = start + consumed;
            // Pairs with the release of the length in `try_write`.
            let length = self.memory.get_i32_acquire(at);
            if length <= 0 {
                break;
            }
            let aligned = align(length as usize, ALIGNMENT);
            // The producer moved the tail before it stored the length, so a genuine record ends at or before it.
            let room = self
                .queued(head)
                .min(block as i64)
                .saturating_sub(consumed as i64);
            if (length as usize) < HEADER_LENGTH || aligned as i64 > room {
                if consumed > 0 {
                    break; // Keep what was handled; the next call comes straight here.
                }
                return Err(self.discard_queued(head, length));
            }
            let type_id = self.memory.get_i32(record::type_offset(at));
            if type_id != PADDING_TYPE_ID {
                record::copy_message(&self.memory, at, length as usize, &mut self.scratch);
                if handler(type_id, &self.scratch) == ReadAction::Abort {
                    break;
                }
                count += 1;
            }
            consumed += aligned;
        }
        if consumed > 0 {
            self.free(head, consumed);
        }
        Ok(count)
    }

    /// Draws an id that is unique for the life of the driver, from any thread.
    pub fn next_correlation_id(&self) -> i64 {
        self.memory.get_and_add_i64(self.capacity + CORRELATION_OFFSET, 1)
    }

    /// When the consumer last said that it is alive, epoch ms; 0 before it started and -1 after it stopped.
    pub fn consumer_heartbeat_ms(&self) -> i64 {
        self.memory.get_i64_acquire(self.capacity + HEARTBEAT_OFFSET)
    }

    /// Says that the consumer is alive. For the consumer only.
    pub fn put_consumer_heartbeat_ms(&self, time_ms: i64) {
        self.memory
            .put_i64_release(self.capacity + HEARTBEAT_OFFSET, time_ms);
    }

    /// End of what producers have claimed.
    pub fn producer_position(&self) -> i64 {
        self.memory.get_i64_acquire(self.capacity + TAIL_OFFSET)
    }

    /// End of what the consumer has freed.
    pub fn consumer_position(&self) -> i64 {
        self.memory.get_i64_acquire(self.capacity + HEAD_OFFSET)
    }

    /// Turns the record at the head, whose producer died before committing it, into padding. For the consumer
    /// only, and only when the head has not moved for longer than any live producer could take. True if it did.
    pub fn unblock(&self) -> bool {
        let head = self.consumer_head();
        let tail = self.producer_position();
        if head == tail || !record::is_aligned(head) || !record::is_aligned(tail) {
            return false;
        }
        let consumer = self.index(head);
        let producer = self.index(tail);
        let length = self.memory.get_i32_acquire(consumer);
        if length < 0 {
            // A length without a positive counterpart becomes one that `read` finds corrupt.
            self.commit_padding(consumer, length.checked_neg().unwrap_or(i32::MAX));
            return true;
        }
        if length > 0 {
            return false;
        }
        // The producer died between moving the tail and storing its length. The gap ends at the next record
        // with a length, if a later producer has got that far.
        let wrapped = producer <= consumer;
        let limit = if wrapped { self.capacity } else { producer };
        let next = (consumer + ALIGNMENT..limit)
            .step_by(ALIGNMENT)
            .find(|offset| self.memory.get_i32_acquire(*offset) != 0)
            // A gap that reaches the end shows only in the record at the front.
            .or_else(|| (wrapped && self.memory.get_i32_acquire(0) != 0).then_some(self.capacity));
        match next {
            // Looking back guards against a record that a producer was writing during the first look.
            Some(next) if self.is_free(consumer, next) => {
                self.commit_padding(consumer, (next - consumer) as i32);
                true
            }
            _ => false,
        }
    }

    /// Reserves a record for this producer. None when there is no room.
    pub(crate) fn claim(&self, record_length: usize) -> Result<Option<usize>, BufferError> {
        let need = align(record_length, ALIGNMENT);
        let tail_offset = self.capacity + TAIL_OFFSET;
        let head_cache_offset = self.capacity + HEAD_CACHE_OFFSET;
        let mut head = self.memory.get_i64_acquire(head_cache_offset);
        loop {
            let tail = self.memory.get_i64_acquire(tail_offset);
            if !record::is_aligned(tail) {
                return Err(self.corrupt_positions(self.consumer_position()));
            }
            if need as i64 > self.room(head, tail) {
                head = self.consumer_position();
                if need as i64 > self.room(head, tail) {
                    return Ok(None);
                }
                self.memory.put_i64_release(head_cache_offset, head);
            }
            let index = self.index(tail);
            let to_end = self.capacity - index;
            let padding = if need > to_end { to_end } else { 0 };
            if padding > 0 && need > self.index(head) {
                head = self.consumer_position();
                if need > self.index(head) {
                    return Ok(None);
                }
                self.memory.put_i64_release(head_cache_offset, head);
            }
            let new_tail = tail.wrapping_add((need + padding) as i64);
            if self.memory.compare_and_set_i64(tail_offset, tail, new_tail) {
                if padding == 0 {
                    return Ok(Some(index));
                }
                self.memory.put_i32_release(index, -(padding as i32));
                self.memory.release_fence();
                self.commit_padding(index, padding as i32);
                return Ok(Some(0));
            }
        }
    }

    fn commit_padding(&self, record: usize, length: i32) {
        self.memory.put_i32(record::type_offset(record), PADDING_TYPE_ID);
        self.memory.put_i32_release(record, length);
    }

    /// Hands `length` bytes at the head, which do not wrap, back to the producers.
    fn free(&self, head: i64, length: usize) {
        self.memory.zero(self.index(head), length);
        // Pairs with the acquire of the head in `claim`: a producer given these bytes finds them zero.
        self.memory
            .put_i64_release(self.capacity + HEAD_OFFSET, head.wrapping_add(length as i64));
    }

    fn discard_queued(&self, head: i64, length: i32) -> BufferError {
        let queued = self.queued(head);
        if !record::is_aligned(queued) || queued < ALIGNMENT as i64 || queued > self.capacity as i64 {
            return self.corrupt_positions(head);
        }
        let queued = queued as usize;
        let first = queued.min(self.capacity - self.index(head));
        self.free(head, first);
        if queued > first {
            self.free(head.wrapping_add(first as i64), queued - first);
        }
        BufferError::CorruptRecord {
            position: head,
            length,
        }
    }

    fn corrupt_positions(&self, head: i64) -> BufferError {
        BufferError::CorruptPositions {
            head,
            tail: self.producer_position(),
        }
    }

    fn is_free(&self, from: usize, to: usize) -> bool {
        (from..to)
            .step_by(ALIGNMENT)
            .rev()
            .all(|offset| self.memory.get_i32_acquire(offset) == 0)
    }

    /// How much producers have claimed after the head; anything at all once positions are damaged.
    #[inline]
    fn queued(&self, head: i64) -> i64 {
        self.producer_position().wrapping_sub(head)
    }

    // Owned by the consumer, who needs no order to read its own store.
    fn consumer_head(&self) -> i64 {
        self.memory.get_i64(self.capacity + HEAD_OFFSET)
    }

    #[inline]
    fn index(&self, position: i64) -> usize {
        position as usize & (self.capacity - 1)
    }

    // The head may have been read before or after the tail moved past it, so the result can lie outside
    // 0..=capacity; the compare-and-set of the tail then fails.
    #[inline]
    fn room(&self, head: i64, tail: i64) -> i64 {
        (self.capacity as i64).saturating_sub(tail.wrapping_sub(head))
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod loom_models;
