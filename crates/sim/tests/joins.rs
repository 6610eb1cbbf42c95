//! Datagrams that arrive joined, in blocks of any length, at the edges of windows of any length: each receiver reads all.
//!
//! A failure names its seed. `HEADRACE_SEED=<n>` runs one, and `SIMULATE_SECONDS=<n>` new ones for so long.

mod common;

use std::sync::Arc;

use common::{Reader, SECOND, STREAM, World, faults, for_seeds, is_accepted, system_counter};
use headrace_buffers::counters::system_counter as counter;
use headrace_client::{Client, Publication};
use headrace_sim::{Node, Tap};

const KIB: usize = 1024;
/// Terms that the stream is long, about.
const TERMS: usize = 2;

/// Channels of a publication and of its subscriptions.
const CHANNELS: [[&str; 2]; 6] = [
    ["endpoint=receiver0:40123", "endpoint=receiver0:40123"],
    [
        "control=publisher:40123|control-mode=dynamic|fc=max",
        "control=publisher:40123",
    ],
    [
        "control=publisher:40123|control-mode=dynamic|fc=min",
        "control=publisher:40123",
    ],
    ["endpoint=224.0.1.1:40123|fc=max", "endpoint=224.0.1.1:40123"],
    ["endpoint=224.0.1.1:40123|fc=min", "endpoint=224.0.1.1:40123"],
    [
        "endpoint=224.0.1.1:40123|fc=tagged,g:5",
        "endpoint=224.0.1.1:40123|gtag=5",
    ],
];

/// Messages of one length, which travel in datagrams of one length, and then as many of any length. Each has its number.
fn message(seed: u64, number: usize, longest: usize) -> Vec<u8> {
    const ALIKE: usize = 32;
    let is_alike = (number / ALIKE).is_multiple_of(2);
    let drawn = if is_alike { number - number % ALIKE } else { number };
    let mut random = fastrand::Rng::with_seed(seed ^ ((drawn as u64) << 32));
    let length = random.usize(8..=longest.max(8));
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// A receiver that reads as it likes.
struct Member {
    node: Node,
    _client: Arc<Client>,
    reader: Reader,
    dozes_until_ns: i64,
    /// The first message that it must have.
    from: Option<usize>,
}

impl Member {
    fn add(world: &World, index: usize, channel: &str) -> Self {
        let node = world.add_node(&format!("receiver{index}")).unwrap();
        let client = node.connect().unwrap();
        let reader = Reader::subscribe(&client, channel, STREAM);
        Self {
            node,
            _client: client,
            reader,
            dozes_until_ns: 0,
            from: None,
        }
    }

    fn act(&mut self, random: &mut fastrand::Rng, now_ns: i64, sent: usize) {
        if self.from.is_none() && self.position().is_some() {
            self.from = Some(sent);
        }
        if now_ns < self.dozes_until_ns {
            return;
        }
        self.reader.poll_some(random.usize(1..20));
        if random.u8(..) < 16 {
            self.dozes_until_ns = now_ns + random.i64(0..SECOND / 20);
        }
    }

    /// Where it is in the stream.
    fn position(&self) -> Option<i64> {
        let images = self.reader.subscription.images();
        images.first().map(|image| image.position())
    }

    /// It came before the last message.
    fn must_have(&self, sent: usize) -> bool {
        self.from.is_some_and(|from| from < sent)
    }

    fn has(&self, last: &[u8]) -> bool {
        self.reader.messages.last().is_some_and(|read| read == last)
    }
}

/// What a seed decides of a stream.
struct Plan {
    channels: [&'static str; 2],
    term_length: usize,
    mtu: usize,
    longest: usize,
    /// Bytes by which the publisher may be ahead of the slowest reader: beyond its window, and still in the log.
    lead: i64,
    has_faults: bool,
}

impl Plan {
    fn new(random: &mut fastrand::Rng) -> Self {
        let term_length = [64, 128][random.usize(..2)] * KIB;
        let mtu = [256, 1408, 4096, 8192][random.usize(..4)];
        Self {
            channels: CHANNELS[random.usize(..CHANNELS.len())],
            term_length,
            mtu,
            longest: random.usize(64..(2 * mtu).min(term_length / 8)),
            lead: random.i64(term_length as i64 / 4..term_length as i64 * 5 / 8),
            has_faults: random.bool(),
        }
    }

    fn member(&self, world: &World, index: usize, random: &mut fastrand::Rng) -> Member {
        let window = random.usize(self.mtu / 32..=self.term_length / 64) * 32;
        let channel = format!("aeron:udp?{}|rcv-wnd={window}", self.channels[1]);
        Member::add(world, index, &channel)
    }
}

/// A publisher and its receivers.
struct Gathering {
    world: World,
    seed: u64,
    plan: Plan,
    random: fastrand::Rng,
    _publisher: (Node, Arc<Client>),
    publication: Publication,
    members: Vec<Member>,
    sent: usize,
    tap: Tap,
}

impl Gathering {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = Plan::new(&mut random);
        if plan.has_faults {
            world.network().set_links(faults());
        }
        let publisher = world.add_node("publisher").unwrap();
        let client = publisher.connect().unwrap();
        let (to, term_length, mtu) = (plan.channels[0], plan.term_length, plan.mtu);
        let channel = format!("aeron:udp?{to}|term-length={term_length}|mtu={mtu}");
        let tap = world.network().tap();
        let members = vec![plan.member(&world, 0, &mut random)];
        Self {
            publication: client.add_publication(&channel, STREAM).unwrap(),
            members,
            world,
            seed,
            plan,
            random,
            _publisher: (publisher, client),
            sent: 0,
            tap,
        }
    }

    /// Offers messages in one go, while none of the receivers is too far behind. True when something was offered.
    fn burst(&mut self) -> bool {
        let positions = self.members.iter().filter_map(Member::position);
        let Some(slowest) = positions.min() else {
            return false;
        };
        let end = slowest + self.plan.lead;
        let before = self.sent;
        while self.publication.position().unwrap_or_default() < end
            && is_accepted(
                self.publication
                    .offer(&message(self.seed, self.sent, self.plan.longest)),
            )
        {
            self.sent += 1;
        }
        self.sent > before
    }

    fn step(&mut self) {
        self.world.step();
        let now_ns = self.world.now_ns();
        for member in &mut self.members {
            member.act(&mut self.random, now_ns, self.sent);
        }
    }

    fn run(&mut self) {
        let length = (TERMS * self.plan.term_length) as i64;
        let end_ns = self.world.now_ns() + 60 * SECOND;
        let count_max = if self.plan.channels[0].contains("receiver0") {
            1
        } else {
            self.random.usize(1..4)
        };
        let mut pause_until_ns = 0;
        loop {
            let now_ns = self.world.now_ns();
            let is_over = self.publication.position().unwrap_or_default() >= length;
            if is_over && self.have_all() {
                return;
            }
            assert!(now_ns < end_ns, "seed={}: {}", self.seed, self.state());
            if !is_over && now_ns >= pause_until_ns {
                if self.burst() && self.members.len() < count_max && self.random.bool() {
                    let member = self
                        .plan
                        .member(&self.world, self.members.len(), &mut self.random);
                    self.members.push(member);
                }
                pause_until_ns = now_ns + self.random.i64(0..SECOND / 100);
            }
            self.step();
        }
    }

    fn have_all(&self) -> bool {
        let last = message(self.seed, self.sent - 1, self.plan.longest);
        let mut members = self.members.iter();
        members.all(|member| !member.must_have(self.sent) || member.has(&last))
    }

    /// Each has every message since it came, in order, once.
    fn check(&self) {
        for member in &self.members {
            let Some(from) = member.from.filter(|from| *from < self.sent) else {
                continue;
            };
            let read = &member.reader.messages;
            let first = self.sent - read.len();
            assert!(first <= from, "seed={}: {first} > {from}", self.seed);
            for (number, read) in (first..self.sent).zip(read) {
                let expected = message(self.seed, number, self.plan.longest);
                assert!(*read == expected, "seed={} message {number}", self.seed);
            }
        }
    }

    fn state(&self) -> String {
        let members = self.members.iter().map(|member| {
            let naks = system_counter(&member.node, counter::NAK_MESSAGES_SENT);
            let over_runs = system_counter(&member.node, counter::FLOW_CONTROL_OVER_RUNS);
            format!("{:?} naks={naks} over-runs={over_runs}", member.position())
        });
        format!(
            "{:?} sent {} to {:?}, received {:?}",
            self.plan.channels,
            self.sent,
            self.publication.position(),
            members.collect::<Vec<_>>()
        )
    }

    /// What came is counted in bytes, however it was joined.
    fn check_bytes(&self) {
        if self.plan.has_faults || self.plan.channels[0].contains("224.0.1.1") {
            return;
        }
        let mut sent = vec![0; self.members.len()];
        let what = format!("seed={}: {sent:?} bytes are counted", self.seed);
        self.world.run_until(SECOND, &what, || {
            for datagram in self.tap.take() {
                let to = |member: &Member| member.node.address() == datagram.to.ip();
                if let Some(index) = self.members.iter().position(to) {
                    sent[index] += datagram.bytes.len() as i64;
                }
            }
            let counted = |member: &Member| system_counter(&member.node, counter::BYTES_RECEIVED);
            self.members.iter().map(counted).eq(sent.iter().copied())
        });
    }
}

#[test]
fn blocks_that_straddle_windows_are_taken_as_far_as_there_is_room() {
    for_seeds(0..200, "joins", "blocks", |seed| {
        let mut gathering = Gathering::new(seed);
        gathering.run();
        gathering.check();
        gathering.check_bytes();
    });
}
