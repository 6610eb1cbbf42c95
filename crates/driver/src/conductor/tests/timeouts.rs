//! Time-outs that mean "never": as long as a duration can be, which must not overflow into "at once".

use super::harness::{Harness, SECOND};
use super::images::image;
use super::network_publications::{endings, fill, publish_on};
use crate::config::DriverConfig;
use crate::shared::ImageState;

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
    let mut driver = Harness::with(never_end);
    let (registration_id, _, _) = publish_on(
        &mut driver,
        "aeron:udp?endpoint=localhost:24326|linger=9223372036854775807",
    );
    fill(&driver.log(registration_id), 10);
    driver.forget();
    driver.remove_publication(registration_id, false);
    driver.pass(100 * SECOND);
    assert_eq!(endings(&driver), [""; 0]);
}

#[test]
fn an_image_that_drains_for_ever_stays() {
    let mut driver = Harness::with(never_end);
    let (_, _, shared) = image(&mut driver, "aeron:udp?endpoint=localhost:24325");
    shared.advance_to(ImageState::Draining, "test");
    driver.forget();
    driver.pass(100 * SECOND);
    assert_eq!(shared.state(), ImageState::Draining);
    assert_eq!(driver.names(), [""; 0]);
}
