//! Channels: found, opened, refused and closed.

use headrace_buffers::counters::type_ids;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use crate::byte_client::Driver;
use crate::common::SECOND;

fn refused(driver: &mut Driver, code: ErrorCode, text: &str) {
    let refusals = driver.refusals();
    let (found, message) = refusals.last().unwrap_or_else(|| panic!("{:?}", driver.events()));
    assert!(*found == code && message.contains(text), "{message}");
}

#[test]
fn publications_that_cannot_be_are_refused_and_leave_nothing() {
    for (channel, code, text) in [
        (
            "aeron:udp?endpoint=localhost:0",
            ErrorCode::GenericError,
            "endpoint has port=0 for publication",
        ),
        (
            "aeron:udp?endpoint=nowhere:24325",
            ErrorCode::UnknownHost,
            "endpoint=nowhere:24325",
        ),
        (
            "aeron:udp?term-length=64k",
            ErrorCode::InvalidChannel,
            "must specify endpoint",
        ),
        ("aeron:udp?tags=7", ErrorCode::GenericError, "when original"),
        (
            "aeron:udp?endpoint=localhost:24325|mtu=8k|so-sndbuf=4k",
            ErrorCode::GenericError,
            "MTU greater than SO_SNDBUF",
        ),
        (
            "aeron:udp?endpoint=224.0.1.2:24325",
            ErrorCode::InvalidChannel,
            "Multicast data address must be odd",
        ),
        (
            "aeron:udp?control-mode=response|control=localhost:24325",
            ErrorCode::GenericError,
            "control-mode=response was specified, but no response-correlation-id set",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|response-correlation-id=7",
            ErrorCode::GenericError,
            "unable to find response subscription for response-correlation-id=7",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|fc=min",
            ErrorCode::GenericError,
            "unsupported unicast flow control strategy: fc is for channels with a group of receivers",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|fc=slow",
            ErrorCode::GenericError,
            "Invalid flow control strategy name 'slow'",
        ),
        (
            "aeron-spy:aeron:udp?endpoint=localhost:24325",
            ErrorCode::InvalidChannel,
            "spies are invalid",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|interface={does_not_exist}",
            ErrorCode::InvalidChannel,
            "unknown interface does_not_exist",
        ),
    ] {
        let mut driver = Driver::new();
        driver.add_publication(channel, 10);
        refused(&mut driver, code, text);
        assert!(driver.world.socket_count() == 0, "{channel}");
        assert_eq!(driver.log_files(), 0, "{channel}");
        assert_eq!(driver.live_counters(), [""; 0], "{channel}");
    }
}

#[test]
fn subscriptions_that_cannot_be_are_refused_and_leave_nothing() {
    for (channel, code, text) in [
        (
            "aeron:udp?endpoint=nowhere:24325",
            ErrorCode::UnknownHost,
            "endpoint=nowhere:24325",
        ),
        (
            "aeron:udp?endpoint=224.0.1.2:24325",
            ErrorCode::InvalidChannel,
            "Multicast data address must be odd",
        ),
        (
            "aeron-spy:aeron:udp?endpoint=nowhere:24325",
            ErrorCode::UnknownHost,
            "endpoint=nowhere:24325",
        ),
        (
            "aeron:udp?control-mode=response|control=localhost:0",
            ErrorCode::GenericError,
            "control has port=0",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|rcv-wnd=256k",
            ErrorCode::GenericError,
            "Initial window greater than SO_RCVBUF",
        ),
    ] {
        let mut driver = Driver::new();
        driver.add_subscription(channel, 10);
        refused(&mut driver, code, text);
        let labels: Vec<_> = driver
            .live_counters()
            .into_iter()
            .filter(|label| !label.starts_with("client-heartbeat"))
            .collect();
        assert_eq!(labels, [""; 0], "{channel}");
    }
}

#[test]
fn a_port_in_use_is_named_and_the_log_taken_back() {
    let mut driver = Driver::new();
    driver.add_subscription("aeron:udp?endpoint=127.0.0.1:24325", 10);
    driver.forget();
    driver.add_subscription("aeron:udp?endpoint=localhost:24325", 10);
    refused(
        &mut driver,
        ErrorCode::GenericError,
        "failed to bind to address 127.0.0.1:24325: address in use",
    );
    driver.add_publication("aeron:udp?endpoint=localhost:1|interface=127.0.0.1:24325", 10);
    refused(&mut driver, ErrorCode::GenericError, "endpoint=localhost:1");
    driver.finish_commands();
    assert_eq!(driver.log_files(), 0);
    assert_eq!(
        driver
            .counters
            .find(type_ids::SEND_CHANNEL_STATUS, driver.next_id() - 1),
        None
    );
}

#[test]
fn session_ids_clash_only_on_the_same_channel() {
    let mut driver = Driver::new();
    driver.add_exclusive("aeron:udp?endpoint=localhost:1|session-id=5", 10);
    driver.add_exclusive("aeron:udp?endpoint=localhost:2|session-id=5", 10);
    driver.add_exclusive("aeron:ipc?term-length=64k|session-id=5", 10);
    assert!(driver.refusals().is_empty());
    driver.add_exclusive("aeron:udp?endpoint=localhost:1|session-id=5", 10);
    refused(
        &mut driver,
        ErrorCode::InvalidChannel,
        "clashing sessionId=5 for streamId=10",
    );
}

#[test]
fn a_tag_finds_the_channel_and_must_not_contradict_it() {
    let mut driver = Driver::new();
    let first = driver.add_publication("aeron:udp?endpoint=localhost:1|tags=8,9", 10);
    let by_tag = driver.add_publication("aeron:udp?tags=8", 11);
    assert_eq!(
        driver.ready(first).status_counter_id,
        driver.ready(by_tag).status_counter_id
    );
    driver.add_publication("aeron:udp?endpoint=localhost:2|tags=8", 12);
    refused(
        &mut driver,
        ErrorCode::GenericError,
        "matching tag=8 has mismatched endpoint or control",
    );
    driver.add_publication("aeron:udp?endpoint=localhost:3|tags=4,9", 12);
    refused(
        &mut driver,
        ErrorCode::InvalidChannel,
        "entityTag=9 already in use",
    );
    let copy = driver.add_exclusive("aeron:udp?endpoint=localhost:4|session-id=tag:9", 13);
    assert_eq!(driver.ready(copy).session_id, driver.ready(first).session_id);
}

#[test]
fn a_tag_that_joins_a_transport_without_one_names_it_from_then_on() {
    const PLAIN: &str = "aeron:udp?endpoint=localhost:1";
    let mut driver = Driver::new();
    let first = driver.add_publication(PLAIN, 10);
    let refused_one = driver.add_publication(&format!("{PLAIN}|tags=33|so-sndbuf=4k"), 11);
    assert_eq!(driver.refusals().len(), 1, "{refused_one}");
    driver.add_publication("aeron:udp?tags=33", 12);
    refused(&mut driver, ErrorCode::GenericError, "when original");
    // With a publication of its own, and with one that is there.
    let joins = [(31, 11), (32, 10)]
        .map(|(tag, stream_id)| driver.add_publication(&format!("{PLAIN}|tags={tag}"), stream_id));
    let by_tag = [31, 32].map(|tag| driver.add_publication(&format!("aeron:udp?tags={tag}"), 12));
    let status = driver.ready(first).status_counter_id;
    for registration_id in joins.into_iter().chain(by_tag) {
        assert_eq!(driver.ready(registration_id).status_counter_id, status);
    }
    let elsewhere = "aeron:udp?endpoint=localhost:2|tags=31";
    driver.add_publication(elsewhere, 12);
    let words = "matching tag=31 has mismatched endpoint or control";
    refused(&mut driver, ErrorCode::GenericError, words);
    for registration_id in [first].into_iter().chain(joins).chain(by_tag) {
        driver.remove_publication(registration_id, false);
    }
    driver.pass_alive(10 * SECOND);
    driver.add_publication(elsewhere, 12);
    assert_eq!(driver.refusals().len(), 3, "the tag went with the transport");
}

#[test]
fn a_tag_that_joins_a_receive_transport_without_one_names_it_from_then_on() {
    let mut driver = Driver::new();
    for (channel, stream_id) in [
        ("aeron:udp?endpoint=localhost:1", 10),
        ("aeron:udp?endpoint=localhost:1|tags=31", 11),
        ("aeron:udp?endpoint=localhost:1|tags=32", 10),
        ("aeron:udp?tags=31", 12),
        ("aeron:udp?tags=32", 12),
    ] {
        driver.add_subscription(channel, stream_id);
    }
    assert_eq!(driver.refusals(), []);
    let statuses: Vec<i32> = driver
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::SubscriptionReady {
                channel_status_counter_id,
                ..
            } => Some(*channel_status_counter_id),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [statuses[0]; 5]);
    driver.add_subscription("aeron:udp?endpoint=localhost:2|tags=31", 10);
    let words = "matching tag=31 has mismatched endpoint or control";
    refused(&mut driver, ErrorCode::GenericError, words);
}

#[test]
fn socket_buffers_must_agree_on_a_shared_channel() {
    let mut driver = Driver::new();
    driver.add_publication("aeron:udp?endpoint=localhost:1|so-sndbuf=64k", 10);
    driver.add_publication("aeron:udp?endpoint=localhost:1|so-sndbuf=32k", 11);
    refused(
        &mut driver,
        ErrorCode::GenericError,
        "so-sndbuf=32768 does not match existing value of 65536",
    );
    driver.add_subscription("aeron:udp?endpoint=localhost:2", 10);
    driver.add_subscription("aeron:udp?endpoint=localhost:2|reliable=false", 10);
    refused(
        &mut driver,
        ErrorCode::GenericError,
        "option conflicts with existing subscription: reliable=false",
    );
}

#[test]
fn wildcard_ports_come_from_the_configured_range_and_go_back() {
    let mut driver = Driver::with(|config| {
        for (setting, range) in [("receiver", "7000 7001"), ("sender", "8000 8000")] {
            let name = format!("aeron.{setting}.wildcard.port.range");
            config.set(&name, range).unwrap();
        }
    });
    let opened = |driver: &Driver, port: u16| driver.count_in_trace(&format!("near opens 127.0.0.1:{port} "));
    let first = driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    assert_eq!([7_000, 7_001].map(|port| opened(&driver, port)), [1, 1]);
    let status_id = match driver.events()[1] {
        Event::SubscriptionReady {
            channel_status_counter_id,
            ..
        } => channel_status_counter_id,
        ref other => panic!("{other:?}"),
    };
    let address_id = driver
        .counters
        .find(type_ids::LOCAL_SOCKET_ADDRESS, first)
        .unwrap();
    assert_eq!(
        driver.counters.label(address_id),
        Some(format!("rcv-local-sockaddr: {status_id} 127.0.0.1:7000"))
    );
    driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    refused(
        &mut driver,
        ErrorCode::GenericError,
        "no available ports in range 7000 7001",
    );
    driver.remove_subscription(first);
    driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    assert_eq!([7_000, 7_001].map(|port| opened(&driver, port)), [2, 1]);
    // Publications draw from theirs only with a control address.
    driver.add_publication("aeron:udp?endpoint=localhost:1", 10);
    driver.add_publication("aeron:udp?control-mode=manual|interface=localhost", 10);
    assert_eq!(opened(&driver, 8_000), 0);
    driver.add_publication("aeron:udp?endpoint=localhost:2|control=localhost:0", 10);
    assert_eq!(opened(&driver, 8_000), 1);
}
