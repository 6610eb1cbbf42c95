//! Time-outs that mean "never": as long as a duration can be, which must not overflow into "at once".

use headrace_driver::DriverConfig;
use headrace_protocol::frame::data;

use crate::byte_client::{Driver, IPC, fill};
use crate::common::SECOND;
use crate::images::{SETUP, quiet_publisher};

fn never_end(config: &mut DriverConfig) {
    config.client_liveness_timeout_ns = i64::MAX - 1;
    config.publication_unblock_timeout_ns = i64::MAX;
    config.image_liveness_timeout_ns = i64::MAX;
    config.publication_connection_timeout_ns = i64::MAX;
    config.publication_linger_timeout_ns = i64::MAX;
    config.untethered_window_limit_timeout_ns = i64::MAX;
    config.untethered_resting_timeout_ns = i64::MAX;
    config.receiver_status_message_timeout_ns = i64::MAX;
    config.nak_unicast_delay_ns = i64::MAX;
    config.retransmit_unicast_linger_ns = i64::MAX;
    config.counters_free_to_reuse_timeout_ns = i64::MAX;
}

#[test]
fn a_publication_that_lingers_for_ever_stays() {
    let mut driver = Driver::with(never_end);
    driver.add_receiver().borrow_mut().is_silent = true;
    let publication = driver.add_publication(
        "aeron:udp?endpoint=far:40123|term-length=64k|linger=9223372036854775807",
        10,
    );
    fill(&driver.log(publication), 10);
    driver.remove_publication(publication, false);
    driver.pass(100 * SECOND);
    assert_eq!((driver.log_files(), driver.recorded_errors().len()), (1, 0));
    let states = driver.changes("publication");
    assert!(states.last().unwrap().contains("-> Linger"), "{states:?}");
}

#[test]
fn an_image_that_drains_for_ever_stays() {
    let mut driver = Driver::with(never_end);
    driver.add_subscription("aeron:udp?endpoint=near:24325", 10);
    let publisher = quiet_publisher(&mut driver);
    publisher.borrow().send_setup(&SETUP);
    driver.pass(SECOND);
    driver.forget();
    driver.pass(100 * SECOND);
    assert_eq!(driver.image_files(), 1, "its silence never ends it");
    // Its end does.
    publisher.borrow_mut().flags |= data::FLAG_END_OF_STREAM;
    publisher.borrow().send_heartbeat();
    driver.pass(100 * SECOND);
    let states = driver.changes("image");
    assert!(states.last().unwrap().contains("-> Draining"), "{states:?}");
    assert_eq!((driver.names().len(), driver.image_files()), (0, 1));
}

#[test]
fn an_untethered_reader_that_is_never_dropped_stays() {
    let mut driver = Driver::with(never_end);
    let publication = driver.add_publication(IPC, 10);
    driver.add_subscription("aeron:ipc", 10);
    driver.add_subscription("aeron:ipc?tether=false", 10);
    fill(&driver.log(publication), 200);
    // The other one reads more than three quarters of the window.
    let produced = driver.log(publication).producer_position();
    driver
        .counter(driver.images()[0].position_counter_id)
        .set_release(produced);
    driver.forget();
    driver.pass(100 * SECOND);
    assert_eq!(driver.names(), [""; 0]);
}

#[test]
fn a_rejected_ipc_image_that_cools_down_for_ever_does_not_come_back() {
    let mut driver = Driver::with(never_end);
    driver.add_subscription(IPC, 10);
    driver.add_publication(IPC, 10);
    driver.reject(driver.images()[0].image_correlation_id, "not wanted");
    driver.forget();
    driver.pass(100 * SECOND);
    assert_eq!(driver.images(), []);
}

#[test]
fn a_client_that_may_stay_silent_for_ever_is_kept() {
    let mut driver = Driver::with(never_end);
    driver.add_publication(IPC, 10);
    driver.forget();
    driver.pass(100 * SECOND);
    assert_eq!(driver.names(), [""; 0]);
}
