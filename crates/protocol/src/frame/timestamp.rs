//! Times that drivers write into data frames.

use super::data::FLAG_BEGIN;
use super::{DATA_HEADER_LENGTH, FLAGS_OFFSET, FRAME_ALIGNMENT, TYPE_DATA, TYPE_OFFSET};
use crate::bytes::{i32_at, u16_at};

/// Nanoseconds since 1970-01-01 UTC, little endian.
pub const TIMESTAMP_LENGTH: usize = 8;

/// Whether a time is written at byte `at` of a frame: it begins a message, and has these bytes.
#[inline]
pub fn takes_timestamp(frame_type: u16, flags: u8, frame_length: usize, at: usize) -> bool {
    frame_type == TYPE_DATA && flags & FLAG_BEGIN != 0 && at + TIMESTAMP_LENGTH <= frame_length
}

/// Writes a time at byte `at` of each frame of the datagram that takes one. What is no data stays as it is.
pub fn stamp(datagram: &mut [u8], at: usize, time_ns: i64) {
    let mut rest = datagram;
    while let Some(header) = rest.first_chunk::<DATA_HEADER_LENGTH>() {
        let (code, flags) = (u16_at(header, TYPE_OFFSET), header[FLAGS_OFFSET]);
        let frame_length = usize::try_from(i32_at(header, 0)).unwrap_or(0);
        if code != TYPE_DATA || frame_length < DATA_HEADER_LENGTH || frame_length > rest.len() {
            return;
        }
        if takes_timestamp(code, flags, frame_length, at) {
            rest[at..at + TIMESTAMP_LENGTH].copy_from_slice(&time_ns.to_le_bytes());
        }
        let next = frame_length.next_multiple_of(FRAME_ALIGNMENT).min(rest.len());
        rest = &mut rest[next..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::data::{FLAG_END, FLAGS_UNFRAGMENTED};
    use crate::frame::{DataHeader, Setup, TYPE_PAD};

    const TIME: i64 = 0x0807_0605_0403_0201;

    fn frame(payload_length: usize, flags: u8) -> Vec<u8> {
        let header = DataHeader {
            frame_length: (DATA_HEADER_LENGTH + payload_length) as i32,
            ..DataHeader::heartbeat(1, 2, 3, 0, flags)
        };
        let mut bytes = vec![0xff; (DATA_HEADER_LENGTH + payload_length).next_multiple_of(FRAME_ALIGNMENT)];
        let mut encoded = [0; DATA_HEADER_LENGTH];
        header.encode(&mut encoded);
        bytes[..DATA_HEADER_LENGTH].copy_from_slice(&encoded);
        bytes
    }

    /// Bytes of the datagram that a time at `at` changes.
    fn changed(datagram: &[u8], at: usize) -> Vec<(usize, u8)> {
        let mut stamped = datagram.to_vec();
        stamp(&mut stamped, at, TIME);
        let pairs = datagram.iter().zip(&stamped).enumerate();
        pairs
            .filter(|(_, (before, after))| before != after)
            .map(|(index, (_, after))| (index, *after))
            .collect()
    }

    fn time_at(index: usize) -> Vec<(usize, u8)> {
        (1..=8).map(|byte| (index + byte - 1, byte as u8)).collect()
    }

    #[test]
    fn each_frame_that_begins_a_message_and_has_room_takes_the_time() {
        let datagram = [
            frame(16, FLAGS_UNFRAGMENTED),
            frame(15, FLAGS_UNFRAGMENTED),
            frame(40, FLAG_END),
            frame(64, FLAG_BEGIN),
        ]
        .concat();
        assert_eq!(
            changed(&datagram, 40),
            [time_at(40), time_at(64 + 64 + 96 + 40)].concat()
        );
        let reserved = [time_at(24), time_at(64 + 24), time_at(64 + 64 + 96 + 24)].concat();
        assert_eq!(changed(&datagram, 24), reserved);
        assert_eq!(changed(&datagram, usize::MAX / 2), []);
    }

    #[test]
    fn what_is_no_whole_frame_of_data_stays_as_it_is() {
        let heartbeat = frame(0, FLAGS_UNFRAGMENTED);
        let mut heartbeat = heartbeat[..DATA_HEADER_LENGTH].to_vec();
        heartbeat[..4].fill(0);
        let mut padding = frame(0, FLAGS_UNFRAGMENTED);
        padding[TYPE_OFFSET..TYPE_OFFSET + 2].copy_from_slice(&TYPE_PAD.to_le_bytes());
        let cut = frame(100, FLAGS_UNFRAGMENTED)[..96].to_vec();
        let mut negative = frame(16, FLAGS_UNFRAGMENTED);
        negative[..4].copy_from_slice(&(-48i32).to_le_bytes());
        let mut setup = vec![0; Setup::LENGTH];
        setup[FLAGS_OFFSET] = FLAG_BEGIN;
        setup[TYPE_OFFSET] = 5;
        for datagram in [heartbeat, padding, cut, negative, setup, vec![0; 31], vec![]] {
            assert_eq!(changed(&datagram, 24), [], "{datagram:?}");
        }
    }
}
