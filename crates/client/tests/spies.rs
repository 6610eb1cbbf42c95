//! Spies through a real driver: beside a remote subscriber, without one, late, slow, and dropped.

mod live;

use headrace_buffers::counters::type_ids;
use headrace_client::{Client, FragmentAssembler, Offer, Publication, Subscription};
use live::{Live, MS, STREAM, await_that, pair, pattern, receive, send, start, start_with};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";
/// Half of a term.
const WINDOW: i64 = 32 * 1024;

/// A channel without a receiver; the port was free a moment ago.
fn unreceived(params: &str) -> String {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=64k{params}")
}

fn spy(client: &Client, channel: &str) -> Subscription {
    let channel = format!("aeron-spy:{channel}");
    let spy = client
        .add_subscription(&channel, STREAM, Default::default())
        .unwrap();
    assert_eq!(spy.status().counter_id(), -1);
    spy
}

/// A spy that already has its image.
fn connected_spy(client: &Client, channel: &str) -> Subscription {
    let spy = spy(client, channel);
    await_that("spy linked", || spy.is_connected());
    spy
}

/// The `index`th of the messages that the tests send, of lengths that end terms everywhere.
fn message(index: usize) -> Vec<u8> {
    pattern(index, index * 131 % 3000)
}

fn expect(who: &str, subscription: &Subscription, range: std::ops::Range<usize>) {
    let mut assembler = FragmentAssembler::new();
    let mut next = range.start;
    await_that(who, || {
        subscription
            .poll(
                |payload, header| {
                    assembler.on_fragment(payload, header, |received, _| {
                        assert!(received == message(next), "{who}: message {next} differs");
                        next += 1;
                    });
                },
                32,
            )
            .unwrap();
        next >= range.end
    });
    assert_eq!(next, range.end, "{who}");
}

fn publish(publication: &Publication, range: std::ops::Range<usize>) {
    for index in range {
        send(publication, &message(index));
    }
}

fn no_errors(live: &Live) {
    let errors = live.errors.lock().unwrap();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_spy_sees_all_that_goes_to_a_remote_subscriber() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, UDP);
    let spy = connected_spy(&client, publication.channel());
    let image = spy.images().remove(0);
    assert_eq!(image.source_identity(), "aeron:ipc");
    assert_eq!(image.correlation_id(), publication.original_registration_id());
    assert_eq!(image.session_id(), publication.session_id());
    std::thread::scope(|scope| {
        scope.spawn(|| publish(&publication, 0..1500));
        scope.spawn(|| expect("remote", &subscription, 0..1500));
        expect("spy", &spy, 0..1500);
    });
    assert!(publication.position().unwrap() > 20 * 65_536);
    let error = image.reject("no").unwrap_err();
    assert!(error.to_string().contains("spy"), "{error}");
    no_errors(&live);
}

#[test]
fn a_spy_of_another_client_sees_it_too_and_the_rest_after_the_publisher_left() {
    let live = start();
    let (client, watcher) = (live.client(), live.client());
    let channel = unreceived("|ssc=true");
    let publication = client.add_publication(&channel, STREAM).unwrap();
    let spy = connected_spy(&watcher, &channel);
    publish(&publication, 0..5);
    let unwatched = client.add_publication(&channel, STREAM + 1).unwrap();
    let unwatched_id = unwatched.registration_id();
    drop((publication, unwatched));
    client.close().unwrap();
    // By then the driver would have ended the watched one too, did it not wait for the spy.
    let counters = watcher.counters_reader();
    await_that("the unwatched one gone", || {
        counters.find(type_ids::PUBLISHER_LIMIT, unwatched_id).is_none()
    });
    expect("spy", &spy, 0..5);
    await_that("stream ended", || !spy.is_connected());
    no_errors(&live);
}

#[test]
fn spies_alone_keep_a_stream_going_that_simulates_a_connection() {
    let live = start();
    let client = live.client();
    let channel = unreceived("|ssc=true|tags=71");
    let publication = client.add_publication(&channel, STREAM).unwrap();
    assert!(!publication.is_connected());
    // One knows the publication by its channel, one by its tag.
    let spies = [
        connected_spy(&client, &channel),
        connected_spy(&client, "aeron:udp?tags=71"),
    ];
    await_that("connected", || publication.is_connected());
    std::thread::scope(|scope| {
        scope.spawn(|| publish(&publication, 0..1500));
        scope.spawn(|| expect("first", &spies[0], 0..1500));
        expect("second", &spies[1], 0..1500);
    });
    drop(spies);
    await_that("not connected", || !publication.is_connected());
    assert_eq!(publication.offer(b"nobody").unwrap(), Offer::NotConnected);
    // The next spy begins where the others ended, and a receiver may join as well.
    let spy = connected_spy(&client, &channel);
    assert_eq!(spy.images()[0].join_position(), publication.position().unwrap());
    let endpoint = channel.split_once('|').unwrap().0;
    let subscription = client
        .add_subscription(endpoint, STREAM, Default::default())
        .unwrap();
    await_that("receiver joined", || subscription.is_connected());
    std::thread::scope(|scope| {
        scope.spawn(|| publish(&publication, 1500..2500));
        scope.spawn(|| expect("remote", &subscription, 1500..2500));
        expect("spy", &spy, 1500..2500);
    });
    no_errors(&live);
}

#[test]
fn a_spy_alone_does_not_connect_a_publication() {
    let live = start();
    let client = live.client();
    let channel = unreceived("");
    let publication = client.add_publication(&channel, STREAM).unwrap();
    let spy = connected_spy(&client, &channel);
    assert_eq!(publication.offer(b"nobody").unwrap(), Offer::NotConnected);
    assert!(!publication.is_connected() && spy.is_connected());
}

#[test]
fn a_late_spy_begins_where_the_sender_is() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, UDP);
    publish(&publication, 0..40);
    expect("remote", &subscription, 0..40);
    let position = publication.position().unwrap();
    let spy = connected_spy(&client, publication.channel());
    assert_eq!(spy.images()[0].join_position(), position);
    publish(&publication, 40..44);
    expect("spy", &spy, 40..44);
}

#[test]
fn a_spy_that_does_not_poll_holds_the_publisher_back() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, UDP);
    let spy = connected_spy(&client, publication.channel());
    let offered = [7; 1000];
    let mut accepted = 0;
    await_that("the publisher is held back though the receiver has all", || {
        subscription.poll(|_, _| {}, 64).unwrap();
        match publication.offer(&offered).unwrap() {
            Offer::Position(_) => accepted += 1,
            Offer::BackPressured => {
                return subscription.images()[0].position() == publication.position().unwrap();
            }
            other => panic!("{other:?}"),
        }
        false
    });
    assert_eq!(publication.position_limit(), Some(WINDOW));
    assert_eq!(receive(&spy, accepted), vec![offered.to_vec(); accepted]);
    send(&publication, &offered);
}

#[test]
fn an_untethered_spy_is_dropped_and_the_stream_goes_on() {
    let live = start_with(|config| {
        config.untethered_window_limit_timeout_ns = 100 * MS;
        config.untethered_resting_timeout_ns = 100 * MS;
    });
    let client = live.client();
    let (publication, subscription) = pair(&client, UDP);
    let channel = publication.channel();
    let lost = connected_spy(&client, &format!("{channel}|tether=false|rejoin=false"));
    let back = connected_spy(&client, &format!("{channel}|tether=false"));
    let (first_join, offered) = (back.images()[0].join_position(), [7; 1000]);
    await_that("four windows published", || {
        subscription.poll(|_, _| {}, 64).unwrap();
        publication.offer(&offered).unwrap();
        publication.position().unwrap() > 4 * WINDOW
    });
    await_that("one gone for good", || lost.image_count() == 0);
    await_that("the other back", || {
        back.images()
            .first()
            .is_some_and(|image| image.join_position() > first_join)
    });
    assert_eq!(lost.image_count(), 0);
}

#[test]
fn a_revoked_stream_is_over_for_its_spies_at_once() {
    let live = start();
    let client = live.client();
    let channel = unreceived("|ssc=true");
    let publication = client.add_publication(&channel, STREAM).unwrap();
    let spy = connected_spy(&client, &channel);
    send(&publication, b"unread");
    let image = spy.images().remove(0);
    publication.revoke();
    await_that("image gone", || image.is_closed());
    assert!(spy.image_count() == 0 && image.is_publication_revoked());
    assert_eq!(image.position(), 0);
}
