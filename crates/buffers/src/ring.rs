//! The queue of commands from many clients to one driver.
//!
//! ```text
//! 0                C                                                             C + 768
//! | records        | trailer: each field alone on a 128-byte line                |
//!                    +128 tail position       producers, compare-and-set
//!                    +256 head cache          producers, a head they have seen
//!                    +384 head position       consumer
//!                    +512 correlation counter anybody, fetch-and-add
//!                    +640 consumer heartbeat  consumer, epoch ms
//! ```
//!
//! Positions only grow; `position & (C - 1)` is the offset. The length of a record tells its state: 0 while it is
//! free, negative while a producer fills it, positive once it may be read. The consumer zeroes what it has read
//! before it moves the head, so a freshly claimed record always starts out free.
//!
//! The other side may be broken or hostile. A record whose length cannot be right makes [`ManyToOneRing::read`]
//! discard everything queued, because nothing behind such a record can be told apart any more, and say so.

use crate::AtomicBuffer;
use crate::align;
use crate::error::BufferError;
use crate::memory::Memory;
use crate::record::{self, ALIGNMENT, HEADER_LENGTH, PADDING_TYPE_ID};

/// Length of the fields behind the data area.
pub const TRAILER_LENGTH: usize = 768;
/// Smallest data area.
pub const CAPACITY_MIN: usize = 8;

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
        if self.capacity == CAPACITY_MIN {
            0
        } else {
            (self.capacity / 8).max(8)
        }
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
            if (length as usize) < HEADER_LENGTH || aligned > block - consumed {
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
            // Looking back guards against a record that was being written behind the first look.
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
        let tail = self.producer_position();
        let queued = tail.wrapping_sub(head);
        if !record::is_aligned(tail) || queued < ALIGNMENT as i64 || queued > self.capacity as i64 {
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
mod tests {
    use super::*;

    fn ring(capacity: usize) -> ManyToOneRing {
        ManyToOneRing::new(AtomicBuffer::allocate(capacity + TRAILER_LENGTH)).unwrap()
    }

    fn drain(ring: &mut ManyToOneRing) -> Vec<(i32, Vec<u8>)> {
        let mut seen = Vec::new();
        loop {
            let before = ring.consumer_position();
            let show = |type_id, message: &[u8]| {
                seen.push((type_id, message.to_vec()));
                ReadAction::Continue
            };
            ring.read(usize::MAX, show).unwrap();
            // A turn that meets nothing but padding shows no message and still makes way.
            if ring.consumer_position() == before {
                return seen;
            }
        }
    }

    #[test]
    fn messages_come_out_in_order_with_their_types() {
        let mut ring = ring(1024);
        assert!(ring.try_write(1, b"one").unwrap());
        assert!(ring.try_write(2, b"").unwrap());
        assert_eq!(drain(&mut ring), [(1, b"one".to_vec()), (2, b"".to_vec())]);
        assert_eq!(ring.consumer_position(), ring.producer_position());
    }

    #[test]
    fn a_record_has_the_documented_bytes() {
        let ring = ring(1024);
        ring.try_write(7, &[0xaa, 0xbb, 0xcc]).unwrap();
        let mut bytes = [0; 16];
        ring.memory.get_bytes(0, &mut bytes);
        assert_eq!(bytes, [11, 0, 0, 0, 7, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0, 0, 0, 0, 0]);
        assert_eq!(ring.memory.get_i64(1024 + 128), 16);
    }

    #[test]
    fn a_message_that_would_straddle_the_end_starts_over_behind_padding() {
        let mut ring = ring(64);
        for _ in 0..3 {
            ring.try_write(1, &[1; 8]).unwrap(); // 16 bytes each: index 48
        }
        ring.try_write(1, &[]).unwrap(); // 8 bytes: index 56
        assert_eq!(drain(&mut ring).len(), 4);
        assert!(ring.try_write(2, &[2; 8]).unwrap());
        assert_eq!(ring.producer_position(), 64 + 16);
        assert_eq!(ring.memory.get_i32(56 + 4), PADDING_TYPE_ID);
        assert_eq!(drain(&mut ring), [(2, vec![2; 8])]);
    }

    #[test]
    fn a_full_ring_refuses_until_something_is_read() {
        let mut ring = ring(64);
        for _ in 0..4 {
            assert!(ring.try_write(1, &[0; 8]).unwrap());
        }
        assert!(!ring.try_write(1, &[0; 8]).unwrap());
        assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1));
        assert!(ring.try_write(1, &[0; 8]).unwrap());
    }

    #[test]
    fn wrapping_needs_room_at_the_front() {
        let mut ring = ring(64);
        ring.try_write(1, &[]).unwrap();
        for _ in 0..3 {
            ring.try_write(1, &[0; 8]).unwrap(); // tail index 56
        }
        assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1)); // head index 8
        assert!(!ring.try_write(1, &[0; 8]).unwrap()); // 8 at the end and 8 at the front do not make 16
        assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1));
        assert!(ring.try_write(1, &[0; 8]).unwrap());
    }

    #[test]
    fn an_aborted_message_is_shown_again() {
        let mut ring = ring(64);
        ring.try_write(1, b"a").unwrap();
        ring.try_write(2, b"b").unwrap();
        let shown = ring.read(10, |type_id, _| {
            if type_id == 2 {
                ReadAction::Abort
            } else {
                ReadAction::Continue
            }
        });
        assert_eq!(shown, Ok(1));
        assert_eq!(drain(&mut ring), [(2, b"b".to_vec())]);
    }

    #[test]
    fn misuse_is_an_error() {
        let ring = ring(64);
        assert_eq!(ring.try_write(0, b""), Err(BufferError::TypeId { type_id: 0 }));
        let (length, maximum) = (9, 8);
        assert_eq!(
            ring.try_write(1, &[0; 9]),
            Err(BufferError::MessageTooLong { length, maximum })
        );
        assert!(ManyToOneRing::new(AtomicBuffer::allocate(TRAILER_LENGTH)).is_err());
        assert!(ManyToOneRing::new(AtomicBuffer::allocate(TRAILER_LENGTH + 24)).is_err());
    }

    #[test]
    fn correlation_ids_count_up_from_zero() {
        let ring = ring(64);
        assert_eq!((ring.next_correlation_id(), ring.next_correlation_id()), (0, 1));
    }

    #[test]
    fn a_producer_that_died_while_copying_is_unblocked() {
        let mut ring = ring(64);
        let dead = ring.claim(16).unwrap().unwrap();
        ring.memory.put_i32_release(dead, -16);
        ring.try_write(3, b"alive").unwrap();
        assert_eq!(drain(&mut ring), []);
        assert!(ring.unblock());
        assert_eq!(drain(&mut ring), [(3, b"alive".to_vec())]);
        assert!(!ring.unblock());
    }

    #[test]
    fn a_producer_that_died_before_storing_its_length_is_unblocked() {
        let mut ring = ring(64);
        ring.claim(16).unwrap().unwrap();
        assert!(!ring.unblock()); // Nobody behind it yet, so its end is unknown.
        ring.try_write(3, b"alive").unwrap();
        assert!(ring.unblock());
        assert_eq!(drain(&mut ring), [(3, b"alive".to_vec())]);
    }

    #[test]
    fn a_producer_that_died_just_before_the_end_is_unblocked() {
        let mut ring = ring(64);
        for _ in 0..3 {
            ring.try_write(1, &[0; 8]).unwrap();
        }
        drain(&mut ring);
        ring.claim(16).unwrap().unwrap();
        assert!(!ring.unblock());
        ring.try_write(3, b"front").unwrap();
        assert!(ring.unblock());
        assert_eq!(drain(&mut ring), [(3, b"front".to_vec())]);
    }

    #[test]
    fn a_record_of_impossible_length_empties_the_ring_and_is_reported() {
        for length in [7, 17, 64, i32::MAX] {
            let mut ring = ring(64);
            // Leave the head in the middle so that what is queued wraps.
            ring.try_write(1, &[0; 8]).unwrap();
            ring.try_write(1, &[0; 8]).unwrap();
            ring.try_write(1, &[0; 8]).unwrap();
            drain(&mut ring);
            ring.try_write(1, &[0; 8]).unwrap();
            ring.try_write(1, &[0; 8]).unwrap();
            ring.memory.put_i32(48, length);
            let position = 48;
            assert_eq!(
                ring.read(9, |_, _| panic!("a corrupt record was shown")),
                Err(BufferError::CorruptRecord { position, length })
            );
            assert_eq!(ring.read(9, |_, _| ReadAction::Continue), Ok(0));
            ring.try_write(5, b"again").unwrap();
            assert_eq!(drain(&mut ring), [(5, b"again".to_vec())]);
        }
    }

    #[test]
    fn misaligned_positions_are_an_error() {
        let mut ring = ring(64);
        ring.memory.put_i64(64 + TAIL_OFFSET, 3);
        assert!(matches!(
            ring.try_write(1, b""),
            Err(BufferError::CorruptPositions { .. })
        ));
        assert!(!ring.unblock());
        ring.memory.put_i64(64 + HEAD_OFFSET, 5);
        assert!(matches!(
            ring.read(1, |_, _| ReadAction::Continue),
            Err(BufferError::CorruptPositions { head: 5, tail: 3 })
        ));
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;
    use crate::loom_memory::{LoomMemory, model};

    const CAPACITY: usize = 64;

    /// An empty ring whose next record goes to `position`.
    fn ring_at(position: i64) -> ManyToOneRing<LoomMemory> {
        let fields = [TAIL_OFFSET, HEAD_CACHE_OFFSET, HEAD_OFFSET].map(|offset| CAPACITY + offset);
        let memory = LoomMemory::new(CAPACITY + TRAILER_LENGTH, &[0..CAPACITY], &fields);
        for field in fields {
            memory.put_i64(field, position);
        }
        ManyToOneRing::new(memory).unwrap()
    }

    fn read_into(ring: &mut ManyToOneRing<LoomMemory>, seen: &mut Vec<i32>) {
        ring.read(9, |type_id, message| {
            assert_eq!(message, type_id.to_ne_bytes(), "a message was torn");
            seen.push(type_id);
            ReadAction::Continue
        })
        .unwrap();
    }

    fn write(ring: &ManyToOneRing<LoomMemory>, type_id: i32) -> bool {
        ring.try_write(type_id, &type_id.to_ne_bytes()).unwrap()
    }

    fn spawn_producer(ring: &ManyToOneRing<LoomMemory>, type_id: i32) -> thread::JoinHandle<bool> {
        let ring = ring.clone();
        thread::spawn(move || write(&ring, type_id))
    }

    /// The rest is read; every message came once, and the ring is as good as new.
    fn assert_drained(ring: &mut ManyToOneRing<LoomMemory>, mut seen: Vec<i32>, expected: &[i32]) {
        while ring.consumer_position() != ring.producer_position() {
            read_into(ring, &mut seen);
        }
        seen.sort_unstable();
        assert_eq!(seen, expected);
        for offset in (0..CAPACITY).step_by(4) {
            let word = ring.memory.get_i32(offset);
            assert_eq!(word, 0, "offset={offset} was not handed back clean");
        }
    }

    fn producers_against_spawned_consumer(position: i64) {
        let mut ring = ring_at(position);
        let consumer = {
            let mut ring = ring.clone();
            thread::spawn(move || {
                let mut seen = Vec::new();
                read_into(&mut ring, &mut seen);
                seen
            })
        };
        let producer = spawn_producer(&ring, 1);
        assert!(write(&ring, 2));
        assert!(producer.join().unwrap());
        let seen = consumer.join().unwrap();
        assert_drained(&mut ring, seen, &[1, 2]);
    }

    fn spawned_producers_against_consumer(position: i64) {
        let mut ring = ring_at(position);
        let producers = [1, 2].map(|type_id| spawn_producer(&ring, type_id));
        let mut seen = Vec::new();
        read_into(&mut ring, &mut seen);
        assert!(producers.into_iter().all(|producer| producer.join().unwrap()));
        assert_drained(&mut ring, seen, &[1, 2]);
    }

    #[test]
    fn loom_ring_delivers_each_message_once_and_whole() {
        model(2, || producers_against_spawned_consumer(0));
        model(2, || spawned_producers_against_consumer(0));
    }

    #[test]
    fn loom_ring_wraps_behind_padding() {
        // 8 bytes to the end: whoever comes first pads them.
        model(2, || producers_against_spawned_consumer(CAPACITY as i64 - 8));
        model(2, || spawned_producers_against_consumer(CAPACITY as i64 - 8));
    }

    #[test]
    fn loom_ring_producer_reuses_only_what_was_handed_back_clean() {
        model(3, || {
            let mut ring = ring_at(0);
            (1..=4).for_each(|type_id| assert!(write(&ring, type_id)));
            let producer = spawn_producer(&ring, 5);
            let mut seen = Vec::new();
            read_into(&mut ring, &mut seen);
            let written = producer.join().unwrap();
            let expected: &[i32] = if written { &[1, 2, 3, 4, 5] } else { &[1, 2, 3, 4] };
            assert_drained(&mut ring, seen, expected);
        });
    }

    /// One producer died, with or without having stored its length; another writes while the consumer unblocks.
    fn unblock_race(position: i64, stored_length: i32) {
        let mut ring = ring_at(position);
        let dead = ring.claim(16).unwrap().unwrap();
        ring.memory.put_i32(dead, stored_length);
        let consumer = {
            let mut ring = ring.clone();
            thread::spawn(move || {
                let mut seen = Vec::new();
                let unblocked = ring.unblock();
                read_into(&mut ring, &mut seen);
                (unblocked, seen)
            })
        };
        assert!(write(&ring, 7));
        let (unblocked, seen) = consumer.join().unwrap();
        assert!(unblocked || ring.unblock());
        assert_drained(&mut ring, seen, &[7]);
    }

    #[test]
    fn loom_ring_unblock_never_harms_a_live_producer() {
        for position in [0, CAPACITY as i64 - 16] {
            model(3, move || unblock_race(position, -16));
            model(3, move || unblock_race(position, 0));
        }
    }
}
