//! Datagrams, as sockets deliver them.

use std::borrow::Cow;

use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, Nak, ResolutionEntry, ResolutionFrame, ResponseSetup, RttMeasurement,
    Setup, StatusMessage, classify, data, first_datagram, validate_data,
};

const TERM_LENGTH: i32 = 64 * 1024;

/// Dispatches a datagram as both kinds of sockets do.
pub fn run(datagram: &[u8]) {
    let first = first_datagram(datagram);
    assert!(first <= datagram.len() && (first > 0 || datagram.is_empty()));
    let Ok(kind) = classify(datagram) else {
        return;
    };
    match kind {
        FrameKind::Data | FrameKind::Pad => run_data(datagram),
        FrameKind::Setup => {
            let setup = Setup::decode(datagram).expect("classified");
            if setup.check().is_ok() {
                assert!(setup.term_offset < setup.term_length && setup.mtu > 0);
            }
        }
        FrameKind::StatusMessage => {
            let message = StatusMessage::decode(datagram).expect("classified");
            if message.check(TERM_LENGTH).is_ok() {
                let position = message.position(message.consumption_term_id, 16);
                assert_eq!(position, i64::from(message.consumption_term_offset));
            }
        }
        FrameKind::Nak => {
            let nak = Nak::decode(datagram).expect("classified");
            if nak.check(TERM_LENGTH).is_ok() {
                assert!(nak.term_offset + nak.length <= TERM_LENGTH);
            }
        }
        FrameKind::Error => {
            if let Ok(frame) = ErrorFrame::decode(datagram) {
                assert!(frame.text.chars().count() <= ErrorFrame::TEXT_LENGTH_MAX);
            }
        }
        FrameKind::RttMeasurement => {
            let probe = RttMeasurement::decode(datagram).expect("classified");
            assert!(!probe.echo().asks_for_reply());
        }
        FrameKind::Resolution => {
            let frame = ResolutionFrame::decode(datagram).expect("classified");
            assert!(frame.count() <= datagram.len() / 8);
        }
        FrameKind::ResponseSetup => {
            ResponseSetup::decode(datagram).expect("classified");
        }
    }
}

fn run_data(datagram: &[u8]) {
    let Ok(packet) = validate_data(datagram, TERM_LENGTH) else {
        return;
    };
    assert!(packet.term_offset >= 0 && packet.span <= TERM_LENGTH - packet.term_offset);
    assert_eq!(packet.is_heartbeat, packet.span == 0);
    assert!(packet.is_heartbeat || packet.span as usize >= datagram.len());
}

/// One of each frame, and datagrams of several.
pub fn seeds() -> Vec<Vec<u8>> {
    let status_message = StatusMessage::eliciting_setup(1, 2, 3, Some(4));
    let setup = Setup {
        flags: 0,
        term_offset: 64,
        session_id: 1,
        stream_id: 2,
        initial_term_id: 3,
        active_term_id: 4,
        term_length: TERM_LENGTH,
        mtu: 1408,
        ttl: 0,
    };
    let nak = Nak {
        flags: 0,
        session_id: 1,
        stream_id: 2,
        term_id: 3,
        term_offset: 64,
        length: 32,
    };
    let error = ErrorFrame {
        session_id: 1,
        stream_id: 2,
        receiver_id: 3,
        group_tag: None,
        error_code: 13,
        text: "rejected".to_owned(),
    };
    let rtt = RttMeasurement {
        flags: 0x80,
        session_id: 1,
        stream_id: 2,
        echo_timestamp_ns: 3,
        reception_delta_ns: 0,
        receiver_id: 4,
    };
    let response = ResponseSetup {
        flags: 0,
        session_id: 1,
        stream_id: 2,
        response_session_id: 3,
    };
    vec![
        encoded(|into| status_message.encode(into)),
        encoded(|into| {
            StatusMessage {
                group_tag: None,
                ..status_message
            }
            .encode(into)
        }),
        encoded(|into| setup.encode(into)),
        encoded(|into| nak.encode(into)),
        encoded(|into| error.encode(into)),
        encoded(|into| {
            ErrorFrame {
                group_tag: Some(7),
                ..error.clone()
            }
            .encode(into)
        }),
        encoded(|into| rtt.encode(into)),
        encoded(|into| response.encode(into)),
        encoded(|into| DataHeader::heartbeat(1, 2, 3, 64, data::FLAGS_UNFRAGMENTED).encode(into)),
        encoded(resolution),
        data_frames(&[(33, false), (96, false)]),
        data_frames(&[(64, false), (4096, true)]),
    ]
}

fn resolution(into: &mut [u8]) -> usize {
    let entry = ResolutionEntry {
        flags: 0x80,
        port: 8050,
        age_ms: 10,
        address: [127, 0, 0, 1].into(),
        name: Cow::Borrowed("driver-one"),
    };
    let header_length = ResolutionFrame::encode_header(entry.encoded_length(), into);
    header_length + entry.encode(&mut into[header_length..])
}

fn data_frames(frames: &[(i32, bool)]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut term_offset = 0;
    for &(frame_length, is_padding) in frames {
        let header = DataHeader {
            frame_length,
            is_padding,
            ..DataHeader::heartbeat(1, 2, 3, term_offset, 0xC0)
        };
        let span = (frame_length as usize).next_multiple_of(32);
        let start = datagram.len();
        datagram.resize(start + if is_padding { DataHeader::LENGTH } else { span }, 0);
        header.encode(&mut datagram[start..]);
        term_offset += span as i32;
    }
    datagram
}

fn encoded(encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buffer = vec![0; 2048];
    let length = encode(&mut buffer);
    buffer.truncate(length);
    buffer
}
