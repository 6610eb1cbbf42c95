//! What is refused, and how the driver says so.

use headrace_protocol::ErrorCode;
use headrace_protocol::command::{Command, type_id};
use headrace_protocol::event::Event;

use crate::byte_client::{CLIENT, Driver, IPC};

#[test]
fn a_channel_that_cannot_be_is_refused_with_its_rule_and_recorded() {
    for (channel, code, text) in [
        (
            "aeron:ipc?term-length=100k",
            ErrorCode::GenericError,
            "not a power of 2",
        ),
        (
            "aeron:ipc?mtu=1400",
            ErrorCode::GenericError,
            "not a multiple of FRAME_ALIGNMENT",
        ),
        (
            "aeron:ipc?pub-wnd=32",
            ErrorCode::GenericError,
            "cannot be less than the mtu",
        ),
        (
            "aeron:ipc?term-id=4",
            ErrorCode::GenericError,
            "params must be used as a complete set",
        ),
        (
            "aeron:ipc?stream-id=4",
            ErrorCode::InvalidChannel,
            "does not match provided streamId=10",
        ),
        ("ipc", ErrorCode::InvalidChannel, "ipc"),
    ] {
        let mut driver = Driver::new();
        driver.add_publication(channel, 10);
        let (found, message) = driver.refusals().remove(0);
        assert!(found == code && message.contains(text), "{channel}: {message}");
        assert_eq!(driver.recorded_errors(), [message]);
        assert_eq!(driver.log_files(), 0);
    }
}

#[test]
fn a_channel_too_long_is_quoted_up_to_the_limit() {
    let mut driver = Driver::new();
    let channel = format!("aeron:ipc?alias={}", "x".repeat(5_000));
    driver.add_subscription(&channel, 10);
    let (code, message) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::InvalidChannel);
    assert!(message.contains(&channel[..4095]));
}

#[test]
fn commands_that_make_no_sense_are_answered() {
    let mut driver = Driver::new();
    driver.raw_command(0x70, &[0; 16]);
    driver.raw_command(type_id::ADD_PUBLICATION, &[0; 12]);
    let codes: Vec<_> = driver.refusals().into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        [ErrorCode::UnknownCommandTypeId, ErrorCode::MalformedCommand]
    );
}

#[test]
fn destinations_of_streams_that_have_none_are_refused() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    let subscription = driver.add_subscription("aeron:ipc", 10);
    let plain = driver.add_subscription("aeron:udp?endpoint=near:40000", 10);
    let channel = "aeron:udp?endpoint=localhost:40001";
    for registration_id in [publication, 99_999] {
        driver.forget();
        let correlation_id = driver.next_id();
        driver.command(&Command::AddDestination {
            client_id: CLIENT,
            correlation_id,
            registration_id,
            channel: channel.into(),
        });
        assert_eq!(driver.refusals()[0].0, ErrorCode::UnknownPublication);
    }
    for (registration_id, code) in [
        (subscription, ErrorCode::UnknownSubscription),
        (plain, ErrorCode::UnknownSubscription),
        (99_999, ErrorCode::UnknownSubscription),
    ] {
        driver.forget();
        let correlation_id = driver.next_id();
        driver.command(&Command::AddReceiveDestination {
            client_id: CLIENT,
            correlation_id,
            registration_id,
            channel: channel.into(),
        });
        assert_eq!(driver.refusals()[0].0, code);
    }
}

#[test]
fn rejecting_an_unknown_image_is_an_error() {
    let mut driver = Driver::new();
    driver.reject(12_345, "no");
    let (code, text) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("Unable to resolve image for correlationId=12345"),
        "{text}"
    );
}

#[test]
fn a_reason_for_rejection_has_a_longest_length() {
    let mut driver = Driver::new();
    let publication = driver.add_publication(IPC, 10);
    driver.forget();
    driver.reject(publication, &"x".repeat(1024));
    assert_eq!(driver.refusals()[0].0, ErrorCode::GenericError);
    driver.forget();
    driver.reject(publication, &"x".repeat(1023));
    assert_eq!(driver.names(), ["PublicationError", "OperationSuccess"]);
}

#[test]
fn a_client_stops_the_driver_only_where_it_may() {
    for (validator, expected) in [("deny", false), ("allow", true)] {
        let mut driver = Driver::with(|config| {
            config
                .set("aeron.driver.termination.validator", validator)
                .unwrap();
        });
        driver.command(&Command::TerminateDriver {
            client_id: CLIENT,
            correlation_id: 1,
            token: &[],
        });
        assert_eq!(driver.node.is_terminated(), expected);
        assert!(driver.names().is_empty());
    }
}

#[test]
fn the_next_session_id_is_free_and_not_reserved() {
    let mut driver = Driver::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let correlation_id = driver.next_id();
        driver.command(&Command::NextAvailableSessionId {
            client_id: CLIENT,
            correlation_id,
            stream_id: 10,
        });
        match driver.events().last() {
            Some(Event::NextAvailableSessionId { session_id, .. }) => seen.push(*session_id),
            other => panic!("{other:?}"),
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|id| !(-1..=1000).contains(id)));
}

#[test]
fn a_log_that_does_not_fit_is_refused_for_storage() {
    let mut driver = Driver::new();
    driver.node.set_disk_room(Some(3 << 30));
    driver.add_publication("aeron:ipc?term-length=1g", 10);
    let (code, text) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::StorageSpace);
    assert!(
        text.contains("insufficient usable storage for new log of length=3221229568"),
        "{text}"
    );
}

#[test]
fn a_channel_with_a_misspelt_parameter_works_and_leaves_a_warning() {
    let mut driver = Driver::new();
    let publication = driver.add_publication("aeron:ipc?term-lenght=64k|term-length=64k", 10);
    driver.ready(publication);
    driver.add_subscription("aeron:ipc?relaible=false", 10);
    assert!(driver.names().contains(&"SubscriptionReady".to_owned()));
    let errors = driver.recorded_errors();
    for (error, meant) in errors
        .iter()
        .zip(["did you mean term-length?", "did you mean reliable?"])
    {
        assert!(
            error.starts_with("WARN - channel parameter")
                && error.contains(meant)
                && error.contains("channel=aeron:ipc?"),
            "{errors:?}"
        );
    }
    assert_eq!(errors.len(), 2);
}

#[test]
fn what_clients_ask_for_in_vain_leaves_room_in_the_error_log() {
    let mut driver = Driver::new();
    for number in 0..600 {
        driver.add_subscription(&format!("aeron:udp?endpoint=127.0.0.1:{number}"), 1);
        driver.add_publication(&format!("aeron:tcp?endpoint=127.0.0.1:{number}"), 1);
        driver.add_subscription(&format!("aeron:ipc?term-lenght=64k|alias={number}"), 1);
        driver.forget();
    }
    let errors = driver.recorded_errors();
    let count = |text: &str| errors.iter().filter(|error| error.contains(text)).count();
    assert_eq!(count("tcp"), 256);
    assert_eq!(count("term-lenght"), 256);
    assert_eq!(count("more commands refused"), 1);
    assert_eq!(count("more doubts about channels"), 1);
}
