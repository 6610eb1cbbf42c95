//! Golden bytes of every frame, and the checks on what comes from the network.

mod common;

use std::borrow::Cow;
use std::net::IpAddr;

use common::hex;
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameError, FrameKind, Nak, ResolutionEntry, ResolutionFrame, ResponseSetup,
    RttMeasurement, Setup, StatusMessage, classify, data, rtt, setup, status_message, validate_data,
};

const TERM_LENGTH: i32 = 64 * 1024;

/// Encodes into a buffer of ones, so that a byte left unwritten shows.
fn encoded(encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buffer = vec![0xFF; 2048];
    let length = encode(&mut buffer);
    buffer.truncate(length);
    buffer
}

#[test]
fn status_message() {
    let golden = hex("24000000 00 00 0300 04030201 E9030000 07000000 40000000 00000200 8877665544332211");
    let message = StatusMessage {
        flags: 0,
        session_id: 0x0102_0304,
        stream_id: 1001,
        consumption_term_id: 7,
        consumption_term_offset: 64,
        receiver_window_length: 131_072,
        receiver_id: 0x1122_3344_5566_7788,
        group_tag: None,
    };
    assert_eq!(encoded(|into| message.encode(into)), golden);
    assert_eq!(StatusMessage::decode(&golden), Ok(message));
    assert_eq!(message.position(5, 16), 2 * 65536 + 64);
    assert_eq!(message.check(4 * 65536), Ok(()));
    let window = |length| {
        StatusMessage {
            receiver_window_length: length,
            ..message
        }
        .check(65536)
    };
    assert_eq!(window(32768), Ok(()));
    assert!(window(32769).is_err(), "more than half the term");
    assert!(window(-1).is_err());
}

#[test]
fn status_message_with_group_tag() {
    let golden = hex(
        "2C000000 00 80 0300 04030201 E9030000 00000000 00000000 00000000 \
                      8877665544332211 0201000000000000",
    );
    let message = StatusMessage::eliciting_setup(0x0102_0304, 1001, 0x1122_3344_5566_7788, Some(0x0102));
    assert_eq!(encoded(|into| message.encode(into)), golden);
    assert_eq!(StatusMessage::decode(&golden), Ok(message));
    assert!(message.asks_for_setup());
}

#[test]
fn status_message_with_both_flags_only_asks_for_setup() {
    let flags = status_message::FLAG_SETUP | status_message::FLAG_END_OF_STREAM;
    let message = StatusMessage {
        flags,
        ..StatusMessage::eliciting_setup(1, 2, 3, None)
    };
    assert!(message.asks_for_setup() && !message.is_end_of_stream());
}

#[test]
fn status_message_skips_a_tail_that_is_not_a_group_tag() {
    let mut old = encoded(|into| StatusMessage::eliciting_setup(1, 2, 3, None).encode(into));
    old.extend_from_slice(&[0xFF; 4]);
    old[0] = 40;
    assert_eq!(
        StatusMessage::decode(&old).map(|message| message.group_tag),
        Ok(None)
    );
}

#[test]
fn heartbeat() {
    let golden = hex("00000000 00 E0 0100 00100000 04030201 E9030000 07000000 0000000000000000");
    let flags = data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM;
    let header = DataHeader::heartbeat(0x0102_0304, 1001, 7, 4096, flags);
    assert_eq!(encoded(|into| header.encode(into)), golden);
    assert_eq!(DataHeader::decode(&golden), Ok(header));
    assert_eq!(classify(&golden), Ok(FrameKind::Data));
    let packet = validate_data(&golden, TERM_LENGTH).expect("a heartbeat is valid");
    assert!(packet.is_heartbeat && packet.is_end_of_stream());
    assert_eq!((packet.term_offset, packet.span), (4096, 0));
}

#[test]
fn nak() {
    let golden = hex("1C000000 00 00 0200 04030201 E9030000 07000000 00100000 00080000");
    let nak = Nak {
        flags: 0,
        session_id: 0x0102_0304,
        stream_id: 1001,
        term_id: 7,
        term_offset: 4096,
        length: 2048,
    };
    assert_eq!(encoded(|into| nak.encode(into)), golden);
    assert_eq!(Nak::decode(&golden), Ok(nak));
    assert_eq!(nak.check(TERM_LENGTH), Ok(()));
    assert!(
        Nak {
            length: TERM_LENGTH,
            ..nak
        }
        .check(TERM_LENGTH)
        .is_err(),
        "past the term's end"
    );
    assert!(Nak { length: -1, ..nak }.check(TERM_LENGTH).is_err());
    assert!(
        Nak {
            term_offset: 4097,
            ..nak
        }
        .check(TERM_LENGTH)
        .is_err()
    );
}

#[test]
fn error_frame() {
    let golden = hex(
        "2B000000 00 08 0400 04030201 E9030000 8877665544332211 0700000000000000 \
                      0D000000 03000000 626164",
    );
    let frame = ErrorFrame {
        session_id: 0x0102_0304,
        stream_id: 1001,
        receiver_id: 0x1122_3344_5566_7788,
        group_tag: Some(7),
        error_code: 13,
        text: "bad".to_owned(),
    };
    assert_eq!(encoded(|into| frame.encode(into)), golden);
    assert_eq!(ErrorFrame::decode(&golden), Ok(frame));
    for text_length in [4u8, 0xFF] {
        let mut wrong = golden.clone();
        wrong[36] = text_length;
        assert!(matches!(
            ErrorFrame::decode(&wrong),
            Err(FrameError::Field {
                field: "text_length",
                ..
            })
        ));
    }
}

#[test]
fn error_frame_text_ends_with_the_frame_not_the_datagram() {
    let frame = ErrorFrame {
        session_id: 1,
        stream_id: 2,
        receiver_id: 3,
        group_tag: None,
        error_code: 13,
        text: "bad data".to_owned(),
    };
    let mut bytes = encoded(|into| frame.encode(into));
    bytes[0] -= 1;
    assert!(ErrorFrame::decode(&bytes).is_err());
}

#[test]
fn error_frame_cuts_a_long_text() {
    let frame = ErrorFrame {
        session_id: 1,
        stream_id: 2,
        receiver_id: 3,
        group_tag: None,
        error_code: 13,
        text: "x".repeat(ErrorFrame::TEXT_LENGTH_MAX + 1),
    };
    let bytes = encoded(|into| frame.encode(into));
    assert_eq!(bytes.len(), ErrorFrame::LENGTH_MAX);
    assert_eq!(
        ErrorFrame::decode(&bytes).map(|frame| frame.text.len()),
        Ok(ErrorFrame::TEXT_LENGTH_MAX)
    );
}

#[test]
fn setup() {
    let golden = hex(
        "28000000 00 40 0500 40000000 04030201 E9030000 05000000 07000000 \
                      00000100 80050000 10000000",
    );
    let setup = Setup {
        flags: setup::FLAG_GROUP,
        term_offset: 64,
        session_id: 0x0102_0304,
        stream_id: 1001,
        initial_term_id: 5,
        active_term_id: 7,
        term_length: TERM_LENGTH,
        mtu: 1408,
        ttl: 16,
    };
    assert_eq!(encoded(|into| setup.encode(into)), golden);
    assert_eq!(Setup::decode(&golden), Ok(setup));
    assert_eq!(setup.check(), Ok(()));
    let unusable = [
        Setup {
            term_length: TERM_LENGTH + 1,
            ..setup
        },
        Setup {
            term_length: i32::MIN,
            ..setup
        },
        Setup {
            term_length: 32768,
            ..setup
        },
        Setup {
            term_offset: TERM_LENGTH,
            ..setup
        },
        Setup {
            term_offset: 65,
            ..setup
        },
        Setup { mtu: 1400, ..setup },
        Setup { mtu: 0, ..setup },
        Setup { mtu: 65536, ..setup },
    ];
    for setup in unusable {
        assert!(setup.check().is_err(), "{setup:?}");
    }
}

#[test]
fn rtt_measurement() {
    let golden = hex(
        "28000000 00 80 0600 04030201 E9030000 0100000000000000 0000000000000000 \
                      8877665544332211",
    );
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: 0x0102_0304,
        stream_id: 1001,
        echo_timestamp_ns: 1,
        reception_delta_ns: 0,
        receiver_id: 0x1122_3344_5566_7788,
    };
    assert_eq!(encoded(|into| probe.encode(into)), golden);
    assert_eq!(RttMeasurement::decode(&golden), Ok(probe));
    let echo = probe.echo();
    assert!(probe.asks_for_reply() && !echo.asks_for_reply());
    assert_eq!((echo.echo_timestamp_ns, echo.receiver_id), (1, probe.receiver_id));
}

#[test]
fn response_setup() {
    let golden = hex("14000000 00 00 0B00 04030201 E9030000 0D0C0B0A");
    let frame = ResponseSetup {
        flags: 0,
        session_id: 0x0102_0304,
        stream_id: 1001,
        response_session_id: 0x0A0B_0C0D,
    };
    assert_eq!(encoded(|into| frame.encode(into)), golden);
    assert_eq!(ResponseSetup::decode(&golden), Ok(frame));
}

#[test]
fn resolution() {
    let golden = hex("40000000 00 00 0700 \
                      01 80 5820 0A000000 7F000001 0300 61 62 63 00000000000000 \
                      02 00 5920 14000000 00000000000000000000000000000001 0400 64656667 0000");
    let entry = |flags, port, age_ms, address: &str, name: &'static str| ResolutionEntry {
        flags,
        port,
        age_ms,
        address: address.parse::<IpAddr>().expect("an address"),
        name: Cow::Borrowed(name),
    };
    let entries = [
        entry(0x80, 8280, 10, "127.0.0.1", "abc"),
        entry(0, 8281, 20, "::1", "defg"),
    ];
    let bytes = encoded(|into| {
        let total = entries.iter().map(ResolutionEntry::encoded_length).sum();
        let mut at = ResolutionFrame::encode_header(total, into);
        for entry in &entries {
            at += entry.encode(&mut into[at..]);
        }
        at
    });
    assert_eq!(bytes, golden);
    let walk: Result<Vec<_>, _> = ResolutionFrame::decode(&golden)
        .expect("a resolution frame")
        .collect();
    assert_eq!(walk.as_deref(), Ok(&entries[..]));
}

#[test]
fn resolution_stops_at_the_first_bad_entry() {
    let mut bytes = hex("38000000 00 00 0700 \
                         01 80 5820 0A000000 7F000001 0300 61 62 63 00000000000000 \
                         01 80 5820 0A000000 7F000001 0000 61 62 63 00000000000000");
    let walk: Vec<_> = ResolutionFrame::decode(&bytes)
        .expect("a resolution frame")
        .collect();
    assert_eq!(walk.len(), 2);
    assert!(walk[0].is_ok() && walk[1].is_err());
    bytes[8] = 9;
    let walk: Vec<_> = ResolutionFrame::decode(&bytes)
        .expect("a resolution frame")
        .collect();
    assert_eq!(walk.len(), 1);
}

#[test]
fn first_check_refuses_what_no_handler_may_see() {
    let nak = hex("1C000000 00 00 0200 04030201 E9030000 07000000 00100000 00080000");
    let changed = |at: usize, value: u8| {
        let mut bytes = nak.clone();
        bytes[at] = value;
        classify(&bytes)
    };
    assert_eq!(classify(&nak), Ok(FrameKind::Nak));
    assert_eq!(classify(&nak[..8]), Err(FrameError::Length { length: 8 }));
    assert_eq!(classify(&nak[..27]), Err(FrameError::Length { length: 27 }));
    assert_eq!(
        changed(0, 0x1D),
        Err(FrameError::FrameLength { frame_length: 0x1D })
    );
    assert!(matches!(changed(3, 0x80), Err(FrameError::FrameLength { .. })));
    assert_eq!(changed(4, 1), Err(FrameError::Version { version: 1 }));
    for reserved in [8, 9, 10, 12] {
        assert_eq!(
            changed(6, reserved),
            Err(FrameError::Type {
                code: reserved.into()
            })
        );
    }
    assert_eq!(changed(7, 0xFF), Err(FrameError::Type { code: 0xFF02 }));
}

/// A datagram of frames `(frame length, is padding)` from `term_offset`; only the header of padding travels.
fn datagram(term_offset: i32, frames: &[(i32, bool)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = term_offset;
    for &(frame_length, is_padding) in frames {
        let header = DataHeader {
            frame_length,
            is_padding,
            ..DataHeader::heartbeat(1, 2, 3, at, data::FLAGS_UNFRAGMENTED)
        };
        let start = bytes.len();
        let span = (frame_length as usize).next_multiple_of(32);
        bytes.resize(start + if is_padding { 32 } else { span }, 0);
        header.encode(&mut bytes[start..]);
        at += span as i32;
    }
    bytes
}

#[test]
fn data_walk_accepts_whole_frames_and_a_last_padding() {
    let span = |bytes: &[u8]| validate_data(bytes, TERM_LENGTH).map(|packet| packet.span);
    assert_eq!(
        span(&datagram(0, &[(33, false), (64, false), (32, false)])),
        Ok(64 + 64 + 32)
    );
    assert_eq!(span(&datagram(64, &[(100, false), (4096, true)])), Ok(128 + 4096));
    assert_eq!(span(&datagram(64, &[(32, true), (40, false)])), Ok(32 + 64));
    assert_eq!(span(&datagram(TERM_LENGTH - 64, &[(64, true)])), Ok(64));
    let empty_message = datagram(0, &[(32, false)]);
    assert_eq!(
        validate_data(&empty_message, TERM_LENGTH).map(|packet| packet.is_heartbeat),
        Ok(false)
    );
}

#[test]
fn data_walk_refuses_gaps_overlaps_and_term_ends() {
    let refused = |bytes: &[u8]| validate_data(bytes, TERM_LENGTH).is_err();
    let good = datagram(0, &[(64, false), (64, false)]);
    assert!(!refused(&good));
    assert!(refused(&good[..96]), "the last frame is cut");
    assert!(refused(&good[..100]), "not a multiple of 32");
    let mut wrong_offset = good.clone();
    wrong_offset[64 + 8] = 0;
    assert!(refused(&wrong_offset));
    let mut wrong_type = good.clone();
    wrong_type[64 + 6] = 2;
    assert!(refused(&wrong_type));
    let mut empty_second = good.clone();
    empty_second[64] = 0;
    assert!(refused(&empty_second));
    let mut short_second = good.clone();
    short_second[64] = 31;
    assert!(refused(&short_second), "shorter than its header");
    assert!(
        refused(&datagram(TERM_LENGTH - 64, &[(96, true)])),
        "passes the end of the term"
    );
    assert!(
        refused(&datagram(TERM_LENGTH, &[(32, false)])),
        "starts after the term"
    );
    assert!(refused(&datagram(0, &[(i32::MAX, true)])));
    let mut misplaced = good;
    misplaced[8] = 1;
    assert!(refused(&misplaced), "not on a frame boundary");
}
