//! How much a receiver lets a sender have on the way: more on its own host than across a network.

mod common;

use common::{Gauge, Reader, SECOND, STREAM, Stream, World};
use headrace_buffers::counters::type_ids;
use headrace_driver::DriverConfig;

const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;
/// Half of one is the widest window.
const TERMS: &str = "term-length=4m";
/// The setting's default.
const WINDOW: i64 = 128 * KIB;
/// The setting's default for senders on the receiver's host, for which the sockets of the world have room.
const LOCAL_WINDOW: i64 = 2 * MIB;

/// The room that a publisher on the node `from` gets of a subscriber on `right`, at the start of its stream.
fn window(from: &str, channel: &str, change: impl Fn(&mut DriverConfig)) -> i64 {
    let world = World::new(7);
    let node = |name| {
        let made = world.add_node_with(name, |config| {
            change(config);
            Ok(())
        });
        made.unwrap()
    };
    let channel = &format!("{channel}|{TERMS}");
    let nodes = ["left", "right"].map(node);
    let sender = &nodes[usize::from(from == "right")];
    let (publisher, subscriber) = (sender.connect().unwrap(), nodes[1].connect().unwrap());
    let reader = Reader::subscribe(&subscriber, channel, STREAM);
    let publication = publisher.add_publication(channel, STREAM).unwrap();
    world.run_until(SECOND, "a connection", || {
        publication.is_connected() && reader.subscription.is_connected()
    });
    let limit = Gauge::new(sender, type_ids::SENDER_LIMIT).value();
    limit - Gauge::new(sender, type_ids::SENDER_POSITION).value()
}

fn default_settings(_config: &mut DriverConfig) {}

#[test]
fn a_sender_on_the_receivers_host_may_have_more_on_the_way() {
    for (from, channel, expected) in [
        ("left", "aeron:udp?endpoint=right:40123", WINDOW),
        ("right", "aeron:udp?endpoint=right:40123", LOCAL_WINDOW),
        ("right", "aeron:udp?endpoint=localhost:40123", LOCAL_WINDOW),
        ("right", "aeron:udp?endpoint=[::1]:40123", LOCAL_WINDOW),
        // The sender follows the furthest receiver of the group, which may not be on its host.
        ("right", "aeron:udp?endpoint=224.0.1.1:40123", WINDOW),
        ("right", "aeron:udp?endpoint=224.0.1.1:40123|fc=max", WINDOW),
        ("right", "aeron:udp?endpoint=224.0.1.1:40123|fc=min", LOCAL_WINDOW),
        ("left", "aeron:udp?endpoint=224.0.1.1:40123|fc=min", WINDOW),
        ("left", "aeron:udp?endpoint=224.0.1.1:40123", WINDOW),
    ] {
        assert_eq!(
            window(from, channel, default_settings),
            expected,
            "{from} {channel}"
        );
    }
}

#[test]
fn it_has_no_more_than_socket_channel_and_settings_allow() {
    let local = |channel: &str, change: fn(&mut DriverConfig)| {
        let channel = format!("aeron:udp?endpoint=localhost:40123{channel}");
        window("right", &channel, change)
    };
    assert_eq!(local("|so-rcvbuf=1m", default_settings), 512 * KIB);
    assert_eq!(local("|so-rcvbuf=128k", default_settings), WINDOW);
    assert_eq!(local("|rcv-wnd=64k", default_settings), 64 * KIB);
    assert_eq!(
        local("", |config| config.receiver_local_window_length = 0),
        WINDOW
    );
    assert_eq!(
        local("", |config| config.receiver_initial_window_length = 64 << 10),
        64 * KIB
    );
    assert_eq!(
        local("", |config| config.socket_receive_buffer_length = 512 << 10),
        256 * KIB
    );
}

/// The destinations of such a subscription may bring the same stream from here and from elsewhere.
#[test]
fn a_stream_that_several_paths_may_bring_has_the_same_window_on_each() {
    let world = World::new(7);
    let node = world.add_node("right").unwrap();
    let client = node.connect().unwrap();
    let reader = Reader::subscribe(&client, "aeron:udp?control-mode=manual", STREAM);
    let destination = "aeron:udp?endpoint=localhost:40123";
    reader.subscription.destinations().add(destination).unwrap();
    let publication = client
        .add_publication(&format!("{destination}|{TERMS}"), STREAM)
        .unwrap();
    world.run_until(SECOND, "a connection", || publication.is_connected());
    assert_eq!(Gauge::new(&node, type_ids::SENDER_LIMIT).value(), WINDOW);
}

/// The sender waits for two receivers. The one that it hears first has the wider window.
#[test]
fn receivers_with_unequal_windows_form_a_group() {
    let world = World::new(7);
    let mut nodes = vec![world.add_node("right").unwrap()];
    nodes.push(
        world
            .add_node_with("left", |config| {
                config.receiver_local_window_length = 0;
                Ok(())
            })
            .unwrap(),
    );
    let clients: Vec<_> = nodes.iter().map(|node| node.connect().unwrap()).collect();
    let endpoints = ["aeron:udp?endpoint=right:40123", "aeron:udp?endpoint=left:40123"];
    let publication = clients[0]
        .add_publication(
            &format!("aeron:udp?control-mode=manual|fc=min,g:/2|{TERMS}"),
            STREAM,
        )
        .unwrap();
    let _readers: Vec<_> = clients
        .iter()
        .zip(endpoints)
        .map(|(client, endpoint)| Reader::subscribe(client, endpoint, STREAM))
        .collect();
    for endpoint in endpoints {
        publication.destinations().add(endpoint).unwrap();
    }
    let count = Gauge::new(&nodes[0], type_ids::FLOW_CONTROL_RECEIVERS);
    world.run_until(SECOND, "both receivers count", || count.value() == 2);
}

/// A receiver grants more when a quarter of its window was read, or before: one datagram always has room.
#[test]
fn a_window_of_little_more_than_a_datagram_never_stalls() {
    const MTU: usize = 1024;
    const MESSAGES: usize = 100;
    for window in (MTU..2 * MTU).step_by(32) {
        let world = World::new(7);
        let channel = format!("aeron:udp?endpoint=right:40123|term-length=64k|mtu={MTU}|rcv-wnd={window}");
        let mut stream = Stream::connected(&world, &channel, STREAM);
        for number in 0..MESSAGES {
            // The long ones fill a datagram.
            let message = vec![0; if number % 2 == 0 { 32 } else { MTU - 32 }];
            world.run_until(SECOND, "room", || stream.offers(&message));
            let what = format!("message {number} comes, window={window}");
            world.run_until(SECOND, &what, || stream.reader.poll().len() > number);
        }
    }
}
