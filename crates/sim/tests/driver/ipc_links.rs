//! Subscriptions meet IPC publications.

use headrace_buffers::counters::type_ids;
use headrace_buffers::log::{Append, ConcurrentAppender};
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC, fill};
use crate::common::{SECOND, World};

#[test]
fn an_added_publication_is_answered_then_its_image_announced() {
    let mut driver = Driver::new();
    let subscription = driver.add_subscription("aeron:ipc", 10);
    let publication = driver.add_publication(IPC, 10);
    assert_eq!(
        driver.names(),
        [
            "CounterReady",
            "SubscriptionReady",
            "PublicationReady",
            "AvailableImage"
        ]
    );
    let ready = driver.ready(publication);
    let image = driver.images().remove(0);
    assert_eq!(
        (image.image_correlation_id, image.subscription_id),
        (publication, subscription)
    );
    assert_eq!(image.log_file_name, ready.log_file_name);
    assert!(
        ready
            .log_file_name
            .ends_with(&format!("publications/{publication}.logbuffer"))
    );
    match driver.events().last() {
        Some(Event::AvailableImage {
            source_identity,
            session_id,
            stream_id,
            ..
        }) => {
            assert_eq!(source_identity, "aeron:ipc");
            assert_eq!((*session_id, *stream_id), (ready.session_id, 10));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_added_subscription_is_answered_then_told_of_the_streams_there_are() {
    let mut driver = Driver::new();
    let first = driver.add_exclusive(IPC, 10);
    let second = driver.add_exclusive(IPC, 10);
    driver.add_exclusive(IPC, 11);
    driver.forget();
    driver.add_subscription("aeron:ipc", 10);
    assert_eq!(
        driver.names(),
        ["SubscriptionReady", "AvailableImage", "AvailableImage"]
    );
    let images: Vec<_> = driver
        .images()
        .iter()
        .map(|image| image.image_correlation_id)
        .collect();
    assert_eq!(images, [first, second]);
}

#[test]
fn the_position_counter_says_whose_it_is_before_the_image_is_announced() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let subscription = driver.add_subscription("aeron:ipc?alias=me", 10);
    let session_id = driver.ready(publication).session_id;
    let record = driver
        .counters
        .record(driver.images()[0].position_counter_id)
        .unwrap();
    assert_eq!(record.type_id, type_ids::SUBSCRIBER_POSITION);
    assert_eq!(
        record.label,
        format!("sub-pos: {subscription} {session_id} 10 aeron:ipc?alias=me @0")
    );
    assert_eq!(
        (record.registration_id, record.owner_id, record.reference_id),
        (subscription, CLIENT, publication)
    );
    assert_eq!(record.key[..8], subscription.to_le_bytes());
    assert_eq!(record.key[8..12], session_id.to_le_bytes());
    assert_eq!(record.key[12..16], 10i32.to_le_bytes());
}

#[test]
fn a_session_filter_takes_one_session() {
    let mut driver = Driver::new();
    driver.add_subscription("aeron:ipc?session-id=77", 10);
    driver.add_exclusive(IPC, 10);
    driver.add_exclusive("aeron:ipc?term-length=64k|session-id=77", 10);
    let images = driver.images();
    assert_eq!(images.len(), 1);
    assert_eq!(driver.ready(images[0].image_correlation_id).session_id, 77);
}

#[test]
fn concurrent_adds_share_a_log_and_exclusive_ones_do_not() {
    let mut driver = Driver::new();
    let first = driver.add_publication(IPC, 10);
    let second = driver.add_publication_of(CLIENT + 1, "aeron:ipc", 10);
    let (one, two) = (driver.ready(first), driver.ready(second));
    assert_eq!(two.original_registration_id, first);
    assert_eq!(
        (one.session_id, one.limit_counter_id, &one.log_file_name),
        (two.session_id, two.limit_counter_id, &two.log_file_name)
    );
    let exclusive = driver.add_exclusive(IPC, 10);
    assert_eq!(driver.ready(exclusive).original_registration_id, exclusive);
    assert_eq!(driver.log_files(), 2);
}

#[test]
fn a_shared_log_lives_until_its_last_handle_goes() {
    let mut driver = Driver::new();
    let first = driver.add_publication(IPC, 10);
    let second = driver.add_publication(IPC, 10);
    driver.remove_publication(first, false);
    driver.pass_alive(5 * SECOND);
    assert_eq!(driver.log_files(), 1);
    assert_eq!(driver.add_publication(IPC, 10), driver.next_id() - 1);
    driver.remove_publication(second, false);
    driver.pass_alive(5 * SECOND);
    assert_eq!(driver.log_files(), 1, "the third handle holds it");
}

#[test]
fn a_sharer_must_ask_for_what_there_is() {
    let mut driver = Driver::new();
    driver.add_publication("aeron:ipc?term-length=64k|session-id=5", 10);
    for (channel, name) in [
        ("aeron:ipc?term-length=128k", "term-length"),
        ("aeron:ipc?mtu=4096", "mtu"),
        ("aeron:ipc?session-id=6", "session-id"),
        (
            "aeron:ipc?init-term-id=1|term-id=1|term-offset=64",
            "init-term-id",
        ),
    ] {
        driver.forget();
        driver.add_publication(channel, 10);
        let (code, text) = driver.refusals().remove(0);
        assert_eq!(code, ErrorCode::GenericError);
        assert!(
            text.contains(&format!("existing publication has different '{name}'")),
            "{text}"
        );
    }
    driver.forget();
    driver.add_publication("aeron:ipc?term-length=64k|session-id=5|mtu=1408", 10);
    assert_eq!(driver.names(), ["PublicationReady"]);
}

#[test]
fn session_ids_do_not_clash_on_a_stream() {
    let mut driver = Driver::new();
    driver.add_exclusive("aeron:ipc?term-length=64k|session-id=5", 10);
    driver.add_exclusive("aeron:ipc?term-length=64k|session-id=5", 10);
    let (code, text) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::InvalidChannel);
    assert!(
        text.contains("existing publication has clashing sessionId=5 for streamId=10"),
        "{text}"
    );
    driver.forget();
    driver.add_exclusive("aeron:ipc?term-length=64k|session-id=5", 11);
    assert_eq!(driver.names(), ["ExclusivePublicationReady"]);
}

#[test]
fn a_tag_names_a_publication_to_copy_from() {
    let mut driver = Driver::new();
    let tagged = driver.add_exclusive("aeron:ipc?term-length=128k|mtu=2048|tags=1,22", 10);
    let copy = driver.add_exclusive("aeron:ipc?session-id=tag:22", 11);
    let (one, two) = (driver.log(tagged), driver.log(copy));
    assert_eq!(
        (one.session_id(), one.mtu(), one.term_length()),
        (two.session_id(), 2048, 131_072)
    );
    assert_eq!((two.mtu(), two.term_length()), (2048, 131_072));
    for (channel, text) in [
        (
            "aeron:ipc?session-id=tag:22|mtu=1408",
            "does not match session-id tag value",
        ),
        ("aeron:ipc?session-id=tag:23", "must reference an IPC publication"),
        ("aeron:ipc?tags=2,22", "entityTag=22 already in use"),
    ] {
        driver.forget();
        driver.add_exclusive(channel, 12);
        let (code, found) = driver.refusals().remove(0);
        assert!(
            code == ErrorCode::InvalidChannel && found.contains(text),
            "{found}"
        );
    }
}

#[test]
fn an_explicit_position_is_where_the_stream_starts() {
    let mut driver = Driver::new();
    driver.add_subscription("aeron:ipc", 10);
    let channel = "aeron:ipc?term-length=64k|init-term-id=7|term-id=9|term-offset=96";
    let publication = driver.add_publication(channel, 10);
    let start = 2 * 65_536 + 96;
    let ready = driver.ready(publication);
    let log = driver.log(publication);
    assert_eq!((log.initial_term_id(), log.producer_position()), (7, start));
    assert_eq!(
        driver.counter(driver.images()[0].position_counter_id).get(),
        start
    );
    assert_eq!(driver.counter(ready.limit_counter_id).get(), start + 32_768);
}

#[test]
fn the_limit_follows_the_slowest_reader_and_falls_back_without_one() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let limit = driver.counter(driver.ready(publication).limit_counter_id);
    let log = driver.log(publication);
    driver.finish_commands();
    assert_eq!((limit.get(), log.metadata().is_connected_acquire()), (0, false));
    driver.add_subscription("aeron:ipc", 10);
    let slow = driver.add_subscription("aeron:ipc", 10);
    assert_eq!(
        (limit.get(), log.metadata().is_connected_acquire()),
        (32_768, true)
    );
    let appender = ConcurrentAppender::new(&log);
    for _ in 0..200 {
        assert!(matches!(
            appender.offer(&[&[7; 96]], limit.get()).unwrap(),
            Append::Position(_)
        ));
    }
    let images = driver.images();
    driver.counter(images[0].position_counter_id).set_release(25_600);
    driver.counter(images[1].position_counter_id).set_release(6_400);
    driver.finish_commands();
    assert_eq!(limit.get(), 6_400 + 32_768);
    // Without the slow one the fast one counts.
    driver.remove_subscription(slow);
    driver.finish_commands();
    assert_eq!(limit.get(), 25_600 + 32_768);
    driver.remove_subscription(images[0].subscription_id);
    driver.finish_commands();
    assert_eq!(
        (limit.get(), log.metadata().is_connected_acquire()),
        (25_600, false)
    );
    // Who comes now joins where the last one was.
    driver.forget();
    driver.add_subscription("aeron:ipc", 10);
    assert_eq!(
        driver.counter(driver.images()[0].position_counter_id).get(),
        25_600
    );
    assert_eq!(limit.get(), 25_600 + 32_768);
}

#[test]
fn a_reader_that_claims_more_than_was_written_does_not_move_the_limit_past_it() {
    let mut driver = Driver::within(World::without_rules(7), |_| {});
    driver.add_subscription("aeron:ipc", 10);
    let publication = driver.add_publication(IPC, 10);
    driver
        .counter(driver.images()[0].position_counter_id)
        .set_release(i64::MAX / 2);
    driver.finish_commands();
    assert_eq!(
        driver.counter(driver.ready(publication).limit_counter_id).get(),
        32_768
    );
}

#[test]
fn removing_a_subscription_answers_and_frees_without_telling_it() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let subscription = driver.add_subscription("aeron:ipc", 10);
    driver.forget();
    driver.remove_subscription(subscription);
    assert_eq!(driver.names(), ["OperationSuccess"]);
    assert_eq!(
        driver.counters.find(type_ids::SUBSCRIBER_POSITION, subscription),
        None
    );
    driver.remove_publication(publication, false);
}

#[test]
fn an_untethered_reader_is_dropped_and_comes_back() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    driver.add_subscription("aeron:ipc", 10);
    let loose = driver.add_subscription("aeron:ipc?tether=false", 10);
    let limit = driver.counter(driver.ready(publication).limit_counter_id);
    let appender = ConcurrentAppender::new(&driver.log(publication));
    let images = driver.images();
    let fast = driver.counter(images[0].position_counter_id);
    for _ in 0..200 {
        appender.offer(&[&[7; 96]], limit.get()).unwrap();
    }
    fast.set_release(25_600);
    driver.forget();
    driver.pass_alive(6 * SECOND);
    assert_eq!(driver.unavailable(), [(publication, loose)]);
    driver.pass_alive(6 * SECOND);
    assert_eq!(
        limit.get(),
        25_600 + 32_768,
        "the dropped reader no longer counts"
    );
    driver.pass_alive(11 * SECOND);
    let back = driver.images().remove(0);
    assert_eq!(
        (back.subscription_id, back.position_counter_id),
        (loose, images[1].position_counter_id)
    );
    assert_eq!(driver.counter(back.position_counter_id).get(), 25_600);
}

#[test]
fn a_reader_that_was_dropped_keeps_no_closed_publication() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    driver.add_subscription("aeron:ipc", 10);
    driver.add_subscription("aeron:ipc?tether=false|untethered-linger-timeout=1000s", 10);
    let log = driver.log(publication);
    fill(&log, 200);
    driver
        .counter(driver.images()[0].position_counter_id)
        .set_release(log.producer_position());
    driver.pass_alive(6 * SECOND);
    assert_eq!(driver.unavailable().len(), 1);
    driver.remove_publication(publication, false);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.log_files(), 0);
}

#[test]
fn a_publication_tells_when_its_first_reader_comes_when_its_last_one_goes_and_why() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let first = driver.add_subscription("aeron:ipc", 10);
    let second = driver.add_subscription("aeron:ipc", 10);
    driver.remove_subscription(first);
    driver.remove_subscription(second);
    driver.add_subscription("aeron:ipc", 10);
    driver.reject(publication, "not today");
    driver.pass(SECOND);
    assert_eq!(
        driver.changes("connection"),
        [
            "Disconnected -> Connected: a subscription was linked to it",
            "Connected -> Disconnected: its last subscription is over",
            "Disconnected -> Connected: a subscription was linked to it",
            "Connected -> Disconnected: a reader rejected the stream",
        ]
    );
}
