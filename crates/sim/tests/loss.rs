//! Repairs in virtual time: how long they take, how often receivers ask and what the sender sends again, by the measured
//! round trip and by the fixed delays.

mod common;

use std::sync::Arc;

use common::{MILLISECOND, SECOND, STREAM, World, is_accepted};
use headrace_buffers::counters::system_counter;
use headrace_client::{Client, Publication, Subscription};
use headrace_sim::{LinkSettings, Node};

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40123|term-length=1m";
const UNICAST: &str = "aeron:udp?endpoint=receiver-0:40123|term-length=1m";

#[derive(Clone, Copy)]
enum Delays {
    Fixed,
    Adaptive,
    /// The first receiver does not measure, all others do.
    OneFixed,
}

/// A publisher and its receivers, all at the same distance.
struct Stream {
    world: World,
    publisher: Node,
    receivers: Vec<Node>,
    _clients: Vec<Arc<Client>>,
    publication: Publication,
    subscriptions: Vec<Subscription>,
    link: LinkSettings,
    sent: usize,
    /// Of each message read, with the receiver.
    latencies_ns: Vec<(usize, i64)>,
}

impl Stream {
    fn new(channel: &str, receiver_count: usize, rtt_ns: i64, delays: Delays) -> Self {
        let world = World::new(23);
        let link = LinkSettings {
            delay_min_ns: rtt_ns / 2,
            delay_max_ns: rtt_ns / 2 + rtt_ns / 20,
            ..LinkSettings::default()
        };
        world.network().set_links(link);
        let add = |name: &str, is_adaptive: bool| {
            let changed = world.add_node_with(name, |config| {
                config.set(
                    "aeron.headrace.loss.adaptive",
                    if is_adaptive { "true" } else { "false" },
                )
            });
            changed.unwrap()
        };
        let publisher = add("publisher", !matches!(delays, Delays::Fixed));
        let is_adaptive = |index: usize| match delays {
            Delays::Fixed => false,
            Delays::Adaptive => true,
            Delays::OneFixed => index > 0,
        };
        let receivers: Vec<_> = (0..receiver_count)
            .map(|index| add(&format!("receiver-{index}"), is_adaptive(index)))
            .collect();
        let mut clients: Vec<_> = receivers.iter().map(|node| node.connect().unwrap()).collect();
        let subscribe = |client: &Arc<Client>| client.add_subscription(channel, STREAM, Default::default());
        let subscriptions: Vec<_> = clients.iter().map(|client| subscribe(client).unwrap()).collect();
        let client = publisher.connect().unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        clients.push(client);
        world.run_until(5 * SECOND, "all connections", || {
            publication.is_connected() && subscriptions.iter().all(Subscription::is_connected)
        });
        // Time for what is measured at the start.
        world.run_for(60 * rtt_ns + 20 * MILLISECOND);
        Self {
            world,
            publisher,
            receivers,
            _clients: clients,
            publication,
            subscriptions,
            link,
            sent: 0,
            latencies_ns: Vec::new(),
        }
    }

    fn read(&mut self) {
        let now_ns = self.world.now_ns();
        let latencies = &mut self.latencies_ns;
        for (receiver, subscription) in self.subscriptions.iter_mut().enumerate() {
            subscription
                .poll(
                    |payload, _| {
                        let sent_ns = i64::from_le_bytes(payload.try_into().unwrap());
                        latencies.push((receiver, now_ns - sent_ns));
                    },
                    64,
                )
                .unwrap();
        }
    }

    fn pass(&mut self, duration_ns: i64) {
        let end_ns = self.world.now_ns() + duration_ns;
        while self.world.now_ns() < end_ns {
            self.world.step_until(end_ns);
            self.read();
        }
    }

    /// Publishes a message in each interval.
    fn publish(&mut self, count: usize, interval_ns: i64) {
        for _ in 0..count {
            let now_ns = self.world.now_ns();
            assert!(is_accepted(self.publication.offer(&now_ns.to_le_bytes())));
            self.sent += 1;
            self.pass(interval_ns);
        }
    }

    /// Until each receiver has read all; returns the longest time of a message to one from `first` on.
    fn worst_ns_from(&mut self, first: usize) -> i64 {
        let expected = self.sent * self.receivers.len();
        let end_ns = self.world.now_ns() + 10 * SECOND;
        while self.latencies_ns.len() < expected && self.world.now_ns() < end_ns {
            self.pass(100_000);
        }
        assert_eq!(self.latencies_ns.len(), expected);
        let each = self
            .latencies_ns
            .iter()
            .filter(|(receiver, _)| *receiver >= first);
        each.map(|(_, latency_ns)| *latency_ns).max().unwrap()
    }

    fn worst_ns(&mut self) -> i64 {
        self.worst_ns_from(0)
    }

    /// Loses data on its way to each receiver, not what comes back.
    fn set_loss(&self, loss: f64) {
        let lossy = LinkSettings { loss, ..self.link };
        for receiver in &self.receivers {
            self.publisher.set_link_to(receiver, Some(lossy));
        }
    }

    /// Loses one message for all receivers, and publishes a few more after it.
    fn lose_one_for_all(&mut self, interval_ns: i64) {
        for receiver in &self.receivers {
            self.publisher.set_cut_to(receiver, true);
        }
        self.publish(1, interval_ns);
        for receiver in &self.receivers {
            self.publisher.set_cut_to(receiver, false);
        }
        self.publish(5, interval_ns);
    }

    fn naks_sent(&self) -> i64 {
        let of = |node| common::system_counter(node, system_counter::NAK_MESSAGES_SENT);
        self.receivers.iter().map(of).sum()
    }

    fn retransmits(&self) -> i64 {
        common::system_counter(&self.publisher, system_counter::RETRANSMITS_SENT)
    }
}

/// The longest time of a message without loss, and with one of a hundred lost, to those that measure if there are any.
fn worst_ns(channel: &str, receivers: usize, rtt_ns: i64, delays: Delays) -> [i64; 2] {
    [(0.0, 300), (0.01, 600)].map(|(loss, count)| {
        let mut stream = Stream::new(channel, receivers, rtt_ns, delays);
        stream.set_loss(loss);
        stream.publish(count, (rtt_ns / 2).max(50_000));
        stream.worst_ns_from(usize::from(matches!(delays, Delays::OneFixed)))
    })
}

#[test]
fn a_group_of_three_repairs_within_a_few_round_trips() {
    for rtt_ns in [20_000, 200_000] {
        for delays in [Delays::Adaptive, Delays::OneFixed] {
            let [lossless_ns, lossy_ns] = worst_ns(GROUP, 3, rtt_ns, delays);
            // The message after the lost one shows the loss; a repair may be lost, too.
            let bound_ns = lossless_ns + 8 * rtt_ns + 600_000;
            assert!(lossy_ns <= bound_ns, "rtt={rtt_ns}: {lossless_ns} {lossy_ns}");
        }
        let [_, fixed_ns] = worst_ns(GROUP, 3, rtt_ns, Delays::Fixed);
        assert!(
            fixed_ns > 4 * MILLISECOND,
            "with the fixed delays rtt={rtt_ns}: {fixed_ns}"
        );
    }
}

#[test]
fn one_receiver_far_away_asks_once_for_what_is_on_its_way() {
    let rtt_ns = 20 * MILLISECOND;
    let counts = [Delays::Adaptive, Delays::Fixed].map(|delays| {
        let mut stream = Stream::new(UNICAST, 1, rtt_ns, delays);
        for _ in 0..5 {
            stream.lose_one_for_all(5 * MILLISECOND);
            stream.pass(5 * rtt_ns);
        }
        stream.worst_ns();
        (stream.naks_sent(), stream.retransmits())
    });
    let [(naks, retransmits), (naks_fixed, retransmits_fixed)] = counts;
    assert!(
        naks <= 10 && retransmits <= 10,
        "{naks} NAKs, {retransmits} repairs of 5 losses"
    );
    assert!(naks_fixed > 10 * naks && retransmits_fixed >= retransmits);
}

/// NAKs, repairs and the longest time of a message when fifty receivers lose the same.
fn storm(rtt_ns: i64, delays: Delays) -> (i64, i64, i64) {
    let mut stream = Stream::new(GROUP, 50, rtt_ns, delays);
    stream.lose_one_for_all((rtt_ns / 2).min(MILLISECOND));
    let worst_ns = stream.worst_ns();
    stream.pass(3 * rtt_ns + 20 * MILLISECOND);
    (stream.naks_sent(), stream.retransmits(), worst_ns)
}

#[test]
fn of_fifty_receivers_with_the_same_loss_few_ask_and_the_sender_answers_one() {
    for (rtt_ns, naks_max) in [(200_000, 25), (20 * MILLISECOND, 50)] {
        let (naks, retransmits, worst_ns) = storm(rtt_ns, Delays::Adaptive);
        assert!((1..=naks_max).contains(&naks), "rtt={rtt_ns}: {naks} NAKs");
        assert_eq!(retransmits, 1, "rtt={rtt_ns}: {naks} NAKs");
        assert!(
            worst_ns < 5 * rtt_ns + 3 * MILLISECOND,
            "rtt={rtt_ns}: {worst_ns}"
        );
    }
    let (naks, ..) = storm(20 * MILLISECOND, Delays::Fixed);
    assert!(naks > 60, "each asks again before a repair can come: {naks} NAKs");
}

/// The first NAK has the sender measure; then a repair that is lost is asked for and sent soon again.
#[test]
fn a_repair_that_is_lost_too_does_not_wait_for_the_longest_linger() {
    let rtt_ns = 200_000;
    let worst = [Delays::Adaptive, Delays::Fixed].map(|delays| {
        let mut stream = Stream::new(UNICAST, 1, rtt_ns, delays);
        stream.lose_one_for_all(100_000);
        stream.pass(30 * MILLISECOND);
        stream.worst_ns();
        stream.latencies_ns.clear();
        stream.sent = 0;
        stream.set_loss(0.3);
        stream.publish(200, 100_000);
        stream.set_loss(0.0);
        stream.publish(1, 100_000); // else the loss of the last one shows with the next heartbeat only
        stream.worst_ns()
    });
    let [adaptive, fixed] = worst;
    assert!(adaptive < fixed / 2, "{worst:?}");
}
