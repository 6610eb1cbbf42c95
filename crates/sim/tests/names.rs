//! Names that drivers tell each other: learnt, moved, forgotten, and what strangers cannot do to them.
//!
//! A failure of the test of chance names its seed. `HEADRACE_SEED=<n>` runs one, and `SIMULATE_SECONDS=<n>` new ones for so long.

mod common;

use std::net::SocketAddr;

use common::{
    Gauge, Reader, SECOND, World, counter, counters_of, errors_of, faults, for_seeds, system_counter,
};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::frame::{ResolutionEntry, ResolutionFrame, resolution};
use headrace_sim::{Node, Tap};

const PORT: u16 = 8050;
const STREAM: i32 = 7;
/// In the range that applications use.
const HELD_BACK: i32 = 2102;

/// A driver that calls itself `driver-NODE` and begins with the node `seed`.
fn add(world: &World, node: &str) -> Node {
    add_named(world, node, &format!("driver-{node}"))
}

fn add_named(world: &World, node: &str, name: &str) -> Node {
    let settings = |config: &mut headrace_driver::DriverConfig| {
        config.set("aeron.driver.resolver.name", name)?;
        config.set("aeron.driver.resolver.interface", &format!("{{sim0}}:{PORT}"))?;
        config.set(
            "aeron.driver.resolver.bootstrap.neighbor",
            &format!("seed:{PORT}"),
        )
    };
    world.add_node_with(node, settings).unwrap()
}

/// Drivers of these nodes, the first of which is `seed`.
fn drivers<const COUNT: usize>(world: &World, names: [&str; COUNT]) -> [Node; COUNT] {
    names.map(|name| add(world, name))
}

/// How many names and neighbours a driver knows.
struct Known([Gauge; 2]);

impl Known {
    fn by(node: &Node) -> Self {
        let types = [
            type_ids::NAME_RESOLVER_CACHE_ENTRIES,
            type_ids::NAME_RESOLVER_NEIGHBORS,
        ];
        Self(types.map(|type_id| Gauge::new(node, type_id)))
    }

    fn counts(&self) -> (i64, i64) {
        let [names, neighbours] = &self.0;
        (names.value(), neighbours.value())
    }
}

fn labels(node: &Node, type_id: i32) -> Vec<String> {
    counters_of(node, type_id)
        .into_iter()
        .map(|record| record.label)
        .collect()
}

/// Waits until each of the drivers knows the others.
fn meet(world: &World, nodes: &[Node]) {
    let others = nodes.len() as i64 - 1;
    let known: Vec<Known> = nodes.iter().map(Known::by).collect();
    world.run_until(60 * SECOND, "drivers that know each other", || {
        known.iter().all(|known| known.counts() == (others, others))
    });
}

fn channel(driver: &str) -> String {
    format!("aeron:udp?endpoint=driver-{driver}:40123|term-length=64k")
}

/// A stream from one node to another, whose driver is named in the publication's channel.
fn carries(world: &World, from: &Node, to: &Node) {
    let (publisher, subscriber) = (from.connect().unwrap(), to.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, &channel(to.name()), STREAM);
    let publication = publisher.add_publication(&channel(to.name()), STREAM).unwrap();
    world.run_until(10 * SECOND, "a connection", || publication.is_connected());
    publication.offer(b"by name").unwrap();
    world.run_until(10 * SECOND, "the message", || reader.poll() == [b"by name"]);
}

fn frame(name: &str, address: SocketAddr, flags: u8) -> Vec<u8> {
    let entry = ResolutionEntry {
        flags,
        port: address.port(),
        age_ms: 0,
        address: address.ip(),
        name: name.into(),
    };
    let mut frame = vec![0; 8 + entry.encoded_length()];
    ResolutionFrame::encode_header(entry.encoded_length(), &mut frame);
    entry.encode(&mut frame[8..]);
    frame
}

fn gossip_of(node: &Node) -> SocketAddr {
    SocketAddr::new(node.address(), PORT)
}

/// Bytes that the world sent to an address.
fn bytes_to(tap: &Tap, address: SocketAddr) -> usize {
    let sent = tap.take().into_iter();
    sent.filter(|datagram| datagram.to == address)
        .map(|datagram| datagram.bytes.len())
        .sum()
}

#[test]
fn three_drivers_learn_each_others_names_and_channels_carry_them() {
    let world = World::new(71);
    let nodes = drivers(&world, ["seed", "one", "two"]);
    meet(&world, &nodes);
    // The two have the seed as their bootstrap neighbour, and each other by what it tells.
    carries(&world, &nodes[1], &nodes[2]);
    let [seed, one, _] = &nodes;
    let bound = format!("Resolver neighbors: bound {}", gossip_of(one));
    assert_eq!(labels(one, type_ids::NAME_RESOLVER_NEIGHBORS), [bound]);
    assert_eq!(
        labels(one, type_ids::NAME_RESOLVER_CACHE_ENTRIES),
        ["Resolver cache entries: name=driver-one"]
    );
    let resolved = format!("Bootstrap neighbor: name=seed:8050 resolved={}", gossip_of(seed));
    assert_eq!(labels(one, type_ids::BOOTSTRAP_NEIGHBOR), [resolved]);
    assert_eq!(counter(one, type_ids::BOOTSTRAP_NEIGHBOR), 1);
    for node in &nodes {
        assert_eq!(errors_of(node), [""; 0]);
        assert_eq!(system_counter(node, system_counter::INVALID_PACKETS), 0);
    }
}

#[test]
fn names_are_learnt_through_loss_and_disorder() {
    for seed in 0..4 {
        let world = World::new(720 + seed);
        world.network().set_links(faults());
        let nodes = drivers(&world, ["seed", "one", "two", "three"]);
        meet(&world, &nodes);
        carries(&world, &nodes[1], &nodes[3]);
    }
}

#[test]
fn the_name_of_a_driver_that_dies_goes_and_comes_back_with_it() {
    let world = World::new(73);
    let nodes = drivers(&world, ["seed", "one", "two"]);
    meet(&world, &nodes);
    let [seed, one, two] = nodes;
    // Also the seed may die: the others know each other.
    seed.crash().unwrap();
    let known = [&one, &two].map(Known::by);
    world.run_until(15 * SECOND, "a name that goes", || {
        known.iter().all(|known| known.counts() == (1, 1))
    });
    carries(&world, &one, &two);
    world.run_for(2 * SECOND);
    assert_eq!(counter(&one, type_ids::BOOTSTRAP_NEIGHBOR), 0);
    seed.start().unwrap();
    meet(&world, &[seed, one, two]);
}

#[test]
fn a_publication_follows_a_driver_that_moves() {
    let world = World::new(74);
    let seed = add(&world, "seed");
    let before = add_named(&world, "before", "driver-mover");
    let known = Known::by(&seed);
    world.run_until(10 * SECOND, "the name", || known.counts().0 == 1);
    let publisher = seed.connect().unwrap();
    let publication = publisher.add_publication(&channel("mover"), STREAM).unwrap();
    let subscriber = before.connect().unwrap();
    let own = "aeron:udp?endpoint=0.0.0.0:40123";
    let _first = Reader::subscribe(&subscriber, own, STREAM);
    world.run_until(10 * SECOND, "a connection", || publication.is_connected());
    before.crash().unwrap();
    let after = add_named(&world, "after", "driver-mover");
    let subscriber = after.connect().unwrap();
    let mut reader = Reader::subscribe(&subscriber, own, STREAM);
    world.run_until(10 * SECOND, "the end of the connection", || {
        !publication.is_connected()
    });
    world.run_until(15 * SECOND, "a connection to where it moved", || {
        publication.is_connected()
    });
    publication.offer(b"moved").unwrap();
    world.run_until(SECOND, "the message", || reader.poll() == [b"moved"]);
    assert_eq!(system_counter(&seed, system_counter::RESOLUTION_CHANGES), 1);
}

#[test]
fn a_stranger_takes_over_no_name_and_fills_no_table() {
    let world = World::new(76);
    let nodes = drivers(&world, ["seed", "one"]);
    meet(&world, &nodes);
    let [seed, one] = nodes;
    let stranger: SocketAddr = "10.0.9.9:8050".parse().unwrap();
    for turn in 0..40 {
        for name in ["driver-one", "driver-seed"] {
            world.network().inject(
                stranger,
                gossip_of(&seed),
                &frame(name, stranger, resolution::FLAG_SELF),
            );
        }
        for number in 0..40 {
            let name = format!("flood-{turn}-{number}");
            let address: SocketAddr = format!("10.0.8.{number}:{}", 1_000 + turn).parse().unwrap();
            world
                .network()
                .inject(stranger, gossip_of(&seed), &frame(&name, address, 0));
        }
        world.run_for(SECOND / 10);
    }
    let known = Known::by(&seed);
    assert_eq!(known.counts(), (1024, 1024));
    let errors = errors_of(&seed);
    for expected in ["holds the name and is alive", "there are 1024 names already"] {
        assert!(errors.iter().any(|text| text.contains(expected)), "{errors:?}");
    }
    assert!(errors.len() <= 33, "{}", errors.len());
    carries(&world, &seed, &one);
    world.run_for(25 * SECOND);
    assert_eq!(known.counts().0, 1, "the flood is over");
}

#[test]
fn a_forged_source_brings_upon_its_victim_three_times_what_the_forger_sent_and_an_allowance() {
    let world = World::new(77);
    let nodes = drivers(&world, ["seed", "one", "two", "three"]);
    meet(&world, &nodes);
    let seed = gossip_of(&nodes[0]);
    let victim: SocketAddr = "10.0.9.9:8050".parse().unwrap();
    let tap = world.network().tap();
    // In its own name, and in what a third party tells.
    let forged = frame("victim", victim, resolution::FLAG_SELF);
    world.network().inject(victim, seed, &forged);
    world.run_for(30 * SECOND);
    let about_it = tap.take();
    let by_seed: usize = about_it
        .iter()
        .filter(|datagram| datagram.to == victim && datagram.from == seed)
        .map(|datagram| datagram.bytes.len())
        .sum();
    let allowed = 3 * forged.len() + 512;
    assert!(by_seed <= allowed, "{by_seed} bytes for {}", forged.len());
    assert!(counter(&nodes[0], HELD_BACK) > 0);
    let stranger: SocketAddr = "10.0.9.8:1".parse().unwrap();
    let told = frame("other-victim", victim, 0);
    world.network().inject(stranger, seed, &told);
    world.run_for(SECOND);
    assert!(bytes_to(&tap, victim) <= nodes.len() * 512);
}

/// A datagram of a stranger: frames that are right, one after another, of which chance then spoils some bytes or the end.
fn hostile(random: &mut fastrand::Rng, strangers: &[SocketAddr]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..4) {
        let names = [
            "driver-seed",
            "driver-one",
            "driver-two",
            "stranger",
            " ",
            "\u{0}",
            "\u{fffd}",
        ];
        let name = names[random.usize(..names.len())].repeat(random.usize(1..8));
        let address = strangers[random.usize(..strangers.len())];
        let flags = random.choice([0, resolution::FLAG_SELF, 0xff]).unwrap();
        bytes.extend(frame(&name, address, flags));
    }
    for _ in 0..random.usize(0..4) {
        let index = random.usize(..bytes.len());
        bytes[index] = random.u8(..);
    }
    if random.bool() {
        bytes.truncate(random.usize(..=bytes.len()));
    }
    bytes
}

#[test]
fn whatever_strangers_say_drivers_keep_their_names_and_send_them_no_more_than_budgets_allow() {
    for_seeds(0..6, "names", "whatever_strangers_say", |seed| {
        let world = World::new(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let nodes = drivers(&world, ["seed", "one", "two"]);
        meet(&world, &nodes);
        let strangers: Vec<SocketAddr> = (1..=4)
            .map(|host| SocketAddr::new([10, 0, 9, host].into(), PORT))
            .collect();
        let mut said = 0;
        let tap = world.network().tap();
        for _ in 0..400 {
            let index = random.usize(..strangers.len());
            let bytes = hostile(&mut random, &strangers);
            let to = gossip_of(&nodes[random.usize(..nodes.len())]);
            world.network().inject(strangers[index], to, &bytes);
            said += bytes.len();
            world.run_for(random.i64(..SECOND / 20));
        }
        world.run_for(15 * SECOND);
        let sent = tap.take();
        let to_strangers = sent.iter().filter(|datagram| strangers.contains(&datagram.to));
        let heard: usize = to_strangers.map(|datagram| datagram.bytes.len()).sum();
        // Each driver forgets each of them a few times.
        let allowances = nodes.len() * strangers.len() * 4 * 512;
        assert!(
            heard <= 3 * said + allowances,
            "strangers sent {said} bytes and were sent {heard}"
        );
        carries(&world, &nodes[1], &nodes[2]);
        carries(&world, &nodes[2], &nodes[0]);
    });
}

#[test]
fn a_bootstrap_neighbour_that_no_name_server_knows_is_told_and_found_later() {
    let world = World::new(78);
    let one = add(&world, "one");
    world.run_for(12 * SECOND);
    let errors = errors_of(&one);
    assert!(
        errors[0].starts_with("unknown host: bootstrap neighbor=seed:8050:"),
        "{errors:?}"
    );
    assert_eq!(
        labels(&one, type_ids::BOOTSTRAP_NEIGHBOR),
        ["Bootstrap neighbor: name=seed:8050 resolved="]
    );
    let seed = add(&world, "seed");
    meet(&world, &[seed, one]);
}

#[test]
fn a_dead_name_server_holds_up_neither_gossip_nor_streams() {
    let world = World::new(79);
    world.network().set_lookup_ns(i64::MAX);
    let one = add(&world, "one");
    let client = one.connect().unwrap();
    let mut reader = Reader::subscribe(&client, "aeron:ipc?term-length=64k", STREAM);
    let publication = client
        .add_publication("aeron:ipc?term-length=64k", STREAM)
        .unwrap();
    publication.offer(b"goes on").unwrap();
    world.run_until(SECOND, "the message", || reader.poll() == [b"goes on"]);
    // A driver that speaks first is known without a lookup.
    let hello = frame(
        "driver-two",
        "10.0.9.9:8050".parse().unwrap(),
        resolution::FLAG_SELF,
    );
    world
        .network()
        .inject("10.0.9.9:8050".parse().unwrap(), gossip_of(&one), &hello);
    let known = Known::by(&one);
    world.run_until(SECOND, "its name", || known.counts() == (1, 1));
}
