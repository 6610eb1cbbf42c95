//! Whatever clients and peers send, in whatever order, the driver neither stops nor keeps anything of the dead.
//!
//! A seed drives clients and peers. A failure names the seed; `HEADRACE_SEED=<n>` replays it alone.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

use headrace_buffers::counters::system_counter;
use headrace_buffers::log::{ConcurrentAppender, LogBuffers};
use headrace_protocol::command::Command;
use headrace_protocol::frame::Setup;

use crate::byte_client::Driver;
use crate::common::{SECOND, World};
use crate::images::SETUP;
use crate::peers::FarPublisher;

const CHANNELS: &[&str] = &[
    "aeron:ipc?term-length=64k",
    "aeron:ipc?term-length=64k|session-id=5",
    "aeron:ipc?tether=false|rejoin=false|term-length=64k",
    "aeron:ipc?session-id=tag:3",
    "aeron:udp?endpoint=near:1001|term-length=64k|tags=2,3",
    "aeron:udp?endpoint=near:1002|term-length=64k",
    "aeron:udp?endpoint=near:1002|tether=false|rejoin=false|term-length=64k",
    "aeron:udp?endpoint=near:1002|session-id=5|term-length=64k",
    "aeron:udp?endpoint=near:0|term-length=64k",
    "aeron:udp?tags=2|term-length=64k",
    "aeron:udp?endpoint=nowhere:1|term-length=64k",
    "aeron:udp?control-mode=manual",
    "aeron:udp?control-mode=manual|tags=9",
    "aeron-spy:aeron:udp?endpoint=near:1002",
    "nonsense",
];

const DESTINATIONS: &[&str] = &[
    "aeron:udp?endpoint=near:1002",
    "aeron:udp?endpoint=near:0",
    "aeron:udp?endpoint=near:0|control=far:1003",
    "aeron:udp?endpoint=nowhere:1",
    "aeron:udp?endpoint=224.0.1.1:1004",
    "aeron:udp?endpoint=localhost:9",
    "aeron:ipc",
    "aeron:ipc?session-id=5|tether=false",
    "aeron-spy:aeron:udp?endpoint=near:1002",
    "aeron:udp?endpoint=near:1002|mtu=1408",
    "nonsense",
];

struct Chaos {
    driver: Driver,
    random: fastrand::Rng,
    clients: Vec<i64>,
    registrations: Vec<i64>,
    peer: Rc<RefCell<FarPublisher>>,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut driver = Driver::within(World::without_rules(seed), |config| {
            config.image_liveness_timeout_ns = 3 * SECOND;
        });
        let to = SocketAddr::new(driver.node.address(), 1002);
        let peer = FarPublisher::new(&driver.world, to, SETUP);
        let peer = driver.add_peer(peer);
        peer.borrow_mut().is_silent = true;
        Self {
            driver,
            random: fastrand::Rng::with_seed(seed),
            clients: vec![1_000_001, 1_000_002],
            registrations: Vec::new(),
            peer,
        }
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.random.usize(..of.len())])
    }

    fn client(&mut self) -> i64 {
        let index = self.random.usize(..self.clients.len());
        self.clients[index]
    }

    /// An id that means something, most of the time.
    fn registration(&mut self) -> i64 {
        if self.registrations.is_empty() || self.random.u8(..) < 20 {
            return self.random.i64(-5..200);
        }
        self.registrations[self.random.usize(..self.registrations.len())]
    }

    fn step(&mut self) {
        match self.random.u8(..100) {
            0..=24 => self.add_stream(),
            25..=39 => self.remove(),
            40..=47 => self.odd_command(),
            48..=52 => self.garbage(),
            53..=62 => self.publish(),
            63..=72 => self.read(),
            73..=80 => self.network(),
            81..=88 => {
                let duration_ns = self.random.i64(0..SECOND);
                self.driver.pass(duration_ns);
            }
            _ => self.driver.finish_commands(),
        }
    }

    fn add_stream(&mut self) {
        let (client_id, correlation_id) = (self.client(), self.driver.next_id());
        let stream_id = self.random.i32(10..12);
        let channel = CHANNELS[self.random.usize(..CHANNELS.len())].into();
        self.registrations.push(correlation_id);
        self.driver.command(&match self.random.u8(..3) {
            0 => Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            1 => Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            _ => Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        });
    }

    fn remove(&mut self) {
        let (client_id, correlation_id) = (self.client(), self.driver.next_id());
        let registration_id = self.registration();
        self.driver.command(&match self.random.u8(..4) {
            0 => Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            },
            1 => Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id,
            },
            kind => Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id,
                revoke: kind == 2,
            },
        });
    }

    fn odd_command(&mut self) {
        let (client_id, correlation_id) = (self.client(), self.driver.next_id());
        let (registration_id, destination_registration_id) = (self.registration(), self.registration());
        let images = self.driver.images();
        let image_correlation_id = images
            .last()
            .map_or(registration_id, |image| image.image_correlation_id);
        let channel = DESTINATIONS[self.random.usize(..DESTINATIONS.len())].into();
        self.driver.command(&match self.random.u8(..9) {
            0 => Command::RejectImage {
                client_id,
                correlation_id,
                image_correlation_id,
                position: 0,
                reason: "no".into(),
            },
            1 => Command::ClientClose {
                client_id,
                correlation_id: -1,
            },
            2 => Command::AddDestination {
                client_id,
                correlation_id,
                registration_id,
                channel: "aeron:udp?endpoint=localhost:9".into(),
            },
            3 => Command::RejectImage {
                client_id,
                correlation_id,
                image_correlation_id: registration_id,
                position: 0,
                reason: "no".into(),
            },
            4 => Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            5 => Command::RemoveReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            6 => Command::RemoveDestinationById {
                client_id,
                correlation_id,
                registration_id,
                destination_registration_id,
            },
            7 => Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id: 10,
            },
            _ => Command::AddCounter {
                client_id,
                correlation_id,
                type_id: 1_000,
                key: &[1],
                label: "counter".into(),
            },
        });
        self.registrations.push(correlation_id);
    }

    fn garbage(&mut self) {
        let mut message = vec![0; self.random.usize(..64)];
        self.random.fill(&mut message);
        self.driver.raw_command(self.random.i32(1..0x20), &message);
    }

    /// A publisher appends, whatever its limit is, and sometimes dies on the way.
    fn publish(&mut self) {
        let Some(log) = self.pick_log() else {
            return;
        };
        let appender = ConcurrentAppender::new(&log);
        for _ in 0..self.random.usize(..40) {
            let _ = appender.offer(&[&[7; 480]], i64::MAX);
        }
        if self.random.u8(..3) == 0
            && let Ok(claim) = appender.try_claim(96, i64::MAX)
        {
            std::mem::forget(claim);
        }
    }

    fn pick_log(&mut self) -> Option<LogBuffers> {
        let publication_id = self.registration();
        let path = self.driver.publication_path(publication_id);
        LogBuffers::map(&path).ok()
    }

    /// Readers, or other processes that write to their counters, store any position.
    fn read(&mut self) {
        let ids = self.driver.subscriber_positions();
        if let Some(id) = self.pick(&ids) {
            let counter = self.driver.counter(id);
            let value = counter.get();
            counter.set_release(match self.random.u8(..10) {
                0 => self.random.i64(..),
                1 => -1,
                _ => value.saturating_add(32 * self.random.i64(0..1_000)),
            });
        }
    }

    /// A peer forges a stream, or a part of one.
    fn network(&mut self) {
        let mut peer = self.peer.borrow_mut();
        peer.setup = Setup {
            term_offset: 32 * self.random.i32(0..2_048),
            session_id: self.random.i32(4..7),
            stream_id: self.random.i32(10..12),
            active_term_id: 7 + self.random.i32(-1..3),
            ..SETUP
        };
        match self.random.u8(..3) {
            0 => peer.send_setup(&peer.setup),
            1 => peer.send_heartbeat(),
            _ => {
                peer.send_setup(&peer.setup);
                for _ in 0..self.random.usize(..20) {
                    peer.send(self.random.usize(..50));
                }
            }
        }
        drop(peer);
        self.driver.finish_commands();
    }

    /// Every client dies, and time passes.
    fn end(mut self) -> Driver {
        self.driver.pass(40 * SECOND);
        self.driver
    }
}

#[test]
fn nothing_of_the_dead_is_kept() {
    let seeds = match std::env::var("HEADRACE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..12).collect(),
    };
    let mut heard = BTreeSet::new();
    let runs_all = seeds.len() > 1;
    for seed in seeds {
        let mut chaos = Chaos::new(seed);
        for _ in 0..400 {
            chaos.step();
        }
        let driver = chaos.end();
        let left = driver.live_counters();
        assert!(left.is_empty(), "HEADRACE_SEED={seed} left {left:?}");
        let files = (driver.log_files(), driver.image_files());
        assert_eq!(files, (0, 0), "HEADRACE_SEED={seed}");
        heard.extend(driver.names());
        heard.extend(
            (driver.system(system_counter::UNBLOCKED_PUBLICATIONS) > 0).then(|| "unblocked".to_owned()),
        );
    }
    // A run in which nothing happens proves nothing.
    for kind in [
        "AvailableImage",
        "ClientTimeout",
        "CounterReady",
        "Error",
        "ExclusivePublicationReady",
        "PublicationError",
        "PublicationReady",
        "SubscriptionReady",
        "UnavailableImage",
        "unblocked",
    ] {
        assert!(!runs_all || heard.contains(kind), "no {kind} in {heard:?}");
    }
}
