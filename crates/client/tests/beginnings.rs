//! Where a subscription begins to read the streams that were there before it, through a real driver.

mod live;

use headrace_client::{Client, Publication, Start, Subscription};
use live::{IPC, STREAM, await_that, pair, receive, send, start};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";

fn subscribe(client: &Client, start: Start, channel: &str) -> Subscription {
    let id = client
        .requests()
        .add_subscription_from(start, channel, STREAM, Default::default())
        .unwrap();
    let mut found = None;
    await_that("subscription added", || {
        client.requests().drive(id);
        found = client.requests().find_subscription(id).unwrap();
        found.is_some()
    });
    found.unwrap()
}

fn from_now(client: &Client, channel: &str) -> Subscription {
    subscribe(client, Start::Now, channel)
}

/// Sends old messages, has a subscription begin at now, and one where the driver links it; the one gets the news only.
fn assert_begins_at_now(client: &Client, publication: &Publication, channel: &str, old: &[&[u8]]) {
    for message in old {
        send(publication, message);
    }
    await_that("all has come", || {
        let joined = subscribe(client, Start::Joined, channel);
        await_that("image", || joined.image_count() > 0);
        let mut count = 0;
        joined.poll(|_, _| count += 1, 100).unwrap();
        count == old.len()
    });
    let late = from_now(client, channel);
    // At once: the image is there, and nothing that comes from here on is passed over.
    send(publication, b"new");
    assert_eq!(receive(&late, 1), [b"new"]);
}

#[test]
fn ipc_with_a_reader_that_lags() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    let (publication, _lags) = pair(&ours, IPC);
    assert_begins_at_now(&theirs, &publication, IPC, &[b"one", b"two"]);
}

#[test]
fn ipc_after_a_reader_that_left_messages_unread() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    let (publication, left) = pair(&ours, IPC);
    send(&publication, b"one");
    drop(left);
    await_that("no reader", || !publication.is_connected());
    let joined = subscribe(&theirs, Start::Joined, IPC);
    assert_eq!(receive(&joined, 1), [b"one"], "as the specification has it");
    drop(joined);
    await_that("no reader", || !publication.is_connected());
    let late = from_now(&theirs, IPC);
    send(&publication, b"new");
    assert_eq!(receive(&late, 1), [b"new"]);
}

#[test]
fn a_publisher_that_has_gone_and_whose_messages_a_reader_still_has() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    let (gone, _lags) = pair(&ours, IPC);
    send(&gone, b"old");
    drop(gone);
    let late = from_now(&theirs, IPC);
    let publication = ours.add_publication(IPC, STREAM).unwrap();
    send(&publication, b"new");
    assert_eq!(receive(&late, 1), [b"new"]);
}

#[test]
fn a_publisher_that_comes_later_is_read_from_its_beginning() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    for number in 0..20_u8 {
        let late = from_now(&theirs, IPC);
        let publication = ours.add_publication(IPC, STREAM).unwrap();
        send(&publication, &[number]);
        assert_eq!(receive(&late, 1), [[number]]);
    }
}

#[test]
fn an_image_that_another_reader_lags_in() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    // A port that was free a moment ago, which both subscriptions name.
    let port = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=64k");
    let (publication, _lags) = pair(&ours, &channel);
    assert_begins_at_now(&theirs, &publication, &channel, &[b"one", b"two"]);
}

#[test]
fn a_spy() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    let (publication, remote) = pair(&ours, UDP);
    let channel = format!("aeron-spy:{}", remote.resolved_channel().unwrap());
    send(&publication, b"old");
    let late = from_now(&theirs, &channel);
    assert_eq!(late.image_count(), 1, "there as soon as the subscription is");
    send(&publication, b"new");
    assert_eq!(receive(&late, 1), [b"new"]);
}

#[test]
fn an_image_that_is_passed_over_says_where_it_begins() {
    let live = start();
    let client = live.client();
    let (publication, _lags) = pair(&client, IPC);
    let position = send(&publication, b"old");
    let late = from_now(&client, IPC);
    let image = &late.images()[0];
    assert_eq!((image.join_position(), image.position()), (position, position));
}
