//! A stream by its name, and what a driver shows of one.

use std::collections::BTreeMap;
use std::path::Path;

use headrace_buffers::counters::{Counter, CounterRecord, CountersReader, type_ids};
use headrace_buffers::log::LogBuffers;
use headrace_sys::Access;

use super::readers::Reader;

/// Session and stream.
pub(super) type StreamName = (i32, i32);

/// How far each stream of a world was ever sent, by session and stream.
#[derive(Debug, Default)]
pub(crate) struct SentStreams(BTreeMap<StreamName, i64>);

impl SentStreams {
    pub(super) fn note(&mut self, stream: StreamName, position: i64) {
        let highest = self.0.entry(stream).or_insert(position);
        *highest = position.max(*highest);
    }

    pub(super) fn highest(&self, stream: StreamName) -> Option<i64> {
        self.0.get(&stream).copied()
    }
}

/// The counters of one stream.
pub(super) struct Own<'a> {
    pub(super) id: i64,
    pub(super) counters: &'a CountersReader,
    pub(super) records: &'a [CounterRecord],
    /// Readers whose channel does not say.
    pub(super) is_tethered: bool,
}

impl Own<'_> {
    pub(super) fn counter(&self, type_id: i32) -> Option<Counter> {
        let mut own = self
            .records
            .iter()
            .filter(|record| record.registration_id == self.id);
        let found = own.find(|record| record.type_id == type_id)?;
        self.counters.counter(found.id)
    }

    pub(super) fn log(&self, directory: &Path, kind: &str) -> Option<LogBuffers> {
        let path = directory.join(kind).join(format!("{}.logbuffer", self.id));
        LogBuffers::map_with(&path, Access::ReadOnly).ok()
    }

    pub(super) fn readers(&self) -> Vec<Reader> {
        let positions = self.records.iter().filter(|record| {
            record.type_id == type_ids::SUBSCRIBER_POSITION && record.reference_id == self.id
        });
        positions
            .filter_map(|record| {
                let position = self.counters.counter(record.id)?;
                Some(Reader {
                    before: position.get_acquire(),
                    position,
                    is_tethered: says_of_tether(&record.label).unwrap_or(self.is_tethered),
                })
            })
            .collect()
    }
}

/// What the channel in a label says; more than `true` and `false` are no values.
fn says_of_tether(label: &str) -> Option<bool> {
    let (_, value) = label.split_once("tether=")?;
    Some(!value.starts_with("false"))
}
