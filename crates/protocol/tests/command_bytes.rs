//! Golden bytes of every command, and what clients of other implementations do differently.

mod common;

use std::borrow::Cow;

use common::hex;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::{Command, CommandFault, type_id};

/// Client id 3, correlation id 5.
const IDS: &str = "0300000000000000 0500000000000000";
const CLIENT: i64 = 3;
const CORRELATION: i64 = 5;

fn check(id: i32, fields: &str, command: &Command<'_>) {
    let golden = hex(&format!("{IDS} {fields}"));
    let mut message = vec![0xFF; 7];
    assert_eq!(command.encode(&mut message), id, "{command:?}");
    assert_eq!(message, golden, "{command:?}");
    assert_eq!(Command::decode(id, &golden).as_ref(), Ok(command));
    assert_eq!(
        (command.client_id(), command.correlation_id()),
        (CLIENT, CORRELATION)
    );
    // Peers round some commands up.
    let spare = [&golden[..], &[0xFF; 8]].concat();
    if id != type_id::REMOVE_PUBLICATION {
        assert_eq!(
            Command::decode(id, &spare).as_ref(),
            Ok(command),
            "bytes to spare"
        );
    }
}

#[test]
fn publications() {
    let (client_id, correlation_id) = (CLIENT, CORRELATION);
    let channel = Cow::Borrowed("aeron:ipc");
    let fields = "E9030000 09000000 6165726F6E3A697063";
    let add = Command::AddPublication {
        client_id,
        correlation_id,
        stream_id: 1001,
        channel: channel.clone(),
    };
    check(0x01, fields, &add);
    let add = Command::AddExclusivePublication {
        client_id,
        correlation_id,
        stream_id: 1001,
        channel,
    };
    check(0x03, fields, &add);
    for (revoke, flags) in [(false, "00"), (true, "01")] {
        let remove = Command::RemovePublication {
            client_id,
            correlation_id,
            registration_id: 9,
            revoke,
        };
        check(0x02, &format!("0900000000000000 {flags}00000000000000"), &remove);
    }
    let next = Command::NextAvailableSessionId {
        client_id,
        correlation_id,
        stream_id: 1001,
    };
    check(0x12, "E9030000", &next);
}

#[test]
fn subscriptions_and_images() {
    let (client_id, correlation_id) = (CLIENT, CORRELATION);
    let channel = Cow::Borrowed("aeron:ipc");
    let add = Command::AddSubscription {
        client_id,
        correlation_id,
        stream_id: 1001,
        channel,
    };
    check(
        0x04,
        "FFFFFFFFFFFFFFFF E9030000 09000000 6165726F6E3A697063",
        &add,
    );
    let remove = Command::RemoveSubscription {
        client_id,
        correlation_id,
        registration_id: 9,
    };
    check(0x05, "0900000000000000", &remove);
    let reject = Command::RejectImage {
        client_id,
        correlation_id,
        image_correlation_id: 7,
        position: 64,
        reason: Cow::Borrowed("bad data"),
    };
    check(
        0x10,
        "0700000000000000 4000000000000000 08000000 6261642064617461",
        &reject,
    );
    let reject = Command::RejectImage {
        client_id,
        correlation_id,
        image_correlation_id: 7,
        position: 64,
        reason: "x".into(),
    };
    check(
        0x10,
        "0700000000000000 4000000000000000 01000000 78 000000",
        &reject,
    );
}

#[test]
fn destinations() {
    let (client_id, correlation_id, registration_id) = (CLIENT, CORRELATION, 9);
    let channel = || Cow::Borrowed("aeron:ipc");
    let fields = "0900000000000000 09000000 6165726F6E3A697063";
    check(
        0x07,
        fields,
        &Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: channel(),
        },
    );
    check(
        0x08,
        fields,
        &Command::RemoveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: channel(),
        },
    );
    check(
        0x0C,
        fields,
        &Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: channel(),
        },
    );
    check(
        0x0D,
        fields,
        &Command::RemoveReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: channel(),
        },
    );
    let by_id = Command::RemoveDestinationById {
        client_id,
        correlation_id,
        registration_id,
        destination_registration_id: 11,
    };
    check(0x11, "0900000000000000 0B00000000000000", &by_id);
}

#[test]
fn counters() {
    let (client_id, correlation_id) = (CLIENT, CORRELATION);
    let label = || Cow::Borrowed("label");
    let add = Command::AddCounter {
        client_id,
        correlation_id,
        type_id: 1000,
        key: &[1, 2, 3, 4, 5],
        label: label(),
    };
    check(
        0x09,
        "E8030000 05000000 0102030405 000000 05000000 6C6162656C",
        &add,
    );
    let add = Command::AddCounter {
        client_id,
        correlation_id,
        type_id: 1000,
        key: &[],
        label: "".into(),
    };
    check(0x09, "E8030000 00000000 00000000", &add);
    let add = Command::AddStaticCounter {
        client_id,
        correlation_id,
        registration_id: 9,
        type_id: 1000,
        key: &[1, 2, 3, 4],
        label: label(),
    };
    check(
        0x0F,
        "0900000000000000 E8030000 04000000 01020304 05000000 6C6162656C",
        &add,
    );
    let remove = Command::RemoveCounter {
        client_id,
        correlation_id,
        registration_id: 9,
    };
    check(0x0A, "0900000000000000", &remove);
}

#[test]
fn clients_and_driver() {
    let (client_id, correlation_id) = (CLIENT, CORRELATION);
    check(
        0x06,
        "",
        &Command::ClientKeepalive {
            client_id,
            correlation_id,
        },
    );
    check(
        0x0B,
        "",
        &Command::ClientClose {
            client_id,
            correlation_id,
        },
    );
    check(
        0x0E,
        "02000000 AABB",
        &Command::TerminateDriver {
            client_id,
            correlation_id,
            token: &[0xAA, 0xBB],
        },
    );
}

#[test]
fn removals_from_before_revocation_have_no_flags() {
    let old = hex(&format!("{IDS} 0900000000000000"));
    let expected = Command::RemovePublication {
        client_id: CLIENT,
        correlation_id: CORRELATION,
        registration_id: 9,
        revoke: false,
    };
    assert_eq!(Command::decode(0x02, &old), Ok(expected.clone()));
    assert_eq!(
        Command::decode(0x02, &[&old[..], &[1, 0, 0, 0]].concat()),
        Ok(expected),
        "half of the flags"
    );
}

#[test]
fn c_clients_reject_images_without_ids_and_with_a_terminator() {
    let zero = "0000000000000000";
    let message = hex(&format!(
        "{zero} {zero} 0700000000000000 4000000000000000 04000000 62616400"
    ));
    let Ok(Command::RejectImage {
        client_id,
        correlation_id,
        reason,
        ..
    }) = Command::decode(0x10, &message)
    else {
        panic!("not a rejection");
    };
    assert_eq!((client_id, correlation_id, &*reason), (0, 0, "bad"));
}

#[test]
fn text_that_is_not_text_is_shown_with_question_marks() {
    let channel = |bytes: &str| {
        let message = hex(&format!("{IDS} E9030000 02000000 {bytes}"));
        match Command::decode(0x01, &message) {
            Ok(Command::AddPublication { channel, .. }) => channel.into_owned(),
            other => panic!("not a publication: {other:?}"),
        }
    };
    assert_eq!(channel("61FF"), "a?");
    assert_eq!(channel("C3A9"), "é", "UTF-8 is let through");
}

#[test]
fn records_that_are_not_commands_say_what_to_answer() {
    let message = hex(&format!("{IDS} E9030000 09000000 6165"));
    let error = Command::decode(0x01, &message).expect_err("the channel is cut off");
    assert_eq!(
        (error.code(), error.correlation_id),
        (ErrorCode::MalformedCommand, Some(CORRELATION))
    );
    assert_eq!(error.fault, CommandFault::Field("channel"));
    assert_eq!(
        error.to_string(),
        "command=1 has an impossible length in field channel: length=26"
    );

    let error = Command::decode(0x01, &message[..23]).expect_err("too short");
    assert_eq!(
        (error.code(), error.fault),
        (ErrorCode::MalformedCommand, CommandFault::TooShort)
    );
    assert_eq!(error.to_string(), "command=1 too short: length=23");
    assert_eq!(error.correlation_id, Some(CORRELATION));
    assert_eq!(
        Command::decode(0x01, &message[..15]).map_err(|error| error.correlation_id),
        Err(None)
    );

    for unknown in [0, 0x13, -1, i32::MAX, i32::MIN] {
        let error = Command::decode(unknown, &message).expect_err("no such command");
        assert_eq!(
            (error.code(), error.fault),
            (ErrorCode::UnknownCommandTypeId, CommandFault::UnknownType)
        );
        assert_eq!(error.correlation_id, Some(CORRELATION));
    }

    let negative = hex(&format!("{IDS} E9030000 FFFFFFFF"));
    assert!(Command::decode(0x01, &negative).is_err());
    let key_past_end = hex(&format!("{IDS} E8030000 FFFFFF7F 00000000"));
    let error = Command::decode(0x09, &key_past_end).expect_err("the key is longer than the message");
    assert_eq!(error.fault, CommandFault::Field("key"));
}
