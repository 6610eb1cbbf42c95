//! Groups, spies and what flow control requires of them, mixed by chance: a publisher that is connected can always go on,
//! and it is connected when those that its channel waits for are there.
//!
//! A failure names its seed. `HEADRACE_SEED=<n>` runs one, and `SIMULATE_SECONDS=<n>` new ones for so long.

mod common;

use std::sync::Arc;

use common::{Reader, SECOND, STREAM, World, faults, for_seeds, is_accepted};
use headrace_client::{Client, Publication};
use headrace_sim::{LinkSettings, Node};

const TERM: &str = "term-length=64k|linger=0";
/// How a publisher reaches its receivers, and they it.
const WAYS: [(&str, &str); 2] = [
    (
        "aeron:udp?endpoint=224.0.1.1:40123",
        "aeron:udp?endpoint=224.0.1.1:40123",
    ),
    (
        "aeron:udp?control=publisher:40124|control-mode=dynamic",
        "aeron:udp?endpoint=NODE:40123|control=publisher:40124|control-mode=dynamic",
    ),
];
const TAG: &str = "7";
/// Strategies: which receivers each counts, and how many of them it requires.
const FLOWS: [(&str, Counted, usize); 5] = [
    ("", Counted::None, 0),
    ("|fc=min,t:2s", Counted::All, 0),
    ("|fc=min,g:/2,t:2s", Counted::All, 2),
    ("|fc=tagged,g:7,t:2s", Counted::Tagged, 0),
    ("|fc=tagged,g:7/2,t:2s", Counted::Tagged, 2),
];
/// Longer than any time-out that ends an image, a receiver or a client.
const LONG: i64 = 25 * SECOND;
const NODES: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Counted {
    None,
    All,
    Tagged,
}

/// One that reads, and whether it does at the moment.
struct Guest {
    reader: Reader,
    reads: bool,
    is_tagged: bool,
}

/// A driver elsewhere, with the receivers that its clients have.
struct Place {
    node: Node,
    client: Arc<Client>,
    guest: Option<Guest>,
}

struct Gathering {
    world: World,
    seed: u64,
    random: fastrand::Rng,
    node: Node,
    client: Arc<Client>,
    publication: Publication,
    spied: String,
    subscribed: &'static str,
    spies: Vec<Guest>,
    places: Vec<Place>,
    flow: (Counted, usize),
    spies_count: bool,
    sent: usize,
}

impl Gathering {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (way, subscribed) = WAYS[random.usize(..WAYS.len())];
        let (flow, counted, required) = FLOWS[random.usize(..FLOWS.len())];
        let spies_count = random.bool();
        let node = world.add_node("publisher").unwrap();
        let client = node.connect().unwrap();
        let channel = format!("{way}|{TERM}{flow}|ssc={spies_count}");
        let publication = client.add_publication(&channel, STREAM).unwrap();
        let places = (0..NODES).map(|index| {
            let node = world.add_node(&format!("node{index}")).unwrap();
            let client = node.connect().unwrap();
            Place {
                node,
                client,
                guest: None,
            }
        });
        Self {
            places: places.collect(),
            spied: format!("aeron-spy:{way}"),
            subscribed,
            spies: Vec::new(),
            flow: (counted, required),
            spies_count,
            sent: 0,
            world,
            seed,
            random,
            node,
            client,
            publication,
        }
    }

    fn act(&mut self) {
        let index = self.random.usize(..NODES);
        match self.random.usize(..9) {
            0 if self.spies.len() < 3 => {
                let reader = Reader::subscribe(&self.client, &self.spied, STREAM);
                self.spies.push(guest(reader, false));
            }
            1 if !self.spies.is_empty() => {
                let index = self.random.usize(..self.spies.len());
                self.spies.swap_remove(index);
            }
            2 | 3 => self.invite(index),
            4 => self.places[index].guest = None,
            5 => self.replace(index),
            6 => {
                let is_cut = self.random.bool();
                self.node.set_cut(&self.places[index].node, is_cut);
            }
            7 => {
                for guest in self
                    .spies
                    .iter_mut()
                    .chain(self.places.iter_mut().flat_map(|place| &mut place.guest))
                {
                    guest.reads = self.random.u8(..4) > 0;
                }
            }
            _ => {}
        }
        for _ in 0..self.random.usize(..40) {
            self.offer();
            self.world.run_for(self.random.i64(..SECOND / 100));
            self.poll();
        }
        self.world.run_for(self.random.i64(..2 * SECOND));
    }

    fn invite(&mut self, index: usize) {
        let place = &mut self.places[index];
        if place.guest.is_none() {
            // A transport whose last subscription has just gone keeps its tag for a while, so a place has always the same.
            let is_tagged = index.is_multiple_of(2);
            let tag = if is_tagged {
                format!("|gtag={TAG}")
            } else {
                String::new()
            };
            let channel = self.subscribed.replace("NODE", place.node.name());
            let channel = format!("{channel}{tag}");
            // The endpoint may just be closing.
            let added = place
                .client
                .add_subscription(&channel, STREAM, Default::default());
            place.guest = added
                .ok()
                .map(|subscription| guest(Reader::new(subscription), is_tagged));
        }
    }

    /// A driver dies with its clients, and another one starts there.
    fn replace(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.guest = None;
        place.node.crash().unwrap();
        place.node.start().unwrap();
        place.client = place.node.connect().unwrap();
    }

    fn offer(&mut self) -> bool {
        let message = [&self.sent.to_le_bytes()[..], &vec![7; self.random.usize(..2_000)]].concat();
        let is_accepted = is_accepted(self.publication.offer(&message));
        self.sent += usize::from(is_accepted);
        is_accepted
    }

    fn poll(&mut self) {
        let guests = self.places.iter_mut().flat_map(|place| &mut place.guest);
        for guest in self.spies.iter_mut().chain(guests).filter(|guest| guest.reads) {
            guest.reader.poll();
        }
    }

    /// The network is whole again and all read, until what has died counts no more.
    fn recover(&mut self) {
        self.world.network().set_links(LinkSettings::default());
        for place in &mut self.places {
            self.node.set_cut(&place.node, false);
            if let Some(guest) = &mut place.guest {
                guest.reads = true;
            }
        }
        for spy in &mut self.spies {
            spy.reads = true;
        }
        self.pass(LONG);
    }

    /// All that read do so, for a time.
    fn pass(&mut self, duration_ns: i64) {
        let end_ns = self.world.now_ns() + duration_ns;
        while self.world.now_ns() < end_ns {
            self.poll();
            self.world.run_for(SECOND / 50);
        }
    }

    /// Whether the publisher should be connected.
    fn is_complete(&self) -> bool {
        let (_, required) = self.flow;
        let guests = || self.places.iter().filter_map(|place| place.guest.as_ref());
        let count = guests().filter(|guest| self.counts(guest)).count();
        let by_spies = self.spies_count && !self.spies.is_empty();
        by_spies || guests().next().is_some() && count >= required
    }

    fn is_connected(&self) -> bool {
        self.publication.is_connected()
    }

    /// The number of the last message that one has read, and one more.
    fn next_of(guest: &Guest) -> usize {
        let last = guest.reader.messages.last();
        last.map_or(0, |message| {
            usize::from_le_bytes(message[..8].try_into().unwrap()) + 1
        })
    }

    /// Who has not read all, of those that are there and that are waited for, or of all.
    fn late(&self, waited_for: bool) -> Vec<(String, usize)> {
        let places = self.places.iter();
        let guests = places.filter_map(|place| Some((place.node.name(), place.guest.as_ref()?)));
        let guests = guests.filter(|(_, guest)| self.counts(guest) || !waited_for);
        let spies = self.spies.iter().map(|spy| ("spy", spy));
        spies
            .chain(guests)
            .map(|(name, guest)| (name.to_owned(), Self::next_of(guest)))
            .filter(|(_, next)| *next < self.sent)
            .collect()
    }

    /// Whether the sender waits for a receiver.
    fn counts(&self, guest: &Guest) -> bool {
        match self.flow.0 {
            Counted::None => false,
            Counted::All => true,
            Counted::Tagged => guest.is_tagged,
        }
    }

    fn check_order(&self) {
        let guests = self.places.iter().filter_map(|place| place.guest.as_ref());
        for guest in self.spies.iter().chain(guests) {
            let numbers = guest.reader.messages.iter();
            let numbers = numbers.map(|message| usize::from_le_bytes(message[..8].try_into().unwrap()));
            assert!(
                numbers.is_sorted_by(|before, after| before < after),
                "seed={}",
                self.seed
            );
        }
    }

    /// It goes on as long as it is connected, and all that are there read what it says.
    fn go_on(&mut self) {
        for _ in 0..200 {
            let end_ns = self.world.now_ns() + 10 * SECOND;
            while !self.offer() {
                assert!(self.world.now_ns() < end_ns, "{}: stands still", self.state());
                self.poll();
                self.world.run_for(SECOND / 1_000);
            }
        }
        self.wait_for_readers(true, 10 * SECOND);
        // Those that are not waited for may miss some, and come back.
        self.wait_for_readers(false, 60 * SECOND);
    }

    /// Until those that are waited for, or all, have read what was said last.
    fn wait_for_readers(&mut self, waited_for: bool, within_ns: i64) {
        let end_ns = self.world.now_ns() + within_ns;
        while !self.late(waited_for).is_empty() {
            let (state, late) = (self.state(), self.late(waited_for));
            assert!(self.world.now_ns() < end_ns, "{state}: late {late:?}");
            if !waited_for {
                self.offer();
            }
            self.pass(SECOND / 10);
        }
    }

    fn state(&self) -> String {
        let places = self
            .places
            .iter()
            .map(|place| place.guest.as_ref().map(|guest| guest.is_tagged));
        format!(
            "seed={} {} sent={} spies={} tags of receivers={:?}",
            self.seed,
            self.publication.channel(),
            self.sent,
            self.spies.len(),
            places.collect::<Vec<_>>()
        )
    }
}

fn guest(reader: Reader, is_tagged: bool) -> Guest {
    Guest {
        reader,
        reads: true,
        is_tagged,
    }
}

#[test]
fn a_publisher_goes_on_as_receivers_and_spies_come_and_leave() {
    for_seeds(0..12, "gatherings", "a_publisher_goes_on", |seed| {
        let mut gathering = Gathering::new(seed);
        for _ in 0..4 {
            gathering.world.network().set_links(faults());
            for _ in 0..12 {
                gathering.act();
            }
            gathering.recover();
            let state = gathering.state();
            assert_eq!(gathering.is_connected(), gathering.is_complete(), "{state}");
            if gathering.is_connected() {
                gathering.go_on();
            }
            gathering.check_order();
        }
    });
}
