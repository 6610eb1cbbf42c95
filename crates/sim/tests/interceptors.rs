//! Loss on purpose between the sockets of a driver and its transport: streams are repaired.

mod common;

use common::{CHANNEL, Reader, SECOND, STREAM, World, is_accepted, system_counter};
use headrace_buffers::counters::system_counter;
use headrace_sim::Node;

const INCOMING: &str = "aeron.udp.channel.incoming.interceptors";

/// A node whose driver drops by a rule.
fn add(world: &World, name: &str, rule: &str, arguments: (&str, &str)) -> Node {
    let settings = |config: &mut headrace_driver::DriverConfig| {
        config.set(INCOMING, rule)?;
        config.set(arguments.0, arguments.1)
    };
    world.add_node_with(name, settings).unwrap()
}

/// Sends 2,000 messages from left to right, and returns how many NAKs the right sent.
fn naks(world: &World, left: &Node, right: &Node, channel: &str) -> i64 {
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let mut reader = Reader::subscribe(&subscriber, channel, STREAM);
    let publication = publisher.add_publication(channel, STREAM).unwrap();
    world.run_until(20 * SECOND, "a connection", || publication.is_connected());
    let message = |number: usize| vec![number as u8; 100 + number % 900];
    let mut sent = 0;
    world.run_until(120 * SECOND, "all messages", || {
        while sent < 2_000 && is_accepted(publication.offer(&message(sent))) {
            sent += 1;
        }
        reader.poll().len() == 2_000
    });
    assert!((0..2_000).all(|number| reader.messages[number] == message(number)));
    system_counter(right, system_counter::NAK_MESSAGES_SENT)
}

#[test]
fn random_loss_of_data_and_of_control_frames_is_repaired() {
    let arguments = "aeron.udp.channel.transport.bindings.loss.args";
    let world = World::new(81);
    let left = add(
        &world,
        "left",
        "loss",
        (arguments, "rate=0.2|seed=3405691582|recv-msg-mask=0x4c"),
    );
    let right = add(
        &world,
        "right",
        "loss",
        (arguments, "rate=0.2|seed=7|recv-msg-mask=0x2"),
    );
    assert!(naks(&world, &left, &right, CHANNEL) > 50);
}

#[test]
fn what_aerons_classes_for_debugging_lose_is_repaired() {
    let debug = |world: &World, name: &str, side: &str, rates: [&str; 2]| {
        let class = format!("io.aeron.driver.ext.Debug{side}ChannelEndpointSupplier");
        let settings = |config: &mut headrace_driver::DriverConfig| {
            config.set(&format!("aeron.{side}ChannelEndpoint.supplier"), &class)?;
            for (what, rate) in ["data", "control"].into_iter().zip(rates) {
                let prefix = format!("aeron.debug.{}.{what}.loss", side.to_lowercase());
                config.set(&format!("{prefix}.rate"), rate)?;
                config.set(&format!("{prefix}.seed"), "7")?;
            }
            Ok(())
        };
        world.add_node_with(name, settings).unwrap()
    };
    for (sends, receives) in [(["0.2", "0.2"], ["0", "0"]), (["0", "0"], ["0.2", "0.2"])] {
        let world = World::new(84);
        let left = debug(&world, "left", "Send", sends);
        let right = debug(&world, "right", "Receive", receives);
        assert!(
            naks(&world, &left, &right, CHANNEL) > 50,
            "{sends:?} {receives:?}"
        );
    }
}

#[test]
fn gaps_of_a_term_are_each_repaired_once() {
    let arguments = (
        "aeron.udp.channel.transport.bindings.multi.gap.loss.args",
        "term-id=0|gap-radix=4096|gap-length=128|total-gaps=10",
    );
    let world = World::new(82);
    let left = world.add_node("left").unwrap();
    let right = add(&world, "right", "multi-gap-loss", arguments);
    let channel = format!("{CHANNEL}|init-term-id=0|term-id=0|term-offset=0");
    let count = naks(&world, &left, &right, &channel);
    assert!((1..=20).contains(&count), "{count}");
}

#[test]
fn a_fixed_range_of_a_term_is_repaired() {
    let arguments = (
        "aeron.udp.channel.transport.bindings.fixed.loss.args",
        "term-id=0|term-offset=102|length=20000",
    );
    let world = World::new(83);
    let left = world.add_node("left").unwrap();
    let right = add(&world, "right", "fixed-loss", arguments);
    let channel = format!("{CHANNEL}|init-term-id=0|term-id=0|term-offset=0");
    assert!(naks(&world, &left, &right, &channel) > 0);
}

#[test]
fn what_is_dropped_on_purpose_counts_as_bytes_received() {
    let world = World::new(84);
    let left = world.add_node("left").unwrap();
    let arguments = (
        "aeron.udp.channel.transport.bindings.loss.args",
        "rate=0.2|seed=7|recv-msg-mask=0x2",
    );
    let right = add(&world, "right", "loss", arguments);
    let tap = world.network().tap();
    assert!(naks(&world, &left, &right, CHANNEL) > 0);
    world.run_for(SECOND);
    let to_receiver = tap.take().into_iter();
    let sent: usize = to_receiver
        .filter(|datagram| datagram.to.port() == 40_123)
        .map(|datagram| datagram.bytes.len())
        .sum();
    assert_eq!(
        system_counter(&right, system_counter::BYTES_RECEIVED),
        sent as i64
    );
}
