//! What happens to a world: one thing after the other, as chance decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use headrace_client::{Client, ClientError};
use headrace_sim::{Holdings, LinkSettings, Node};

use crate::common::{self, SECOND, World};
use crate::people::{Publisher, Stamp, Subscriber, Tie};
use crate::requesters::Requester;
use crate::servers::Server;
use crate::stage::{SERVICES, Shape};

/// Longest time between two offers.
const OFFER_INTERVAL_MAX_NS: i64 = 10_000_000;
/// Subscribers that read between two steps: those of a world of hundreds take turns.
const READERS_A_STEP: usize = 50;
/// How far wall clocks jump.
const JUMP_MAX_NS: i64 = 7_200 * SECOND;
/// What the error log may say after a disk was full, a client was killed, or a stream rejected.
const EXPECTED_ERRORS: [&str; 13] = [
    REJECTED,
    // A rejection that comes when the image has just ended.
    "Unable to resolve image",
    "more images rejected",
    "error frame received",
    "more error frames received",
    "usable storage",
    "space is running low",
    "more problems with storage",
    "more images not created",
    "process ended without closing",
    // A server comes back before the driver has noticed that it was killed.
    "a second publication responds to the same request",
    // A link that is cut in one direction: repairs, or the requests for them, do not arrive.
    "again and again",
    // A server asks for a publication for a requester that has just gone.
    "image.correlationId=",
];

/// What the error log says of a local stream that a subscriber rejected.
const REJECTED: &str = "image rejected by a subscriber";
/// What a driver does that asks no name server and no other node.
const LOCAL_MAX_NS: i64 = SECOND / 10;

/// A world, what runs in it, and the chance that decides what happens next.
pub(crate) struct Chaos {
    pub(crate) world: World,
    pub(crate) random: fastrand::Rng,
    pub(crate) shape: Shape,
    pub(crate) nodes: Vec<Node>,
    fresh: Vec<Option<Holdings>>,
    pub(crate) clients: Vec<Option<Arc<Client>>>,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    pub(crate) requesters: Vec<Requester>,
    pub(crate) servers: Vec<Server>,
    /// Nodes where a local stream was rejected since they started.
    has_rejected: BTreeSet<usize>,
    last_id: u64,
}

impl Chaos {
    pub(crate) fn new(seed: u64, shape: Shape) -> Self {
        let world = World::new(seed);
        world.set_queue_capacity(shape.queue_capacity);
        let add_node = |index| {
            let change = |config: &mut _| {
                shape.change_driver(config);
                Ok(())
            };
            world.add_node_with(&format!("node{index}"), change).unwrap()
        };
        let nodes: Vec<_> = (0..shape.nodes).map(add_node).collect();
        let mut chaos = Self {
            world,
            random: fastrand::Rng::with_seed(seed),
            shape,
            fresh: nodes.iter().map(Node::holdings).collect(),
            clients: nodes.iter().map(|_| None).collect(),
            nodes,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            requesters: Vec::new(),
            servers: Vec::new(),
            has_rejected: BTreeSet::new(),
            last_id: 0,
        };
        for node in 0..shape.nodes {
            chaos.connect(node);
        }
        chaos.worsen();
        for _ in 0..shape.people {
            chaos.subscribe();
            chaos.publish();
        }
        for service in 0..SERVICES {
            chaos.serve(service);
        }
        for _ in 0..shape.requesters {
            chaos.ask();
        }
        chaos
    }

    /// Connects the client of a node, unless its driver does not answer in time.
    fn connect(&mut self, node: usize) {
        self.clients[node] = Some(self.new_client(node));
    }

    pub(crate) fn new_client(&self, node: usize) -> Arc<Client> {
        let connected = self.nodes[node].connect_with(|config| self.shape.change_client(config));
        connected.unwrap()
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn chosen_node(&mut self) -> usize {
        self.random.usize(0..self.shape.nodes)
    }

    fn publish(&mut self) {
        let stream = self.random.usize(0..self.shape.streams);
        let channel = self.shape.channel(stream, &self.nodes);
        let paths = self.shape.paths(stream, &self.nodes);
        let chosen = self.chosen_node();
        let node = self.shape.sender_of(stream).unwrap_or(chosen);
        let Some(client) = self.clients[node].clone() else {
            return;
        };
        let id = self.next_id();
        let is_shared = self.random.u8(0..3) == 0;
        let begun_ns = self.world.now_ns();
        let added = Publisher::new(node, &client, (stream, &channel), &paths, id, is_shared);
        self.publishers.extend(forgiven(added));
        self.check_local(stream, begun_ns);
    }

    fn subscribe(&mut self) {
        let stream = self.random.usize(0..self.shape.streams);
        let tie = match self.random.u8(0..10) {
            0 | 1 if self.shape.has_spies(stream) => Tie::Spy,
            2 | 3 => Tie::Untethered,
            _ => Tie::Tethered,
        };
        let node = match tie {
            Tie::Spy => self.chosen_node(),
            _ if self.shape.is_of_group(stream) => self.chosen_node(),
            _ => self.shape.receiver_of(stream),
        };
        let Some(client) = self.clients[node].clone() else {
            return;
        };
        // The readers of a local stream that one of them rejects join it again.
        let may_rejoin = self.shape.is_local(stream) || (tie == Tie::Untethered && !self.shape.is_patient);
        let begun_ns = self.world.now_ns();
        let channel = self.shape.receiving_channel(stream, &self.nodes);
        let paths = self.shape.paths(stream, &self.nodes);
        let added = Subscriber::new(node, &client, (stream, &channel), paths, tie, may_rejoin);
        self.subscribers.extend(forgiven(added));
        self.check_local(stream, begun_ns);
    }

    /// A name server that does not answer holds up no local stream.
    fn check_local(&self, stream: usize, begun_ns: i64) {
        let took_ns = self.world.now_ns() - begun_ns;
        let is_prompt = took_ns < LOCAL_MAX_NS || !self.shape.is_local(stream);
        assert!(is_prompt, "a local stream took {took_ns} ns");
    }

    fn forget(&mut self, node: usize) {
        self.clients[node] = None;
        self.publishers.retain(|publisher| publisher.node != node);
        self.subscribers.retain(|subscriber| subscriber.node != node);
        self.requesters.retain(|requester| requester.node != node);
    }

    fn crash(&mut self, node: usize) {
        if self.nodes[node].is_up() {
            self.nodes[node].crash().unwrap();
            self.has_rejected.remove(&node);
            self.forget(node);
            self.servers.retain(|server| server.node != node);
        }
    }

    fn restart(&mut self, node: usize) {
        if !self.nodes[node].is_up() {
            self.nodes[node].start().unwrap();
            self.connect(node);
        }
    }

    /// The program of a node is killed, in the middle of publishing as likely as not, and comes back.
    fn crash_client(&mut self, node: usize) {
        let Some(client) = self.clients[node].clone() else {
            return;
        };
        let requests = self.requesters.iter().map(|requester| &requester.requests);
        let publishers = self.publishers.iter().chain(requests);
        for publisher in publishers.filter(|publisher| publisher.node == node) {
            if self.random.bool() {
                publisher.handle.leave_a_hole();
            }
        }
        self.nodes[node].crash_client(&client).unwrap();
        drop(client);
        self.forget(node);
        self.connect(node);
    }

    pub(crate) fn act(&mut self) {
        let (left, right) = (self.chosen_node(), self.chosen_node());
        match self.random.u8(0..125) {
            0..=15 => self.publish(),
            16..=31 => self.subscribe(),
            32..=37 if !self.publishers.is_empty() => {
                let index = self.random.usize(0..self.publishers.len());
                self.publishers.swap_remove(index);
            }
            38..=43 if !self.subscribers.is_empty() => {
                let index = self.random.usize(0..self.subscribers.len());
                self.subscribers.swap_remove(index);
            }
            44..=50 => self.worsen(),
            51..=56 if left != right => self.nodes[left].set_cut_to(&self.nodes[right], true),
            57..=67 if left != right => self.nodes[left].set_cut(&self.nodes[right], false),
            68..=71 => {
                self.nodes[left].pause();
                self.wait();
                self.nodes[left].resume();
            }
            72..=73 => self.crash(left),
            74..=89 => self.restart(left),
            90..=92 => self.crash_client(left),
            93..=95 => self.stall(left),
            96..=98 => {
                let by_ns = self.random.i64(-JUMP_MAX_NS..JUMP_MAX_NS);
                self.nodes[left].jump_clock_ns(by_ns);
            }
            99 => {
                let room = self.random.u64(0..2_000_000);
                self.nodes[left].set_disk_room(Some(room));
            }
            100..=102 => self.nodes[left].set_disk_room(None),
            103 => {
                let lookup_ns = self.random.i64(0..self.shape.wait_max_ns());
                self.world.network().set_lookup_ns(lookup_ns);
            }
            104 if left != right => self.silence(left, right),
            105..=106 if !self.subscribers.is_empty() => self.doze(),
            107 if !self.subscribers.is_empty() => self.reject(),
            108..=109 => self.switch_path(),
            110..=114 => self.ask(),
            115..=116 if !self.requesters.is_empty() => {
                let index = self.random.usize(0..self.requesters.len());
                self.requesters.swap_remove(index);
            }
            117..=121 => {
                let service = self.random.usize(0..SERVICES);
                self.serve(service);
            }
            122..=123 if !self.servers.is_empty() => self.end_server(),
            124 if !self.requesters.is_empty() => {
                let index = self.random.usize(0..self.requesters.len());
                self.requesters[index].asleep_until_ns = self.doze_end_ns();
            }
            _ => {}
        }
    }

    /// Nothing comes through for longer than images live, and a little less than twice that.
    fn silence(&mut self, left: usize, right: usize) {
        self.nodes[left].set_cut_to(&self.nodes[right], true);
        let duration_ns = self.random.i64(11 * SECOND..20 * SECOND);
        self.run_for(self.shape.time(duration_ns));
        self.nodes[left].set_cut_to(&self.nodes[right], false);
    }

    /// A subscriber stops reading for as long as it takes to be left behind, and to join again.
    fn doze(&mut self) {
        let index = self.random.usize(0..self.subscribers.len());
        self.subscribers[index].asleep_until_ns = self.doze_end_ns();
    }

    fn doze_end_ns(&mut self) -> i64 {
        let duration_ns = self.random.i64(SECOND..40 * SECOND);
        self.world.now_ns() + self.shape.time(duration_ns)
    }

    fn reject(&mut self) {
        let subscriber = &self.subscribers[self.random.usize(0..self.subscribers.len())];
        let choice = self.random.usize(..);
        if subscriber.tie != Tie::Spy && subscriber.reject(choice) && self.shape.is_local(subscriber.stream) {
            self.has_rejected.insert(subscriber.node);
        }
    }

    /// A path of a subscriber is removed, and added again after a while.
    fn switch_path(&mut self) {
        let mut subscribers = self.subscribers.iter();
        let Some(index) = subscribers.position(|subscriber| !subscriber.paths.is_empty()) else {
            return;
        };
        let subscriber = &self.subscribers[index];
        let path = self.random.usize(0..subscriber.paths.len());
        let _ = forgiven(subscriber.remove_path(path));
        self.wait();
        let _ = forgiven(self.subscribers[index].add_paths());
    }

    fn wait(&mut self) {
        let duration_ns = self.random.i64(0..self.shape.wait_max_ns());
        self.run_for(duration_ns);
    }

    fn stall(&mut self, node: usize) {
        if let Some(client) = self.clients[node].clone() {
            self.nodes[node].set_stalled(&client, true);
            self.wait();
            self.nodes[node].set_stalled(&client, false);
        }
    }

    fn worsen(&mut self) {
        let random = &mut self.random;
        let settings = LinkSettings {
            loss: random.f64() * 0.2,
            duplication: random.f64() * 0.2,
            reordering: random.f64() * 0.3,
            delay_max_ns: random.i64(50_000..2_000_000),
            bytes_per_second: random.bool().then(|| random.u64(200_000..10_000_000)),
            ..LinkSettings::default()
        };
        self.world.network().set_links(settings);
    }

    /// Everyone publishes now and then, and reads, while time passes.
    pub(crate) fn run_for(&mut self, duration_ns: i64) {
        let end_ns = self.world.now_ns() + duration_ns;
        let mut next_offer_ns = 0;
        while self.world.now_ns() < end_ns {
            if self.world.now_ns() >= next_offer_ns {
                next_offer_ns = self.world.now_ns() + self.random.i64(0..OFFER_INTERVAL_MAX_NS);
                self.offer_some();
            }
            self.read();
            self.world.step_until(end_ns);
        }
    }

    fn offer_some(&mut self) {
        let count = self.publishers.len() + self.requesters.len();
        if count == 0 {
            return;
        }
        let index = self.random.usize(0..count);
        let publisher = match index.checked_sub(self.publishers.len()) {
            Some(index) => &mut self.requesters[index].requests,
            None => &mut self.publishers[index],
        };
        if !self.nodes[publisher.node].is_paused() {
            // Now and then so many that the window is full.
            let count = if self.random.u8(0..20) == 0 { 40 } else { 1 };
            for _ in 0..count {
                publisher.offer();
            }
        }
    }

    fn read(&mut self) {
        let (count, now_ns) = (self.subscribers.len(), self.world.now_ns());
        let first = self.random.usize(0..count.max(1));
        for step in 0..count.min(READERS_A_STEP) {
            let subscriber = &mut self.subscribers[(first + step) % count];
            let is_awake = now_ns >= subscriber.asleep_until_ns && !self.nodes[subscriber.node].is_paused();
            if is_awake && self.random.u8(0..4) > 0 {
                subscriber.poll();
            }
        }
        self.exchange();
    }

    /// Steps until the condition holds, while everyone reads.
    fn run_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let end_ns = self.world.now_ns() + self.shape.recovery_ns();
        while !condition(self) {
            assert!(
                self.world.now_ns() < end_ns,
                "{what}: not in time\n{}",
                self.world.trace(60)
            );
            self.read();
            self.world.step_until(end_ns);
        }
    }

    /// Everything works again: then each publisher reaches each of its subscribers, which read all of it.
    pub(crate) fn recover(&mut self) {
        self.world.network().set_links(LinkSettings::default());
        self.world.network().set_lookup_ns(0);
        for left in 0..self.shape.nodes {
            self.nodes[left].set_disk_room(None);
            self.restart(left);
            for right in 0..left {
                self.nodes[left].set_cut(&self.nodes[right], false);
            }
        }
        for subscriber in &mut self.subscribers {
            subscriber.asleep_until_ns = 0;
            subscriber.add_paths().unwrap();
        }
        for requester in &mut self.requesters {
            requester.asleep_until_ns = 0;
        }
        for service in 0..SERVICES {
            self.serve(service);
        }
        self.run_until("publishers are connected", |chaos| {
            let has_reader =
                |publisher: &Publisher| chaos.readers_of(publisher).any(|reader| reader.tie != Tie::Spy);
            let mut publishers = chaos.publishers.iter();
            publishers.all(|publisher| publisher.handle.is_connected() || !has_reader(publisher))
        });
        // Those that saw no time-out and those that did have an image after this, and drained images are over.
        self.run_for(self.shape.time(25 * SECOND) + SECOND / 2);
        self.run_until("images are those of the publishers", |chaos| {
            let has_right_ones = |reader: &Subscriber| reader.sessions() == chaos.sessions_for(reader);
            chaos.subscribers.iter().all(has_right_ones)
        });
        self.run_until("requesters read the answers of their servers", Self::is_matched);
        self.offer_to_all(5);
        self.request_of_all(5);
        self.run_until("all messages are read", |chaos| {
            let has_all = |publisher: &Publisher| {
                let published = publisher.published();
                chaos
                    .readers_of(publisher)
                    .all(|reader| reader.has_read(&published))
            };
            let mut published = chaos.published();
            published.all(has_all)
        });
        self.run_until("new requests are answered", |chaos| {
            let mut requesters = chaos.requesters.iter();
            requesters.all(|requester| requester.has_answers(5))
        });
    }

    /// Publishers that close in good order are read to their end, also by readers that come late to it.
    pub(crate) fn part(&mut self) {
        // A link too slow for what is asked for again would take longer than publications linger.
        self.world.network().set_links(common::faults());
        self.offer_to_all(10);
        let read_on = |publisher: &Publisher| {
            let readers = self
                .readers_of(publisher)
                .filter(|reader| reader.tie == Tie::Tethered);
            readers
                .map(|reader| (publisher.published(), reader.name()))
                .collect::<Vec<_>>()
        };
        let stopped: Vec<_> = self.published().flat_map(read_on).collect();
        self.request_of_all(10);
        self.run_until("requests are answered", Self::is_answered);
        self.publishers.clear();
        self.servers.clear();
        self.wait_for_late_readers(self.shape.time(4 * SECOND));
        self.run_until("answers of servers that closed are read to their end", |chaos| {
            let mut requesters = chaos.requesters.iter();
            requesters.all(|requester| requester.has_answers(15))
        });
        self.run_until("publishers that closed are read to their end", |chaos| {
            let has_read = |(published, name): &(Stamp, (usize, i64))| {
                let mut subscribers = chaos.subscribers.iter();
                let reader = subscribers.find(|subscriber| subscriber.name() == *name);
                reader.is_some_and(|reader| reader.has_read(published))
            };
            stopped.iter().all(has_read)
        });
    }

    /// Time passes before most read on. Those of a group read all the while: senders of groups wait for the fastest
    /// reader, and one that is too late for repairs loses the rest.
    fn wait_for_late_readers(&mut self, duration_ns: i64) {
        let end_ns = self.world.now_ns() + duration_ns;
        while self.world.now_ns() < end_ns {
            for subscriber in &mut self.subscribers {
                if self.shape.is_of_group(subscriber.stream) {
                    subscriber.poll();
                }
            }
            self.world.step_until(end_ns);
        }
    }

    /// Each publisher that has readers publishes this many messages.
    fn offer_to_all(&mut self, count: usize) {
        for index in 0..self.publishers.len() {
            if !self.has_readers(&self.publishers[index]) {
                continue;
            }
            self.offer_each(count, |chaos| &mut chaos.publishers[index]);
        }
    }

    /// Each requester asks this many times.
    fn request_of_all(&mut self, count: usize) {
        for index in 0..self.requesters.len() {
            self.offer_each(count, |chaos| &mut chaos.requesters[index].requests);
        }
    }

    fn offer_each(&mut self, count: usize, publisher: impl Fn(&mut Self) -> &mut Publisher) {
        let end_ns = self.world.now_ns() + self.shape.recovery_ns();
        for _ in 0..count {
            while !publisher(self).offer() {
                assert!(
                    self.world.now_ns() < end_ns,
                    "no room to publish\n{}",
                    self.world.trace(60)
                );
                self.read();
                self.world.step();
            }
        }
    }

    fn readers_of<'a>(&'a self, publisher: &'a Publisher) -> impl Iterator<Item = &'a Subscriber> {
        let is_near = |reader: &Subscriber| reader.tie != Tie::Spy || reader.node == publisher.node;
        let own = move |reader: &&Subscriber| reader.stream == publisher.stream && is_near(reader);
        self.subscribers.iter().filter(own)
    }

    fn sessions_for(&self, reader: &Subscriber) -> BTreeSet<i32> {
        let is_near = |publisher: &&Publisher| reader.tie != Tie::Spy || reader.node == publisher.node;
        let own = self.publishers.iter().filter(|one| one.stream == reader.stream);
        own.filter(is_near).map(|one| one.handle.session_id()).collect()
    }

    /// True where something can be published: a spy alone makes no connection.
    fn has_readers(&self, publisher: &Publisher) -> bool {
        self.readers_of(publisher).any(|reader| reader.tie != Tie::Spy)
    }

    fn published(&self) -> impl Iterator<Item = &Publisher> {
        self.publishers
            .iter()
            .filter(|publisher| self.has_readers(publisher))
    }

    pub(crate) fn close_all(&mut self) {
        self.publishers.clear();
        self.subscribers.clear();
        self.requesters.clear();
        self.clients.clear();
        self.run_until("nothing is left", |chaos| {
            let held = chaos.nodes.iter().map(Node::holdings);
            chaos.world.socket_count() == 0 && held.eq(chaos.fresh.iter().cloned())
        });
        for (index, node) in self.nodes.iter().enumerate() {
            let mut errors = common::errors_of(node);
            let is_told = errors.iter().any(|text| text.contains(REJECTED));
            assert!(is_told || !self.has_rejected.contains(&index), "{errors:?}");
            errors.retain(|text| !EXPECTED_ERRORS.iter().any(|expected| text.contains(expected)));
            assert_eq!(errors, [""; 0], "{}", node.name());
        }
    }
}

/// What a driver may refuse for a moment: a channel that is being closed, a log for which there is no room, a name that
/// is not answered in time.
pub(crate) fn forgiven<T>(added: Result<T, ClientError>) -> Option<T> {
    added.ok()
}
