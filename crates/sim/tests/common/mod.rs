//! A world with a directory of its own, and what tests ask of its nodes.

#![allow(dead_code, unreachable_pub)] // each test file uses its own part of it

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{CounterRecord, CountersReader, type_ids};
use headrace_buffers::error_log;
use headrace_client::{FragmentAssembler, Subscription};
use headrace_sim::{LinkSettings, Node};
use headrace_sys::Access;

pub const SECOND: i64 = 1_000_000_000;

/// A world whose files go when it is dropped.
pub struct World {
    world: headrace_sim::World,
    _directory: tempfile::TempDir,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let shared_memory = Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)
        } else {
            tempfile::tempdir()
        };
        let directory = directory.unwrap();
        Self {
            world: headrace_sim::World::new(seed, directory.path()),
            _directory: directory,
        }
    }
}

impl Deref for World {
    type Target = headrace_sim::World;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
}

/// A network that does all that a network may.
pub fn faults() -> LinkSettings {
    LinkSettings {
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.1,
        delay_max_ns: 200_000,
        ..LinkSettings::default()
    }
}

/// A subscription and the whole messages that it brought.
pub struct Reader {
    pub subscription: Subscription,
    pub messages: Vec<Vec<u8>>,
    assembler: FragmentAssembler,
}

impl Reader {
    pub fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            messages: Vec::new(),
            assembler: FragmentAssembler::new(),
        }
    }

    pub fn poll(&mut self) {
        let (assembler, messages) = (&mut self.assembler, &mut self.messages);
        while self
            .subscription
            .poll(
                |payload, header| {
                    assembler.on_fragment(payload, header, |message, _| messages.push(message.to_vec()));
                },
                64,
            )
            .unwrap()
            > 0
        {}
    }
}

fn map(node: &Node) -> CncFile {
    CncFile::map(&node.directory().join(cnc::FILE_NAME), Access::ReadOnly).unwrap()
}

fn counters_of(node: &Node) -> Vec<CounterRecord> {
    let cnc = map(node);
    let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
    let mut records = Vec::new();
    counters.for_each(|record| records.push(record));
    records
}

/// The value of one of a driver's system counters.
pub fn system_counter(node: &Node, id: i32) -> i64 {
    let found = counters_of(node).into_iter().find(|record| record.id == id);
    found.unwrap().value
}

/// What a driver holds: counters by id and type, and logs.
pub fn traces_of(node: &Node) -> (Vec<(i32, i32)>, usize) {
    let ids = counters_of(node)
        .iter()
        .map(|record| (record.id, record.type_id))
        .collect();
    let logs = ["publications", "images"]
        .map(|name| std::fs::read_dir(node.directory().join(name)).unwrap().count());
    (ids, logs.iter().sum())
}

/// The texts of a driver's error log.
pub fn errors_of(node: &Node) -> Vec<String> {
    let entries = error_log::read(&map(node).error_log(), 0);
    entries.into_iter().map(|entry| entry.text).collect()
}

/// Positions of one driver as they were last seen, and what must hold between them at any time:
///
/// - a position of a stream never goes back;
/// - no subscriber, and no rebuilding, is beyond the highest byte that its image has received.
#[derive(Default)]
pub struct Positions {
    seen: BTreeMap<(i32, i64), i64>,
}

impl Positions {
    pub fn check(&mut self, node: &Node) {
        let records = counters_of(node);
        let mut high_water: BTreeMap<(i32, i32), i64> = BTreeMap::new();
        for record in records
            .iter()
            .filter(|record| record.type_id == type_ids::RECEIVER_HIGH_WATER_MARK)
        {
            let highest = high_water.entry(stream_of(record)).or_default();
            *highest = record.value.max(*highest);
        }
        let mut seen = BTreeMap::new();
        for record in records.iter().filter(|record| is_position(record.type_id)) {
            let name = (record.id, record.registration_id);
            let before = self.seen.get(&name).copied().unwrap_or(0);
            assert!(
                record.value >= before,
                "{} went back from {before}: {record:?}",
                node.name()
            );
            seen.insert(name, record.value);
            if matches!(
                record.type_id,
                type_ids::SUBSCRIBER_POSITION | type_ids::RECEIVER_POSITION
            ) {
                let highest = high_water.get(&stream_of(record));
                assert!(
                    highest.is_none_or(|highest| record.value <= *highest),
                    "{} has received {highest:?} and read {record:?}",
                    node.name()
                );
            }
        }
        self.seen = seen;
    }
}

fn is_position(type_id: i32) -> bool {
    matches!(
        type_id,
        type_ids::SENDER_POSITION
            | type_ids::RECEIVER_HIGH_WATER_MARK
            | type_ids::SUBSCRIBER_POSITION
            | type_ids::RECEIVER_POSITION
            | type_ids::PUBLISHER_POSITION
    )
}

/// Session and stream of a stream's counter, from its key.
fn stream_of(record: &CounterRecord) -> (i32, i32) {
    let word = |at: usize| i32::from_le_bytes(record.key[at..at + 4].try_into().unwrap());
    (word(8), word(12))
}
