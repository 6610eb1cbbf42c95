//! Geometry of a log file and layout of its metadata section.
//!
//! ```text
//!   +--------+--------+--------+ - - - +----------+
//!   | term 0 | term 1 | term 2 |  gap  | metadata |
//!   +--------+--------+--------+ - - - +----------+
//!   0        L        2L       3L      file length - 4096
//! ```
//! The gap exists only where the page size exceeds 4096, so the metadata is found from the end of the file.

use crate::align;

use super::error::LogError;
use super::frame::{FRAME_ALIGNMENT, HEADER_LENGTH};

/// Terms in a log: one being written, one being read, one being cleaned.
pub const PARTITION_COUNT: usize = 3;
/// Shortest term.
pub const TERM_LENGTH_MIN: usize = 64 * 1024;
/// Longest term.
pub const TERM_LENGTH_MAX: usize = 1024 * 1024 * 1024;
/// Smallest page size a log may be laid out with.
pub const PAGE_SIZE_MIN: usize = 4096;
/// Largest page size a log may be laid out with.
pub const PAGE_SIZE_MAX: usize = 1024 * 1024 * 1024;
/// Length of the metadata section, whatever the page size.
pub const METADATA_LENGTH: usize = 4096;
/// Longest frame, header included, that fits a UDP datagram and is a multiple of the frame alignment.
pub const MTU_MAX: usize = 65_504;
/// Longest message of any stream; short terms lower it.
pub const MESSAGE_LENGTH_MAX: usize = 16 * 1024 * 1024;

// Metadata section. "D" is the driver, "P" a publisher; fields without a letter are written once, before the
// log is announced.
/// Raw tail of each partition, i64 each; D then P.
pub const TAIL_COUNTERS_OFFSET: usize = 0;
/// Number of rotations so far, i32; D then P.
pub const ACTIVE_TERM_COUNT_OFFSET: usize = 24;
/// Position at which the stream ends, i64; D.
pub const END_OF_STREAM_POSITION_OFFSET: usize = 128;
/// 1 while the publication has a receiver, i32; D.
pub const IS_CONNECTED_OFFSET: usize = 136;
/// Live source transports of a network image, i32; D.
pub const ACTIVE_TRANSPORT_COUNT_OFFSET: usize = 140;
/// Registration id of the publication or correlation id of the image, i64.
pub const CORRELATION_ID_OFFSET: usize = 256;
/// Term id of position 0, i32.
pub const INITIAL_TERM_ID_OFFSET: usize = 264;
/// Always 32, i32.
pub const DEFAULT_FRAME_HEADER_LENGTH_OFFSET: usize = 268;
/// Longest frame, i32.
pub const MTU_LENGTH_OFFSET: usize = 272;
/// Length of each term, i32.
pub const TERM_LENGTH_OFFSET: usize = 276;
/// Page size of the file, i32.
pub const PAGE_SIZE_OFFSET: usize = 280;
/// Publication window, i32.
pub const PUBLICATION_WINDOW_LENGTH_OFFSET: usize = 284;
/// Receiver window, i32.
pub const RECEIVER_WINDOW_LENGTH_OFFSET: usize = 288;
/// Configured send buffer of the socket, i32.
pub const SOCKET_SEND_BUFFER_LENGTH_OFFSET: usize = 292;
/// Default send buffer of the system, i32.
pub const OS_DEFAULT_SEND_BUFFER_LENGTH_OFFSET: usize = 296;
/// Largest send buffer of the system, i32.
pub const OS_MAX_SEND_BUFFER_LENGTH_OFFSET: usize = 300;
/// Configured receive buffer of the socket, i32.
pub const SOCKET_RECEIVE_BUFFER_LENGTH_OFFSET: usize = 304;
/// Default receive buffer of the system, i32.
pub const OS_DEFAULT_RECEIVE_BUFFER_LENGTH_OFFSET: usize = 308;
/// Largest receive buffer of the system, i32.
pub const OS_MAX_RECEIVE_BUFFER_LENGTH_OFFSET: usize = 312;
/// Concurrent retransmissions, i32.
pub const MAX_RESEND_OFFSET: usize = 316;
/// Header that every frame of the stream starts from, 128 bytes of which 32 are used.
pub const DEFAULT_FRAME_HEADER_OFFSET: usize = 320;
/// Entity tag, i64.
pub const ENTITY_TAG_OFFSET: usize = 448;
/// Response correlation id, i64.
pub const RESPONSE_CORRELATION_ID_OFFSET: usize = 456;
/// Linger timeout, i64 ns.
pub const LINGER_TIMEOUT_NS_OFFSET: usize = 464;
/// Untethered window limit timeout, i64 ns.
pub const UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS_OFFSET: usize = 472;
/// Untethered resting timeout, i64 ns.
pub const UNTETHERED_RESTING_TIMEOUT_NS_OFFSET: usize = 480;
/// First of the one-byte flags.
pub const GROUP_OFFSET: usize = 488;
/// Response channel flag, u8.
pub const IS_RESPONSE_OFFSET: usize = 489;
/// Rejoin flag, u8.
pub const REJOIN_OFFSET: usize = 490;
/// Reliable flag, u8.
pub const RELIABLE_OFFSET: usize = 491;
/// Sparse flag, u8.
pub const SPARSE_OFFSET: usize = 492;
/// Signal-end-of-stream flag, u8.
pub const SIGNAL_EOS_OFFSET: usize = 493;
/// Spies-simulate-connection flag, u8.
pub const SPIES_SIMULATE_CONNECTION_OFFSET: usize = 494;
/// Tether flag, u8.
pub const TETHER_OFFSET: usize = 495;
/// Set to 1 when the publication is revoked, u8; D.
pub const IS_PUBLICATION_REVOKED_OFFSET: usize = 496;
/// Kind of log, u8.
pub const LOG_TYPE_OFFSET: usize = 497;
/// Untethered linger timeout, i64 ns, aligned to 4 bytes only.
pub const UNTETHERED_LINGER_TIMEOUT_NS_OFFSET: usize = 500;

const _: () = assert!(ACTIVE_TERM_COUNT_OFFSET == TAIL_COUNTERS_OFFSET + 8 * PARTITION_COUNT);
const _: () = assert!(UNTETHERED_LINGER_TIMEOUT_NS_OFFSET + 8 <= METADATA_LENGTH);
const _: () =
    assert!(MTU_MAX.is_multiple_of(FRAME_ALIGNMENT) && TERM_LENGTH_MIN.is_multiple_of(FRAME_ALIGNMENT));

/// Refuses a term length that is out of range or no power of two.
pub fn check_term_length(term_length: i64) -> Result<usize, LogError> {
    power_of_two("term_length", term_length, TERM_LENGTH_MIN, TERM_LENGTH_MAX)
}

/// Refuses a page size that is out of range or no power of two.
pub fn check_page_size(page_size: i64) -> Result<usize, LogError> {
    power_of_two("page_size", page_size, PAGE_SIZE_MIN, PAGE_SIZE_MAX)
}

/// Refuses an MTU that leaves no room for payload, breaks frame alignment or exceeds a datagram.
pub fn check_mtu(mtu: i64) -> Result<usize, LogError> {
    match usize::try_from(mtu) {
        Ok(valid) if valid > HEADER_LENGTH && valid <= MTU_MAX && valid.is_multiple_of(FRAME_ALIGNMENT) => {
            Ok(valid)
        }
        _ => Err(LogError::Invalid {
            name: "mtu",
            value: mtu,
            rule: "must be a multiple of 32, above 32 and at most 65504".to_owned(),
        }),
    }
}

/// Length of the file that holds three terms and the metadata.
pub const fn log_file_length(term_length: usize, page_size: usize) -> usize {
    align(PARTITION_COUNT * term_length + METADATA_LENGTH, page_size)
}

/// Longest payload of one frame.
pub const fn max_payload_length(mtu: usize) -> usize {
    mtu - HEADER_LENGTH
}

/// Longest message a publisher may append to terms of this length.
pub const fn max_message_length(term_length: usize) -> usize {
    let eighth = term_length / 8;
    if eighth < MESSAGE_LENGTH_MAX {
        eighth
    } else {
        MESSAGE_LENGTH_MAX
    }
}

/// Bytes of the log that a message occupies, headers and alignment included.
pub const fn framed_length(message_length: usize, max_payload_length: usize) -> usize {
    if message_length <= max_payload_length {
        return align(message_length + HEADER_LENGTH, FRAME_ALIGNMENT);
    }
    let full_frames = message_length / max_payload_length;
    let remainder = message_length % max_payload_length;
    let last = if remainder > 0 {
        align(remainder + HEADER_LENGTH, FRAME_ALIGNMENT)
    } else {
        0
    };
    full_frames * (max_payload_length + HEADER_LENGTH) + last
}

fn power_of_two(name: &'static str, value: i64, min: usize, max: usize) -> Result<usize, LogError> {
    match usize::try_from(value) {
        Ok(valid) if valid.is_power_of_two() && (min..=max).contains(&valid) => Ok(valid),
        _ => Err(LogError::Invalid {
            name,
            value,
            rule: format!("must be a power of two from {min} to {max}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_follows_the_terms_at_the_end_of_a_page() {
        assert_eq!(log_file_length(65_536, 4096), 3 * 65_536 + 4096);
        assert_eq!(log_file_length(65_536, 2 * 1024 * 1024), 2 * 1024 * 1024);
    }

    #[test]
    fn lengths_off_their_rule_are_refused_by_name_and_value() {
        for bad in [-1, 0, 65_535, 32_768, 98_304, 1 << 31] {
            let error = check_term_length(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("term_length={bad}")), "{error}");
        }
        assert_eq!(check_term_length(1 << 30).unwrap(), TERM_LENGTH_MAX);
        for bad in [-32, 0, 32, 1400, 65_536] {
            assert!(check_mtu(bad).is_err(), "mtu={bad}");
        }
        assert_eq!((check_mtu(64).unwrap(), check_mtu(65_504).unwrap()), (64, 65_504));
        assert!(check_page_size(5000).is_err() && check_page_size(4096).is_ok());
    }

    #[test]
    fn a_message_is_framed_once_or_per_full_payload_and_remainder() {
        assert_eq!(framed_length(0, 1376), 32);
        assert_eq!(framed_length(1, 1376), 64);
        assert_eq!(framed_length(1376, 1376), 1408);
        assert_eq!(framed_length(1377, 1376), 1408 + 64);
        assert_eq!(framed_length(2 * 1376, 1376), 2 * 1408);
        assert_eq!(
            (max_message_length(65_536), max_message_length(1 << 30)),
            (8192, 16 * 1024 * 1024)
        );
    }
}
