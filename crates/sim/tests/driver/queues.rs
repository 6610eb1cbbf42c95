//! The conductor and its sender or receiver: more ends at once than the two queues between them hold.
//!
//! Ten times as many as a queue holds: with a queue in each direction full, and one message more for each agent to wait
//! with, agents that wait for each other would wait for ever. `mailbox/model.rs` walks small queues through all states.

use headrace_buffers::counters::{STATE_ALLOCATED, system_counter, type_ids};
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;
use headrace_protocol::frame::Setup;

use crate::byte_client::{CLIENT, Driver, IPC, MS};
use crate::common::{SECOND, World};
use crate::images::{SETUP, quiet_publisher};

/// What each queue between two agents holds: a quarter of what it holds outside of tests, so that ten times as many
/// objects fit into a test.
const QUEUE_CAPACITY: usize = 256;
const OBJECT_COUNT: usize = 10 * QUEUE_CAPACITY;
/// Far more than everything needs.
const SOON: i64 = 60 * SECOND;
const MIB: usize = 1024 * 1024;

/// A driver with room for so many objects. Its rules would be checked for each of them after each step.
fn roomy() -> Driver {
    let world = World::without_rules(7);
    world.set_queue_capacity(QUEUE_CAPACITY);
    Driver::within(world, |config| {
        config.counters_buffer_length = 4 * MIB;
        config.image_limit = 2 * OBJECT_COUNT;
        config.image_liveness_timeout_ns = SECOND;
        config.resource_free_limit = 16;
    })
}

fn counter_count(driver: &Driver, type_id: i32) -> usize {
    let counters = &driver.counters;
    (0..counters.capacity() as i32)
        .map_while(|id| {
            counters
                .state(id)
                .filter(|state| *state != 0)
                .map(|state| (id, state))
        })
        .filter(|(id, state)| *state == STATE_ALLOCATED && counters.type_id(*id) == Some(type_id))
        .count()
}

/// Steps until a condition holds, which is asked every few steps.
fn run_until(driver: &mut Driver, what: &str, condition: impl Fn(&Driver) -> bool) {
    let end_ns = driver.world.now_ns() + SOON;
    while !condition(driver) {
        assert!(
            driver.world.now_ns() < end_ns,
            "{what} did not happen, errors={:?}",
            driver.recorded_errors()
        );
        driver.finish_commands();
    }
}

/// A command of another client waits while the agents catch up, and is answered then: the conductor is alive.
fn add_while_congested(driver: &mut Driver) {
    driver.forget();
    driver.add_publication_of(CLIENT + 1, IPC, 3);
    assert_eq!(driver.names(), [""; 0], "held back");
    run_until(driver, "an answer", |driver| {
        let is_answer = |event: &Event<'_>| matches!(event, Event::PublicationReady(_));
        driver.events().iter().any(is_answer)
    });
}

#[test]
fn a_client_with_many_publications_closes_and_the_driver_goes_on() {
    let mut driver = roomy();
    for stream_id in 0..OBJECT_COUNT as i32 {
        driver.write(&Command::AddPublication {
            client_id: CLIENT,
            correlation_id: driver.next_id(),
            stream_id,
            channel: "aeron:udp?endpoint=localhost:20000|term-length=64k|linger=0".into(),
        });
    }
    run_until(&mut driver, "the publications", |driver| {
        counter_count(driver, type_ids::SENDER_POSITION) == OBJECT_COUNT
    });
    driver.command(&Command::ClientClose {
        client_id: CLIENT,
        correlation_id: 0,
    });
    // All streams end in one tick, before the sender takes anything.
    run_until(&mut driver, "a full queue", |driver| {
        driver.system(system_counter::SENDER_PROXY_FAILS) > 0
    });
    add_while_congested(&mut driver);
    run_until(&mut driver, "the end of the channel", |driver| {
        counter_count(driver, type_ids::SEND_CHANNEL_STATUS) == 0
    });
    assert_eq!(driver.log_files(), 1, "the other client's");
}

#[test]
fn a_flood_of_forged_setups_while_images_end_leaves_the_driver_going() {
    let mut driver = roomy();
    driver.add_subscription("aeron:udp?endpoint=near:24325", 10);
    let publisher = quiet_publisher(&mut driver);
    let forge = |session_id| publisher.borrow().send_setup(&Setup { session_id, ..SETUP });
    for session_id in 0..OBJECT_COUNT as i32 {
        forge(session_id);
        if session_id % 64 == 0 {
            driver.pass(5 * MS);
        }
    }
    run_until(&mut driver, "the images", |driver| {
        counter_count(driver, type_ids::RECEIVER_POSITION) == OBJECT_COUNT
    });
    // No image hears from its publisher again.
    run_until(&mut driver, "a full queue", |driver| {
        driver.system(system_counter::RECEIVER_PROXY_FAILS) > 0
    });
    // New sessions come faster than they can be dealt with.
    for session_id in 0..OBJECT_COUNT as i32 {
        forge(100_000 + session_id);
    }
    add_while_congested(&mut driver);
    assert!(driver.system(system_counter::CONDUCTOR_PROXY_FAILS) > 0);
    run_until(&mut driver, "the end of the images", |driver| {
        counter_count(driver, type_ids::RECEIVER_POSITION) == 0
    });
}
