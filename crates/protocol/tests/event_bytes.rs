//! Golden bytes of every event.

mod common;

use common::hex;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::{Event, EventError, PublicationError, PublicationReady, type_id};

fn check(id: i32, golden: &str, event: &Event<'_>) {
    let golden = hex(golden);
    let mut message = vec![0xFF; 7];
    assert_eq!(event.encode(&mut message), id, "{event:?}");
    assert_eq!(message, golden, "{event:?}");
    assert_eq!(Event::decode(id, &golden).as_ref(), Ok(event));
    let spare = [&golden[..], &[0xFF; 8]].concat();
    assert_eq!(Event::decode(id, &spare).as_ref(), Ok(event), "bytes to spare");
    for length in 0..golden.len() {
        if id != type_id::PUBLICATION_ERROR {
            let cut = Event::decode(id, &golden[..length]);
            assert_eq!(
                cut,
                Err(EventError::Malformed { type_id: id, length }),
                "{event:?}"
            );
        }
    }
}

#[test]
fn error() {
    let event = Event::Error {
        correlation_id: 5,
        error_code: ErrorCode::InvalidChannel,
        message: "no such channel".into(),
    };
    check(
        0x0F01,
        "0500000000000000 01000000 0F000000 6E6F2073756368206368616E6E656C",
        &event,
    );
}

#[test]
fn an_error_code_of_a_later_version_is_unknown() {
    let message = hex("0500000000000000 63000000 00000000");
    let Ok(Event::Error { error_code, .. }) = Event::decode(0x0F01, &message) else {
        panic!("not an error");
    };
    assert_eq!(error_code, ErrorCode::Unknown);
}

#[test]
fn available_image() {
    let event = Event::AvailableImage {
        image_correlation_id: 5,
        session_id: -2,
        stream_id: 1001,
        subscription_registration_id: 9,
        subscriber_position_counter_id: 77,
        log_file_name: "/x/5.".into(),
        source_identity: "h:1".into(),
    };
    check(
        0x0F02,
        "0500000000000000 FEFFFFFF E9030000 0900000000000000 4D000000 05000000 2F782F352E 000000 03000000 683A31",
        &event,
    );
}

#[test]
fn publication_ready() {
    let ready = PublicationReady {
        correlation_id: 6,
        original_registration_id: 5,
        session_id: -2,
        stream_id: 1001,
        publisher_limit_counter_id: 77,
        channel_status_counter_id: -1,
        log_file_name: "/x/5".into(),
    };
    let golden = "0600000000000000 0500000000000000 FEFFFFFF E9030000 4D000000 FFFFFFFF 04000000 2F782F35";
    check(0x0F03, golden, &Event::PublicationReady(ready.clone()));
    check(0x0F06, golden, &Event::ExclusivePublicationReady(ready));
}

#[test]
fn unavailable_image() {
    let event = Event::UnavailableImage {
        image_correlation_id: 5,
        subscription_registration_id: 9,
        stream_id: 1001,
        channel: "aeron:ipc".into(),
    };
    check(
        0x0F05,
        "0500000000000000 0900000000000000 E9030000 09000000 6165726F6E3A697063",
        &event,
    );
}

#[test]
fn events_of_one_or_two_ids() {
    check(
        0x0F04,
        "0500000000000000",
        &Event::OperationSuccess { correlation_id: 5 },
    );
    check(0x0F0A, "0300000000000000", &Event::ClientTimeout { client_id: 3 });
    let pair = "0500000000000000 4D000000";
    check(
        0x0F07,
        pair,
        &Event::SubscriptionReady {
            correlation_id: 5,
            channel_status_counter_id: 77,
        },
    );
    check(
        0x0F08,
        pair,
        &Event::CounterReady {
            registration_id: 5,
            counter_id: 77,
        },
    );
    check(
        0x0F09,
        pair,
        &Event::UnavailableCounter {
            registration_id: 5,
            counter_id: 77,
        },
    );
    check(
        0x0F0B,
        pair,
        &Event::StaticCounter {
            correlation_id: 5,
            counter_id: 77,
        },
    );
    check(
        0x0F0D,
        pair,
        &Event::NextAvailableSessionId {
            correlation_id: 5,
            session_id: 77,
        },
    );
}

fn publication_error(source: &str, message: &'static str) -> Event<'static> {
    Event::PublicationError(PublicationError {
        registration_id: 5,
        destination_registration_id: -1,
        session_id: -2,
        stream_id: 1001,
        receiver_id: 7,
        group_tag: -1,
        source_address: Some(source.parse().expect("an address")),
        error_code: ErrorCode::ImageRejected,
        message: message.into(),
    })
}

#[test]
fn publication_error_pads_a_short_text() {
    let start = "0500000000000000 FFFFFFFFFFFFFFFF FEFFFFFF E9030000 0700000000000000 FFFFFFFFFFFFFFFF";
    let ip4 = "0100 BB9C 7F000001 000000000000000000000000";
    let golden = format!("{start} {ip4} 0D000000 03000000 626164 00");
    check(0x0F0C, &golden, &publication_error("127.0.0.1:40123", "bad"));
    let ip6 = "0200 BB9C 00000000000000000000000000000001";
    let golden = format!("{start} {ip6} 0D000000 05000000 776F727365");
    check(0x0F0C, &golden, &publication_error("[::1]:40123", "worse"));
}

#[test]
fn publication_error_from_an_unknown_family_has_no_source() {
    let mut message = Vec::new();
    publication_error("127.0.0.1:40123", "worse").encode(&mut message);
    message[40] = 9;
    let Ok(Event::PublicationError(error)) = Event::decode(0x0F0C, &message) else {
        panic!("not a publication error");
    };
    assert_eq!(error.source_address, None);
    for length in 0..message.len() {
        assert!(Event::decode(0x0F0C, &message[..length]).is_err());
    }
}

#[test]
fn unknown_events_are_told_apart_from_malformed_ones() {
    for type_id in [0, 1, 0x0F00, 0x0F0E, -1] {
        assert_eq!(
            Event::decode(type_id, &[0; 64]),
            Err(EventError::UnknownType { type_id })
        );
    }
}
