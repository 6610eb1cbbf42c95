//! Channels: found, opened, refused and closed.

use headrace_buffers::counters::type_ids;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;

use super::harness::{CLIENT, Harness, SECOND};
use crate::config::PortRange;
use crate::proxy::{ConductorReply, ReceiverCommand, SenderCommand};

fn refused(driver: &mut Harness, code: ErrorCode, text: &str) {
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
            "aeron:udp?endpoint=224.0.1.1:24325",
            ErrorCode::NotSupported,
            "multicast",
        ),
        (
            "aeron:udp?control-mode=manual",
            ErrorCode::NotSupported,
            "control-mode=manual",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|fc=min",
            ErrorCode::NotSupported,
            "fc=min",
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
        let mut driver = Harness::new();
        driver.add_publication(channel, 10);
        refused(&mut driver, code, text);
        assert!(driver.sockets.opened().is_empty(), "{channel}");
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
            "aeron:udp?endpoint=224.0.1.1:24325",
            ErrorCode::NotSupported,
            "multicast",
        ),
        (
            "aeron-spy:aeron:udp?endpoint=nowhere:24325",
            ErrorCode::UnknownHost,
            "endpoint=nowhere:24325",
        ),
        (
            "aeron-spy:aeron:udp?control-mode=manual",
            ErrorCode::NotSupported,
            "control-mode=manual",
        ),
        (
            "aeron:udp?endpoint=localhost:24325|rcv-wnd=256k",
            ErrorCode::GenericError,
            "Initial window greater than SO_RCVBUF",
        ),
    ] {
        let mut driver = Harness::new();
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
    let mut driver = Harness::new();
    driver.add_subscription("aeron:udp?endpoint=127.0.0.1:24325", 10);
    driver.forget();
    driver.add_subscription("aeron:udp?endpoint=localhost:24325", 10);
    refused(&mut driver, ErrorCode::GenericError, "Address already in use");
    driver.add_publication("aeron:udp?endpoint=localhost:1|interface=127.0.0.1:24325", 10);
    refused(&mut driver, ErrorCode::GenericError, "endpoint=localhost:1");
    driver.run_cycles();
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
    let mut driver = Harness::new();
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
    let mut driver = Harness::new();
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
fn socket_buffers_must_agree_on_a_shared_channel() {
    let mut driver = Harness::new();
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
fn a_closing_channel_asks_to_be_tried_again_and_is_not_an_error() {
    let mut driver = Harness::new();
    let subscription = driver.add_subscription("aeron:udp?endpoint=localhost:24325", 10);
    let status_id = driver
        .counters
        .find(type_ids::RECEIVE_CHANNEL_STATUS, subscription)
        .unwrap();
    let endpoint = driver
        .receiver_commands()
        .into_iter()
        .find_map(|command| match command {
            ReceiverCommand::AddSubscription { endpoint, .. } => Some(endpoint),
            _ => None,
        });
    driver.remove_subscription(subscription);
    assert_eq!(driver.counter(status_id).get(), 2);
    let closing: Vec<_> = driver.receiver_commands();
    assert!(matches!(
        closing[..],
        [
            ReceiverCommand::RemoveSubscription { stream_id: 10, .. },
            ReceiverCommand::RemoveEndpoint(_)
        ]
    ));
    driver.add_subscription("aeron:udp?endpoint=localhost:24325", 10);
    refused(
        &mut driver,
        ErrorCode::ResourceTemporarilyUnavailable,
        "found in CLOSING state, please retry",
    );
    assert_eq!(driver.recorded_errors(), [""; 0]);
    driver.reply(ConductorReply::ReceiveEndpointReleased(endpoint.unwrap()));
    assert_eq!(driver.live_counters(), [format!("client-heartbeat: id={CLIENT}")]);
}

#[test]
fn a_receive_channel_is_told_once_of_each_kind_of_interest() {
    let mut driver = Harness::new();
    let channel = "aeron:udp?endpoint=localhost:24325";
    let all = driver.add_subscription(channel, 10);
    let again = driver.add_subscription(channel, 10);
    driver.add_subscription("aeron:udp?endpoint=localhost:24325|session-id=5", 10);
    let added: Vec<_> = driver
        .receiver_commands()
        .iter()
        .filter_map(|command| match command {
            ReceiverCommand::AddSubscription {
                stream_id,
                session_id,
                ..
            } => Some((*stream_id, *session_id)),
            _ => None,
        })
        .collect();
    assert_eq!(added, [(10, None), (10, Some(5))]);
    driver.remove_subscription(all);
    assert!(driver.receiver_commands().is_empty());
    driver.remove_subscription(again);
    assert_eq!(driver.receiver_commands().len(), 1);
}

#[test]
fn wildcard_ports_come_from_the_configured_range_and_go_back() {
    let mut driver = Harness::with(|config| {
        config.receiver_wildcard_port_range = PortRange {
            low: 7_000,
            high: 7_001,
        };
        config.sender_wildcard_port_range = PortRange {
            low: 8_000,
            high: 8_000,
        };
    });
    let first = driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    driver.add_subscription("aeron:udp?endpoint=localhost:0", 10);
    let ports = |driver: &Harness| -> Vec<u16> {
        driver
            .sockets
            .opened()
            .iter()
            .map(|socket| socket.local.port())
            .collect()
    };
    assert_eq!(ports(&driver), [7_000, 7_001]);
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
    // Publications draw from theirs only with a control address.
    driver.add_publication("aeron:udp?endpoint=localhost:1", 10);
    driver.add_publication("aeron:udp?endpoint=localhost:2|control=localhost:0", 10);
    assert_eq!(ports(&driver)[2..], [0, 8_000]);
}

#[test]
fn a_full_queue_to_the_sender_holds_commands_back_and_loses_none() {
    let mut driver = Harness::new();
    driver.add_publication("aeron:udp?endpoint=localhost:1|term-length=64k", 10);
    // A sender that does not take its commands.
    let mut stuffing = 0;
    while driver
        .to_sender
        .push(SenderCommand::RemoveEndpoint(crate::proxy::EndpointId(-1)))
        .is_ok()
    {
        stuffing += 1;
    }
    assert!(stuffing > 1_000);
    driver.forget_events();
    driver.add_publication("aeron:udp?endpoint=localhost:2|term-length=64k", 10);
    assert_eq!(
        driver.names(),
        ["PublicationReady"],
        "begun before the queue was known to be full"
    );
    driver.add_publication("aeron:udp?endpoint=localhost:3|term-length=64k", 10);
    assert_eq!(driver.names().len(), 1);
    let taken = driver.sender_commands().len();
    assert_eq!(taken, stuffing + 2);
    driver.run_cycles();
    assert_eq!(driver.names().len(), 2);
    assert_eq!(driver.sender_commands().len(), 4);
    driver.pass_alive(SECOND);
}
