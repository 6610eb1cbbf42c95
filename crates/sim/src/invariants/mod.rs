//! What must hold between any two steps, checked from outside: from the counters and logs that a driver shows to all.
//!
//! Each rule has a name, under which `docs/internals/world.md` states it. The files of this module have a table of
//! rules each: [`publication`], [`image`], [`driver`].

mod driver;
mod image;
mod publication;
mod selection;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use headrace_buffers::Memory;
use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{Counter, CounterRecord, CountersReader, system_counter, type_ids};
use headrace_buffers::log::LogBuffers;
use headrace_buffers::log::frame::FRAME_ALIGNMENT;
use headrace_driver::{DriverError, MediaDriver};
use headrace_sys::Access;

use driver::DriverState;
use image::Image;
use publication::Publication;
use selection::Selection;

/// A rule about `S`, which knows its values now and at the check before.
struct Rule<S> {
    /// How the documentation and a failure call it.
    name: &'static str,
    /// True when it holds. Only asked when there was a check before.
    holds: fn(&S) -> bool,
}

/// A rule that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    /// The values that contradict it.
    pub(crate) what: String,
}

/// The first rule of a table that does not hold.
fn broken<S: std::fmt::Debug>(rules: &[Rule<S>], subject: &S) -> Result<(), Violation> {
    match rules.iter().find(|rule| !(rule.holds)(subject)) {
        None => Ok(()),
        Some(rule) => Err(Violation {
            rule: rule.name,
            what: format!("{subject:?}"),
        }),
    }
}

/// The position of one subscription in one stream.
struct Reader {
    position: Counter,
    /// It holds the stream back: it is linked for as long as its counter lives.
    is_tethered: bool,
    before: i64,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tether = if self.is_tethered { "" } else { " untethered" };
        let (id, now) = (self.position.id(), self.position.get_acquire());
        write!(f, "counter {id} at {now}, before at {}{tether}", self.before)
    }
}

/// How far the readers of a stream are.
#[derive(Debug, Default)]
struct Readers(Vec<Reader>);

impl Readers {
    /// The lowest of those that hold the stream back.
    fn slowest_tethered(&self) -> Option<i64> {
        let tethered = self.0.iter().filter(|reader| reader.is_tethered);
        tethered.map(|reader| reader.position.get_acquire()).min()
    }

    fn fastest(&self) -> Option<i64> {
        self.0.iter().map(|reader| reader.position.get_acquire()).max()
    }

    /// None is beyond `position`, and none that is tethered has gone back: one that is not joins again where others are.
    fn are_within(&self, position: i64) -> bool {
        self.0.iter().all(|reader| {
            let now = reader.position.get_acquire();
            (reader.before <= now || !reader.is_tethered) && now <= position && is_aligned(now)
        })
    }

    fn note(&mut self) {
        for reader in &mut self.0 {
            reader.before = reader.position.get_acquire();
        }
    }

    /// The same readers as before with what is known of them, and new ones where they start.
    fn replace(&mut self, found: Vec<Reader>) {
        let known = std::mem::take(&mut self.0);
        self.0 = found;
        for reader in &mut self.0 {
            let same = known
                .iter()
                .find(|before| before.position.id() == reader.position.id());
            if let Some(same) = same {
                reader.before = same.before;
            }
        }
    }
}

fn is_aligned(position: i64) -> bool {
    position & (FRAME_ALIGNMENT as i64 - 1) == 0
}

/// Bytes that are looked at in every check, where the next frame goes.
const HEAD_LENGTH: i64 = 64;
/// Bytes that are looked at now and then, anywhere.
const SAMPLE_LENGTH: i64 = 1024;
/// Checks from one sample of a log to the next.
const SAMPLE_INTERVAL: u64 = 32;

/// True when what lies between two positions is zero, as far as it is looked at; the next sample is elsewhere.
fn is_clean(log: &LogBuffers, from: i64, to: i64, looks: u64) -> bool {
    let room = to - from;
    if room < SAMPLE_LENGTH || !is_aligned(from) {
        return true;
    }
    let is_head_clean = is_zero(log, from, HEAD_LENGTH);
    if !is_head_clean || !looks.is_multiple_of(SAMPLE_INTERVAL) {
        return is_head_clean;
    }
    let chosen = from + (looks.wrapping_mul(0x9e37_79b9) >> 5) as i64 % (room - SAMPLE_LENGTH + 1);
    is_zero(log, chosen & !(FRAME_ALIGNMENT as i64 - 1), SAMPLE_LENGTH)
}

/// True when the bytes after a position are zero, as far as they are in its term.
fn is_zero(log: &LogBuffers, position: i64, length: i64) -> bool {
    let geometry = log.geometry();
    let term = log.term(geometry.partition(position));
    let begin = geometry.term_offset(position);
    let end = (begin + length as usize).min(geometry.term_length());
    (begin..end).step_by(8).all(|offset| term.get_i64(offset) == 0)
}

/// Session and stream.
type StreamName = (i32, i32);

/// How far each stream of a world was ever sent, by session and stream.
#[derive(Debug, Default)]
pub(crate) struct SentStreams(BTreeMap<StreamName, i64>);

impl SentStreams {
    fn note(&mut self, stream: StreamName, position: i64) {
        let highest = self.0.entry(stream).or_insert(position);
        *highest = position.max(*highest);
    }

    fn highest(&self, stream: StreamName) -> Option<i64> {
        self.0.get(&stream).copied()
    }
}

/// The view of one driver from outside.
pub(crate) struct Observer {
    counters: CountersReader,
    directory: PathBuf,
    selection: Selection,
    publications: BTreeMap<i64, Publication>,
    images: BTreeMap<i64, Image>,
    driver: DriverState,
}

impl Observer {
    /// Looks at the files of a driver that has started.
    pub(crate) fn new(directory: &Path) -> Result<Self, DriverError> {
        let cnc = CncFile::map(&directory.join(cnc::FILE_NAME), Access::ReadOnly)?;
        let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
        Ok(Self {
            driver: DriverState::new(&cnc, &counters, directory)?,
            counters,
            directory: directory.to_owned(),
            selection: Selection::default(),
            publications: BTreeMap::new(),
            images: BTreeMap::new(),
        })
    }

    /// First half of a check: what this driver sends. Images elsewhere are held against it.
    pub(crate) fn look(&mut self, sent: &mut SentStreams) {
        if !self.selection.choose(&self.counters) {
            self.list_streams();
        }
        for id in self.selection.chosen() {
            if let Some(publication) = self.publications.get_mut(id) {
                publication.look();
                if let Some(position) = publication.sent() {
                    sent.note(publication.stream(), position);
                }
            }
        }
    }

    /// Second half: the rules.
    pub(crate) fn check(&mut self, driver: &MediaDriver, sent: &SentStreams) -> Result<(), Violation> {
        for id in self.selection.chosen() {
            if let Some(publication) = self.publications.get_mut(id) {
                publication.check()?;
            }
            if let Some(image) = self.images.get_mut(id) {
                image.look(sent);
                image.check()?;
            }
        }
        self.driver.look(driver, self.selection.counters_count());
        self.driver.check()
    }

    fn records(&self) -> Vec<CounterRecord> {
        let mut records = Vec::new();
        self.counters.for_each(|record| {
            if record.id >= system_counter::COUNT as i32 {
                records.push(record);
            }
        });
        records
    }

    /// Finds the streams of the driver by their counters. A stream whose log is not there is left for the next time.
    fn list_streams(&mut self) {
        let records = self.records();
        let mut is_complete = true;
        let mut streams = BTreeMap::new();
        for record in &records {
            if let type_ids::PUBLISHER_LIMIT | type_ids::RECEIVER_HIGH_WATER_MARK = record.type_id {
                streams.insert(record.registration_id, record.type_id);
            }
        }
        self.publications.retain(|id, _| streams.contains_key(id));
        self.images.retain(|id, _| streams.contains_key(id));
        for (id, type_id) in streams {
            let own = Own {
                id,
                counters: &self.counters,
                records: &records,
            };
            let is_known = if type_id == type_ids::PUBLISHER_LIMIT {
                self.publications.contains_key(&id)
                    || own
                        .log(&self.directory, "publications")
                        .and_then(|log| Publication::new(&own, log))
                        .map(|publication| self.publications.insert(id, publication))
                        .is_some()
            } else {
                self.images.contains_key(&id)
                    || own
                        .log(&self.directory, "images")
                        .and_then(|log| Image::new(&own, log))
                        .map(|image| self.images.insert(id, image))
                        .is_some()
            };
            is_complete &= is_known;
            let readers = own.readers();
            if let Some(publication) = self.publications.get_mut(&id) {
                publication.readers.replace(readers);
            } else if let Some(image) = self.images.get_mut(&id) {
                image.readers.replace(readers);
            }
        }
        let streams = self.publications.keys().chain(self.images.keys());
        self.selection.list(&self.counters, &records, streams.copied());
        if !is_complete {
            self.selection.forget();
        }
    }

    /// What the driver holds.
    pub(crate) fn holdings(&self, driver: &MediaDriver) -> Holdings {
        Holdings {
            counters: { self.records().into_iter() }
                .map(|record| (record.id, record.type_id, record.label))
                .collect(),
            logs: ["publications", "images"]
                .iter()
                .map(|name| std::fs::read_dir(self.directory.join(name)).map_or(0, Iterator::count))
                .sum(),
            mapped_bytes: self
                .counters
                .value(system_counter::BYTES_CURRENTLY_MAPPED)
                .unwrap_or(0),
            waiting_messages: driver.waiting_messages(),
            command_bytes: self.driver.command_bytes(),
        }
    }
}

/// The counters of one stream.
struct Own<'a> {
    id: i64,
    counters: &'a CountersReader,
    records: &'a [CounterRecord],
}

impl Own<'_> {
    fn counter(&self, type_id: i32) -> Option<Counter> {
        let mut own = self
            .records
            .iter()
            .filter(|record| record.registration_id == self.id);
        let found = own.find(|record| record.type_id == type_id)?;
        self.counters.counter(found.id)
    }

    fn log(&self, directory: &Path, kind: &str) -> Option<LogBuffers> {
        let path = directory.join(kind).join(format!("{}.logbuffer", self.id));
        LogBuffers::map_with(&path, Access::ReadOnly).ok()
    }

    fn readers(&self) -> Vec<Reader> {
        let positions = self.records.iter().filter(|record| {
            record.type_id == type_ids::SUBSCRIBER_POSITION && record.reference_id == self.id
        });
        positions
            .filter_map(|record| {
                let position = self.counters.counter(record.id)?;
                Some(Reader {
                    before: position.get_acquire(),
                    position,
                    is_tethered: !record.label.contains("tether=false"),
                })
            })
            .collect()
    }
}

/// What a driver holds, to compare with what it held when it was fresh. Nothing is left behind, and every queue has
/// drained, when both are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Id, type and label of each live counter that is no system counter.
    pub counters: Vec<(i32, i32, String)>,
    /// Files of publications and images.
    pub logs: usize,
    /// Bytes of all files that are mapped.
    pub mapped_bytes: i64,
    /// Messages between its agents that wait.
    pub waiting_messages: usize,
    /// Bytes of commands of clients that wait.
    pub command_bytes: i64,
}
