//! An IPC publication from its first byte to its deleted log.
//!
//! | from | to | test |
//! |---|---|---|
//! | Active | Draining, Linger, Done | `a_closed_publication_drains_before_its_readers_are_told` |
//! | Active | Linger | `a_revoked_publication_ends_at_once_for_everybody` |
//! | Active | Active, unlinked | `a_rejected_publication_is_linked_again_after_the_cool_down` |
//! | Draining | Draining, unblocked | `a_hole_does_not_keep_a_closed_publication_from_draining` |

use headrace_buffers::counters::system_counter;
use headrace_buffers::log::{Append, ConcurrentAppender};
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC};
use crate::common::SECOND;

/// A publication with one reader and `count` messages of 128 bytes, frame header included.
fn stream(driver: &mut Driver, count: usize) -> (i64, i64, ConcurrentAppender) {
    let subscription = driver.add_subscription("aeron:ipc", 10);
    let publication = driver.add_publication(IPC, 10);
    let appender = ConcurrentAppender::new(&driver.log(publication));
    for _ in 0..count {
        let appended = appender.offer(&[&[7; 96]], i64::MAX).unwrap();
        assert!(matches!(appended, Append::Position(_)));
    }
    (publication, subscription, appender)
}

#[test]
fn a_closed_publication_drains_before_its_readers_are_told() {
    let mut driver = Driver::new();
    let mapped = driver.system(system_counter::BYTES_CURRENTLY_MAPPED);
    let (publication, subscription, _) = stream(&mut driver, 10);
    let log = driver.log(publication);
    let limit = driver.counter(driver.ready(publication).limit_counter_id);
    let position = driver.counter(driver.images()[0].position_counter_id);
    let session_id = driver.ready(publication).session_id;
    driver.forget();
    driver.remove_publication(publication, false);
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    assert_eq!(limit.get(), 1280);
    driver.pass_alive(5 * SECOND);
    assert_eq!(
        driver.names(),
        ["OperationSuccess"],
        "the reader has not read yet"
    );
    // Who subscribes while it drains still gets the stream.
    let late = driver.add_subscription("aeron:ipc", 10);
    assert_eq!(driver.images().len(), 1);
    // Its session id is still taken.
    driver.add_exclusive(&format!("aeron:ipc?term-length=64k|session-id={session_id}"), 10);
    assert_eq!(driver.refusals()[0].0, ErrorCode::InvalidChannel);
    position.set_release(1280);
    driver
        .counter(driver.images()[0].position_counter_id)
        .set_release(1280);
    driver.forget();
    driver.pass_alive(SECOND);
    assert_eq!(
        driver.unavailable(),
        [(publication, subscription), (publication, late)]
    );
    assert_eq!(driver.log_files(), 1, "lingers for a tick");
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.log_files(), 0);
    assert_eq!(driver.live_counters(), [format!("client-heartbeat: id={CLIENT}")]);
    assert_eq!(driver.system(system_counter::BYTES_CURRENTLY_MAPPED), mapped);
}

#[test]
fn a_new_publication_is_made_beside_one_that_drains() {
    let mut driver = Driver::new();
    let (publication, _, _) = stream(&mut driver, 1);
    driver.remove_publication(publication, false);
    let next = driver.add_publication(IPC, 10);
    assert_ne!(
        driver.ready(next).session_id,
        driver.ready(publication).session_id
    );
    assert_eq!(driver.ready(next).original_registration_id, next);
}

#[test]
fn a_revoked_publication_ends_at_once_for_everybody() {
    let mut driver = Driver::new();
    let (publication, subscription, _) = stream(&mut driver, 10);
    let other = driver.add_publication_of(CLIENT, IPC, 10);
    let log = driver.log(publication);
    driver.forget();
    driver.remove_publication(publication, true);
    driver.pass_alive(SECOND);
    assert_eq!(driver.unavailable(), [(publication, subscription)]);
    assert!(log.metadata().is_publication_revoked_acquire() && !log.metadata().is_connected_acquire());
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    assert_eq!(driver.system(system_counter::PUBLICATIONS_REVOKED), 1);
    driver.pass_alive(5 * SECOND);
    assert_eq!(driver.log_files(), 1, "the other handle keeps the log");
    driver.remove_publication(other, false);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.log_files(), 0);
}

#[test]
fn a_rejected_publication_is_linked_again_after_the_cool_down() {
    let mut driver = Driver::new();
    let (publication, subscription, _) = stream(&mut driver, 10);
    let log = driver.log(publication);
    driver.forget();
    driver.reject(publication, "not today");
    let errors = driver.recorded_errors();
    assert!(
        errors[0].starts_with("WARN - onPublicationError") && errors[0].ends_with("not today"),
        "{errors:?}"
    );
    assert_eq!(driver.counter(system_counter::ERRORS).get(), 1);
    assert_eq!(
        driver.names(),
        ["PublicationError", "UnavailableImage", "OperationSuccess"]
    );
    match &driver.events()[0] {
        Event::PublicationError(error) => {
            assert_eq!(
                (error.registration_id, error.error_code),
                (publication, ErrorCode::ImageRejected)
            );
            assert_eq!(error.message, "not today");
        }
        other => panic!("{other:?}"),
    }
    assert!(!log.metadata().is_connected_acquire());
    assert_eq!(driver.system(system_counter::IMAGES_REJECTED), 1);
    driver.forget();
    let other = driver.add_subscription("aeron:ipc", 10);
    driver.pass_alive(9 * SECOND);
    assert!(driver.images().is_empty());
    driver.pass_alive(2 * SECOND);
    let subscriptions: Vec<_> = driver
        .images()
        .iter()
        .map(|image| image.subscription_id)
        .collect();
    assert_eq!(subscriptions, [subscription, other]);
    assert!(log.metadata().is_connected_acquire());
}

#[test]
fn a_dead_publishers_claim_is_filled_after_the_timeout() {
    let mut driver = Driver::new();
    let (publication, _, appender) = stream(&mut driver, 1);
    let position = driver.counter(driver.images()[0].position_counter_id);
    position.set_release(128);
    leave_a_claim(&appender);
    appender.offer(&[&[7; 96]], i64::MAX).unwrap();
    driver.pass_alive(14 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 0);
    driver.pass_alive(4 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 1);
    let log = driver.log(publication);
    assert!(headrace_buffers::log::frame::is_padding(log.term(0), 128));
}

#[test]
fn a_hole_does_not_keep_a_closed_publication_from_draining() {
    let mut driver = Driver::new();
    let (publication, _, appender) = stream(&mut driver, 1);
    let position = driver.counter(driver.images()[0].position_counter_id);
    position.set_release(128);
    leave_a_claim(&appender);
    driver.remove_publication(publication, false);
    driver.pass_alive(SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 1);
}

#[test]
fn a_slow_reader_is_not_a_dead_publisher() {
    let mut driver = Driver::new();
    stream(&mut driver, 10);
    driver.pass_alive(40 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 0);
}

/// A claim that is neither committed nor aborted, as a killed process leaves it.
fn leave_a_claim(appender: &ConcurrentAppender) {
    std::mem::forget(appender.try_claim(96, i64::MAX).unwrap());
}
