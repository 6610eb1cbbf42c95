//! Errors of a driver, each distinct one once, with how often and when it was seen.
//!
//! Records lie back to back from offset 0, aligned to 8, and are never removed:
//!
//! ```text
//! 0 i32 length of header and text, stored last      16 i64 first observation, epoch ms
//! 4 i32 observation count                           24     text, UTF-8
//! 8 i64 last observation, epoch ms
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::AtomicBuffer;
use crate::align;
use crate::memory::Memory;

/// Length of a record before its text.
pub const HEADER_LENGTH: usize = 24;

const RECORD_ALIGNMENT: usize = 8;
const COUNT_OFFSET: usize = 4;
const LAST_OFFSET: usize = 8;
const FIRST_OFFSET: usize = 16;

/// Walks the records there are. A length that cannot be right ends the walk.
struct Records<'a, M> {
    memory: &'a M,
    next: usize,
}

impl<'a, M: Memory> Records<'a, M> {
    fn new(memory: &'a M) -> Self {
        Self { memory, next: 0 }
    }
}

impl<M: Memory> Iterator for Records<'_, M> {
    /// Offset of a record and the length of its text.
    type Item = (usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next;
        let rest = self.memory.capacity().saturating_sub(record);
        if rest < HEADER_LENGTH {
            return None;
        }
        // Pairs with the release in `DistinctErrorLog::record`: text and first observation are there.
        let length = usize::try_from(self.memory.get_i32_acquire(record))
            .ok()?
            .min(rest);
        let text_length = length.checked_sub(HEADER_LENGTH)?;
        self.next = record + align(length, RECORD_ALIGNMENT);
        Some((record, text_length))
    }
}

/// The writing side; one per log, shared by the threads of its process.
#[derive(Debug)]
pub struct DistinctErrorLog<M: Memory = AtomicBuffer> {
    memory: M,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// Texts by error code, with the record of each.
    // The texts may hold what strangers sent: this map's hashing does not let them choose collisions.
    by_code: HashMap<i32, HashMap<Box<str>, usize>>,
    end: usize,
}

impl<M: Memory> DistinctErrorLog<M> {
    /// Writes after the records in the log.
    pub fn new(memory: M) -> Self {
        let mut records = Records::new(&memory);
        records.by_ref().for_each(drop);
        let end = records.next;
        let by_code = HashMap::new();
        let known = Mutex::new(Known { by_code, end });
        Self { memory, known }
    }

    /// Counts an error, which is told apart by code and text. False if it is new and there is no room for it.
    pub fn record(&self, code: i32, text: &str, now_ms: i64) -> bool {
        // A thread that panicked here left at worst an unfinished record, which the next one overwrites.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let record = known
            .find(code, text)
            .or_else(|| self.append(&mut known, code, text, now_ms));
        self.observe(record, now_ms)
    }

    /// Counts an error that the log has already; false if it is new.
    pub fn record_known(&self, code: i32, text: &str, now_ms: i64) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.observe(known.find(code, text), now_ms)
    }

    fn observe(&self, record: Option<usize>, now_ms: i64) -> bool {
        if let Some(record) = record {
            self.memory.get_and_add_i32(record + COUNT_OFFSET, 1);
            self.memory.put_i64_release(record + LAST_OFFSET, now_ms);
        }
        record.is_some()
    }

    fn append(&self, known: &mut Known, code: i32, text: &str, now_ms: i64) -> Option<usize> {
        let record = known.end;
        let length = HEADER_LENGTH + text.len();
        let end = record + align(length, RECORD_ALIGNMENT);
        let stored_length = i32::try_from(length).ok()?;
        if end > self.memory.capacity() {
            return None;
        }
        self.memory.put_bytes(record + HEADER_LENGTH, text.as_bytes());
        self.memory.put_i64(record + FIRST_OFFSET, now_ms);
        // Pairs with the acquire in `Records`.
        self.memory.put_i32_release(record, stored_length);
        known.end = end;
        known.by_code.entry(code).or_default().insert(text.into(), record);
        Some(record)
    }
}

impl Known {
    fn find(&self, code: i32, text: &str) -> Option<usize> {
        self.by_code.get(&code)?.get(text).copied()
    }
}

/// One distinct error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorEntry {
    /// How often it was seen.
    pub observation_count: i32,
    /// When it was seen first, epoch ms.
    pub first_ms: i64,
    /// When it was seen last, epoch ms.
    pub last_ms: i64,
    /// What it said.
    pub text: String,
}

/// The errors last seen at `since_ms` or later, in the order in which they first occurred.
pub fn read<M: Memory>(memory: &M, since_ms: i64) -> Vec<ErrorEntry> {
    let mut entries = Vec::new();
    for (record, text_length) in Records::new(memory) {
        let last_ms = memory.get_i64_acquire(record + LAST_OFFSET);
        if last_ms < since_ms {
            continue;
        }
        let mut text = vec![0; text_length];
        memory.get_bytes(record + HEADER_LENGTH, &mut text);
        entries.push(ErrorEntry {
            observation_count: memory.get_i32(record + COUNT_OFFSET),
            first_ms: memory.get_i64(record + FIRST_OFFSET),
            last_ms,
            text: String::from_utf8_lossy(&text).into_owned(),
        });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(memory: &AtomicBuffer, since_ms: i64) -> Vec<String> {
        read(memory, since_ms)
            .into_iter()
            .map(|entry| entry.text)
            .collect()
    }

    #[test]
    fn the_same_error_is_counted_and_another_is_added() {
        let memory = AtomicBuffer::allocate(1024);
        let log = DistinctErrorLog::new(memory.clone());
        assert!(log.record(1, "unknown host", 100));
        assert!(log.record(1, "unknown host", 200));
        assert!(log.record(2, "unknown host", 300));
        let entries = read(&memory, 0);
        assert_eq!(
            entries[0],
            ErrorEntry {
                observation_count: 2,
                first_ms: 100,
                last_ms: 200,
                text: "unknown host".to_owned()
            }
        );
        assert_eq!((entries.len(), entries[1].observation_count), (2, 1));
    }

    #[test]
    fn only_a_known_error_is_counted_as_known() {
        let memory = AtomicBuffer::allocate(1024);
        let log = DistinctErrorLog::new(memory.clone());
        assert!(!log.record_known(1, "x", 1));
        assert!(log.record(1, "x", 1));
        assert!(log.record_known(1, "x", 2));
        assert!(!log.record_known(2, "x", 3));
        let entries = read(&memory, 0);
        assert_eq!(
            (entries.len(), entries[0].observation_count, entries[0].last_ms),
            (1, 2, 2)
        );
    }

    #[test]
    fn a_record_has_the_documented_bytes() {
        let memory = AtomicBuffer::allocate(64);
        DistinctErrorLog::new(memory.clone()).record(9, "abc", 0x0102);
        let mut bytes = [0; 32];
        memory.get_bytes(0, &mut bytes);
        let mut expected = [0; 32];
        (expected[0], expected[4]) = (27, 1);
        expected[8..10].copy_from_slice(&[2, 1]);
        expected[16..18].copy_from_slice(&[2, 1]);
        expected[24..27].copy_from_slice(b"abc");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn only_errors_seen_lately_are_asked_for() {
        let memory = AtomicBuffer::allocate(1024);
        let log = DistinctErrorLog::new(memory.clone());
        log.record(1, "old", 10);
        log.record(1, "new", 20);
        assert_eq!(texts(&memory, 20), ["new"]);
        log.record(1, "old", 30);
        assert_eq!(texts(&memory, 20), ["old", "new"]);
    }

    #[test]
    fn a_full_log_refuses_new_errors_and_still_counts_known_ones() {
        let memory = AtomicBuffer::allocate(64);
        let log = DistinctErrorLog::new(memory.clone());
        assert!(log.record(1, "x", 1));
        assert!(log.record(1, "y", 1));
        assert!(!log.record(1, "z", 1));
        assert!(log.record(1, "x", 2));
        assert_eq!(texts(&memory, 0), ["x", "y"]);
        assert_eq!(read(&memory, 0)[0].observation_count, 2);
    }

    #[test]
    fn a_new_writer_keeps_what_is_there() {
        let memory = AtomicBuffer::allocate(1024);
        DistinctErrorLog::new(memory.clone()).record(1, "before", 1);
        DistinctErrorLog::new(memory.clone()).record(1, "after", 2);
        assert_eq!(texts(&memory, 0), ["before", "after"]);
    }

    #[test]
    fn lengths_that_make_no_sense_end_the_log() {
        for length in [i32::MIN, -1, 1, 23] {
            let memory = AtomicBuffer::allocate(64);
            memory.put_i32(0, length);
            assert_eq!(read(&memory, 0), [], "length={length}");
        }
        let memory = AtomicBuffer::allocate(64);
        memory.put_i32(0, i32::MAX);
        assert_eq!(read(&memory, 0)[0].text.len(), 64 - HEADER_LENGTH);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;
    use crate::loom_memory::{LoomMemory, model};

    #[test]
    fn loom_error_log_shows_whole_records_in_order() {
        model(3, || {
            let memory = LoomMemory::new(64, std::slice::from_ref(&(0..64)), &[8, 16, 40, 48]);
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || read(&memory, 0))
            };
            let log = DistinctErrorLog::new(memory.clone());
            assert!(log.record(1, "one", 5));
            assert!(log.record(1, "two", 6));
            assert!(log.record(1, "one", 7));
            let entries = reader.join().unwrap();
            for (entry, (text, first_ms)) in entries.iter().zip([("one", 5), ("two", 6)]) {
                assert_eq!((entry.text.as_str(), entry.first_ms), (text, first_ms));
            }
            let counts: Vec<_> = read(&memory, 0)
                .iter()
                .map(|entry| (entry.observation_count, entry.last_ms))
                .collect();
            assert_eq!(counts, [(2, 7), (1, 6)]);
        });
    }
}
