//! Properties of every codec: what is written reads back, and no bytes make a decoder panic.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::{Event, PublicationError, PublicationReady};
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameError, Nak, ResolutionEntry, ResolutionFrame, ResponseSetup, RttMeasurement,
    Setup, StatusMessage, classify, validate_data,
};
use proptest::prelude::*;

const TERM_LENGTH: i32 = 64 * 1024;

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    "[ -~]{0,40}".prop_map(Cow::Owned)
}

fn bytes(length_max: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..=length_max)
}

/// Bytes that often look like a frame: a plausible header, then noise.
fn frame_like() -> impl Strategy<Value = Vec<u8>> {
    (0i32..200, any::<u8>(), 0u16..14, bytes(192)).prop_map(|(length, flags, code, noise)| {
        let mut datagram = length.to_le_bytes().to_vec();
        datagram.extend_from_slice(&[0, flags]);
        datagram.extend_from_slice(&code.to_le_bytes());
        datagram.extend_from_slice(&noise);
        datagram
    })
}

/// Runs every frame decoder, and the checks that follow a successful one.
fn decode_as_everything(datagram: &[u8]) {
    let _ = classify(datagram);
    let _ = DataHeader::decode(datagram);
    if let Ok(packet) = validate_data(datagram, TERM_LENGTH) {
        assert!(packet.term_offset >= 0 && packet.term_offset + packet.span <= TERM_LENGTH);
        assert!(packet.is_heartbeat == (packet.span == 0));
    }
    if let Ok(setup) = Setup::decode(datagram) {
        let _ = setup.check();
    }
    if let Ok(message) = StatusMessage::decode(datagram) {
        let _ = (message.check(TERM_LENGTH), message.position(i32::MIN, 30));
    }
    if let Ok(nak) = Nak::decode(datagram) {
        let _ = nak.check(TERM_LENGTH);
    }
    let _ = ErrorFrame::decode(datagram);
    let _ = RttMeasurement::decode(datagram);
    let _ = ResponseSetup::decode(datagram);
    if let Ok(frame) = ResolutionFrame::decode(datagram) {
        assert!(frame.count() <= datagram.len() / 8);
    }
}

/// `encode` then `decode` gives the value back, and no shorter datagram does.
fn round_trip<T: PartialEq + std::fmt::Debug>(
    value: &T,
    encode: impl FnOnce(&T, &mut [u8]) -> usize,
    decode: impl Fn(&[u8]) -> Result<T, FrameError>,
) -> Result<(), TestCaseError> {
    let mut buffer = [0xFF; 2048];
    let length = encode(value, &mut buffer);
    let decoded = decode(&buffer[..length]);
    prop_assert_eq!(decoded.as_ref(), Ok(value));
    for cut in 0..length {
        prop_assert!(decode(&buffer[..cut]).is_err(), "cut to {}", cut);
    }
    Ok(())
}

prop_compose! {
    fn entry()(
        flags in any::<u8>(),
        port in any::<u16>(),
        age_ms in any::<i32>(),
        address in any::<IpAddr>(),
        name in "[a-z.]{1,40}",
    ) -> ResolutionEntry<'static> {
        ResolutionEntry { flags, port, age_ms, address, name: Cow::Owned(name) }
    }
}

fn command() -> impl Strategy<Value = (i32, i64, i64, i64, Cow<'static, str>, Vec<u8>, bool)> {
    (
        0i32..18,
        any::<i64>(),
        any::<i64>(),
        any::<i64>(),
        text(),
        bytes(20),
        any::<bool>(),
    )
}

fn event() -> impl Strategy<Value = Event<'static>> {
    let ids = || {
        (
            any::<i64>(),
            any::<i64>(),
            any::<i32>(),
            any::<i32>(),
            any::<i32>(),
        )
    };
    let code = (-1i32..15).prop_map(ErrorCode::from_value);
    let ready = (ids(), any::<i32>(), text()).prop_map(|((a, b, c, d, e), f, log)| PublicationReady {
        correlation_id: a,
        original_registration_id: b,
        session_id: c,
        stream_id: d,
        publisher_limit_counter_id: e,
        channel_status_counter_id: f,
        log_file_name: log,
    });
    let error = (ids(), ids(), any::<IpAddr>(), any::<u16>(), code.clone(), text()).prop_map(
        |((a, b, c, d, _), (e, f, ..), ip, port, error_code, message)| PublicationError {
            registration_id: a,
            destination_registration_id: b,
            session_id: c,
            stream_id: d,
            receiver_id: e,
            group_tag: f,
            source_address: Some(SocketAddr::new(ip, port)),
            error_code,
            message,
        },
    );
    prop_oneof![
        (any::<i64>(), code, text()).prop_map(|(correlation_id, error_code, message)| Event::Error {
            correlation_id,
            error_code,
            message
        }),
        (ids(), text(), text()).prop_map(|((a, b, c, d, e), log, source)| Event::AvailableImage {
            image_correlation_id: a,
            subscription_registration_id: b,
            session_id: c,
            stream_id: d,
            subscriber_position_counter_id: e,
            log_file_name: log,
            source_identity: source,
        }),
        (ids(), text()).prop_map(|((a, b, c, ..), channel)| Event::UnavailableImage {
            image_correlation_id: a,
            subscription_registration_id: b,
            stream_id: c,
            channel
        }),
        (ready, any::<bool>()).prop_map(|(ready, is_exclusive)| if is_exclusive {
            Event::ExclusivePublicationReady(ready)
        } else {
            Event::PublicationReady(ready)
        }),
        error.prop_map(Event::PublicationError),
    ]
}

proptest! {
    #[test]
    fn no_datagram_makes_a_decoder_panic(datagram in prop_oneof![bytes(256), frame_like()]) {
        for length in 0..=datagram.len() {
            decode_as_everything(&datagram[..length]);
        }
    }

    #[test]
    fn no_record_makes_a_decoder_panic(type_id in 0i32..0x14, event in 0x0F00i32..0x0F0F, message in bytes(128)) {
        for length in 0..=message.len() {
            let _ = Command::decode(type_id, &message[..length]);
            let _ = Event::decode(event, &message[..length]);
        }
    }

    #[test]
    fn data_headers_read_back(a in any::<[i32; 4]>(), flags in any::<u8>(), is_padding in any::<bool>(),
                              frame_length in 0i32.., reserved_value in any::<i64>()) {
        let [term_offset, session_id, stream_id, term_id] = a;
        let header = DataHeader {
            frame_length, flags, is_padding, term_offset, session_id, stream_id, term_id, reserved_value,
        };
        round_trip(&header, DataHeader::encode, DataHeader::decode)?;
    }

    #[test]
    fn setups_read_back(flags in any::<u8>(), a in any::<[i32; 8]>()) {
        let [term_offset, session_id, stream_id, initial_term_id, active_term_id, term_length, mtu, ttl] = a;
        let setup = Setup {
            flags, term_offset, session_id, stream_id, initial_term_id, active_term_id, term_length, mtu, ttl,
        };
        round_trip(&setup, Setup::encode, Setup::decode)?;
    }

    #[test]
    fn status_messages_read_back(flags in any::<u8>(), a in any::<[i32; 5]>(), receiver_id in any::<i64>(),
                                 group_tag in any::<Option<i64>>()) {
        let [session_id, stream_id, consumption_term_id, consumption_term_offset, receiver_window_length] = a;
        let message = StatusMessage {
            flags, session_id, stream_id, consumption_term_id, consumption_term_offset, receiver_window_length,
            receiver_id, group_tag,
        };
        round_trip(&message, StatusMessage::encode, StatusMessage::decode)?;
    }

    #[test]
    fn naks_read_back(flags in any::<u8>(), a in any::<[i32; 5]>()) {
        let [session_id, stream_id, term_id, term_offset, length] = a;
        let nak = Nak { flags, session_id, stream_id, term_id, term_offset, length };
        round_trip(&nak, Nak::encode, Nak::decode)?;
    }

    #[test]
    fn error_frames_read_back(a in any::<[i32; 3]>(), receiver_id in any::<i64>(),
                              group_tag in any::<Option<i64>>(), text in "[ -~]{0,200}") {
        let [session_id, stream_id, error_code] = a;
        let frame = ErrorFrame { session_id, stream_id, receiver_id, group_tag, error_code, text };
        round_trip(&frame, ErrorFrame::encode, ErrorFrame::decode)?;
    }

    #[test]
    fn rtt_measurements_read_back(flags in any::<u8>(), a in any::<[i32; 2]>(), b in any::<[i64; 3]>()) {
        let [session_id, stream_id] = a;
        let [echo_timestamp_ns, reception_delta_ns, receiver_id] = b;
        let frame =
            RttMeasurement { flags, session_id, stream_id, echo_timestamp_ns, reception_delta_ns, receiver_id };
        round_trip(&frame, RttMeasurement::encode, RttMeasurement::decode)?;
    }

    #[test]
    fn response_setups_read_back(flags in any::<u8>(), a in any::<[i32; 3]>()) {
        let [session_id, stream_id, response_session_id] = a;
        let frame = ResponseSetup { flags, session_id, stream_id, response_session_id };
        round_trip(&frame, ResponseSetup::encode, ResponseSetup::decode)?;
    }

    #[test]
    fn resolution_entries_read_back(entries in proptest::collection::vec(entry(), 1..5)) {
        let total = entries.iter().map(ResolutionEntry::encoded_length).sum::<usize>();
        let mut datagram = vec![0xFF; 8 + total];
        let mut at = ResolutionFrame::encode_header(total, &mut datagram);
        for entry in &entries {
            at += entry.encode(&mut datagram[at..]);
        }
        prop_assert_eq!(at, datagram.len());
        let walk: Result<Vec<_>, _> = ResolutionFrame::decode(&datagram).expect("its own frame").collect();
        prop_assert_eq!(walk.as_ref(), Ok(&entries));
    }

    #[test]
    fn commands_read_back((kind, client_id, correlation_id, id, words, key, flag) in command()) {
        let (registration_id, number) = (id, id as i32);
        let (channel, label, reason) = (words.clone(), words.clone(), words);
        let command = match kind {
            0 => Command::AddPublication { client_id, correlation_id, stream_id: number, channel },
            1 => Command::AddExclusivePublication { client_id, correlation_id, stream_id: number, channel },
            2 => Command::RemovePublication { client_id, correlation_id, registration_id, revoke: flag },
            3 => Command::AddSubscription { client_id, correlation_id, stream_id: number, channel },
            4 => Command::RemoveSubscription { client_id, correlation_id, registration_id },
            5 => Command::ClientKeepalive { client_id, correlation_id },
            6 => Command::AddDestination { client_id, correlation_id, registration_id, channel },
            7 => Command::RemoveDestination { client_id, correlation_id, registration_id, channel },
            8 => Command::AddCounter { client_id, correlation_id, type_id: number, key: &key, label },
            9 => Command::RemoveCounter { client_id, correlation_id, registration_id },
            10 => Command::ClientClose { client_id, correlation_id },
            11 => Command::AddReceiveDestination { client_id, correlation_id, registration_id, channel },
            12 => Command::RemoveReceiveDestination { client_id, correlation_id, registration_id, channel },
            13 => Command::TerminateDriver { client_id, correlation_id, token: &key },
            14 => Command::AddStaticCounter {
                client_id, correlation_id, registration_id, type_id: number, key: &key, label,
            },
            15 => Command::RejectImage {
                client_id, correlation_id, image_correlation_id: id, position: id ^ 1, reason,
            },
            16 => Command::RemoveDestinationById {
                client_id, correlation_id, registration_id, destination_registration_id: id ^ 1,
            },
            _ => Command::NextAvailableSessionId { client_id, correlation_id, stream_id: number },
        };
        let mut message = Vec::new();
        let type_id = command.encode(&mut message);
        let decoded = Command::decode(type_id, &message);
        prop_assert_eq!(decoded.as_ref(), Ok(&command));
        for length in 0..message.len() {
            // Whatever is left of it, it is never another command.
            if let Ok(shorter) = Command::decode(type_id, &message[..length]) {
                prop_assert_eq!(shorter.correlation_id(), correlation_id);
            }
        }
    }

    #[test]
    fn events_read_back(event in event()) {
        let mut message = Vec::new();
        let type_id = event.encode(&mut message);
        let decoded = Event::decode(type_id, &message);
        prop_assert_eq!(decoded.as_ref(), Ok(&event));
        for length in 0..message.len() {
            let _ = Event::decode(type_id, &message[..length]);
        }
    }
}
