//! Times that drivers write into messages: where they are, and that they are those of the nodes' clocks.

mod common;

use common::{MILLISECOND, SECOND, STREAM, Stream, World, is_accepted};
use headrace_client::{Client, ClientError, Subscription};
use headrace_sim::LinkSettings;

/// How long datagrams are under way.
const DELAY: i64 = 3 * MILLISECOND;

fn world(seed: u64) -> World {
    let world = World::new(seed);
    world.network().set_links(LinkSettings {
        delay_min_ns: DELAY,
        delay_max_ns: DELAY,
        ..LinkSettings::default()
    });
    world
}

fn channel(params: &str) -> String {
    format!("aeron:udp?endpoint=right:40123|term-length=64k|{params}")
}

/// The next fragments: flags, reserved value, payload.
fn read(world: &World, subscription: &Subscription, count: usize) -> Vec<(u8, i64, Vec<u8>)> {
    let mut fragments = Vec::new();
    world.run_until(5 * SECOND, "all fragments", || {
        let handler = |payload: &[u8], header: &headrace_client::Header<'_>| {
            fragments.push((header.flags(), header.reserved_value(), payload.to_vec()));
        };
        subscription.poll(handler, 64).unwrap();
        fragments.len() >= count
    });
    fragments
}

fn time_at(payload: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(payload[offset..offset + 8].try_into().unwrap())
}

#[test]
fn a_message_has_the_times_of_its_sending_and_of_its_arrival() {
    let world = world(341);
    let channel = channel("channel-snd-ts-offset=reserved|media-rcv-ts-offset=1|channel-rcv-ts-offset=16");
    let stream = Stream::connected(&world, &channel, STREAM);
    let before = stream.left.clock().epoch_ns();
    assert!(stream.offers(&[7; 32]));
    let (_, sent, payload) = read(&world, &stream.reader.subscription, 1).remove(0);
    let (arrived, received) = (time_at(&payload, 1), time_at(&payload, 16));
    assert!((before..before + DELAY).contains(&sent), "{sent}");
    assert!(
        (sent + DELAY..sent + DELAY + MILLISECOND).contains(&arrived),
        "{}",
        arrived - sent
    );
    assert!(
        (arrived..=stream.left.clock().epoch_ns()).contains(&received),
        "{}",
        received - arrived
    );
    assert_eq!(
        (payload[0], &payload[9..16], &payload[24..]),
        (7, &[7; 7][..], &[7; 8][..])
    );
}

#[test]
fn only_the_first_fragment_of_a_message_has_them_and_only_where_there_is_room() {
    let world = world(342);
    let channel = channel("mtu=256|channel-snd-ts-offset=100|channel-rcv-ts-offset=8");
    let stream = Stream::connected(&world, &channel, STREAM);
    assert!(stream.offers(&[7; 500]));
    let fragments = read(&world, &stream.reader.subscription, 3);
    assert_ne!(time_at(&fragments[0].2, 100), i64::from_le_bytes([7; 8]));
    assert_ne!(time_at(&fragments[0].2, 8), i64::from_le_bytes([7; 8]));
    for (flags, reserved_value, payload) in &fragments[1..] {
        assert_eq!((flags & 0x80, *reserved_value), (0, 0));
        assert!(payload.iter().all(|byte| *byte == 7), "{payload:?}");
    }
    assert!(stream.offers(&[9; 15]));
    assert_eq!(read(&world, &stream.reader.subscription, 1)[0].2, [9; 15]);
}

#[test]
fn a_message_that_is_sent_again_has_the_time_of_that() {
    let world = world(343);
    let channel = channel("channel-snd-ts-offset=reserved");
    let stream = Stream::connected(&world, &channel, STREAM);
    world.run_for(SECOND);
    stream.left.set_cut_to(&stream.right, true);
    assert!(stream.offers(&[7; 32]));
    let lost_at = stream.left.clock().epoch_ns();
    world.run_for(500 * MILLISECOND);
    stream.left.set_cut_to(&stream.right, false);
    let (_, sent, _) = read(&world, &stream.reader.subscription, 1).remove(0);
    assert!(sent >= lost_at + 500 * MILLISECOND, "{}", sent - lost_at);
}

#[test]
fn destinations_get_one_time_of_sending_and_paths_write_that_of_the_subscription() {
    let world = world(344);
    let [left, right] = world.pair();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let sends =
        "aeron:udp?control-mode=manual|control=left:40124|term-length=64k|channel-snd-ts-offset=reserved";
    let publication = publisher.add_publication(sends, STREAM).unwrap();
    let receives = "aeron:udp?control-mode=manual|media-rcv-ts-offset=0|channel-rcv-ts-offset=8";
    let subscribe = || {
        subscriber
            .add_subscription(receives, STREAM, Default::default())
            .unwrap()
    };
    let readers = [40123, 40125].map(|port| {
        let destination = format!("aeron:udp?endpoint=right:{port}");
        let reader = subscribe();
        reader.destinations().add(&destination).unwrap();
        publication.destinations().add(&destination).unwrap();
        reader
    });
    world.run_until(2 * SECOND, "connections", || {
        readers.iter().all(Subscription::is_connected) && publication.is_connected()
    });
    assert!(is_accepted(publication.offer(&[7; 32])));
    let sent = readers.each_ref().map(|reader| {
        let (_, sent, payload) = read(&world, reader, 1).remove(0);
        let (arrived, received) = (time_at(&payload, 0), time_at(&payload, 8));
        assert!(
            arrived >= sent + DELAY && received >= arrived,
            "{sent} {arrived} {received}"
        );
        sent
    });
    assert_eq!(sent[0], sent[1]);
}

/// What becomes of a second stream on the channel of a first.
fn second<T>(
    first: &str,
    second: &str,
    add: impl Fn(&Client, &str, i32) -> Result<T, ClientError>,
) -> String {
    let world = World::new(345);
    let [_, right] = world.pair();
    let client = right.connect().unwrap();
    let channel = |params: &str| format!("aeron:udp?endpoint=right:40123|{params}");
    let _first = add(&client, &channel(first), STREAM).unwrap();
    match add(&client, &channel(second), STREAM + 1) {
        Ok(_) => "added".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn streams_of_one_channel_agree_on_their_timestamps() {
    let subscribe =
        |client: &Client, channel: &str, stream| client.add_subscription(channel, stream, Default::default());
    let publish = |client: &Client, channel: &str, stream| client.add_publication(channel, stream);
    for key in ["media-rcv-ts-offset", "channel-rcv-ts-offset"] {
        let (own, other) = (format!("{key}=8"), format!("{key}=16"));
        for (one, two) in [(&own, &other), (&own, &String::new()), (&String::new(), &own)] {
            let error = second(one, two, subscribe);
            let value = two.split_once('=').map_or("none", |(_, value)| value);
            let told = format!("option conflicts with existing subscription: {key}={value} ");
            assert!(error.contains(&told), "{error}");
        }
        assert_eq!(second(&own, &own, subscribe), "added");
        assert_eq!(second(&own, &other, publish), "added", "idle on publications");
    }
    let own = "channel-snd-ts-offset=reserved";
    for other in ["channel-snd-ts-offset=0", "alias=none"] {
        assert!(
            second(own, other, publish)
                .contains("option conflicts with existing subscription: channel-snd-ts-offset=")
        );
        assert!(second(other, own, publish).contains("existing="));
    }
    assert_eq!(second(own, "channel-snd-ts-offset=-8", publish), "added");
    assert_eq!(
        second(own, "channel-snd-ts-offset=-1", subscribe),
        "added",
        "idle on subscriptions"
    );
}
