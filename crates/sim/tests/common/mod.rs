//! A world with a directory of its own, and what tests ask of its nodes.

#![allow(dead_code, unreachable_pub)] // each test file uses its own part of it

use std::ops::Deref;
use std::path::Path;

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::CountersReader;
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

/// What a driver holds: counters by id and type, and logs.
pub fn traces_of(node: &Node) -> (Vec<(i32, i32)>, usize) {
    let cnc = CncFile::map(&node.directory().join(cnc::FILE_NAME), Access::ReadOnly).unwrap();
    let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
    let mut ids = Vec::new();
    counters.for_each(|record| ids.push((record.id, record.type_id)));
    let logs = ["publications", "images"]
        .map(|name| std::fs::read_dir(node.directory().join(name)).unwrap().count());
    (ids, logs.iter().sum())
}
