//! What must hold between any two steps, checked from outside: from the counters and logs that a driver shows to all.
//!
//! Each rule has a name, under which `docs/internals/world.md` states it. There is a table of rules about each
//! [`publication`], each [`image`] and each [`driver`].

mod driver;
mod image;
mod publication;
mod readers;
mod room;
mod rule;
mod selection;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{CounterRecord, CountersReader, system_counter, type_ids};
use headrace_driver::{DriverError, MediaDriver};
use headrace_sys::Access;

use driver::DriverState;
use image::Image;
use publication::Publication;
use selection::Selection;
use stream::Own;

pub(crate) use rule::Violation;
pub(crate) use stream::SentStreams;

/// The view of one driver from outside.
pub(crate) struct Observer {
    counters: CountersReader,
    directory: PathBuf,
    /// Of subscriptions whose channel does not say.
    is_tethered: bool,
    selection: Selection,
    publications: BTreeMap<i64, Publication>,
    images: BTreeMap<i64, Image>,
    driver: DriverState,
}

impl Observer {
    /// Looks at the files of a driver that has started, and that has this setting for subscriptions.
    pub(crate) fn new(directory: &Path, is_tethered: bool) -> Result<Self, DriverError> {
        let cnc = CncFile::map(&directory.join(cnc::FILE_NAME), Access::ReadOnly)?;
        let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
        Ok(Self {
            driver: DriverState::new(&cnc, &counters, directory)?,
            counters,
            directory: directory.to_owned(),
            is_tethered,
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
                publication.look_around(sent);
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
                is_tethered: self.is_tethered,
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
