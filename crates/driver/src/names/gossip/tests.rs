//! What comes from strangers: it takes over nothing, fills nothing without limit, and brings no more than budgets allow.

use std::io;
use std::os::fd::RawFd;
use std::sync::Mutex;

use headrace_buffers::counters::CountersManager;
use headrace_buffers::error_log::{self, DistinctErrorLog};
use headrace_buffers::{AtomicBuffer, counters};
use headrace_sys::clock::ManualClock;
use headrace_sys::net::{Coalesced, OffloadMode, Run};

use super::*;

const SECOND: i64 = 1_000_000_000;
const STRANGER: &str = "10.0.0.66:666";

/// What is to arrive, and what was sent.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<(Vec<Datagram>, Vec<Datagram>)>>);

type Datagram = (SocketAddr, Vec<u8>);

impl Wire {
    fn arrive(&self, from: &str, datagram: Vec<u8>) -> usize {
        let length = datagram.len();
        self.0.lock().unwrap().0.push((at(from), datagram));
        length
    }

    fn take_sent(&self) -> Vec<Datagram> {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }
}

impl Transport for Wire {
    fn send_runs(&self, _runs: &[Run<'_>], _to: Option<SocketAddr>) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        self.0.lock().unwrap().1.push((to.unwrap(), datagram.to_vec()));
        Ok(datagram.len())
    }

    fn receive(
        &self,
        _batch: &mut ReceiveBatch,
        handler: &mut dyn FnMut(Coalesced<'_>),
    ) -> io::Result<usize> {
        let arrived = std::mem::take(&mut self.0.lock().unwrap().0);
        let count = arrived.len();
        for (source, mut bytes) in arrived {
            let datagram_length = bytes.len().max(1);
            handler(Coalesced {
                bytes: &mut bytes,
                datagram_length,
                source,
                arrived_ns: None,
            });
        }
        Ok(count)
    }

    fn connect(&self, _remote: SocketAddr) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn send_mode(&self) -> OffloadMode {
        OffloadMode::Single
    }

    fn receive_mode(&self) -> OffloadMode {
        OffloadMode::Single
    }
}

/// Gossip of the driver `own` at 10.0.0.1:8050, whose bootstrap neighbour is the first of the texts given.
struct Rig {
    gossip: Gossip,
    wire: Wire,
    errors: AtomicBuffer,
    now_ns: i64,
}

impl Rig {
    fn new(bootstraps: &[&str]) -> Self {
        Self::with_timeout(bootstraps, 10 * SECOND)
    }

    /// The same, forgetting a neighbour after this time.
    fn with_timeout(bootstraps: &[&str], neighbour_timeout_ns: i64) -> Self {
        let metadata = AtomicBuffer::allocate(64 * counters::METADATA_LENGTH);
        let values = AtomicBuffer::allocate(64 * counters::VALUE_LENGTH);
        let mut manager = CountersManager::new(metadata, values, 0);
        let mut counter = || {
            let id = manager.allocate(0, &[], "", 0).unwrap();
            manager.counter(id)
        };
        let errors = AtomicBuffer::allocate(1 << 20);
        let wire = Wire::default();
        let parts = GossipParts {
            identity: Identity {
                name: "own".to_owned(),
                address: at("10.0.0.1:8050"),
            },
            intervals: Intervals {
                neighbour_timeout_ns,
                own_name_ns: SECOND,
                all_names_ns: 2 * SECOND,
                bootstrap_ns: 10 * SECOND,
            },
            bootstraps: bootstraps
                .iter()
                .map(|text| Bootstrap::new(text, counter()))
                .collect(),
            transport: Box::new(wire.clone()),
            mtu_length: 1408,
            counters: GossipCounters {
                neighbours: counter(),
                names: counter(),
                held_back: counter(),
                invalid_packets: counter(),
                short_sends: counter(),
            },
            errors: ErrorRecorder::new(DistinctErrorLog::new(errors.clone()), counter()),
            clock: Arc::new(ManualClock::new(0, 0)),
        };
        Self {
            gossip: Gossip::new(parts),
            wire,
            errors,
            now_ns: 0,
        }
    }

    fn pass(&mut self, duration_ns: i64) {
        let end_ns = self.now_ns + duration_ns;
        while self.now_ns < end_ns {
            self.now_ns += RUN_INTERVAL_NS;
            while self.gossip.do_work(self.now_ns) > 0 {}
        }
    }

    /// Names and neighbours that are known.
    fn counts(&self) -> (i64, i64) {
        let counters = &self.gossip.parts.counters;
        (counters.names.get(), counters.neighbours.get())
    }

    fn invalid_packets(&self) -> i64 {
        self.gossip.parts.counters.invalid_packets.get()
    }

    fn logged(&self, text: &str) -> bool {
        let entries = error_log::read(&self.errors, 0);
        entries.iter().any(|entry| entry.text.contains(text))
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// An entry of a driver that speaks for itself, or is spoken of.
fn entry<'a>(name: &'a str, address: &str, flags: u8) -> ResolutionEntry<'a> {
    ResolutionEntry {
        flags,
        port: at(address).port(),
        age_ms: 0,
        address: at(address).ip(),
        name: name.into(),
    }
}

fn frame_of(entries: &[ResolutionEntry<'_>]) -> Vec<u8> {
    let mut made = frames(entries.iter(), usize::MAX, &mut UNLIMITED.clone());
    made.pop().unwrap().bytes
}

#[test]
fn a_driver_that_speaks_for_itself_is_known_and_answered() {
    let mut rig = Rig::new(&[]);
    let hello = frame_of(&[entry("other", "0.0.0.0:8050", resolution::FLAG_SELF)]);
    rig.wire.arrive("10.0.0.2:8050", hello);
    rig.pass(2 * SECOND);
    assert_eq!(rig.gossip.address_of("other"), Some(at("10.0.0.2:1").ip()));
    assert_eq!(rig.gossip.address_of("own"), Some(at("10.0.0.1:1").ip()));
    assert_eq!(rig.gossip.address_of("nobody"), None);
    assert_eq!(rig.counts(), (1, 1));
    let (to, datagram) = &rig.wire.take_sent()[0];
    assert_eq!(*to, at("10.0.0.2:8050"));
    let mut read = ResolutionFrame::decode(datagram).unwrap();
    assert_eq!(
        read.next().unwrap().unwrap(),
        entry("own", "10.0.0.1:8050", resolution::FLAG_SELF)
    );
    rig.pass(9 * SECOND);
    assert_eq!(rig.counts(), (0, 0), "it was silent for too long");
}

#[test]
fn a_neighbour_that_may_be_silent_for_ever_is_learnt_and_kept() {
    let mut rig = Rig::with_timeout(&[], i64::MAX);
    rig.pass(2 * SECOND);
    let spoken_of = ResolutionEntry {
        age_ms: 1_000,
        ..entry("other", "10.0.0.2:8050", 0)
    };
    rig.wire.arrive("10.0.0.3:8050", frame_of(&[spoken_of]));
    rig.pass(100 * SECOND);
    assert_eq!(rig.gossip.address_of("other"), Some(at("10.0.0.2:1").ip()));
}

#[test]
fn what_cannot_be_is_refused_and_told() {
    let mut rig = Rig::new(&[]);
    let hello = frame_of(&[entry("other", "10.0.0.2:8050", resolution::FLAG_SELF)]);
    rig.wire.arrive("10.0.0.2:8050", hello);
    for (claim, reason) in [
        (
            entry("other", "10.0.0.66:666", 0x80),
            "address=10.0.0.2:8050 holds the name",
        ),
        (
            entry("own", "10.0.0.66:666", 0x80),
            "it is the name of this driver",
        ),
        (entry("a", "224.0.1.1:8050", 0), "no driver can have this address"),
        (
            entry("b", "255.255.255.255:8050", 0),
            "address=255.255.255.255:8050",
        ),
        (entry("c", "0.0.0.0:8050", 0), "address=0.0.0.0:8050"),
        (entry("d", "10.0.0.9:0", 0), "address=10.0.0.9:0"),
        (entry("e", "127.0.0.1:8050", 0), "address=127.0.0.1:8050"),
    ] {
        rig.wire.arrive(STRANGER, frame_of(&[claim]));
        rig.pass(RUN_INTERVAL_NS);
        assert!(rig.logged(reason), "{reason}");
    }
    assert!(rig.logged("from source=10.0.0.66:666"));
    assert_eq!(rig.gossip.address_of("other"), Some(at("10.0.0.2:1").ip()));
    assert_eq!(rig.gossip.address_of("own"), Some(at("10.0.0.1:1").ip()));
    assert_eq!(rig.counts(), (1, 1));
    // The driver's own entry comes back to it in what others tell.
    rig.wire
        .arrive(STRANGER, frame_of(&[entry("own", "10.0.0.1:8050", 0)]));
    rig.pass(RUN_INTERVAL_NS);
    assert_eq!(rig.counts(), (1, 1));
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut rig = Rig::new(&[]);
    let good = frame_of(&[entry("good", "10.0.0.2:8050", 0)]);
    let mut cut_off = frame_of(&[
        entry("good", "10.0.0.2:8050", 0),
        entry("cut", "10.0.0.3:8050", 0),
    ]);
    let cut_at = good.len() + 8;
    cut_off.truncate(cut_at);
    cut_off[..4].copy_from_slice(&(cut_at as i32).to_le_bytes());
    for datagram in [
        vec![],
        vec![0; 7],
        vec![0xff; 64],
        frame_of(&[entry("a name", "10.0.0.3:8050", 0)]),
        cut_off,
    ] {
        rig.wire.arrive(STRANGER, datagram);
    }
    rig.pass(RUN_INTERVAL_NS);
    // An empty datagram has no bytes to read.
    assert_eq!(rig.invalid_packets(), 4);
    assert_eq!(rig.counts(), (1, 1), "the entry before the broken one counts");
}

#[test]
fn tables_have_an_end_and_it_is_told() {
    let mut rig = Rig::new(&[]);
    let names: Vec<String> = (0..NAMES_MAX + 10).map(|number| format!("n{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let address = format!("10.1.{}.{}:8050", number / 256, number % 256);
        rig.wire.arrive(STRANGER, frame_of(&[entry(name, &address, 0)]));
    }
    rig.pass(RUN_INTERVAL_NS);
    assert_eq!(rig.counts(), (NAMES_MAX as i64, NEIGHBOURS_MAX as i64));
    assert!(rig.logged("there are 1024 names already"));
}

#[test]
fn whatever_strangers_send_no_more_comes_back_than_budgets_allow() {
    // 38 addresses, each new again when it was forgotten.
    let allowed = |came: usize| 3 * came + 38 * 3 * 512;
    for seed in 0..64 {
        let mut rig = Rig::new(&[]);
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut came, mut went) = (0, 0);
        for _ in 0..40 {
            let count = random.usize(1..30);
            let names: Vec<String> = (0..count)
                .map(|_| "x".repeat(random.usize(1..20)) + &random.u16(..).to_string())
                .collect();
            let entries: Vec<_> = names
                .iter()
                .map(|name| {
                    let address = format!("10.0.0.{}:8050", random.u8(2..40));
                    entry(name, &address, if random.bool() { 0x80 } else { 0 })
                })
                .collect();
            let from = format!("10.0.0.{}:8050", random.u8(2..40));
            came += rig.wire.arrive(&from, frame_of(&entries));
            rig.pass(random.i64(0..SECOND));
            went += rig
                .wire
                .take_sent()
                .iter()
                .map(|(_, sent)| sent.len())
                .sum::<usize>();
            assert!(went <= allowed(came), "seed {seed}: {went} bytes for {came}");
        }
        rig.pass(20 * SECOND);
        went += rig
            .wire
            .take_sent()
            .iter()
            .map(|(_, sent)| sent.len())
            .sum::<usize>();
        assert!(went <= allowed(came), "seed {seed}: {went} bytes for {came}");
        assert!(rig.gossip.parts.counters.held_back.get() > 0, "seed {seed}");
    }
}

#[test]
fn two_that_have_just_met_exchange_tables_in_steps_that_grow() {
    let mut rig = Rig::new(&[]);
    let names: Vec<String> = (0..200).map(|number| format!("name{number:03}")).collect();
    for (number, name) in names.iter().enumerate() {
        rig.wire.arrive(
            STRANGER,
            frame_of(&[entry(name, &format!("10.1.0.{number}:8050"), 0)]),
        );
    }
    rig.pass(RUN_INTERVAL_NS);
    // It is told who told it.
    let answer = frame_of(&[entry("own", "10.0.0.1:8050", 0)]);
    let newcomer = "10.0.0.2:8050";
    let hello = frame_of(&[entry("new", newcomer, 0x80)]);
    let mut told = BTreeSet::new();
    let mut counts = Vec::new();
    for _ in 0..8 {
        rig.wire.arrive(newcomer, hello.clone());
        rig.wire.arrive(newcomer, answer.clone());
        for (to, datagram) in rig.wire.take_sent() {
            if to != at(newcomer) {
                continue;
            }
            assert!(datagram.len() <= 1408);
            for entry in ResolutionFrame::decode(&datagram).unwrap() {
                let entry = entry.unwrap();
                if entry.flags == 0 {
                    told.insert((
                        entry.name.into_owned(),
                        format!("{}:{}", entry.address, entry.port),
                    ));
                }
            }
        }
        // It tells all that it knows, which pays for more.
        for (name, address) in &told {
            rig.wire.arrive(newcomer, frame_of(&[entry(name, address, 0)]));
        }
        rig.pass(SECOND);
        counts.push(told.len());
    }
    assert!(counts[7] > 3 * counts[3], "{counts:?}");
}

#[test]
fn a_bootstrap_neighbour_is_told_without_having_spoken() {
    let mut rig = Rig::new(&["far:8050", "broken", "gone:1"]);
    rig.pass(RUN_INTERVAL_NS);
    assert_eq!(
        rig.gossip.take_wanted(),
        [(0, "far".to_owned()), (2, "gone".to_owned())]
    );
    assert!(rig.logged("Invalid argument: bootstrap neighbor not host:port: broken"));
    let (_, label) = rig.gossip.on_bootstrap(0, Ok(at("10.0.0.2:1").ip())).unwrap();
    assert_eq!(label, "Bootstrap neighbor: name=far:8050 resolved=10.0.0.2:8050");
    assert_eq!(rig.gossip.on_bootstrap(2, Err("no such name".to_owned())), None);
    assert!(rig.logged("unknown host: bootstrap neighbor=gone:1: no such name"));
    rig.pass(RUN_INTERVAL_NS);
    let sent = rig.wire.take_sent();
    assert_eq!(sent.len(), 1, "at once");
    assert_eq!(sent[0].0, at("10.0.0.2:8050"));
    rig.pass(5 * SECOND);
    assert_eq!(rig.wire.take_sent().len(), 5, "once a second");
    // It speaks: a neighbour like others, and not looked up again.
    let hello = frame_of(&[entry("far", "10.0.0.2:8050", 0x80)]);
    for _ in 0..6 {
        rig.wire.arrive("10.0.0.2:8050", hello.clone());
        rig.pass(SECOND);
    }
    assert_eq!(rig.gossip.take_wanted(), [(2, "gone".to_owned())]);
}
