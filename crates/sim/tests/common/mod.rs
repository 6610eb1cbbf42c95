//! A world with a directory of its own, and what tests ask of its nodes.

#![allow(dead_code, unreachable_pub)] // each test file uses its own part of it

pub mod peer;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{CounterRecord, CountersReader};
use headrace_buffers::error_log::{self, ErrorEntry};
use headrace_client::{Client, FragmentAssembler, Offer, OfferError, Publication, Subscription};
use headrace_sim::{LinkSettings, Node, WorldError};
use headrace_sys::Access;

pub const SECOND: i64 = 1_000_000_000;
pub const MILLISECOND: i64 = 1_000_000;

/// A channel to the node `right`, and a stream on it.
pub const CHANNEL: &str = "aeron:udp?endpoint=right:40123|term-length=64k";
pub const STREAM: i32 = 1001;

/// A world whose files go when it is dropped.
pub struct World {
    world: headrace_sim::World,
    _directory: tempfile::TempDir,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::made(seed, |world| world)
    }

    /// A world that checks no rules, for programs that break them.
    pub fn without_rules(seed: u64) -> Self {
        Self::made(seed, headrace_sim::World::without_checks)
    }

    fn made(seed: u64, change: impl FnOnce(headrace_sim::World) -> headrace_sim::World) -> Self {
        let shared_memory = Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)
        } else {
            tempfile::tempdir()
        };
        let directory = directory.unwrap();
        Self {
            world: change(headrace_sim::World::new(seed, directory.path())),
            _directory: directory,
        }
    }

    /// The nodes `left` and `right`.
    pub fn pair(&self) -> [Node; 2] {
        ["left", "right"].map(|name| self.add_node(name).unwrap())
    }

    /// As the world's own, and fails the test when a rule does not hold. So do the next three.
    pub fn step(&self) -> usize {
        succeed(self.world.step())
    }

    pub fn step_until(&self, end_ns: i64) -> usize {
        succeed(self.world.step_until(end_ns))
    }

    pub fn run_for(&self, duration_ns: i64) {
        succeed(self.world.run_for(duration_ns));
    }

    pub fn run_until(&self, within_ns: i64, what: &str, condition: impl FnMut() -> bool) {
        succeed(self.world.run_until(within_ns, what, condition));
    }
}

/// A whole number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text:?} must be a whole number")),
    )
}

/// Runs a test of a file for its own seeds, or for the one of the environment, or new ones for a time, and names the one that
/// fails.
pub fn for_seeds(seeds: std::ops::Range<u64>, file: &str, test: &str, run: impl Fn(u64)) {
    struct Replay<'a>(u64, &'a str, &'a str);
    impl Drop for Replay<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let Self(seed, file, test) = self;
                eprintln!(
                    "to replay it: HEADRACE_SEED={seed} cargo test -p headrace-sim --test {file} {test}"
                );
            }
        }
    }
    let named = |seed| {
        let _replay = Replay(seed, file, test);
        run(seed);
    };
    let chosen = setting("HEADRACE_SEED");
    if let Some(seconds) = setting("SIMULATE_SECONDS") {
        let first = chosen.unwrap_or_else(|| fastrand::u64(..u64::MAX / 2));
        let (begin, mut seed) = (Instant::now(), first);
        while begin.elapsed() < Duration::from_secs(seconds) {
            named(seed);
            seed += 1;
        }
        println!("{test}: {} seeds from {first} on", seed - first);
        return;
    }
    for seed in chosen.map_or(seeds, |seed| seed..seed + 1) {
        named(seed);
    }
}

fn succeed<T>(result: Result<T, WorldError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
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

    /// A subscription with no handlers.
    pub fn subscribe(client: &Client, channel: &str, stream_id: i32) -> Self {
        Self::new(
            client
                .add_subscription(channel, stream_id, Default::default())
                .unwrap(),
        )
    }

    /// Reads all that is there. Returns the messages so far.
    pub fn poll(&mut self) -> &[Vec<u8>] {
        while self.poll_some(64) > 0 {}
        &self.messages
    }

    /// Reads so many fragments at most. Returns how many.
    pub fn poll_some(&mut self, limit: usize) -> usize {
        let (assembler, messages) = (&mut self.assembler, &mut self.messages);
        let polled = self.subscription.poll(
            |payload, header| {
                assembler.on_fragment(payload, header, |message, _| messages.push(message.to_vec()));
            },
            limit,
        );
        polled.unwrap()
    }
}

/// Two nodes of a world, a publisher on the left and a reader on the right.
pub struct Stream {
    pub left: Node,
    pub right: Node,
    pub publisher: Arc<Client>,
    pub subscriber: Arc<Client>,
    pub publication: Publication,
    pub reader: Reader,
}

impl Stream {
    /// Adds the nodes `left` and `right`. The channel should lead to `right`.
    pub fn new(world: &World, channel: &str, stream_id: i32) -> Self {
        let [left, right] = world.pair();
        let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
        let reader = Reader::subscribe(&subscriber, channel, stream_id);
        let publication = publisher.add_publication(channel, stream_id).unwrap();
        Self {
            left,
            right,
            publisher,
            subscriber,
            publication,
            reader,
        }
    }

    /// As [`Self::new`], when publisher and reader know each other.
    pub fn connected(world: &World, channel: &str, stream_id: i32) -> Self {
        let stream = Self::new(world, channel, stream_id);
        world.run_until(SECOND, "a connection", || {
            stream.publication.is_connected() && stream.reader.subscription.is_connected()
        });
        stream
    }
}

impl Stream {
    /// Offers a message. False when there is no room for it, or no reader.
    pub fn offers(&self, message: &[u8]) -> bool {
        is_accepted(self.publication.offer(message))
    }
}

/// False when there was no room, or no reader.
pub fn is_accepted(offered: Result<Offer, OfferError>) -> bool {
    matches!(offered, Ok(Offer::Position(_)))
}

fn map(node: &Node) -> CncFile {
    CncFile::map(&node.directory().join(cnc::FILE_NAME), Access::ReadOnly).unwrap()
}

fn reader(node: &Node) -> CountersReader {
    let cnc = map(node);
    CountersReader::new(cnc.counters_metadata(), cnc.counters_values())
}

/// Label and value of each of a driver's counters.
pub fn counters(node: &Node) -> Vec<(String, i64)> {
    let mut counters = Vec::new();
    reader(node).for_each(|record| counters.push((record.label, record.value)));
    counters
}

/// What the only counter of a name tells after `before`, and since when; none when nothing is the matter.
pub fn trouble(node: &Node, name: &str, before: &str) -> Option<(String, i64)> {
    let mut troubles = counters(node);
    troubles.retain(|(label, value)| label.starts_with(name) && *value != 0);
    assert!(troubles.len() <= 1, "{troubles:?}");
    let (label, since_ms) = troubles.pop()?;
    let (_, what) = label.rsplit_once(before).unwrap();
    Some((what.to_owned(), since_ms))
}

/// The value of one of a driver's system counters.
pub fn system_counter(node: &Node, id: i32) -> i64 {
    reader(node).value(id).unwrap()
}

/// The counters of one type that a driver has.
pub fn counters_of(node: &Node, type_id: i32) -> Vec<CounterRecord> {
    let mut found = Vec::new();
    reader(node).for_each(|record| {
        if record.type_id == type_id {
            found.push(record);
        }
    });
    found
}

/// The only counter of a type that a driver has. Looking at it maps no file, so that a condition may in each step.
pub struct Gauge {
    reader: CountersReader,
    id: i32,
}

impl Gauge {
    pub fn new(node: &Node, type_id: i32) -> Self {
        let found = counters_of(node, type_id);
        assert_eq!(found.len(), 1, "counters of type {type_id}");
        Self {
            reader: reader(node),
            id: found[0].id,
        }
    }

    pub fn value(&self) -> i64 {
        self.reader.value(self.id).unwrap()
    }
}

/// The value of the only counter of a type.
pub fn counter(node: &Node, type_id: i32) -> i64 {
    Gauge::new(node, type_id).value()
}

/// A driver's error log.
pub fn error_entries(node: &Node) -> Vec<ErrorEntry> {
    error_log::read(&map(node).error_log(), 0)
}

/// The texts of it.
pub fn errors_of(node: &Node) -> Vec<String> {
    let entries = error_entries(node).into_iter();
    entries.map(|entry| entry.text).collect()
}
