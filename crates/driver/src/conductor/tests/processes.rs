//! Clients whose process ends without a word.

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use super::harness::{CLIENT, Harness, IPC, MS, SECOND};

const OTHER_CLIENT: i64 = CLIENT + 1;
/// Longer than the driver goes without a look at the processes of its clients.
const A_LOOK: i64 = 21 * MS;

/// A publisher and a subscriber, each of a client that shows that it lives.
fn both_alive() -> (Harness, i64) {
    let mut driver = Harness::new();
    driver.processes.start(CLIENT);
    driver.processes.start(OTHER_CLIENT);
    let publication = driver.add_publication(IPC, 10);
    driver.add_subscription_of(OTHER_CLIENT, IPC, 10);
    driver.forget_events();
    (driver, publication)
}

#[test]
fn a_subscriber_that_is_killed_holds_no_publisher_back() {
    let (mut driver, publication) = both_alive();
    assert_eq!(driver.subscriber_positions().len(), 1);
    driver.pass(A_LOOK);
    assert_eq!(driver.names(), [""; 0], "both live");
    driver.processes.kill(OTHER_CLIENT);
    driver.pass(A_LOOK);
    assert!(driver.events().iter().any(|event| matches!(
        event,
        Event::ClientTimeout {
            client_id: OTHER_CLIENT
        }
    )));
    assert_eq!(driver.subscriber_positions(), [0; 0]);
    assert_eq!(
        driver.counters.find(type_ids::CLIENT_HEARTBEAT, OTHER_CLIENT),
        None
    );
    assert_eq!(driver.system(system_counter::CLIENT_TIMEOUTS), 1);
    assert!(driver.recorded_errors()[0].contains("process ended without closing"));
    assert!(driver.publication_path(publication).exists());
}

#[test]
fn a_publisher_that_is_killed_ends_its_publications() {
    let (mut driver, publication) = both_alive();
    driver.processes.kill(CLIENT);
    driver.pass(A_LOOK);
    driver.pass(2 * SECOND);
    assert_eq!(driver.unavailable()[0].0, publication);
}

#[test]
fn a_client_that_does_not_show_that_it_lives_has_its_timeout() {
    let mut driver = Harness::new();
    driver.add_publication(IPC, 10);
    driver.processes.start(CLIENT);
    driver.processes.kill(CLIENT);
    driver.pass(9 * SECOND);
    assert_eq!(driver.system(system_counter::CLIENT_TIMEOUTS), 0);
}

#[test]
fn what_a_client_wrote_before_it_ended_is_read_first_so_a_close_is_a_close() {
    let (mut driver, _) = both_alive();
    driver.processes.kill(OTHER_CLIENT);
    let mut message = Vec::new();
    let keepalive = Command::ClientKeepalive {
        client_id: CLIENT,
        correlation_id: 0,
    };
    let close = Command::ClientClose {
        client_id: OTHER_CLIENT,
        correlation_id: 0,
    };
    for command in [&keepalive, &keepalive, &close] {
        let type_id = command.encode(&mut message);
        assert!(driver.ring.try_write(type_id, &message).unwrap());
    }
    driver.clock.advance_ns(A_LOOK);
    driver.turn();
    assert_eq!(
        driver.subscriber_positions().len(),
        1,
        "its close is still to be read"
    );
    driver.pass(A_LOOK);
    driver.pass(A_LOOK);
    assert_eq!(driver.subscriber_positions(), [0; 0]);
    assert_eq!(driver.system(system_counter::CLIENT_TIMEOUTS), 0);
    assert_eq!(driver.recorded_errors(), [""; 0]);
}

#[test]
fn many_clients_take_turns() {
    let mut driver = Harness::new();
    let ids = CLIENT..CLIENT + 200;
    for client_id in ids.clone() {
        driver.processes.start(client_id);
        driver.add_subscription_of(client_id, IPC, 10);
    }
    for client_id in ids {
        driver.processes.kill(client_id);
    }
    for _ in 0..4 {
        driver.pass(A_LOOK);
    }
    assert_eq!(driver.system(system_counter::CLIENT_TIMEOUTS), 200);
}
