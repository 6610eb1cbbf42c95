//! The stream of events from one driver to any number of clients.
//!
//! ```text
//! 0             C                                     C + 128
//! | records     | +0 tail intent  +8 tail  +16 latest |
//! ```
//!
//! The transmitter never waits: it announces in `tail intent` how far it is about to overwrite, writes the record,
//! then publishes it. A receiver copies a record word by word, and only then looks whether the intent had
//! meanwhile come round to it; if so the copy is worthless and the receiver has been lapped.

use crate::AtomicBuffer;
use crate::align;
use crate::error::BufferError;
use crate::memory::Memory;
use crate::record::{self, ALIGNMENT, HEADER_LENGTH, PADDING_TYPE_ID};

/// Length of the fields after the data area.
pub const TRAILER_LENGTH: usize = 128;
/// Smallest data area: an eighth of it holds at least a record header.
pub const CAPACITY_MIN: usize = 64;

const INTENT_OFFSET: usize = 0;
const TAIL_OFFSET: usize = 8;
const LATEST_OFFSET: usize = 16;

fn check_capacity(section_length: usize) -> Result<usize, BufferError> {
    let capacity = section_length.saturating_sub(TRAILER_LENGTH);
    if capacity.is_power_of_two() && (CAPACITY_MIN..=record::CAPACITY_MAX).contains(&capacity) {
        return Ok(capacity);
    }
    Err(BufferError::Capacity {
        section_length,
        minimum: CAPACITY_MIN,
        maximum: record::CAPACITY_MAX,
    })
}

/// The one writer.
#[derive(Debug)]
pub struct Transmitter<M: Memory = AtomicBuffer> {
    memory: M,
    capacity: usize,
}

impl<M: Memory> Transmitter<M> {
    /// Lays the broadcast over a section, whose length includes the trailer.
    pub fn new(memory: M) -> Result<Self, BufferError> {
        let capacity = check_capacity(memory.capacity())?;
        Ok(Self { memory, capacity })
    }

    /// Length of the data area.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Longest message that can be sent.
    pub fn max_message_length(&self) -> usize {
        self.capacity / 8
    }

    /// Sends a message to every receiver. Never waits for one.
    pub fn transmit(&mut self, type_id: i32, message: &[u8]) -> Result<(), BufferError> {
        if type_id < 1 {
            return Err(BufferError::TypeId { type_id });
        }
        let maximum = self.max_message_length();
        if message.len() > maximum {
            let length = message.len();
            return Err(BufferError::MessageTooLong { length, maximum });
        }
        let trailer = self.capacity;
        let mut position = self.memory.get_i64(trailer + TAIL_OFFSET);
        if !record::is_aligned(position) {
            return Err(BufferError::CorruptPositions {
                head: position,
                tail: position,
            });
        }
        let length = HEADER_LENGTH + message.len();
        let aligned = align(length, ALIGNMENT);
        let mut offset = position as usize & (self.capacity - 1);
        let to_end = self.capacity - offset;
        let padding = if to_end < aligned { to_end } else { 0 };
        let end = position.wrapping_add((padding + aligned) as i64);

        self.memory.put_i64_release(trailer + INTENT_OFFSET, end);
        // Pairs with the acquire fence in `receive`: a reader of a word stored below also sees the intent.
        self.memory.release_fence();
        if padding > 0 {
            self.memory.put_i32(offset, padding as i32);
            self.memory.put_i32(record::type_offset(offset), PADDING_TYPE_ID);
            position = position.wrapping_add(padding as i64);
            offset = 0;
        }
        self.memory.put_i32(offset, length as i32);
        self.memory.put_i32(record::type_offset(offset), type_id);
        self.memory
            .put_bytes_relaxed(record::message_offset(offset), message);
        self.memory.put_i64_release(trailer + LATEST_OFFSET, position);
        // Pairs with the acquire of the tail in `receive`.
        self.memory.put_i64_release(trailer + TAIL_OFFSET, end);
        Ok(())
    }
}

/// The receiver was so slow that messages it had not read were overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unable to keep up with the broadcast: messages were lost")]
pub struct LappedError;

/// One reader; each has its own place in the stream.
#[derive(Debug)]
pub struct Receiver<M: Memory = AtomicBuffer> {
    memory: M,
    capacity: usize,
    next: i64,
}

impl<M: Memory> Receiver<M> {
    /// Starts at the newest message, so that history is not seen.
    pub fn new(memory: M) -> Result<Self, BufferError> {
        let capacity = check_capacity(memory.capacity())?;
        let next = memory.get_i64_acquire(capacity + LATEST_OFFSET);
        Ok(Self {
            memory,
            capacity,
            next,
        })
    }

    /// Copies the next message, if there is one, into `scratch`, and returns its type.
    ///
    /// After [`LappedError`] the receiver goes on with the newest message. Memory that makes no sense looks the same
    /// as being lapped, and is reported so.
    pub fn receive(&mut self, scratch: &mut Vec<u8>) -> Result<Option<i32>, LappedError> {
        // Pairs with the release of the tail in `transmit`.
        let tail = self.memory.get_i64_acquire(self.capacity + TAIL_OFFSET);
        if tail <= self.next {
            return Ok(None);
        }
        match self.copy_record(scratch) {
            Some((type_id, end)) => {
                self.next = end;
                Ok(Some(type_id))
            }
            None => {
                self.next = self.memory.get_i64_acquire(self.capacity + LATEST_OFFSET);
                Err(LappedError)
            }
        }
    }

    /// Type of the record at `next` and the position after it; None if it was overwritten.
    fn copy_record(&self, scratch: &mut Vec<u8>) -> Option<(i32, i64)> {
        let mut cursor = self.next;
        if !self.is_intact(cursor) {
            return None;
        }
        let (mut type_id, mut length) = self.header(cursor)?;
        if type_id == PADDING_TYPE_ID {
            cursor = cursor.wrapping_add(align(length, ALIGNMENT) as i64);
            if self.index(cursor) != 0 {
                return None; // Padding always reaches to the end.
            }
            (type_id, length) = self.header(cursor)?;
        }
        record::copy_message(&self.memory, self.index(cursor), length, scratch);
        // Pairs with the release fence in `transmit`.
        self.memory.acquire_fence();
        let end = cursor.wrapping_add(align(length, ALIGNMENT) as i64);
        self.is_intact(cursor).then_some((type_id, end))
    }

    /// Type and length of a record. The words may be anything if the record was overwritten, so the length is
    /// only returned when copying that much is safe.
    fn header(&self, position: i64) -> Option<(i32, usize)> {
        if !record::is_aligned(position) {
            return None;
        }
        let offset = self.index(position);
        let length = usize::try_from(self.memory.get_i32(offset)).ok()?;
        let fits = (HEADER_LENGTH..=self.capacity - offset).contains(&length);
        fits.then(|| (self.memory.get_i32(record::type_offset(offset)), length))
    }

    /// Whether the transmitter has not yet announced that it overwrites `position`.
    fn is_intact(&self, position: i64) -> bool {
        let intent = self.memory.get_i64_acquire(self.capacity + INTENT_OFFSET);
        position.saturating_add(self.capacity as i64) > intent
    }

    #[inline]
    fn index(&self, position: i64) -> usize {
        position as usize & (self.capacity - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(capacity: usize) -> (Transmitter, Receiver) {
        let memory = AtomicBuffer::allocate(capacity + TRAILER_LENGTH);
        (
            Transmitter::new(memory.clone()).unwrap(),
            Receiver::new(memory).unwrap(),
        )
    }

    #[test]
    fn each_receiver_sees_each_message_once() {
        let (mut transmitter, mut receiver) = pair(1024);
        let mut scratch = Vec::new();
        assert_eq!(receiver.receive(&mut scratch), Ok(None));
        transmitter.transmit(3, b"event").unwrap();
        assert_eq!(receiver.receive(&mut scratch), Ok(Some(3)));
        assert_eq!(scratch, b"event");
        assert_eq!(receiver.receive(&mut scratch), Ok(None));
    }

    #[test]
    fn a_late_receiver_starts_at_the_newest_message() {
        let (mut transmitter, _) = pair(1024);
        transmitter.transmit(1, b"old").unwrap();
        transmitter.transmit(2, b"newest").unwrap();
        let mut receiver = Receiver::new(transmitter.memory.clone()).unwrap();
        let mut scratch = Vec::new();
        assert_eq!(receiver.receive(&mut scratch), Ok(Some(2)));
        assert_eq!(receiver.receive(&mut scratch), Ok(None));
    }

    #[test]
    fn padding_at_the_end_is_skipped() {
        let (mut transmitter, mut receiver) = pair(64);
        let mut scratch = Vec::new();
        for round in 1..20 {
            transmitter
                .transmit(round, &[round as u8; 8][..(round % 9) as usize])
                .unwrap();
            assert_eq!(receiver.receive(&mut scratch), Ok(Some(round)));
            assert_eq!(scratch, vec![round as u8; (round % 9) as usize]);
        }
    }

    #[test]
    fn a_lapped_receiver_is_told_and_goes_on_with_the_newest() {
        let (mut transmitter, mut receiver) = pair(64);
        for number in 1..=9 {
            transmitter.transmit(number, &[0; 8]).unwrap();
        }
        let mut scratch = Vec::new();
        assert_eq!(receiver.receive(&mut scratch), Err(LappedError));
        assert_eq!(receiver.receive(&mut scratch), Ok(Some(9)));
        assert_eq!(receiver.receive(&mut scratch), Ok(None));
    }

    #[test]
    fn an_announced_overwrite_invalidates_what_is_there() {
        let (mut transmitter, mut receiver) = pair(64);
        transmitter.transmit(1, &[0; 8]).unwrap();
        transmitter.memory.put_i64(64 + INTENT_OFFSET, 64);
        assert_eq!(receiver.receive(&mut Vec::new()), Err(LappedError));
    }

    #[test]
    fn lengths_that_make_no_sense_are_not_followed() {
        for length in [-1, 0, 7, 65, i32::MAX, i32::MIN] {
            let (mut transmitter, mut receiver) = pair(64);
            transmitter.transmit(1, &[0; 8]).unwrap();
            transmitter.memory.put_i32(0, length);
            assert_eq!(
                receiver.receive(&mut Vec::new()),
                Err(LappedError),
                "length={length}"
            );
        }
    }

    #[test]
    fn misuse_is_an_error() {
        let (mut transmitter, _) = pair(64);
        assert_eq!(
            transmitter.transmit(-1, b""),
            Err(BufferError::TypeId { type_id: -1 })
        );
        assert!(matches!(
            transmitter.transmit(1, &[0; 9]),
            Err(BufferError::MessageTooLong { .. })
        ));
        assert!(Receiver::new(AtomicBuffer::allocate(100)).is_err());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;
    use crate::loom_memory::{LoomMemory, model};

    const CAPACITY: usize = 64;

    /// `before` messages were sent before the receiver, who saw none of them, meets `during` more.
    fn transmit_against_receive(before: i32, during: i32) {
        let fields = [INTENT_OFFSET, TAIL_OFFSET, LATEST_OFFSET].map(|offset| CAPACITY + offset);
        let memory = LoomMemory::new(
            CAPACITY + TRAILER_LENGTH,
            std::slice::from_ref(&(0..CAPACITY)),
            &fields,
        );
        let mut receiver = Receiver::new(memory.clone()).unwrap();
        let mut transmitter = Transmitter::new(memory).unwrap();
        let send = |transmitter: &mut Transmitter<LoomMemory>, number: i32| {
            transmitter.transmit(number, &message(number)).unwrap();
        };
        (1..=before).for_each(|number| send(&mut transmitter, number));
        let receiver = thread::spawn(move || {
            let mut last = 0;
            receive(&mut receiver, &mut last);
            receive(&mut receiver, &mut last);
            (receiver, last)
        });
        (before + 1..=before + during).for_each(|number| send(&mut transmitter, number));
        let (mut receiver, mut last) = receiver.join().unwrap();
        while receive(&mut receiver, &mut last) {}
        assert_eq!(last, before + during);
    }

    /// Takes one message, which must be whole and newer than the last. False when there is none.
    fn receive(receiver: &mut Receiver<LoomMemory>, last: &mut i32) -> bool {
        let mut scratch = Vec::new();
        match receiver.receive(&mut scratch) {
            Ok(Some(number)) => {
                assert_eq!(scratch, message(number), "a message was torn");
                assert!(number > *last, "messages came out of order");
                *last = number;
                true
            }
            Ok(None) => false,
            Err(LappedError) => true,
        }
    }

    /// Lengths 0, 4 and 8 in turn, so that records start at changing offsets and padding occurs.
    fn message(number: i32) -> Vec<u8> {
        number.to_ne_bytes().repeat(number as usize % 3)
    }

    #[test]
    fn loom_broadcast_delivers_whole_messages_in_order() {
        model(3, || transmit_against_receive(0, 3));
    }

    #[test]
    fn loom_broadcast_never_delivers_an_overwritten_message() {
        model(3, || transmit_against_receive(4, 1));
        model(3, || transmit_against_receive(5, 2));
    }
}
