//! Many receivers, and receivers that come and go: each that stays reads the same bytes, in order, once.
//!
//! A failure names its seed. `HEADRACE_SEED=<n>` runs one, and `SIMULATE_SECONDS=<n>` new ones for so long.

mod common;

use std::sync::Arc;

use common::{Reader, SECOND, STREAM, World, faults, for_seeds, is_accepted, system_counter};
use headrace_buffers::counters::system_counter as counter;
use headrace_client::{Client, Publication};
use headrace_sim::{LinkSettings, Node};

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k|linger=0";
const MANUAL: &str = "aeron:udp?control-mode=manual|term-length=64k|linger=0";
/// Messages that the furthest reader may be ahead of the last one: what the network holds up must still be in the log.
const LEAD: usize = 8;
const LONGEST: usize = 3_000;
/// Bytes of a message in one datagram.
const PAYLOAD: usize = 1_376;
/// Part of the datagrams that is lost on each link.
const LOSS: f64 = 0.02;

fn message(number: usize) -> Vec<u8> {
    let length = 8 + number * 37 % LONGEST;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// The number of a message, which is whole.
fn number(read: &[u8]) -> usize {
    let number = usize::from_le_bytes(read[..8].try_into().unwrap());
    assert!(*read == message(number), "damaged bytes of message {number}");
    number
}

/// A receiver, and the first message that it must have.
struct Member {
    node: Node,
    client: Arc<Client>,
    reader: Reader,
    from: usize,
}

impl Member {
    fn new(world: &World, name: &str, channel: &str) -> Self {
        let node = world.add_node(name).unwrap();
        let client = node.connect().unwrap();
        let reader = Reader::subscribe(&client, channel, STREAM);
        Self {
            node,
            client,
            reader,
            from: 0,
        }
    }

    /// The message that it must read next.
    fn next(&mut self) -> usize {
        let read = self.reader.poll().last().map_or(0, |last| number(last) + 1);
        read.max(self.from)
    }

    /// It has read each message from its first on to `end`. What it read before that, it read in order, too.
    fn check(&self, end: usize) {
        let read: Vec<usize> = self.reader.messages.iter().map(|read| number(read)).collect();
        let name = self.node.name();
        assert!(
            read.is_sorted_by(|before, after| before < after),
            "{name}: {read:?}"
        );
        let since: Vec<usize> = read.into_iter().filter(|number| *number >= self.from).collect();
        assert_eq!(
            since,
            (self.from..end).collect::<Vec<_>>(),
            "{name} from {}",
            self.from
        );
    }
}

/// A publisher and those that must read it.
struct Crowd {
    world: World,
    seed: u64,
    random: fastrand::Rng,
    publisher: Node,
    _client: Arc<Client>,
    publication: Publication,
    members: Vec<Member>,
    sent: usize,
}

impl Crowd {
    fn new(seed: u64, channel: &str) -> Self {
        let world = World::new(seed);
        let publisher = world.add_node("publisher").unwrap();
        let client = publisher.connect().unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        Self {
            world,
            seed,
            random: fastrand::Rng::with_seed(seed),
            publisher,
            _client: client,
            publication,
            members: Vec::new(),
            sent: 0,
        }
    }

    fn next_of_slowest(&mut self) -> usize {
        let sent = self.sent;
        let next = self.members.iter_mut().map(Member::next);
        next.min().unwrap_or(sent)
    }

    /// Publishes so many messages, and leaves the last ones on their way.
    fn publish(&mut self, count: usize) {
        let end = self.sent + count;
        let what = format!("seed={}: messages up to {end} are published", self.seed);
        let end_ns = self.world.now_ns() + 300 * SECOND;
        while self.sent < end {
            let is_near = self.sent < self.next_of_slowest() + LEAD;
            if is_near && is_accepted(self.publication.offer(&message(self.sent))) {
                self.sent += 1;
            }
            if self.world.now_ns() >= end_ns {
                let next: Vec<_> = self
                    .members
                    .iter_mut()
                    .map(|m| (m.node.name().to_owned(), m.next(), m.from))
                    .collect();
                panic!(
                    "{what}: not in time sent={} {next:?} {}",
                    self.sent,
                    self.publication.is_connected()
                );
            }
            self.world.step();
        }
    }

    /// Waits until each member has read all.
    fn settle(&mut self) {
        let what = format!("seed={}: each member has read {} messages", self.seed, self.sent);
        let end_ns = self.world.now_ns() + 300 * SECOND;
        while self.next_of_slowest() < self.sent {
            if self.world.now_ns() >= end_ns {
                let next: Vec<_> = self
                    .members
                    .iter_mut()
                    .map(|m| (m.node.name().to_owned(), m.next(), m.from))
                    .collect();
                panic!(
                    "{what}: not in time sent={} {next:?} {}",
                    self.sent,
                    self.publication.is_connected()
                );
            }
            self.world.step();
        }
    }

    /// Takes in one that is there: from the next message on it must have all.
    fn welcome(&mut self, mut member: Member) {
        self.settle();
        let what = format!("seed={}: {} is connected", self.seed, member.node.name());
        self.world.run_until(20 * SECOND, &what, || {
            member.reader.subscription.is_connected() && self.publication.is_connected()
        });
        member.reader.poll();
        member.from = self.sent;
        self.members.push(member);
    }

    fn check(&self) {
        for member in &self.members {
            member.check(self.sent);
        }
    }

    fn counted(&self, id: i32) -> i64 {
        self.members
            .iter()
            .map(|member| system_counter(&member.node, id))
            .sum()
    }
}

#[test]
fn fifty_receivers_on_a_network_that_loses_read_the_same_and_their_naks_are_few() {
    for_seeds(0..1, "crowds", "fifty_receivers", |seed| {
        let mut crowd = Crowd::new(seed, GROUP);
        for index in 0..50 {
            let member = Member::new(&crowd.world, &format!("member{index}"), GROUP);
            crowd.members.push(member);
        }
        crowd.world.run_until(10 * SECOND, "fifty connections", || {
            let mut members = crowd.members.iter();
            crowd.publication.is_connected()
                && members.all(|member| member.reader.subscription.is_connected())
        });
        crowd.world.network().set_links(LinkSettings {
            loss: LOSS,
            ..faults()
        });
        crowd.publish(100);
        // Some die, and others leave; those that stay go on.
        for _ in 0..5 {
            let index = crowd.random.usize(0..crowd.members.len());
            crowd.members.swap_remove(index).node.crash().unwrap();
            let index = crowd.random.usize(0..crowd.members.len());
            let leaver = crowd.members.swap_remove(index);
            leaver.reader.subscription.close();
            leaver.client.close().unwrap();
            crowd.publish(20);
        }
        crowd.settle();
        crowd.check();
        let naks = crowd.counted(counter::NAK_MESSAGES_SENT);
        let repairs = system_counter(&crowd.publisher, counter::RETRANSMITS_SENT);
        // What the links lose, about: a repair is lost to some as well, and what overtakes looks like loss.
        let datagrams: usize = (0..crowd.sent)
            .map(|number| message(number).len().div_ceil(PAYLOAD))
            .sum();
        let lost = (datagrams * crowd.members.len()) as f64 * LOSS;
        println!("seed={seed}: {datagrams} datagrams, {lost} lost, {naks} NAKs, {repairs} repairs");
        assert!(
            (1.0..=3.0 * lost).contains(&(naks as f64)),
            "seed={seed}: {naks} NAKs of {lost} lost"
        );
        assert!(
            repairs as usize <= datagrams,
            "seed={seed}: {repairs} repairs of {datagrams} datagrams"
        );
    });
}

fn destination(member: &Member) -> String {
    format!("aeron:udp?endpoint={}:40123", member.node.name())
}

/// Destinations of a crowd, and those that are none at the time.
struct Destinations {
    crowd: Crowd,
    /// Of each member, the commands that added it, the oldest first: a destination may be there twice.
    ids: Vec<Vec<i64>>,
    resting: Vec<Member>,
}

impl Destinations {
    fn new(seed: u64, channel: &str) -> Self {
        let crowd = Crowd::new(seed, channel);
        let member = |index| {
            let name = format!("member{index}");
            Member::new(&crowd.world, &name, &format!("aeron:udp?endpoint={name}:40123"))
        };
        let resting = (0..6).map(member).collect();
        crowd.world.network().set_links(LinkSettings {
            loss: LOSS,
            ..faults()
        });
        Self {
            crowd,
            ids: Vec::new(),
            resting,
        }
    }

    fn add_destination(&self, member: &Member) -> i64 {
        self.crowd
            .publication
            .destinations()
            .add(&destination(member))
            .unwrap()
    }

    /// One more, if one no longer has what it read when it was one before. True if there was one.
    fn add(&mut self) -> bool {
        let gone = |member: &Member| !member.reader.subscription.is_connected();
        let Some(index) = self.resting.iter().position(gone) else {
            self.crowd.world.run_for(SECOND);
            return false;
        };
        let member = self.resting.swap_remove(index);
        self.ids.push(vec![self.add_destination(&member)]);
        self.crowd.welcome(member);
        true
    }

    /// One of them gets each packet once more.
    fn double(&mut self) {
        let index = self.crowd.random.usize(0..self.ids.len());
        let id = self.add_destination(&self.crowd.members[index]);
        self.ids[index].push(id);
    }

    /// One gets each packet once less, or not at all any more: what is on its way to it then is what it reads last.
    fn remove(&mut self) {
        let index = self.crowd.random.usize(0..self.ids.len());
        let publication = &self.crowd.publication;
        if self.crowd.random.bool() {
            let id = self.ids[index].pop().unwrap();
            publication.destinations().remove_by_id(id).unwrap();
        } else {
            // Of equal ones the oldest goes.
            self.ids[index].remove(0);
            let channel = destination(&self.crowd.members[index]);
            publication.destinations().remove(&channel).unwrap();
        }
        if self.ids[index].is_empty() {
            self.ids.swap_remove(index);
            self.resting.push(self.crowd.members.swap_remove(index));
        }
    }

    fn publish(&mut self) {
        if !self.ids.is_empty() {
            let count = self.crowd.random.usize(1..6);
            self.crowd.publish(count);
        }
    }
}

#[test]
fn destinations_come_and_go_at_random_while_data_flows() {
    for_seeds(0..4, "crowds", "destinations_come_and_go", |seed| {
        let fc = if seed % 2 == 0 { "" } else { "|fc=min" };
        let mut destinations = Destinations::new(seed, &format!("{MANUAL}{fc}"));
        let mut counts = [0; 3];
        for _ in 0..60 {
            destinations.publish();
            let count = destinations.ids.len();
            match destinations.crowd.random.usize(0..3) {
                0 if destinations.add() => counts[0] += 1,
                1 if count > 0 => {
                    destinations.double();
                    counts[1] += 1;
                }
                2 if count > 2 => {
                    destinations.remove();
                    counts[2] += 1;
                }
                _ => {}
            }
            for member in &mut destinations.resting {
                member.reader.poll();
            }
        }
        destinations.crowd.settle();
        destinations.crowd.check();
        assert!(
            counts.iter().all(|count| *count > 0),
            "seed={seed}: added, doubled, removed {counts:?}"
        );
    });
}
