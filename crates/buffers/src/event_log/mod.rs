//! The event log: the newest changes of state of what lives long in a driver or an archive, and why they happened.
//!
//! A file of our own; programs that do not know it lose nothing. See `docs/design/0027-events.md`, and `ring.rs` for the
//! algorithm.
//!
//! ```text
//! file:  0 i32 version, stored last   8 i64 pid   16 i64 start, epoch ms   24 i64 slots   64 ring
//!
//! slot:  0 i64 stamp     16 i64 id          32 i32 stream id    40 u8 flags       46    0
//!        8 i64 time      24 i64 parent id   36 i32 session id   41 u8 lengths x5  48    texts: kind, old, new, reason,
//!                                                                                       detail
//! ```

#[cfg(all(test, loom))]
mod loom_models;
mod ring;
mod source;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headrace_sys::MappedFile;

use crate::{AtomicBuffer, Memory};
use ring::{Look, Ring, SLOTS_OFFSET, STAMP_LENGTH};
pub use source::{FileSource, Source};

/// The file in the directory of a driver or an archive.
pub const FILE_NAME: &str = "events.dat";
/// What it is called while it is made; a killed process may leave one.
pub const UNFINISHED_FILE_NAME: &str = "events.dat.new";
/// Bytes that one event takes.
pub const SLOT_LENGTH: usize = 256;

/// Layout of the file.
const VERSION: i32 = 1;
const VERSION_OFFSET: usize = 0;
const PID_OFFSET: usize = 8;
const START_TIMESTAMP_OFFSET: usize = 16;
const SLOT_COUNT_OFFSET: usize = 24;

const PAYLOAD_LENGTH: usize = SLOT_LENGTH - STAMP_LENGTH;
// Within the payload, which begins after the stamp.
const TIME_OFFSET: usize = 0;
const ID_OFFSET: usize = 8;
const PARENT_OFFSET: usize = 16;
const STREAM_OFFSET: usize = 24;
const SESSION_OFFSET: usize = 28;
const FLAGS_OFFSET: usize = 32;
const LENGTHS_OFFSET: usize = 33;
const TEXTS_OFFSET: usize = 40;
const TEXT_COUNT: usize = 5;
const _: () = assert!(LENGTHS_OFFSET + TEXT_COUNT <= TEXTS_OFFSET && PAYLOAD_LENGTH <= u8::MAX as usize);

const HAS_PARENT: u8 = 1;
const HAS_STREAM: u8 = 2;
const HAS_SESSION: u8 = 4;
const IS_FAULT: u8 = 8;

/// A thing went from one state to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event<S = String> {
    /// When, epoch ns.
    pub time_ns: i64,
    /// What sort of thing.
    pub kind: S,
    /// Which of them.
    pub id: i64,
    /// Id of what it belongs to, if it belongs to something.
    pub parent_id: Option<i64>,
    /// Its stream, if it has one.
    pub stream_id: Option<i32>,
    /// Its session, if it has one.
    pub session_id: Option<i32>,
    /// Name of the state before; empty for a thing that begins.
    pub old: S,
    /// Name of the state it is in now.
    pub new: S,
    /// Why.
    pub reason: S,
    /// What else helps to tell it from others. This is cut first when the texts are too long for a slot.
    pub detail: S,
    /// It is not the normal course of things: a person may want to look.
    pub is_fault: bool,
}

impl fmt::Display for Event<&str> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.kind, self.id)?;
        if !self.old.is_empty() {
            write!(f, "{} -> ", self.old)?;
        }
        write!(f, "{}: {}", self.new, self.reason)
    }
}

impl Event<&str> {
    fn encode(&self) -> [u8; PAYLOAD_LENGTH] {
        let mut payload = [0; PAYLOAD_LENGTH];
        let mut put =
            |offset: usize, bytes: &[u8]| payload[offset..offset + bytes.len()].copy_from_slice(bytes);
        put(TIME_OFFSET, &self.time_ns.to_le_bytes());
        put(ID_OFFSET, &self.id.to_le_bytes());
        put(PARENT_OFFSET, &self.parent_id.unwrap_or(0).to_le_bytes());
        put(STREAM_OFFSET, &self.stream_id.unwrap_or(0).to_le_bytes());
        put(SESSION_OFFSET, &self.session_id.unwrap_or(0).to_le_bytes());
        let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        let flags = flag(self.parent_id.is_some(), HAS_PARENT)
            | flag(self.stream_id.is_some(), HAS_STREAM)
            | flag(self.session_id.is_some(), HAS_SESSION)
            | flag(self.is_fault, IS_FAULT);
        put(FLAGS_OFFSET, &[flags]);
        let mut offset = TEXTS_OFFSET;
        let texts = [self.kind, self.old, self.new, self.reason, self.detail];
        for (index, text) in texts.into_iter().enumerate() {
            let mut end = text.len().min(PAYLOAD_LENGTH - offset);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            put(LENGTHS_OFFSET + index, &[end as u8]);
            put(offset, &text.as_bytes()[..end]);
            offset += end;
        }
        payload
    }
}

impl Event {
    /// The event in a payload, whose bytes may be anything: a text ends where the payload does.
    fn decode(payload: &[u8; PAYLOAD_LENGTH]) -> Self {
        fn bytes<const N: usize>(payload: &[u8; PAYLOAD_LENGTH], offset: usize) -> [u8; N] {
            std::array::from_fn(|index| payload[offset + index])
        }
        let flags = payload[FLAGS_OFFSET];
        let mut texts = [const { String::new() }; TEXT_COUNT];
        let mut offset = TEXTS_OFFSET;
        for (index, text) in texts.iter_mut().enumerate() {
            let end = PAYLOAD_LENGTH.min(offset + usize::from(payload[LENGTHS_OFFSET + index]));
            *text = String::from_utf8_lossy(&payload[offset..end]).into_owned();
            offset = end;
        }
        let [kind, old, new, reason, detail] = texts;
        Self {
            time_ns: i64::from_le_bytes(bytes(payload, TIME_OFFSET)),
            kind,
            id: i64::from_le_bytes(bytes(payload, ID_OFFSET)),
            parent_id: (flags & HAS_PARENT != 0).then(|| i64::from_le_bytes(bytes(payload, PARENT_OFFSET))),
            stream_id: (flags & HAS_STREAM != 0).then(|| i32::from_le_bytes(bytes(payload, STREAM_OFFSET))),
            session_id: (flags & HAS_SESSION != 0)
                .then(|| i32::from_le_bytes(bytes(payload, SESSION_OFFSET))),
            old,
            new,
            reason,
            detail,
            is_fault: flags & IS_FAULT != 0,
        }
    }
}

/// Which process made the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterIdentity {
    /// Its process id.
    pub pid: i64,
    /// When it started, epoch ms.
    pub start_timestamp_ms: i64,
}

/// The writing side: all threads of one process share it. Clones write to the same ring.
#[derive(Clone, Debug)]
pub struct EventLog<M: Memory = AtomicBuffer> {
    ring: Ring<M>,
}

impl EventLog {
    /// Makes the file, with room for `limit` events, in a directory. A file that another life left there is removed
    /// first; its readers keep it.
    pub fn create(directory: &Path, limit: usize, identity: WriterIdentity) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        // A reader finds the log of before or this one whole: it gets its name when it has its header.
        let unfinished = directory.join(UNFINISHED_FILE_NAME);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let length = limit
            .checked_mul(SLOT_LENGTH)
            .and_then(|length| length.checked_add(SLOTS_OFFSET))
            .ok_or(io::ErrorKind::InvalidInput)?;
        let file = AtomicBuffer::of_mapping(Arc::new(MappedFile::create(&unfinished, length as u64, true)?));
        file.put_i64(PID_OFFSET, identity.pid);
        file.put_i64(START_TIMESTAMP_OFFSET, identity.start_timestamp_ms);
        file.put_i64(SLOT_COUNT_OFFSET, limit as i64);
        file.put_i32_release(VERSION_OFFSET, VERSION);
        fs::rename(&unfinished, &path)?;
        Self::over(file).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }
}

impl<M: Memory> EventLog<M> {
    /// Writes to a ring in `memory`; none without room for one event.
    pub fn over(memory: M) -> Option<Self> {
        Ring::new(memory, SLOT_LENGTH).map(|ring| Self { ring })
    }

    /// Keeps an event; never waits. False if it was dropped, which the file counts.
    pub fn append(&self, event: &Event<&str>) -> bool {
        self.ring.append(&event.encode())
    }
}

/// What a look for the next event found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// The next event, with its number.
    Event(i64, Event),
    /// This many events were lost: overwritten before they were read, or left unfinished by a writer that died.
    Lost(i64),
    /// No further event yet.
    None,
}

/// One reader, with its own place; it begins with the oldest event.
#[derive(Debug)]
pub struct EventReader<S: Source = FileSource> {
    ring: Ring<S>,
    next: i64,
    /// The event that was unfinished at the last look.
    unfinished: Option<i64>,
}

impl EventReader {
    /// Opens a file; what it says of its writer, and a reader.
    ///
    /// Fails with [`io::ErrorKind::NotFound`] without a file, and with [`io::ErrorKind::InvalidData`] for a file of
    /// another version, of a damaged header, or that is still being made.
    pub fn open(path: &Path) -> io::Result<(WriterIdentity, Self)> {
        let damaged = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let file = FileSource::open(path)?;
        if file.length() < SLOTS_OFFSET + SLOT_LENGTH {
            return Err(damaged("it is too short for one event".to_owned()));
        }
        let version = file.word(VERSION_OFFSET) as i32;
        if version != VERSION {
            return Err(damaged(format!(
                "version={version}, and this reader knows version {VERSION}"
            )));
        }
        let identity = WriterIdentity {
            pid: file.word(PID_OFFSET),
            start_timestamp_ms: file.word(START_TIMESTAMP_OFFSET),
        };
        let count = file.word(SLOT_COUNT_OFFSET);
        let reader = Self::over(file).filter(|reader| reader.ring.slot_count() == count);
        let reader = reader
            .ok_or_else(|| damaged(format!("its header tells of {count} events, its length does not")))?;
        Ok((identity, reader))
    }
}

impl<S: Source> EventReader<S> {
    /// Reads a ring in `source` from its oldest event; none without room for one event.
    pub fn over(source: S) -> Option<Self> {
        let ring = Ring::new(source, SLOT_LENGTH)?;
        Some(Self {
            next: ring.oldest(),
            ring,
            unfinished: None,
        })
    }

    /// How many events their writer dropped, since another thread was writing to their slot for a whole lap.
    pub fn dropped_count(&self) -> i64 {
        self.ring.dropped_count()
    }

    /// How many events the ring keeps.
    pub fn limit(&self) -> i64 {
        self.ring.slot_count()
    }

    /// The next event. An unfinished one ends a first look, and is lost at the second: so look again after a while.
    pub fn poll(&mut self) -> Polled {
        let oldest = self.ring.oldest();
        if self.next < oldest {
            let lost = oldest.saturating_sub(self.next);
            self.next = oldest;
            return Polled::Lost(lost);
        }
        let mut payload = [0; PAYLOAD_LENGTH];
        let number = self.next;
        // Numbers of a damaged file may be at their end, where the next would be the same again.
        if number == i64::MAX {
            return Polled::None;
        }
        match self.ring.read(number, &mut payload) {
            Look::Whole => {
                self.next = number + 1;
                Polled::Event(number, Event::decode(&payload))
            }
            Look::Unfinished if self.unfinished != Some(number) => {
                self.unfinished = Some(number);
                Polled::None
            }
            Look::Unfinished | Look::Lost => {
                self.next = number + 1;
                Polled::Lost(1)
            }
            Look::None => Polled::None,
        }
    }

    /// The events up to now, at most as many as the ring keeps, with their numbers, and how many were lost.
    ///
    /// Fails with [`io::ErrorKind::InvalidData`] when the file was cut short.
    pub fn drain(&mut self) -> io::Result<(Vec<(i64, Event)>, i64)> {
        let (mut events, mut lost_count) = (Vec::new(), 0_i64);
        for _ in 0..=self.ring.slot_count() {
            match self.poll() {
                Polled::Event(number, event) => events.push((number, event)),
                Polled::Lost(count) => lost_count = lost_count.saturating_add(count),
                Polled::None => break,
            }
        }
        self.ring.check()?;
        Ok((events, lost_count))
    }
}
