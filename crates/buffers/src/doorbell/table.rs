//! The words of the doorbell file, and what the two sides do with them.
//!
//! ```text
//!   0         128           128 + 8 x 1024                              + 64 x 2048
//!   | header  | client ids  | doorbell 0: armed, may be foreign | 1 | .. | slot 0: wakes, is watched | 1 | ..
//! ```
//!
//! A waiter arms (its bit in each doorbell that concerns it, then a heavy fence), looks for what it waits for, and only
//! blocks when there is nothing. A writer makes something visible, then a light fence, then looks at the doorbell. The
//! fences leave two cases: the writer sees the bit and wakes the waiter, or the waiter sees what was written.
//!
//! A writer wakes a slot by counting up its word, on which the owner sleeps as long as it has not changed (a futex). An
//! owner that waits for descriptors too says that it is watched, looks at the word once more, and sleeps until its file is
//! written to; a writer looks whether it is watched after it has counted.

use crate::{AtomicBuffer, Memory};

/// Layout of the file; stored last.
pub(super) const VERSION: i32 = 2;
pub(super) const VERSION_OFFSET: usize = 0;
pub(super) const PID_OFFSET: usize = 8;
pub(super) const START_TIMESTAMP_OFFSET: usize = 16;
/// Counts waiters that found no slot; the driver tells of them.
pub(super) const REFUSALS_OFFSET: usize = 24;

/// Waiters at one time: one bit each.
pub(super) const SLOT_COUNT: usize = 64;

const HEADER_LENGTH: usize = 128;
const CLIENT_COUNT: usize = 1024;
const CLIENTS_OFFSET: usize = HEADER_LENGTH;
const BELLS_OFFSET: usize = CLIENTS_OFFSET + CLIENT_COUNT * 8;
/// One cache line each, so that a waiter of one disturbs no writer of another.
pub(super) const BELL_LENGTH: usize = 64;
const BELL_COUNT: usize = 2048;
const SLOTS_OFFSET: usize = BELLS_OFFSET + BELL_COUNT * BELL_LENGTH;
/// One cache line each, as the doorbells.
const SLOT_LENGTH: usize = 64;
/// Length of the file.
pub(super) const FILE_LENGTH: usize = SLOTS_OFFSET + SLOT_COUNT * SLOT_LENGTH;

const FIXED_BELL_COUNT: usize = 8;
const BELLS_PER_STREAM: usize = 3;
// A prime: ids that follow each other at any regular distance do not share a word.
const STREAM_COUNT: i64 = 677;
const _: () = assert!(FIXED_BELL_COUNT + STREAM_COUNT as usize * BELLS_PER_STREAM <= BELL_COUNT);

const ARMED_OFFSET: usize = 0;
const FOREIGN_OFFSET: usize = 8;
const WATCHED_OFFSET: usize = 4;

/// What can be waited for. Ids are those that the driver gives logs and subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bell {
    /// Commands, messages of other agents, publishers that wait.
    Conductor,
    /// Messages to the sender.
    Sender,
    /// Messages to the receiver, and status messages and NAKs that are due.
    Receiver,
    /// Tasks for the resource agent.
    ResourceAgent,
    /// Events to clients.
    Events,
    /// Frames in a log.
    Data(i64),
    /// How far readers of a log have come, or how far it was sent.
    Position(i64),
    /// How far publishers may write to a log.
    Limit(i64),
    /// The images of a subscription.
    Images(i64),
}

impl Bell {
    pub(super) fn index(self) -> usize {
        let of_stream = |id: i64, kind: usize| {
            FIXED_BELL_COUNT + id.rem_euclid(STREAM_COUNT) as usize * BELLS_PER_STREAM + kind
        };
        match self {
            Self::Conductor => 0,
            Self::Sender => 1,
            Self::Receiver => 2,
            Self::ResourceAgent => 3,
            Self::Events => 4,
            // Ids of logs and subscriptions come from one sequence.
            Self::Data(id) | Self::Images(id) => of_stream(id, 0),
            Self::Position(id) => of_stream(id, 1),
            Self::Limit(id) => of_stream(id, 2),
        }
    }
}

/// One doorbell, a word of armed bits and a mark, at an offset of the file.
pub(super) struct BellWord<'a, M: Memory = AtomicBuffer> {
    pub(super) memory: &'a M,
    pub(super) offset: usize,
}

impl<M: Memory> BellWord<'_, M> {
    fn armed(&self) -> usize {
        self.offset + ARMED_OFFSET
    }

    fn foreign(&self) -> usize {
        self.offset + FOREIGN_OFFSET
    }

    /// The writer's side: true when a thread may wait for what this thread has just made visible.
    #[inline(always)]
    pub(super) fn is_armed(&self) -> bool {
        self.memory.light_fence();
        self.memory.get_i64(self.armed()) != 0
    }

    /// Takes all bits: each waiter is woken by one writer.
    pub(super) fn take(&self) -> u64 {
        self.memory.get_and_and_i64(self.armed(), 0) as u64
    }

    /// True when the bit was not set before. The caller's heavy fence follows.
    pub(super) fn arm(&self, slot: usize) -> bool {
        // The common case of a waiter that goes on waiting stores nothing.
        !self.is_armed_by(slot) && self.memory.get_and_or_i64(self.armed(), bit(slot)) & bit(slot) == 0
    }

    pub(super) fn disarm(&self, slot: usize) {
        if self.is_armed_by(slot) {
            self.memory.get_and_and_i64(self.armed(), !bit(slot));
        }
    }

    /// False once a writer took the bit.
    pub(super) fn is_armed_by(&self, slot: usize) -> bool {
        self.memory.get_i64(self.armed()) & bit(slot) != 0
    }

    /// From now on a writer that does not ring may be what is waited for.
    pub(super) fn mark_foreign(&self) {
        self.memory.put_i64_release(self.foreign(), 1);
    }

    pub(super) fn may_be_foreign(&self) -> bool {
        self.memory.get_i64_acquire(self.foreign()) != 0
    }
}

fn bit(slot: usize) -> i64 {
    1 << (slot % SLOT_COUNT)
}

/// Where the word of a doorbell starts in the file.
pub(super) fn bell_offset(index: usize) -> usize {
    BELLS_OFFSET + index % BELL_COUNT * BELL_LENGTH
}

/// Where the words of a slot start in the file; the first is the count of wake-ups.
pub(super) fn slot_offset(slot: usize) -> usize {
    SLOTS_OFFSET + slot % SLOT_COUNT * SLOT_LENGTH
}

/// How one waiter is woken: a count of wake-ups and a mark, at an offset of the file.
pub(super) struct SlotWords<'a, M: Memory = AtomicBuffer> {
    pub(super) memory: &'a M,
    pub(super) offset: usize,
}

impl<M: Memory> SlotWords<'_, M> {
    /// The writer's side. True when the owner watches its file: then that is to be written to.
    pub(super) fn wake(&self) -> bool {
        self.memory.get_and_add_i32(self.offset, 1);
        self.memory.get_and_add_i32(self.offset + WATCHED_OFFSET, 0) != 0
    }

    /// The owner's side. It looks at the count next: a writer that counted before may not have seen the mark.
    pub(super) fn set_watched(&self, is_watched: bool) {
        let offset = self.offset + WATCHED_OFFSET;
        let before = self.memory.get_and_add_i32(offset, 0);
        self.memory
            .get_and_add_i32(offset, i32::from(is_watched).wrapping_sub(before));
    }

    /// How often it was woken. Ordered after [`Self::set_watched`], as no mere load is.
    pub(super) fn count(&self) -> i32 {
        self.memory.get_and_add_i32(self.offset, 0)
    }
}

/// Where a client that rings leaves its id. Two ids may share the place: the later one has it, and the earlier counts
/// as one that does not ring.
pub(super) fn client_offset(client_id: i64) -> usize {
    CLIENTS_OFFSET + client_id.rem_euclid(CLIENT_COUNT as i64) as usize * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_have_words_of_their_own_inside_the_file() {
        let fixed = [
            Bell::Conductor,
            Bell::Sender,
            Bell::Receiver,
            Bell::ResourceAgent,
            Bell::Events,
        ];
        let streams = (0..STREAM_COUNT).flat_map(|id| [Bell::Data(id), Bell::Position(id), Bell::Limit(id)]);
        let mut offsets: Vec<usize> = fixed
            .into_iter()
            .chain(streams)
            .map(|bell| bell_offset(bell.index()))
            .collect();
        assert!(offsets.iter().all(|offset| offset + BELL_LENGTH <= FILE_LENGTH));
        let count = offsets.len();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), count);
        assert!((0..SLOT_COUNT).all(|slot| slot_offset(slot) + SLOT_LENGTH <= FILE_LENGTH));
        for id in [i64::MIN, -1, i64::MAX] {
            assert!(bell_offset(Bell::Limit(id).index()) + BELL_LENGTH <= FILE_LENGTH);
            assert!(client_offset(id) + 8 <= BELLS_OFFSET);
        }
    }

    #[test]
    fn bits_are_set_once_and_taken_once() {
        let memory = AtomicBuffer::allocate(2 * BELL_LENGTH);
        let word = BellWord {
            memory: &memory,
            offset: BELL_LENGTH,
        };
        assert!(!word.is_armed() && word.arm(0) && word.arm(63) && !word.arm(63) && word.is_armed());
        word.disarm(0);
        word.disarm(5);
        assert_eq!((word.take(), word.take()), (1 << 63, 0));
        assert!(!word.may_be_foreign());
        word.mark_foreign();
        assert!(word.may_be_foreign() && !word.is_armed());
    }
}
