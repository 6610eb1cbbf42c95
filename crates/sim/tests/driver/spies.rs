//! Spies on network publications, with the test as the spies' readers.

use headrace_buffers::counters::{Counter, system_counter, type_ids};
use headrace_buffers::log::ConcurrentAppender;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, MS, fill};
use crate::common::{SECOND, World};
use crate::publications::{FAR, connected, limit, only_the_client_is_left, sender_position};

const SPY: &str = "aeron-spy:aeron:udp?endpoint=far:40123";
const SIMULATED: &str = "aeron:udp?endpoint=far:40123|term-length=64k|ssc=true";
/// Half of a term.
const WINDOW: i64 = 32_768;

/// Adds a spy that finds its publication; returns its registration id and its position.
fn spy_on(driver: &mut Driver, channel: &str) -> (i64, Counter) {
    let subscription_id = driver.add_subscription(channel, 10);
    let image = driver.images().pop().expect("an image for the spy");
    assert_eq!(image.subscription_id, subscription_id);
    (subscription_id, driver.counter(image.position_counter_id))
}

/// A publication that no receiver answers.
fn unanswered(driver: &mut Driver, channel: &str) -> i64 {
    driver.add_receiver().borrow_mut().is_silent = true;
    driver.add_publication(channel, 10)
}

#[test]
fn a_spy_reads_the_publications_own_log() {
    let mut driver = Driver::new();
    let _far = driver.add_receiver();
    let sockets = driver.world.socket_count();
    let early = driver.add_subscription(SPY, 10);
    let publication = driver.add_publication(FAR, 10);
    let late = driver.add_subscription(SPY, 10);
    assert_eq!(
        driver.names(),
        [
            "CounterReady",
            "SubscriptionReady",
            "PublicationReady",
            "AvailableImage",
            "SubscriptionReady",
            "AvailableImage"
        ]
    );
    let ready = driver.ready(publication);
    for (image, subscription_id) in driver.images().into_iter().zip([early, late]) {
        assert_eq!(image.subscription_id, subscription_id);
        assert_eq!(image.image_correlation_id, publication);
        assert_eq!(image.log_file_name, ready.log_file_name);
        let position = driver.counters.record(image.position_counter_id).unwrap();
        assert_eq!(
            position.label,
            format!("sub-pos: {subscription_id} {} 10 {SPY} @0", ready.session_id)
        );
        assert_eq!(
            (position.type_id, position.registration_id, position.reference_id),
            (type_ids::SUBSCRIBER_POSITION, subscription_id, publication)
        );
    }
    for event in driver.events() {
        match event {
            Event::SubscriptionReady {
                channel_status_counter_id,
                ..
            } => assert_eq!(channel_status_counter_id, -1),
            Event::AvailableImage { source_identity, .. } => assert_eq!(source_identity, "aeron:ipc"),
            _ => {}
        }
    }
    assert_eq!(driver.world.socket_count(), sockets + 1, "the publication's");
}

#[test]
fn a_spy_finds_the_publications_of_its_channel_stream_and_session() {
    for (publication, spy, finds) in [
        ("endpoint=localhost:24325", "endpoint=localhost:24325", true),
        // Names are compared as they are written.
        ("endpoint=localhost:24325", "endpoint=127.0.0.1:24325", false),
        ("endpoint=localhost:24325", "endpoint=localhost:24326", false),
        // What a spy's channel says about publishing, receiving or itself does not matter.
        (
            "endpoint=localhost:24325|mtu=4k",
            "endpoint=localhost:24325|rcv-wnd=64k|cc=cubic|ttl=4|gtag=3|alias=watcher|ssc=true",
            true,
        ),
        (
            "endpoint=localhost:24325|session-id=7",
            "endpoint=localhost:24325|session-id=7",
            true,
        ),
        (
            "endpoint=localhost:24325|session-id=7",
            "endpoint=localhost:24325|session-id=8",
            false,
        ),
        ("endpoint=localhost:24325|tags=5", "tags=5", true),
        ("endpoint=localhost:24325|tags=5,6", "tags=6", false),
        // A tag says all.
        (
            "endpoint=localhost:24325|tags=5|session-id=7",
            "tags=5|session-id=8",
            true,
        ),
        (
            "endpoint=localhost:24325|tags=5",
            "endpoint=localhost:24325",
            true,
        ),
        (
            "endpoint=localhost:24325|control=localhost:24327",
            "endpoint=localhost:24325|control=localhost:24327",
            true,
        ),
        (
            "endpoint=localhost:24325|control=localhost:24327",
            "endpoint=localhost:24325",
            false,
        ),
    ] {
        let (publication, spy) = (
            format!("aeron:udp?{publication}"),
            format!("aeron-spy:aeron:udp?{spy}"),
        );
        for is_spy_first in [false, true] {
            let mut driver = Driver::new();
            if !is_spy_first {
                driver.add_publication(&publication, 10);
            }
            driver.add_subscription(&spy, 10);
            driver.add_subscription(&spy, 11);
            if is_spy_first {
                driver.add_publication(&publication, 10);
            }
            assert!(driver.refusals().is_empty(), "{:?}", driver.refusals());
            let found = driver.images().len();
            assert_eq!(found, usize::from(finds), "{publication} {spy} {is_spy_first}");
        }
    }
}

#[test]
fn a_spy_finds_a_publication_by_a_tag_that_joined_its_transport_later() {
    // The one that joins is another publication, or a hold on the same.
    for joining_stream in [11, 10] {
        for is_spy_first in [false, true] {
            let mut driver = Driver::new();
            let first = driver.add_publication("aeron:udp?endpoint=localhost:24325", 10);
            if is_spy_first {
                driver.add_subscription("aeron-spy:aeron:udp?tags=31", 10);
                assert_eq!(driver.images().len(), 0);
            }
            driver.add_publication("aeron:udp?endpoint=localhost:24325|tags=31", joining_stream);
            if !is_spy_first {
                driver.add_subscription("aeron-spy:aeron:udp?tags=31", 10);
            }
            assert_eq!(driver.refusals(), []);
            let images: Vec<i64> = driver
                .images()
                .iter()
                .map(|image| image.image_correlation_id)
                .collect();
            assert_eq!(images, [first], "{joining_stream} {is_spy_first}");
        }
    }
}

#[test]
fn the_slowest_spy_holds_the_publisher_and_the_cleaning_back() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().window = 1280;
    let publication = driver.add_publication(FAR, 10);
    driver.pass_alive(200 * MS);
    let (_, slow) = spy_on(&mut driver, SPY);
    let (_, fast) = spy_on(&mut driver, SPY);
    let log = driver.log(publication);
    let limit = limit(&driver, publication);
    fill(&log, 64);
    driver.pass(10 * MS);
    fast.set_release(log.producer_position());
    driver.finish_commands();
    assert_eq!(limit.get(), WINDOW, "the slow one is at 0");
    // Through several terms, the slow one always half a window below the other.
    for _ in 0..40 {
        fill(&log, 64);
        driver.pass_alive(10 * MS);
        let produced = log.producer_position();
        fast.set_release(produced);
        slow.set_release(produced - WINDOW / 2);
        driver.finish_commands();
        assert_eq!(limit.get(), produced + WINDOW / 2);
    }
    // A spy that reads what is not sent yet does not let the publisher run further.
    far.borrow_mut().window = 0;
    driver.pass_alive(200 * MS);
    let sent = sender_position(&driver, publication).get() + 1280;
    fill(&log, 20);
    driver.pass_alive(200 * MS);
    slow.set_release(log.producer_position());
    fast.set_release(log.producer_position());
    driver.finish_commands();
    assert_eq!(sender_position(&driver, publication).get(), sent);
    assert_eq!(limit.get(), sent + WINDOW);
}

#[test]
fn a_spy_joins_where_the_sender_is() {
    let mut driver = Driver::within(World::without_rules(7), |_| {});
    let (publication, far) = connected(&mut driver, FAR);
    far.borrow_mut().window = 640;
    far.borrow_mut().consumed = Some(0);
    driver.pass_alive(200 * MS);
    fill(&driver.log(publication), 10);
    driver.pass_alive(200 * MS);
    let sent = sender_position(&driver, publication);
    let joins_at = |driver: &mut Driver| spy_on(driver, SPY).1.get();
    // The window that the sender knew before was larger; so it may have sent all.
    assert_eq!(joins_at(&mut driver), sent.get());
    // Not even a sender's position that cannot be makes a spy start beyond what is written.
    sent.set_release(1 << 40);
    assert_eq!(joins_at(&mut driver), 1280);
}

#[test]
fn spies_connect_a_publication_that_lets_them() {
    let mut driver = Driver::new();
    let publication = unanswered(&mut driver, SIMULATED);
    let log = driver.log(publication);
    assert!(log.metadata().spies_simulate_connection());
    let (limit, sent) = (limit(&driver, publication), sender_position(&driver, publication));
    driver.pass_alive(SECOND);
    assert_eq!((limit.get(), log.metadata().is_connected_acquire()), (0, false));

    let (subscription, position) = spy_on(&mut driver, SPY);
    assert!(log.metadata().is_connected_acquire());
    assert_eq!(limit.get(), WINDOW);
    fill(&log, 10);
    driver.pass_alive(SECOND);
    assert_eq!(
        (sent.get(), limit.get()),
        (0, WINDOW),
        "the sender waits for the spy"
    );
    position.set_release(1280);
    driver.pass_alive(SECOND);
    assert_eq!((sent.get(), limit.get()), (1280, 1280 + WINDOW));
    assert!(log.metadata().is_connected_acquire());

    fill(&log, 10);
    position.set_release(2560);
    driver.remove_subscription(subscription);
    driver.pass_alive(SECOND);
    assert!(!log.metadata().is_connected_acquire());
    assert_eq!(
        (sent.get(), limit.get()),
        (2560, 1280),
        "what it read last counts"
    );
    let labels = driver.live_counters();
    assert!(
        !labels.iter().any(|label| label.starts_with("sub-pos")),
        "{labels:?}"
    );
}

#[test]
fn spies_do_not_connect_a_publication_unless_asked_to() {
    let mut driver = Driver::new();
    let publication = unanswered(&mut driver, FAR);
    spy_on(&mut driver, SPY);
    driver.pass_alive(2 * SECOND);
    let log = driver.log(publication);
    assert!(!log.metadata().spies_simulate_connection());
    assert!(!log.metadata().is_connected_acquire());
    assert_eq!(limit(&driver, publication).get(), 0);
}

#[test]
fn what_a_spy_claims_to_have_read_is_held_to_what_was_written() {
    let mut driver = Driver::within(World::without_rules(7), |_| {});
    let publication = unanswered(&mut driver, SIMULATED);
    let sent = sender_position(&driver, publication);
    let (_, position) = spy_on(&mut driver, SPY);
    fill(&driver.log(publication), 10);
    for (claimed, believed) in [
        (-1, 0),
        (i64::MIN, 0),
        (133, 128),
        (1 << 40, 1280),
        (i64::MAX, 1280),
    ] {
        position.set_release(claimed);
        driver.pass_alive(SECOND);
        assert_eq!(sent.get(), believed, "{claimed}");
        assert_eq!(limit(&driver, publication).get(), believed + WINDOW);
    }
}

#[test]
fn publications_share_a_log_only_if_they_treat_spies_alike() {
    for (first, second) in [(SIMULATED, FAR), (FAR, SIMULATED)] {
        let mut driver = Driver::new();
        let _far = driver.add_receiver();
        driver.add_publication(first, 10);
        driver.add_publication(second, 10);
        let (code, message) = driver.refusals().remove(0);
        assert_eq!(code, ErrorCode::GenericError);
        assert!(
            message.contains("existing publication has different spiesSimulateConnection"),
            "{message}"
        );
        let shared = driver.add_publication(first, 10);
        assert_ne!(driver.ready(shared).original_registration_id, shared);
    }
    let mut driver = Driver::with(|config| config.spies_simulate_connection = true);
    let _far = driver.add_receiver();
    let publication = driver.add_publication(FAR, 10);
    let log = driver.log(publication);
    assert!(log.metadata().spies_simulate_connection(), "the setting says so");
    driver.add_publication(SIMULATED, 10);
    assert!(driver.refusals().is_empty());
}

#[test]
fn a_closed_publication_waits_for_its_spies() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().window = 0;
    let publication = driver.add_publication(FAR, 10);
    driver.pass_alive(200 * MS);
    let (spy, position) = spy_on(&mut driver, SPY);
    fill(&driver.log(publication), 10);
    driver.remove_publication(publication, false);
    driver.pass_alive(SECOND);
    // Something is still to be sent, so that another spy gets that as well.
    let (late, late_position) = spy_on(&mut driver, SPY);
    assert_eq!(late_position.get(), 0);
    far.borrow_mut().window = 32_768;
    driver.pass_alive(SECOND);
    late_position.set_release(1280);
    far.borrow_mut().confirms_end = true;
    driver.forget();
    driver.pass_alive(8 * SECOND);
    assert!(far.borrow().hears_end);
    assert_eq!((driver.unavailable(), driver.log_files()), (vec![], 1));
    let too_late = driver.add_subscription(SPY, 10);
    assert!(driver.images().is_empty());

    position.set_release(1280);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.unavailable(), [(publication, spy), (publication, late)]);
    driver.remove_subscription(late);
    driver.pass_alive(2 * SECOND);
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
    // The spies that are left wait for the next publication.
    driver.forget();
    driver.add_publication(FAR, 10);
    let found: Vec<_> = driver
        .images()
        .iter()
        .map(|image| image.subscription_id)
        .collect();
    assert_eq!(found, [spy, too_late]);
}

#[test]
fn a_spy_that_waits_at_a_hole_is_let_past_when_the_publisher_is_gone() {
    let mut driver = Driver::new();
    let publication = unanswered(&mut driver, FAR);
    let (spy, position) = spy_on(&mut driver, SPY);
    let log = driver.log(publication);
    fill(&log, 10);
    std::mem::forget(ConcurrentAppender::new(&log).try_claim(96, i64::MAX).unwrap());
    fill(&log, 1);
    position.set_release(1280);
    driver.remove_publication(publication, false);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 1);
    assert!(driver.unavailable().is_empty());
    position.set_release(log.producer_position());
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.unavailable(), [(publication, spy)]);
}

#[test]
fn a_revoked_publication_does_not_wait_for_its_spies() {
    let mut driver = Driver::new();
    let publication = unanswered(&mut driver, SIMULATED);
    let (spy, _) = spy_on(&mut driver, SPY);
    let log = driver.log(publication);
    fill(&log, 10);
    driver.forget();
    driver.remove_publication(publication, true);
    driver.add_subscription(SPY, 10);
    assert!(driver.images().is_empty(), "nothing is left to see");
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.unavailable(), [(publication, spy)]);
    assert!(!log.metadata().is_connected_acquire());
    driver.pass_alive(8 * SECOND);
    assert_eq!(driver.unavailable().len(), 1, "told once");
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
}

#[test]
fn an_untethered_spy_is_dropped_and_comes_back_where_the_sender_is() {
    let mut driver = Driver::new();
    let (publication, _far) = connected(&mut driver, FAR);
    let (_, tethered) = spy_on(&mut driver, SPY);
    let (loose, position) = spy_on(&mut driver, &format!("{SPY}|tether=false"));
    let log = driver.log(publication);
    let limit = limit(&driver, publication);
    // Three quarters of the window and a little more.
    fill(&log, 193);
    let produced = log.producer_position();
    driver.pass(20 * MS);
    tethered.set_release(produced - 128);
    driver.forget();
    driver.pass_alive(4 * SECOND);
    assert!(driver.unavailable().is_empty());
    driver.pass_alive(3 * SECOND);
    assert_eq!(driver.unavailable(), [(publication, loose)]);
    assert_eq!(limit.get(), WINDOW, "it still counts");
    driver.pass_alive(5 * SECOND);
    assert_eq!(limit.get(), produced - 128 + WINDOW);
    assert!(driver.images().is_empty());
    driver.pass_alive(12 * SECOND);
    assert_eq!(driver.images()[0].subscription_id, loose);
    assert_eq!(position.get(), produced, "the slower spy does not matter");
}

#[test]
fn a_publication_only_resting_spies_are_left_of_is_not_connected() {
    let mut driver = Driver::new();
    let (publication, far) = connected(&mut driver, SIMULATED);
    spy_on(&mut driver, &format!("{SPY}|tether=false"));
    let log = driver.log(publication);
    fill(&log, 200);
    driver.pass_alive(20 * MS);
    assert_eq!(
        sender_position(&driver, publication).get(),
        log.producer_position()
    );
    // Receivers had been there, and had taken all.
    far.borrow_mut().is_silent = true;
    driver.pass_alive(7 * SECOND);
    assert!(log.metadata().is_connected_acquire());
    driver.pass_alive(6 * SECOND);
    assert!(!log.metadata().is_connected_acquire());
    driver.pass_alive(12 * SECOND);
    assert!(log.metadata().is_connected_acquire());
}

#[test]
fn a_spy_may_not_reject() {
    let mut driver = Driver::new();
    let publication = unanswered(&mut driver, FAR);
    spy_on(&mut driver, SPY);
    driver.reject(publication, "too loud");
    let (code, message) = driver.refusals().remove(0);
    assert!(
        code == ErrorCode::GenericError && message.contains("spies may not reject"),
        "{message}"
    );
    assert!(driver.unavailable().is_empty());
    assert_eq!(driver.system(system_counter::IMAGES_REJECTED), 0);
}

#[test]
fn a_dead_clients_spy_holds_nothing_back() {
    const WATCHER: i64 = CLIENT + 1;
    let mut driver = Driver::new();
    let (publication, _far) = connected(&mut driver, FAR);
    driver.add_subscription_of(WATCHER, SPY, 10);
    let limit = limit(&driver, publication);
    fill(&driver.log(publication), 10);
    driver.pass_alive(5 * SECOND);
    assert_eq!(limit.get(), WINDOW);
    driver.pass_alive(8 * SECOND);
    assert_eq!(limit.get(), 1280 + WINDOW);
}
