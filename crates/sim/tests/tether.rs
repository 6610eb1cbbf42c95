//! Readers without tether on machines of their own: the publisher goes on without the one that stops.

mod common;

use std::sync::Arc;

use common::{Reader, SECOND, World, errors_of, is_accepted};
use headrace_client::{Client, Publication};
use headrace_sim::Node;

const STREAM: i32 = 1001;

/// The channel of the publication, and those of the readers.
struct Channels {
    publication: &'static str,
    fast: &'static str,
    slow: &'static str,
}

const GROUP: Channels = Channels {
    publication: "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k|fc=min",
    fast: "aeron:udp?endpoint=224.0.1.1:40123",
    slow: "aeron:udp?endpoint=224.0.1.1:40123",
};
const TAGGED: Channels = Channels {
    publication: "aeron:udp?endpoint=224.0.1.1:40123|term-length=64k|fc=tagged,g:5",
    fast: "aeron:udp?endpoint=224.0.1.1:40123|gtag=5",
    slow: "aeron:udp?endpoint=224.0.1.1:40123|gtag=5",
};
const DYNAMIC: Channels = Channels {
    publication: "aeron:udp?control=center:24325|control-mode=dynamic|term-length=64k|fc=min",
    fast: "aeron:udp?endpoint=fast:40123|control=center:24325",
    slow: "aeron:udp?endpoint=slow:40123|control=center:24325",
};

/// A publisher and two readers, each on a machine of its own.
struct Scene {
    world: World,
    publication: Publication,
    fast: Reader,
    slow: Reader,
    sent: u32,
    _nodes: [Node; 3],
    _clients: [Arc<Client>; 3],
}

impl Scene {
    /// The slow reader has these parameters.
    fn new(channels: &Channels, parameters: &str) -> Self {
        let world = World::new(5);
        let nodes = ["center", "fast", "slow"].map(|name| world.add_node(name).unwrap());
        let clients = nodes.each_ref().map(|node| node.connect().unwrap());
        let publication = clients[0].add_publication(channels.publication, STREAM).unwrap();
        let fast = Reader::subscribe(&clients[1], channels.fast, STREAM);
        let slow = Reader::subscribe(&clients[2], &format!("{}{parameters}", channels.slow), STREAM);
        world.run_until(10 * SECOND, "connections", || {
            publication.is_connected()
                && [&fast, &slow]
                    .iter()
                    .all(|reader| reader.subscription.is_connected())
        });
        world.run_for(SECOND);
        Self {
            world,
            publication,
            fast,
            slow,
            sent: 0,
            _nodes: nodes,
            _clients: clients,
        }
    }

    /// A hundred messages are offered each second, and the fast reader reads. Returns how many were taken.
    fn publish(&mut self, seconds: u32) -> u32 {
        let before = self.sent;
        for _ in 0..100 * seconds {
            let mut message = [7; 1_000];
            message[..4].copy_from_slice(&self.sent.to_le_bytes());
            // Twice: the first may find the term full.
            let mut offers = (0..2).map(|_| is_accepted(self.publication.offer(&message)));
            self.sent += u32::from(offers.any(|is_taken| is_taken));
            self.world.run_for(SECOND / 100);
            self.fast.poll();
        }
        self.sent - before
    }
}

fn number_of(message: &[u8]) -> u32 {
    u32::from_le_bytes(message[..4].try_into().unwrap())
}

#[test]
fn a_reader_without_tether_that_stops_lets_readers_elsewhere_go_on_and_comes_back() {
    for channels in [GROUP, TAGGED, DYNAMIC] {
        let mut scene = Scene::new(&channels, "|tether=false");
        assert!(scene.publish(8) < 100, "it is waited for at first");
        scene.publish(6);
        assert_eq!(scene.publish(4), 400, "{}", channels.publication);
        assert!(!scene.slow.subscription.is_connected(), "it has lost its image");
        // It has rested: it is there again, and is waited for.
        scene.world.run_until(10 * SECOND, "its next image", || {
            scene.slow.subscription.is_connected()
        });
        let begins = scene.sent;
        for _ in 0..3 {
            scene.publish(1);
            scene.slow.poll();
        }
        let newest = scene.sent - 1;
        scene.world.run_until(SECOND, "the newest message", || {
            // Both read on: the publisher waits for either.
            [&mut scene.fast, &mut scene.slow]
                .map(|reader| reader.poll().last().map(|message| number_of(message)))
                .iter()
                .all(|last| *last == Some(newest))
        });
        let first = number_of(&scene.slow.messages[0]);
        assert!((500..=begins).contains(&first), "{first}");
        let fast: Vec<u32> = scene
            .fast
            .messages
            .iter()
            .map(|message| number_of(message))
            .collect();
        assert_eq!(fast, (0..scene.sent).collect::<Vec<_>>());
    }
}

#[test]
fn what_an_image_has_is_of_the_first_subscription_and_others_are_noted() {
    let world = World::new(6);
    let node = world.add_node("center").unwrap();
    let client = node.connect().unwrap();
    let channel = "aeron:udp?endpoint=center:40123";
    let (limit, resting) = (
        "|untethered-window-limit-timeout=500ms",
        "|untethered-resting-timeout=2s",
    );
    let subscribe = |parameters: &str, stream_id| {
        Reader::subscribe(&client, &format!("{channel}{parameters}"), stream_id)
    };
    // The same ones, none, and those of another stream say nothing that does not happen.
    let _quiet =
        [(limit, 1), (limit, 1), ("", 1), (resting, 2)].map(|(given, stream)| subscribe(given, stream));
    assert_eq!(errors_of(&node), [""; 0]);
    let others =
        "untethered-window-limit-timeout=1s|rcv-wnd=64k|cc=cubic|group=true|nak-delay=1s|sparse=false";
    let _noted = subscribe(&format!("{resting}|{others}"), 1);
    let noted = errors_of(&node);
    let given: Vec<&str> = others
        .split('|')
        .chain(["untethered-resting-timeout=2s"])
        .collect();
    assert_eq!(noted.len(), given.len(), "{noted:?}");
    let why = "has no effect here: the first subscription to the stream on this channel was added";
    for given in given {
        let has = if given.starts_with("untethered-window") {
            "with untethered-window-limit-timeout=500ms".to_owned()
        } else {
            format!("without {}", given.split('=').next().unwrap())
        };
        let text = format!("channel parameter {given} {why} {has}; give all subscriptions");
        assert!(
            noted.iter().any(|noted| noted.contains(&text)),
            "{text}: {noted:?}"
        );
    }
}

#[test]
fn one_that_may_not_rejoin_leaves_the_publisher() {
    let mut scene = Scene::new(&GROUP, "|tether=false|rejoin=false");
    scene.publish(14);
    assert_eq!(scene.publish(30), 3_000);
    assert!(!scene.slow.subscription.is_connected());
}

#[test]
fn a_reader_with_tether_is_waited_for() {
    let mut scene = Scene::new(&GROUP, "");
    scene.publish(12);
    assert_eq!(scene.publish(7), 0);
    assert!(scene.slow.subscription.is_connected());
}
