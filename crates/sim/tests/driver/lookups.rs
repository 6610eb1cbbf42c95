//! Commands whose channel names a host, while its name server keeps them waiting.

use std::borrow::Cow;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC};
use crate::common::{self, SECOND};

/// Type id of the counter of a destination that is sent to.
const SEND_DESTINATION: i32 = 2105;
const OTHER_CLIENT: i64 = CLIENT + 1;
/// How long the name server takes.
const ANSWER_NS: i64 = 3 * SECOND;
/// What the trace says when it is asked.
const ASKED: &str = "near asks for the name slow.test";
const SLOW: &str = "aeron:udp?endpoint=slow.test:24325|term-length=64k";

fn silent() -> Driver {
    let driver = Driver::new();
    driver
        .world
        .network()
        .set_name("slow.test", Some([127, 0, 0, 3].into()));
    driver.world.network().set_lookup_ns(ANSWER_NS);
    driver
}

#[test]
fn a_command_that_waits_for_a_name_holds_nothing_back() {
    let mut driver = silent();
    let publication = driver.add_publication(SLOW, 10);
    let subscription = driver.add_subscription(SLOW, 10);
    let spy = driver.add_subscription(&SLOW.replace("aeron:", "aeron-spy:aeron:"), 10);
    assert_eq!(driver.names(), [""; 0]);
    let own = driver.add_publication(IPC, 11);
    let other = driver.add_publication_of(OTHER_CLIENT, IPC, 12);
    let literal =
        driver.add_publication_of(OTHER_CLIENT, "aeron:udp?endpoint=127.0.0.1:9|term-length=64k", 13);
    let this_host = driver.add_subscription_of(OTHER_CLIENT, "aeron:udp?endpoint=localhost:10", 14);
    for id in [own, other, literal] {
        driver.ready(id);
    }
    let subscribed = |driver: &Driver, id: i64| {
        driver.events().iter().any(
            |event| matches!(event, Event::SubscriptionReady { correlation_id, .. } if *correlation_id == id),
        )
    };
    assert!(subscribed(&driver, this_host));
    driver.pass_alive(ANSWER_NS);
    driver.ready(publication);
    assert!(subscribed(&driver, subscription) && subscribed(&driver, spy));
    assert_eq!(driver.count_in_trace(ASKED), 1, "one lookup for the three");
    assert_eq!(driver.refusals(), []);
}

#[test]
fn two_clients_that_wait_for_one_name_share_the_publication() {
    let mut driver = silent();
    let first = driver.add_publication(SLOW, 10);
    let second = driver.add_publication_of(OTHER_CLIENT, SLOW, 10);
    driver.pass_alive(ANSWER_NS);
    assert_eq!(driver.ready(first).original_registration_id, first);
    assert_eq!(driver.ready(second).original_registration_id, first);
    assert_eq!(driver.log_files(), 1);
}

#[test]
fn a_name_that_is_not_known_refuses_the_command_that_waited() {
    let mut driver = silent();
    driver.add_publication("aeron:udp?endpoint=nowhere.test:24325", 10);
    driver.pass_alive(ANSWER_NS);
    let [(code, text)] = &driver.refusals()[..] else {
        panic!("{:?}", driver.events());
    };
    assert_eq!(*code, ErrorCode::UnknownHost);
    assert!(
        text.contains("nowhere.test") && text.contains("no node has this name"),
        "{text}"
    );
}

#[test]
fn an_open_channel_is_looked_up_once_at_a_time() {
    let mut driver = silent();
    driver.world.network().set_lookup_ns(0);
    driver.add_publication(SLOW, 10);
    driver.world.network().set_lookup_ns(20 * SECOND);
    // The sender hears nothing, and asks twice a second.
    driver.pass_alive(22 * SECOND);
    assert_eq!(
        driver.count_in_trace(ASKED),
        3,
        "one to open it, and two after that"
    );
    driver.add_publication(IPC, 11);
    driver.pass_alive(15 * SECOND);
    assert_eq!(driver.count_in_trace(ASKED), 3);
}

#[test]
fn what_waits_for_a_name_can_be_given_up() {
    let mut driver = silent();
    driver.add_publication(IPC, 11);
    let publication = driver.add_publication(SLOW, 10);
    let subscription = driver.add_subscription(SLOW, 10);
    driver.forget();
    driver.remove_subscription(publication);
    driver.remove_publication(subscription, false);
    assert_eq!(driver.names(), ["Error", "Error"], "each is of the other kind");
    driver.forget();
    driver.remove_publication(publication, false);
    driver.remove_subscription(subscription);
    assert_eq!(driver.names(), ["OperationSuccess", "OperationSuccess"]);
    driver.forget();
    driver.pass_alive(ANSWER_NS);
    assert_eq!((driver.names().len(), driver.log_files()), (0, 1));
}

#[test]
fn a_destination_that_waits_for_a_name_can_be_given_up() {
    let mut driver = silent();
    let publication = driver.add_publication("aeron:udp?control-mode=manual|term-length=64k", 10);
    let subscription = driver.add_subscription("aeron:udp?control-mode=manual", 10);
    let channel: Cow<'_, str> = "aeron:udp?endpoint=slow.test:24325".into();
    let added = [driver.next_id(), driver.next_id()];
    driver.command(&Command::AddDestination {
        client_id: CLIENT,
        correlation_id: added[0],
        registration_id: publication,
        channel: channel.clone(),
    });
    driver.command(&Command::AddReceiveDestination {
        client_id: CLIENT,
        correlation_id: added[1],
        registration_id: subscription,
        channel,
    });
    driver.forget();
    for (registration_id, destination_registration_id) in [(publication, added[0]), (subscription, added[1])]
    {
        let correlation_id = driver.next_id();
        driver.command(&Command::RemoveDestinationById {
            client_id: CLIENT,
            correlation_id,
            registration_id,
            destination_registration_id,
        });
    }
    let both = ["Error", "OperationSuccess"];
    assert_eq!(
        driver.names(),
        [both, both].concat(),
        "the one that waited, then this one"
    );
    assert!(driver.refusals()[0].1.contains("before its name was looked up"));
    driver.forget();
    let sockets = driver.world.socket_count();
    driver.pass_alive(ANSWER_NS);
    assert_eq!(driver.names(), [""; 0]);
    assert_eq!(driver.world.socket_count(), sockets);
    assert_eq!(common::counters_of(&driver.node, SEND_DESTINATION).len(), 0);
    assert_eq!(driver.recorded_errors(), [""; 0]);
}

#[test]
fn a_client_that_closes_is_not_made_known_again_by_a_late_answer() {
    let mut driver = silent();
    driver.add_publication(SLOW, 10);
    driver.command(&Command::ClientClose {
        client_id: CLIENT,
        correlation_id: 0,
    });
    driver.pass_alive(ANSWER_NS);
    assert_eq!(driver.counters.find(type_ids::CLIENT_HEARTBEAT, CLIENT), None);
    assert_eq!((driver.names().len(), driver.log_files()), (0, 0));
}

#[test]
fn more_than_can_wait_are_refused_and_may_try_again() {
    let mut driver = silent();
    driver.world.network().set_lookup_ns(i64::MAX);
    for number in 0..1_025 {
        driver.add_subscription(&format!("aeron:udp?endpoint=slow.test:{}", 20_000 + number), 10);
    }
    let [(code, text)] = &driver.refusals()[..] else {
        panic!("{}", driver.refusals().len());
    };
    assert_eq!(*code, ErrorCode::ResourceTemporarilyUnavailable);
    assert_eq!(driver.recorded_errors(), [""; 0], "it is not an error");
    assert!(text.contains("slow.test"), "{text}");
}

/// Rows of a test table: two names, of which the second leads nowhere at first.
const TABLE: &str = "moving,127.0.0.3,127.0.0.4|lost,gone.test,127.0.0.5|no row|";
/// Type id of the counter of a row.
const TABLE_ROW: i32 = 2001;

fn redirected() -> Driver {
    Driver::with(|config| {
        config.set("aeron.name.resolver.supplier", "csv_table").unwrap();
        config.set("aeron.name.resolver.init.args", TABLE).unwrap();
    })
}

#[test]
fn a_table_redirects_names_as_its_counters_say() {
    let mut driver = redirected();
    let rows = common::counters_of(&driver.node, TABLE_ROW);
    let labels: Vec<_> = rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "NameEntry{name='moving', initialResolutionHost='127.0.0.3', reResolutionHost='127.0.0.4'}",
            "NameEntry{name='lost', initialResolutionHost='gone.test', reResolutionHost='127.0.0.5'}",
        ]
    );
    assert_eq!(rows[0].key[..10], *b"\x06\0\0\0moving");
    assert_eq!((rows[0].value, rows[1].value), (0, 0));
    let switch = [&rows[0], &rows[1]].map(|row| driver.counter(row.id));

    let moving = driver.add_publication("aeron:udp?endpoint=moving:24325|term-length=64k", 10);
    driver.ready(moving);
    driver.add_publication("aeron:udp?endpoint=lost:24325|term-length=64k", 10);
    let [(code, text)] = &driver.refusals()[..] else {
        panic!("{:?}", driver.events());
    };
    assert_eq!(*code, ErrorCode::UnknownHost);
    assert!(
        text.contains("host=(lost)") && text.contains("endpoint=lost:24325"),
        "{text}"
    );
    driver.forget();
    switch[1].set_release(1);
    let lost = driver.add_publication("aeron:udp?endpoint=lost:24325|term-length=64k", 10);
    driver.ready(lost);
    switch[1].set_release(-1);
    driver.add_publication("aeron:udp?endpoint=lost:24326|term-length=64k", 10);
    let [(_, text)] = &driver.refusals()[..] else {
        panic!("{:?}", driver.events());
    };
    assert!(text.contains("Unable to resolve host=(lost): (forced)"), "{text}");

    // The sender hears nothing and has the name looked up again, each time as the counter says then.
    assert_eq!(driver.system(system_counter::RESOLUTION_CHANGES), 0);
    switch[0].set_release(1);
    driver.pass_alive(7 * SECOND);
    assert_eq!(driver.system(system_counter::RESOLUTION_CHANGES), 1);
    switch[0].set_release(0);
    driver.pass_alive(7 * SECOND);
    assert_eq!(driver.system(system_counter::RESOLUTION_CHANGES), 2);
    switch[0].set_release(-1);
    driver.pass_alive(7 * SECOND);
    let errors = driver.recorded_errors();
    let expected = "could not re-resolve: endpoint=moving:24325: Unable to resolve host=(moving): (forced)";
    assert!(errors.iter().any(|text| text.contains(expected)), "{errors:?}");
}
