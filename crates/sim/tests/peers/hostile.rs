//! Whatever arrives, a driver neither panics nor stops working.

use std::sync::Arc;

use headrace_client::{Client, Publication};
use headrace_protocol::frame::{FrameKind, classify};
use headrace_sim::{Datagram, LinkSettings, Node};

use crate::common::{MILLISECOND, Reader, SECOND, STREAM, World};

const CHANNEL: &str = "aeron:udp?endpoint=right:40123";
/// The stream that is attacked, the same in each world: frames of one are believed in the others.
const ATTACKED: &str =
    "aeron:udp?endpoint=right:40123|term-length=64k|session-id=-77|init-term-id=5|term-id=5|term-offset=0";
const CONTROL: &str = "aeron:udp?control=right:24325|control-mode=response";
/// The same stream for a group, and for a subscription that takes it on two paths.
const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123";
const SHAPE: &str = "term-length=64k|session-id=-77|init-term-id=5|term-id=5|term-offset=0";
/// Has nothing of the attack.
const UNTOUCHED: &str = "aeron:udp?endpoint=right:40129";
const MANUAL: &str = "aeron:udp?control-mode=manual";
const PATHS: [&str; 2] = ["aeron:udp?endpoint=right:40123", "aeron:udp?endpoint=right:40124"];
const ANSWERS: &str = "term-length=64k|session-id=-78|init-term-id=6|term-id=6|term-offset=0";
const SEEDS: u64 = 16;
/// Bent datagrams for each seed.
const ATTACKS_MAX: usize = 200;

/// The kinds of frames that go between two drivers of which none resolves names.
const KINDS: [FrameKind; 6] = [
    FrameKind::Setup,
    FrameKind::Data,
    FrameKind::StatusMessage,
    FrameKind::Nak,
    FrameKind::Error,
    FrameKind::RttMeasurement,
];

/// The streams that are attacked, and the clients at their ends.
struct Attacked {
    publications: Vec<Publication>,
    readers: Vec<Reader>,
    _clients: [Arc<Client>; 2],
}

/// How a world begins whose streams are attacked.
type Begin = fn(&World, [&Node; 2]) -> Attacked;

impl Attacked {
    /// A stream from the left to the right.
    fn one_way(world: &World, nodes: [&Node; 2]) -> Self {
        let clients = nodes.map(|node| node.connect().unwrap());
        let reader = Reader::subscribe(&clients[1], CHANNEL, STREAM);
        let publication = clients[0].add_publication(ATTACKED, STREAM).unwrap();
        Self {
            publications: vec![publication],
            readers: vec![reader],
            _clients: clients,
        }
        .connected(world)
    }

    /// A stream of a group with one receiver, on the right.
    fn group(world: &World, nodes: [&Node; 2]) -> Self {
        let clients = nodes.map(|node| node.connect().unwrap());
        let reader = Reader::subscribe(&clients[1], GROUP, STREAM);
        let channel = format!("{GROUP}|{SHAPE}");
        let publication = clients[0].add_publication(&channel, STREAM).unwrap();
        Self {
            publications: vec![publication],
            readers: vec![reader],
            _clients: clients,
        }
        .connected(world)
    }

    /// A stream that comes to the right on two paths.
    fn two_paths(world: &World, nodes: [&Node; 2]) -> Self {
        let clients = nodes.map(|node| node.connect().unwrap());
        let reader = Reader::subscribe(&clients[1], MANUAL, STREAM);
        let channel = format!("{MANUAL}|{SHAPE}");
        let publication = clients[0].add_publication(&channel, STREAM).unwrap();
        for path in PATHS {
            reader.subscription.destinations().add(path).unwrap();
            publication.destinations().add(path).unwrap();
        }
        Self {
            publications: vec![publication],
            readers: vec![reader],
            _clients: clients,
        }
        .connected(world)
    }

    /// Requests from the left, answers from the right.
    fn both_ways(world: &World, nodes: [&Node; 2]) -> Self {
        let clients = nodes.map(|node| node.connect().unwrap());
        let answers = Reader::subscribe(&clients[0], CONTROL, STREAM + 2);
        let reader = Reader::subscribe(&clients[1], CHANNEL, STREAM);
        let id = answers.subscription.registration_id();
        let channel = format!("{ATTACKED}|response-correlation-id={id}");
        let requests = clients[0].add_publication(&channel, STREAM).unwrap();
        world.run_until(SECOND, "the requests are read", || {
            reader.subscription.is_connected()
        });
        let id = reader.subscription.images()[0].correlation_id();
        let channel = format!("{CONTROL}|{ANSWERS}|response-correlation-id={id}");
        Self {
            publications: vec![
                requests,
                clients[1].add_publication(&channel, STREAM + 2).unwrap(),
            ],
            readers: vec![reader, answers],
            _clients: clients,
        }
        .connected(world)
    }

    fn connected(self, world: &World) -> Self {
        world.run_until(SECOND, "a connection", || {
            self.publications
                .iter()
                .all(|publication| publication.is_connected())
                && self
                    .readers
                    .iter()
                    .all(|reader| reader.subscription.is_connected())
        });
        self
    }

    fn offer(&self, message: &[u8]) {
        for publication in &self.publications {
            let _ = publication.offer(message);
        }
    }

    fn read(&mut self) {
        for reader in &mut self.readers {
            reader.poll();
        }
    }
}

/// What two drivers really send each other on a bad network, until a stream is refused. Sorted by kind.
fn specimens(begin: Begin, kinds: &[FrameKind]) -> Vec<Vec<Datagram>> {
    let world = World::new(1);
    let tap = world.network().tap();
    let nodes = world.pair();
    let mut streams = begin(&world, nodes.each_ref());
    world.network().set_links(LinkSettings {
        loss: 0.3,
        ..LinkSettings::default()
    });
    for number in 0..40 {
        streams.offer(&vec![number; 64 * usize::from(number)]);
        world.run_for(MILLISECOND);
        streams.read();
    }
    let image = Arc::clone(&streams.readers[0].subscription.images()[0]);
    image.async_reject("no thanks").unwrap();
    world.run_for(SECOND / 2);
    for publication in &streams.publications {
        publication.close();
    }
    world.run_for(SECOND);
    let sent = tap.take();
    let of_kind = |kind: &FrameKind| {
        let same = sent.iter().filter(|sent| classify(&sent.bytes) == Ok(*kind));
        let found: Vec<Datagram> = same.cloned().collect();
        assert!(!found.is_empty(), "no specimen of {kind:?}");
        found
    };
    kinds.iter().map(of_kind).collect()
}

/// Changes a datagram somewhere.
fn bend(random: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    let at = random.usize(0..bytes.len().max(1));
    match random.u8(0..4) {
        0 => {
            let count = random.usize(0..64);
            bytes.extend(std::iter::repeat_with(|| random.u8(..)).take(count));
        }
        1 => bytes.truncate(at),
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.u8(..);
            }
        }
        _ => {
            let word = match random.u8(0..7) {
                0 => 0,
                1 => -1,
                2 => i32::MIN,
                3 => i32::MAX,
                4 => random.i32(-64..64),
                5 => random.i32(..) & !31,
                _ => random.i32(..),
            };
            if let Some(target) = bytes.get_mut(at & !3..(at & !3) + 4) {
                target.copy_from_slice(&word.to_le_bytes());
            }
        }
    }
}

/// Frames that look right are believed, so the stream may be over after this, and the rules of the world do not hold:
/// they know honest peers only. But both drivers still obey, and let go of everything in the end.
fn bent_frames_do_no_harm(begin: Begin, kinds: &[FrameKind]) {
    let specimens = specimens(begin, kinds);
    for seed in 0..SEEDS {
        let world = World::without_rules(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let nodes = world.pair();
        let fresh = nodes.each_ref().map(Node::holdings);
        let mut streams = begin(&world, nodes.each_ref());
        for _ in 0..random.usize(1..ATTACKS_MAX) {
            let kind = &specimens[random.usize(..specimens.len())];
            let Datagram { from, to, mut bytes } = kind[random.usize(..kind.len())].clone();
            for _ in 0..random.usize(0..3) {
                bend(&mut random, &mut bytes);
            }
            world.network().inject(from, to, &bytes);
            streams.offer(&[9; 200]);
            world.run_for(random.i64(0..MILLISECOND));
            streams.read();
        }
        drop(streams);
        both_still_work(&world, nodes.each_ref());
        world.run_until(60 * SECOND, &format!("nothing is left, seed={seed}"), || {
            nodes.each_ref().map(Node::holdings) == fresh
        });
    }
}

#[test]
fn bent_frames_of_a_stream_do_no_harm() {
    bent_frames_do_no_harm(Attacked::one_way, &KINDS);
}

#[test]
fn bent_frames_of_a_group_do_no_harm() {
    bent_frames_do_no_harm(Attacked::group, &KINDS);
}

#[test]
fn bent_frames_of_a_stream_with_two_paths_do_no_harm() {
    bent_frames_do_no_harm(Attacked::two_paths, &KINDS);
}

#[test]
fn bent_frames_of_requests_and_answers_do_no_harm() {
    let kinds = [KINDS.as_slice(), &[FrameKind::ResponseSetup]].concat();
    bent_frames_do_no_harm(Attacked::both_ways, &kinds);
}

fn both_still_work(world: &World, [left, right]: [&Node; 2]) {
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, UNTOUCHED, STREAM);
    let publication = publisher.add_publication(UNTOUCHED, STREAM).unwrap();
    world.run_until(10 * SECOND, "a connection", || publication.is_connected());
    publication.offer(b"still here").unwrap();
    world.run_until(SECOND, "the message", || reader.poll() == [b"still here"]);
}
