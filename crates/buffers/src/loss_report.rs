//! Which streams lost data, how much and when, for people who look into it later.
//!
//! Entries lie back to back from offset 0, aligned to 64, one for each image that suffered loss:
//!
//! ```text
//!  0 i64 observation count, first stored last     32 i32 session id
//!  8 i64 bytes lost                               36 i32 stream id
//! 16 i64 first observation, epoch ms              40 i32 length of the channel, then its text
//! 24 i64 last observation, epoch ms                  i32 length of the source, aligned to 4, then its text
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use headrace_sys::{Access, MappedFile};

use crate::AtomicBuffer;
use crate::align;
use crate::memory::Memory;

/// Name of the file in the driver's directory.
pub const FILE_NAME: &str = "loss-report.dat";
/// Default and least length of the file.
pub const LENGTH_DEFAULT: usize = 1 << 20;

const ENTRY_ALIGNMENT: usize = 64;
const COUNT_OFFSET: usize = 0;
const BYTES_OFFSET: usize = 8;
const FIRST_OFFSET: usize = 16;
const LAST_OFFSET: usize = 24;
const SESSION_OFFSET: usize = 32;
const STREAM_OFFSET: usize = 36;
const CHANNEL_OFFSET: usize = 40;

/// Where the texts of an entry lie, relative to its start.
#[derive(Clone, Copy)]
struct Texts {
    channel_length: usize,
    source_length: usize,
}

impl Texts {
    const CHANNEL: usize = CHANNEL_OFFSET + 4;

    fn source_length_offset(channel_length: usize) -> usize {
        Self::CHANNEL + align(channel_length, 4)
    }

    fn source(self) -> usize {
        Self::source_length_offset(self.channel_length) + 4
    }

    fn entry_length(self) -> usize {
        align(self.source() + self.source_length, ENTRY_ALIGNMENT)
    }
}

/// Walks the entries there are. A length that cannot be right ends the walk.
struct Entries<'a, M> {
    memory: &'a M,
    next: usize,
}

impl<'a, M: Memory> Entries<'a, M> {
    fn new(memory: &'a M) -> Self {
        Self { memory, next: 0 }
    }

    /// A stored length whose text would end within `room`.
    fn length(&self, offset: usize, room: usize) -> Option<usize> {
        let length = usize::try_from(self.memory.get_i32(offset)).ok()?;
        (length <= room).then_some(length)
    }
}

impl<M: Memory> Iterator for Entries<'_, M> {
    type Item = (usize, Texts);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next;
        // No entry is shorter than its alignment, so the fixed fields lie inside if one alignment does.
        let room = self.memory.capacity().checked_sub(entry)?;
        if room < ENTRY_ALIGNMENT {
            return None;
        }
        // Pairs with the release in `LossReport::create_entry`: the rest of the entry is there.
        if self.memory.get_i64_acquire(entry + COUNT_OFFSET) <= 0 {
            return None;
        }
        let channel_length = self.length(entry + CHANNEL_OFFSET, room)?;
        let source_length_offset = Texts::source_length_offset(channel_length);
        let source_room = room.checked_sub(source_length_offset + 4)?;
        let source_length = self.length(entry + source_length_offset, source_room)?;
        let texts = Texts {
            channel_length,
            source_length,
        };
        self.next = entry + texts.entry_length();
        Some((entry, texts))
    }
}

/// The writing side; used by one thread.
#[derive(Debug)]
pub struct LossReport<M: Memory + Clone = AtomicBuffer> {
    memory: M,
    end: usize,
}

impl LossReport {
    /// Makes the report of a driver's directory, where none may be, at least `length` bytes long. Its blocks are
    /// reserved now: without room this fails, and no later store does.
    pub fn create(directory: &Path, length: usize, page_size: usize) -> io::Result<Self> {
        let length = align(length, page_size) as u64;
        let mapping = MappedFile::create(&directory.join(FILE_NAME), length, true)?;
        Ok(Self::new(AtomicBuffer::of_mapping(Arc::new(mapping))))
    }
}

/// Maps the report of a driver's directory, to read it.
pub fn map(directory: &Path) -> io::Result<AtomicBuffer> {
    let mapping = MappedFile::open(&directory.join(FILE_NAME), Access::ReadOnly)?;
    Ok(AtomicBuffer::of_mapping(Arc::new(mapping)))
}

impl<M: Memory + Clone> LossReport<M> {
    /// Writes after the entries in the report.
    pub fn new(memory: M) -> Self {
        let mut entries = Entries::new(&memory);
        entries.by_ref().for_each(drop);
        let end = entries.next;
        Self { memory, end }
    }

    /// Adds an entry for an image at its first loss. None if it does not fit.
    pub fn create_entry(
        &mut self,
        initial_bytes: i64,
        now_ms: i64,
        session_id: i32,
        stream_id: i32,
        channel: &str,
        source: &str,
    ) -> Option<LossEntry<M>> {
        let texts = Texts {
            channel_length: channel.len(),
            source_length: source.len(),
        };
        let entry = self.end;
        let room = self.memory.capacity().checked_sub(entry)?;
        if texts.entry_length() > room {
            return None;
        }
        let memory = &self.memory;
        memory.put_i64(entry + BYTES_OFFSET, initial_bytes);
        memory.put_i64(entry + FIRST_OFFSET, now_ms);
        memory.put_i64(entry + LAST_OFFSET, now_ms);
        memory.put_i32(entry + SESSION_OFFSET, session_id);
        memory.put_i32(entry + STREAM_OFFSET, stream_id);
        memory.put_i32(entry + CHANNEL_OFFSET, channel.len() as i32);
        memory.put_bytes(entry + Texts::CHANNEL, channel.as_bytes());
        let source_length_offset = entry + Texts::source_length_offset(channel.len());
        memory.put_i32(source_length_offset, source.len() as i32);
        memory.put_bytes(entry + texts.source(), source.as_bytes());
        // Pairs with the acquire in `Entries`.
        memory.put_i64_release(entry + COUNT_OFFSET, 1);
        self.end += texts.entry_length();
        Some(LossEntry {
            memory: self.memory.clone(),
            entry,
        })
    }
}

/// The entry of one image.
#[derive(Debug)]
pub struct LossEntry<M: Memory = AtomicBuffer> {
    memory: M,
    entry: usize,
}

impl<M: Memory> LossEntry<M> {
    /// Adds another loss.
    pub fn observe(&self, bytes: i64, now_ms: i64) {
        self.memory.put_i64_release(self.entry + LAST_OFFSET, now_ms);
        self.memory.get_and_add_i64(self.entry + BYTES_OFFSET, bytes);
        self.memory.get_and_add_i64(self.entry + COUNT_OFFSET, 1);
    }
}

/// What is known about the losses of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossRecord {
    /// How often data was missing.
    pub observation_count: i64,
    /// How much was missing.
    pub total_bytes: i64,
    /// When data was missing first, epoch ms.
    pub first_ms: i64,
    /// When data was missing last, epoch ms.
    pub last_ms: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Id of the stream.
    pub stream_id: i32,
    /// Channel of the subscription.
    pub channel: String,
    /// Where the stream came from.
    pub source: String,
}

/// All losses, in the order in which images first suffered them.
pub fn read<M: Memory>(memory: &M) -> Vec<LossRecord> {
    let text = |offset: usize, length: usize| {
        let mut bytes = vec![0; length];
        memory.get_bytes(offset, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Entries::new(memory)
        .map(|(entry, texts)| LossRecord {
            observation_count: memory.get_i64_acquire(entry + COUNT_OFFSET),
            total_bytes: memory.get_i64(entry + BYTES_OFFSET),
            first_ms: memory.get_i64(entry + FIRST_OFFSET),
            last_ms: memory.get_i64_acquire(entry + LAST_OFFSET),
            session_id: memory.get_i32(entry + SESSION_OFFSET),
            stream_id: memory.get_i32(entry + STREAM_OFFSET),
            channel: text(entry + Texts::CHANNEL, texts.channel_length),
            source: text(entry + texts.source(), texts.source_length),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_an_image_add_up() {
        let memory = AtomicBuffer::allocate(4096);
        let mut report = LossReport::new(memory.clone());
        let entry = report
            .create_entry(100, 10, 1, 2, "aeron:udp?x=y", "10.0.0.1:40")
            .unwrap();
        entry.observe(50, 20);
        report.create_entry(1, 30, -3, -4, "", "").unwrap();
        let records = read(&memory);
        assert_eq!(
            records[0],
            LossRecord {
                observation_count: 2,
                total_bytes: 150,
                first_ms: 10,
                last_ms: 20,
                session_id: 1,
                stream_id: 2,
                channel: "aeron:udp?x=y".to_owned(),
                source: "10.0.0.1:40".to_owned(),
            }
        );
        assert_eq!(
            (records.len(), records[1].session_id, records[1].source.as_str()),
            (2, -3, "")
        );
    }

    #[test]
    fn an_entry_has_the_documented_bytes() {
        let memory = AtomicBuffer::allocate(128);
        LossReport::new(memory.clone())
            .create_entry(5, 6, 7, 8, "abcde", "fg")
            .unwrap();
        let mut bytes = [0; 64];
        memory.get_bytes(0, &mut bytes);
        let words: Vec<_> = bytes
            .chunks(4)
            .map(|word| i32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[..11], [1, 0, 5, 0, 6, 0, 6, 0, 7, 8, 5]);
        assert_eq!(&bytes[44..49], b"abcde");
        assert_eq!((words[13], &bytes[56..58]), (2, &b"fg"[..]));
    }

    #[test]
    fn an_entry_that_does_not_fit_is_not_made() {
        let memory = AtomicBuffer::allocate(192);
        let mut report = LossReport::new(memory.clone());
        assert!(report.create_entry(1, 1, 1, 1, &"c".repeat(50), "s").is_some()); // takes 128
        assert!(report.create_entry(1, 1, 2, 1, &"c".repeat(50), "s").is_none());
        assert!(report.create_entry(1, 1, 3, 1, "c", "s").is_some());
        assert!(report.create_entry(1, 1, 4, 1, "c", "s").is_none());
        let sessions: Vec<_> = read(&memory).iter().map(|record| record.session_id).collect();
        assert_eq!(sessions, [1, 3]);
    }

    #[test]
    fn lengths_that_make_no_sense_end_the_report() {
        for (offset, value) in [
            (40, -1),
            (40, i32::MAX),
            (40, 81),
            (40, 128),
            (48, -1),
            (48, i32::MAX),
            (48, 77),
        ] {
            let memory = AtomicBuffer::allocate(128);
            LossReport::new(memory.clone())
                .create_entry(1, 1, 1, 1, "abcd", "e")
                .unwrap();
            memory.put_i32(offset, value);
            assert_eq!(read(&memory), [], "offset={offset} value={value}");
        }
    }

    #[test]
    fn a_report_is_found_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = LossReport::create(dir.path(), LENGTH_DEFAULT + 1, 4096).unwrap();
        report.create_entry(1, 1, 1, 1, "c", "s").unwrap();
        let mapped = map(dir.path()).unwrap();
        assert_eq!(
            (mapped.capacity(), read(&mapped).len()),
            (LENGTH_DEFAULT + 4096, 1)
        );
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;
    use crate::loom_memory::{LoomMemory, model};

    #[test]
    fn loom_loss_report_shows_whole_entries() {
        model(3, || {
            let memory = LoomMemory::new(128, &[32..64, 96..128], &[0, 8, 16, 24, 64, 72, 80, 88]);
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || read(&memory))
            };
            let mut report = LossReport::new(memory.clone());
            let entry = report.create_entry(100, 5, 1, 2, "chan", "peer").unwrap();
            entry.observe(50, 6);
            for record in reader.join().unwrap() {
                assert_eq!(
                    (record.channel.as_str(), record.source.as_str()),
                    ("chan", "peer")
                );
                assert_eq!((record.session_id, record.stream_id, record.first_ms), (1, 2, 5));
                assert!(matches!(record.total_bytes, 100 | 150));
            }
            let record = &read(&memory)[0];
            assert_eq!(
                (record.observation_count, record.total_bytes, record.last_ms),
                (2, 150, 6)
            );
        });
    }
}
