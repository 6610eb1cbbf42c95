//! Clients come, live and die.

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC};
use crate::common::SECOND;

fn add_counter(driver: &mut Driver, type_id: i32) -> i64 {
    let correlation_id = driver.next_id();
    driver.command(&Command::AddCounter {
        client_id: CLIENT,
        correlation_id,
        type_id,
        key: &[1, 2, 3],
        label: "my counter".into(),
    });
    correlation_id
}

fn add_static(driver: &mut Driver, client_id: i64, registration_id: i64, type_id: i32) {
    let correlation_id = driver.next_id();
    driver.command(&Command::AddStaticCounter {
        client_id,
        correlation_id,
        registration_id,
        type_id,
        key: &[9],
        label: "static".into(),
    });
}

fn static_counter_id(driver: &Driver) -> i32 {
    match driver.events().last() {
        Some(Event::StaticCounter { counter_id, .. }) => *counter_id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_heartbeat_counter_is_announced_before_the_first_reply() {
    let mut driver = Driver::new();
    driver.add_subscription(IPC, 10);
    assert_eq!(driver.names(), ["CounterReady", "SubscriptionReady"]);
    let id = driver.counters.find(type_ids::CLIENT_HEARTBEAT, CLIENT).unwrap();
    let record = driver.counters.record(id).unwrap();
    assert_eq!(record.label, format!("client-heartbeat: id={CLIENT}"));
    assert_eq!(
        (record.owner_id, &record.key[..8]),
        (CLIENT, &CLIENT.to_le_bytes()[..])
    );
    driver.add_subscription(IPC, 11);
    assert_eq!(driver.names()[2..], ["SubscriptionReady"]);
}

#[test]
fn a_refused_command_makes_no_client() {
    let mut driver = Driver::new();
    driver.add_subscription("aeron:carrier-pigeon", 10);
    assert_eq!(driver.names(), ["Error"]);
    assert!(driver.live_counters().is_empty());
}

#[test]
fn a_silent_client_loses_everything_it_had() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let subscription = driver.add_subscription(IPC, 10);
    add_counter(&mut driver, 1_000);
    driver.forget();
    driver.pass(9 * SECOND);
    assert_eq!(driver.names(), [""; 0]);
    driver.pass(2 * SECOND);
    let names = driver.names();
    assert_eq!(
        names[..3],
        ["ClientTimeout", "UnavailableCounter", "UnavailableCounter"],
        "{names:?}"
    );
    assert_eq!(driver.client_timeouts(), 1);
    driver.pass(3 * SECOND);
    assert!(driver.live_counters().is_empty(), "{:?}", driver.live_counters());
    assert_eq!(driver.log_files(), 0);
    driver.remove_publication(publication, false);
    driver.remove_subscription(subscription);
    let codes: Vec<_> = driver.refusals().into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        [ErrorCode::UnknownPublication, ErrorCode::UnknownSubscription]
    );
}

#[test]
fn a_client_that_closes_is_cleared_away_without_a_timeout() {
    let mut driver = Driver::new();
    driver.add_publication(IPC, 10);
    driver.forget();
    driver.command(&Command::ClientClose {
        client_id: CLIENT,
        correlation_id: -1,
    });
    driver.pass(4 * SECOND);
    assert_eq!(driver.names(), ["UnavailableCounter"]);
    assert_eq!(driver.client_timeouts(), 0);
    assert_eq!((driver.live_counters().len(), driver.log_files()), (0, 0));
}

#[test]
fn a_client_that_keeps_its_heartbeat_lives_on() {
    let mut driver = Driver::new();
    driver.add_publication(IPC, 10);
    driver.forget();
    driver.pass_alive(30 * SECOND);
    assert_eq!(driver.names(), [""; 0]);
}

#[test]
fn removing_a_counter_answers_then_announces_then_frees() {
    let mut driver = Driver::new();
    let counter = add_counter(&mut driver, 1_000);
    let id = driver.counters.find(1_000, counter).unwrap();
    assert_eq!(driver.counters.owner_id(id), Some(CLIENT));
    driver.forget();
    let correlation_id = driver.next_id();
    driver.command(&Command::RemoveCounter {
        client_id: CLIENT,
        correlation_id,
        registration_id: counter,
    });
    assert_eq!(driver.names(), ["OperationSuccess", "UnavailableCounter"]);
    assert_eq!(driver.counters.find(1_000, counter), None);
    let correlation_id = driver.next_id();
    driver.command(&Command::RemoveCounter {
        client_id: CLIENT,
        correlation_id,
        registration_id: counter,
    });
    assert_eq!(driver.refusals()[0].0, ErrorCode::UnknownCounter);
}

#[test]
fn a_static_counter_is_found_again_and_outlives_its_client() {
    let mut driver = Driver::new();
    add_static(&mut driver, CLIENT, 42, 1_001);
    let first = static_counter_id(&driver);
    driver.pass(12 * SECOND);
    assert_eq!(driver.counters.find(1_001, 42), Some(first));
    add_static(&mut driver, CLIENT + 1, 42, 1_001);
    assert_eq!(static_counter_id(&driver), first);
    assert_eq!(driver.counters.owner_id(first), Some(-1));
}

#[test]
fn a_static_counter_does_not_take_over_an_owned_one() {
    let mut driver = Driver::new();
    let owned = add_counter(&mut driver, 1_000);
    add_static(&mut driver, CLIENT, owned, 1_000);
    let (code, text) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("cannot add static counter, because a non-static counter exists (counterId="),
        "{text}"
    );
}

#[test]
fn a_static_counter_is_none_of_the_drivers_own() {
    let mut driver = Driver::new();
    let bytes_sent = i64::from(system_counter::BYTES_SENT);
    add_static(&mut driver, CLIENT, bytes_sent, type_ids::SYSTEM_COUNTER);
    let (code, text) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("cannot add static counter, because a non-static counter exists (counterId="),
        "{text}"
    );
}

#[test]
fn the_heartbeat_of_the_driver_is_young_however_rare_its_timers_are() {
    let mut driver = Driver::with(|config| {
        config.timer_interval_ns = 20 * SECOND;
        config.client_liveness_timeout_ns = 30 * SECOND;
        config.publication_unblock_timeout_ns = 40 * SECOND;
        config.untethered_window_limit_timeout_ns = 30 * SECOND;
        config.untethered_resting_timeout_ns = 30 * SECOND;
    });
    driver.pass(15 * SECOND);
    let age_ms = driver.node.clock().epoch_ms() - driver.ring.consumer_heartbeat_ms();
    assert!(age_ms <= 1_100, "{age_ms}");
}

#[test]
fn a_command_left_half_written_is_skipped_after_the_client_timeout() {
    use headrace_buffers::Memory;
    let mut driver = Driver::new();
    driver.add_subscription(IPC, 10);
    // What a client leaves that dies between claiming its record and committing it.
    let position = driver.ring.producer_position() as usize;
    let memory = driver.ring_memory();
    memory.put_i64(driver.ring.capacity() + 128, position as i64 + 32);
    memory.put_i32_release(position, -32);
    driver.forget();
    driver.add_subscription(IPC, 11);
    driver.pass_alive_directly(10 * SECOND);
    assert_eq!(driver.names(), [""; 0]);
    driver.pass_alive_directly(2 * SECOND);
    assert_eq!(driver.names(), ["SubscriptionReady"]);
    assert_eq!(driver.system(system_counter::UNBLOCKED_COMMANDS), 1);
}
