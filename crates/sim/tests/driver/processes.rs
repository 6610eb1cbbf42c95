//! Clients whose process ends without a word.

use headrace_buffers::counters::type_ids;
use headrace_buffers::liveness::Liveness;
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC, MS};
use crate::common::SECOND;

const OTHER_CLIENT: i64 = CLIENT + 1;
/// Its host has an address, and the name server takes its time.
const SLOW: &str = "aeron:udp?endpoint=slow.test:24325|term-length=64k";
/// Longer than the driver goes without a look at the processes of its clients.
const A_LOOK: i64 = 21 * MS;

/// A publisher and a subscriber, each of a client that shows that it lives.
fn both_alive() -> (Driver, i64, [Liveness; 2]) {
    let mut driver = Driver::new();
    let processes = [CLIENT, OTHER_CLIENT].map(|client_id| driver.start_process(client_id));
    let publication = driver.add_publication(IPC, 10);
    driver.add_subscription_of(OTHER_CLIENT, IPC, 10);
    driver.forget();
    (driver, publication, processes)
}

#[test]
fn a_subscriber_that_is_killed_holds_no_publisher_back() {
    let (mut driver, publication, [_process, other_process]) = both_alive();
    assert_eq!(driver.subscriber_positions().len(), 1);
    driver.pass(A_LOOK);
    assert_eq!(driver.names(), [""; 0], "both live");
    drop(other_process);
    driver.pass(A_LOOK);
    let given_up = Event::ClientTimeout {
        client_id: OTHER_CLIENT,
    };
    assert!(driver.events().contains(&given_up));
    assert_eq!(driver.subscriber_positions(), [0; 0]);
    assert_eq!(
        driver.counters.find(type_ids::CLIENT_HEARTBEAT, OTHER_CLIENT),
        None
    );
    assert_eq!(driver.client_timeouts(), 1);
    assert!(driver.recorded_errors()[0].contains("process ended without closing"));
    assert!(driver.publication_path(publication).exists());
}

#[test]
fn a_publisher_that_is_killed_ends_its_publications() {
    let (mut driver, publication, [process, _other_process]) = both_alive();
    drop(process);
    driver.pass(A_LOOK);
    driver.pass(2 * SECOND);
    assert_eq!(driver.unavailable()[0].0, publication);
}

#[test]
fn a_client_that_showed_that_it_lives_too_late_has_its_timeout() {
    let mut driver = Driver::new();
    driver.add_publication(IPC, 10);
    drop(driver.start_process(CLIENT));
    driver.pass(9 * SECOND);
    assert_eq!(driver.client_timeouts(), 0);
}

#[test]
fn what_a_client_wrote_before_it_ended_is_read_first_so_a_close_is_a_close() {
    let (mut driver, _, [_process, other_process]) = both_alive();
    // Commands for longer than two looks: the driver reads one in a turn.
    for _ in 0..10_000 {
        driver.write(&Command::ClientKeepalive {
            client_id: CLIENT,
            correlation_id: 0,
        });
    }
    driver.write(&Command::ClientClose {
        client_id: OTHER_CLIENT,
        correlation_id: 0,
    });
    drop(other_process);
    driver.pass(2 * A_LOOK);
    assert_eq!(
        driver.subscriber_positions().len(),
        1,
        "its close is still to be read"
    );
    driver.pass(SECOND);
    assert_eq!(driver.subscriber_positions(), [0; 0]);
    assert_eq!(driver.client_timeouts(), 0);
    assert_eq!(driver.recorded_errors(), [""; 0]);
}

#[test]
fn many_clients_take_turns() {
    let mut driver = Driver::new();
    let ids = CLIENT..CLIENT + 200;
    let processes: Vec<_> = ids
        .clone()
        .map(|client_id| driver.start_process(client_id))
        .collect();
    for client_id in ids {
        driver.add_subscription_of(client_id, IPC, 10);
    }
    drop(processes);
    for _ in 0..4 {
        driver.pass(A_LOOK);
    }
    assert_eq!(driver.client_timeouts(), 200);
}

/// Every client that the driver knows has a counter of its heartbeat.
fn is_known(driver: &Driver, client_id: i64) -> bool {
    driver
        .counters
        .find(type_ids::CLIENT_HEARTBEAT, client_id)
        .is_some()
}

#[test]
fn a_client_that_ends_before_its_first_command_is_done_does_not_come_back() {
    for channel in [IPC, SLOW] {
        let mut driver = Driver::new();
        let network = driver.world.network();
        network.set_name("slow.test", Some([127, 0, 0, 3].into()));
        network.set_lookup_ns(SECOND);
        let process = driver.start_process(CLIENT);
        let correlation_id = driver.next_id();
        driver.write(&Command::AddPublication {
            client_id: CLIENT,
            correlation_id,
            stream_id: 10,
            channel: channel.into(),
        });
        while driver.ring.consumer_position() < driver.ring.producer_position() {
            driver.step();
        }
        drop(process);
        driver.pass(SECOND + A_LOOK);
        assert!(!is_known(&driver, CLIENT), "{channel}");
        driver.pass(SECOND);
        assert_eq!(driver.log_files(), 0, "{channel}");
    }
}

#[test]
fn a_client_that_ends_while_a_log_is_made_for_it_does_not_come_back() {
    let mut driver = Driver::new();
    // Its end is seen at the next look, whose time is met by one of many tries.
    for client_id in CLIENT..CLIENT + 1_000 {
        let process = driver.start_process(client_id);
        driver.add_subscription_of(client_id, IPC, 11);
        driver.pass((client_id - CLIENT) * MS / 50);
        let correlation_id = driver.next_id();
        driver.write(&Command::AddPublication {
            client_id,
            correlation_id,
            stream_id: 10,
            channel: IPC.into(),
        });
        while driver.ring.consumer_position() < driver.ring.producer_position() {
            driver.step();
        }
        drop(process);
        driver.pass(2 * A_LOOK);
        assert!(!is_known(&driver, client_id), "after {}", client_id - CLIENT);
    }
}
