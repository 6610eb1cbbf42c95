//! A network publication from its first frame to its deleted log, with a receiver that says what the test wants.
//!
//! | from | to | test |
//! |---|---|---|
//! | Active | Draining, Linger, Done, confirmed | `a_closed_publication_waits_for_its_receiver_to_confirm` |
//! | Linger | Done, by time | `a_publication_that_no_receiver_confirms_lingers_and_goes` |
//! | Active | Linger | `a_revoked_publication_does_not_wait_for_unsent_bytes` |

use std::cell::RefCell;
use std::rc::Rc;

use headrace_buffers::Memory;
use headrace_buffers::counters::{Counter, system_counter, type_ids};
use headrace_buffers::log::ConcurrentAppender;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, MS, fill};
use crate::common::SECOND;
use crate::common::peer::Peer;
use crate::peers::FarReceiver;

pub(crate) const FAR: &str = "aeron:udp?endpoint=far:40123|term-length=64k";

/// A publication with a receiver that takes all that comes.
pub(crate) fn connected(driver: &mut Driver, channel: &str) -> (i64, Rc<RefCell<FarReceiver>>) {
    let far = driver.add_receiver();
    let publication = driver.add_publication(channel, 10);
    let log = driver.log(publication);
    driver.pass_alive(200 * MS);
    assert!(log.metadata().is_connected_acquire());
    (publication, far)
}

pub(crate) fn sender_position(driver: &Driver, publication: i64) -> Counter {
    let id = driver.counters.find(type_ids::SENDER_POSITION, publication);
    driver.counter(id.unwrap())
}

pub(crate) fn limit(driver: &Driver, publication: i64) -> Counter {
    driver.counter(driver.ready(publication).limit_counter_id)
}

/// Nothing but the client is left of what the test made.
pub(crate) fn only_the_client_is_left(driver: &Driver) -> bool {
    driver.live_counters() == [format!("client-heartbeat: id={CLIENT}")]
        && (driver.log_files(), driver.image_files()) == (0, 0)
}

#[test]
fn an_added_publication_gets_a_channel_and_counters_that_tools_know() {
    let mut driver = Driver::new();
    let _far = driver.add_receiver();
    let publication = driver.add_publication(FAR, 10);
    assert_eq!(driver.names(), ["CounterReady", "PublicationReady"]);
    let ready = driver.ready(publication);
    let opened = "near opens 0.0.0.0:32769 for Some(10.9.9.9:40123) with buffers of 212992 and 131072 bytes";
    assert_eq!(driver.count_in_trace(opened), 1, "{}", driver.world.trace(100));

    let status = driver.counters.record(ready.status_counter_id).unwrap();
    assert_eq!(status.type_id, type_ids::SEND_CHANNEL_STATUS);
    assert_eq!(status.label, format!("snd-channel: {FAR} 10.0.0.1:32769"));
    assert_eq!((status.value, status.registration_id), (1, publication));
    let address_id = driver.counters.find(type_ids::LOCAL_SOCKET_ADDRESS, publication);
    let address = driver.counters.record(address_id.unwrap()).unwrap();
    assert_eq!(
        address.label,
        format!("snd-local-sockaddr: {} 10.0.0.1:32769", status.id)
    );
    assert_eq!(address.key[..4], status.id.to_le_bytes());
    assert_eq!(address.key[4..8], 14i32.to_le_bytes());
    assert_eq!(address.key[8..22], *b"10.0.0.1:32769");
    assert_eq!(address.value, 1);

    let stream = format!("{publication} {} 10 {FAR}", ready.session_id);
    let labels = driver.live_counters();
    for name in [
        "pub-pos (concurrent)",
        "pub-lmt",
        "snd-pos",
        "snd-lmt",
        "snd-bpe",
        "snd-naks-received",
    ] {
        assert!(
            labels.contains(&format!("{name}: {stream}")),
            "{name} in {labels:?}"
        );
    }
    let log = driver.log(publication);
    assert_eq!(
        (log.mtu(), log.stream_id(), log.session_id()),
        (1408, 10, ready.session_id)
    );
}

#[test]
fn streams_to_one_place_share_a_channel_and_concurrent_adds_a_log() {
    let mut driver = Driver::new();
    let _far = driver.add_receiver();
    let sockets = driver.world.socket_count();
    let first = driver.add_publication(FAR, 10);
    let shared = driver.add_publication(FAR, 10);
    let other = driver.add_publication(FAR, 11);
    let exclusive = driver.add_exclusive(FAR, 10);
    assert_eq!(driver.world.socket_count(), sockets + 1);
    assert_eq!(driver.ready(shared).original_registration_id, first);
    assert_eq!(
        driver.ready(other).status_counter_id,
        driver.ready(first).status_counter_id
    );
    assert_ne!(driver.ready(exclusive).session_id, driver.ready(first).session_id);
    assert_eq!(driver.log_files(), 3);
}

#[test]
fn the_limit_keeps_a_window_ahead_of_the_sender_and_a_term_behind_it() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().is_silent = true;
    let publication = driver.add_publication(FAR, 10);
    let log = driver.log(publication);
    let limit = limit(&driver, publication);
    driver.pass_alive(SECOND);
    assert_eq!(limit.get(), 0, "no receiver");
    far.borrow_mut().is_silent = false;
    driver.pass_alive(SECOND);
    assert_eq!(
        (limit.get(), log.metadata().is_connected_acquire()),
        (32_768, true)
    );
    // Two terms and a half, sent as they are written: bytes more than a term before it are zeroed.
    for _ in 0..20 {
        fill(&log, 64);
        let produced = log.producer_position();
        driver.pass(10 * MS);
        assert_eq!(limit.get(), produced + 32_768);
    }
    assert_eq!(log.term(0).get_i64(0), 0);
    // The receiver goes: the limit falls back to what was sent.
    far.borrow_mut().is_silent = true;
    driver.pass_alive(3 * SECOND);
    fill(&log, 10);
    driver.pass_alive(4 * SECOND);
    assert_eq!(limit.get(), sender_position(&driver, publication).get());
    assert!(!log.metadata().is_connected_acquire());
}

#[test]
fn a_closed_publication_waits_for_its_receiver_to_confirm() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().consumed = Some(0);
    far.borrow_mut().window = 640;
    let publication = driver.add_publication(FAR, 10);
    let log = driver.log(publication);
    driver.pass_alive(200 * MS);
    fill(&log, 10);
    driver.remove_publication(publication, false);
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    driver.pass_alive(10 * SECOND);
    assert_eq!(sender_position(&driver, publication).get(), 640);
    assert!(!far.borrow().hears_end, "unsent bytes and a live receiver");
    far.borrow_mut().window = 32_768;
    driver.pass_alive(2 * SECOND);
    assert!(far.borrow().hears_end);
    assert_eq!(driver.log_files(), 1);
    far.borrow_mut().confirms_end = true;
    driver.pass_alive(2 * SECOND);
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
}

#[test]
fn a_publication_that_no_receiver_confirms_lingers_and_goes() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().is_silent = true;
    let publication = driver.add_publication(FAR, 10);
    fill(&driver.log(publication), 10);
    driver.remove_publication(publication, false);
    driver.pass_alive(5 * SECOND);
    assert_eq!(driver.log_files(), 1);
    driver.pass_alive(3 * SECOND);
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
}

#[test]
fn a_revoked_publication_does_not_wait_for_unsent_bytes() {
    let mut driver = Driver::new();
    let far = driver.add_receiver();
    far.borrow_mut().consumed = Some(0);
    far.borrow_mut().window = 640;
    let publication = driver.add_publication(FAR, 10);
    let log = driver.log(publication);
    driver.pass_alive(200 * MS);
    fill(&log, 10);
    driver.remove_publication(publication, true);
    driver.pass_alive(SECOND);
    assert!(log.metadata().is_publication_revoked_acquire() && far.borrow().hears_end);
    assert!(!log.metadata().is_connected_acquire());
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    assert_eq!(driver.system(system_counter::PUBLICATIONS_REVOKED), 1);
    assert_eq!(driver.log_files(), 1);
    driver.pass_alive(7 * SECOND);
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
}

#[test]
fn a_hole_before_the_sender_is_filled_after_the_timeout() {
    let mut driver = Driver::new();
    let (publication, far) = connected(&mut driver, FAR);
    let log = driver.log(publication);
    let appender = ConcurrentAppender::new(&log);
    std::mem::forget(appender.try_claim(96, i64::MAX).unwrap());
    fill(&log, 1);
    driver.pass_alive(14 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 0);
    assert_eq!(far.borrow().received, 0);
    driver.pass_alive(4 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 1);
    assert_eq!(far.borrow().received, 256);
}

#[test]
fn a_dead_clients_publication_is_closed_like_any_other() {
    let mut driver = Driver::new();
    let (_, far) = connected(&mut driver, FAR);
    driver.pass(13 * SECOND);
    assert!(far.borrow().hears_end);
    assert_eq!(driver.log_files(), 1);
    driver.pass(7 * SECOND);
    assert_eq!((driver.live_counters().len(), driver.log_files()), (0, 0));
}

#[test]
fn a_receivers_refusal_reaches_publishers_and_the_error_log() {
    let mut driver = Driver::new();
    let (publication, far) = connected(&mut driver, FAR);
    driver.forget();
    far.borrow().refuse(ErrorCode::ImageRejected.value(), "too loud");
    driver.pass(10 * MS);
    match &driver.events()[..] {
        [Event::PublicationError(error)] => {
            assert_eq!(
                (error.registration_id, error.receiver_id, error.group_tag),
                (publication, 77, -1)
            );
            assert_eq!(error.message, "too loud");
            assert_eq!(error.source_address, Some(far.borrow().address()));
        }
        other => panic!("{other:?}"),
    }
    assert!(driver.recorded_errors()[0].starts_with("WARN"));
}

#[test]
fn a_flood_of_error_frames_leaves_the_error_log_room_for_others() {
    let mut driver = Driver::new();
    let (_, far) = connected(&mut driver, FAR);
    for receiver_id in 0..1000 {
        far.borrow_mut().become_receiver(receiver_id);
        far.borrow()
            .refuse(receiver_id as i32, &format!("{receiver_id:01000}"));
        driver.finish_commands();
    }
    let errors = driver.recorded_errors();
    assert_eq!(errors.len(), 33);
    assert!(
        errors[32].starts_with("WARN - more error frames"),
        "{}",
        errors[32]
    );
    assert_eq!(driver.system(system_counter::ERRORS), 1000, "all are counted");
}

#[test]
fn a_name_that_moved_is_followed() {
    let mut driver = Driver::new();
    let [old, new] = [1, 2].map(|host| {
        let peer = Peer::at(&driver.world, host);
        driver.add_peer(FarReceiver::new(peer))
    });
    let moves_to = |driver: &Driver, address| driver.world.network().set_name("moving.test", address);
    let silent_until_asked_again = 8 * SECOND;
    moves_to(&driver, Some(old.borrow().address().ip()));
    old.borrow_mut().is_silent = true;
    let publication = driver.add_publication("aeron:udp?endpoint=moving.test:40123|term-length=64k", 10);
    let status = driver.counter(driver.ready(publication).status_counter_id);
    driver.pass_alive(silent_until_asked_again);
    assert!(old.borrow().has_publisher() && !new.borrow().has_publisher());
    assert_eq!(
        driver.system(system_counter::RESOLUTION_CHANGES),
        0,
        "it resolves to the same address"
    );

    moves_to(&driver, Some(new.borrow().address().ip()));
    driver.pass_alive(silent_until_asked_again);
    assert!(new.borrow().has_publisher());
    assert_eq!(driver.system(system_counter::RESOLUTION_CHANGES), 1);

    new.borrow_mut().is_silent = true;
    moves_to(&driver, None);
    driver.pass_alive(2 * silent_until_asked_again);
    let errors = driver.recorded_errors();
    assert!(
        errors[0].contains("could not re-resolve: endpoint=moving.test:40123"),
        "{errors:?}"
    );
    assert_eq!(status.get(), 1);
    // It is looked up twice a second, and told of once a minute.
    assert_eq!(driver.system(system_counter::ERRORS), 1);
    driver.pass_alive(40 * SECOND);
    assert_eq!(driver.system(system_counter::ERRORS), 1);
    driver.pass_alive(10 * SECOND);
    assert_eq!(driver.system(system_counter::ERRORS), 2);

    // A socket of one family cannot be connected to the other.
    moves_to(&driver, Some("fd00::2".parse().unwrap()));
    driver.pass_alive(2 * silent_until_asked_again);
    assert_eq!(status.get(), -1, "{:?}", driver.recorded_errors());
}
