//! Datagrams that the kernel hands over as one message, because they arrived together.

use super::{
    COMMON_HEADER_LENGTH, DATA_HEADER_LENGTH, DataHeader, FRAME_ALIGNMENT, FrameKind, TYPE_OFFSET, VERSION,
    VERSION_OFFSET,
};
use crate::bytes::{i32_at, u16_at};

/// Length of the first datagram in a message that may be joined of several, told from its frames.
///
/// Data frames that follow each other in one term count as one datagram: for a log it makes no difference where the
/// sender cut them. A message with anything in it that is no frame is one datagram, for the checks of it to refuse.
#[inline]
pub fn first_datagram(message: &[u8]) -> usize {
    match extent(message) {
        Some(first) if first < message.len() => first_of_several(message, first),
        _ => message.len(),
    }
}

/// The first frame, which ends at `first`, with those that follow it in its term.
fn first_of_several(message: &[u8], first: usize) -> usize {
    let mut end = first;
    if let Ok(head) = DataHeader::decode(message)
        && !head.is_padding
        && head.frame_length > 0
    {
        while let Some(frame) = message.get(end..)
            && let Ok(next) = DataHeader::decode(frame)
            && follows(&head, &next, end)
            && let Some(length) = extent(frame)
        {
            end += length;
            if next.is_padding {
                break;
            }
        }
    }
    match message.get(end..).and_then(extent) {
        Some(_) => end,
        None => message.len(),
    }
}

fn follows(head: &DataHeader, next: &DataHeader, distance: usize) -> bool {
    (next.session_id, next.stream_id, next.term_id) == (head.session_id, head.stream_id, head.term_id)
        && i64::from(next.term_offset) == i64::from(head.term_offset) + distance as i64
        && next.frame_length > 0
}

/// Bytes that the frame at the start takes on the network; none if that is no whole frame.
#[inline]
fn extent(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<COMMON_HEADER_LENGTH>()?;
    let kind = FrameKind::from_code(u16_at(header, TYPE_OFFSET))?;
    let frame_length = usize::try_from(i32_at(header, 0)).ok()?;
    let extent = match kind {
        // The body of padding does not travel, and a heartbeat has none.
        FrameKind::Pad => DATA_HEADER_LENGTH,
        FrameKind::Data if frame_length == 0 => DATA_HEADER_LENGTH,
        FrameKind::Data => frame_length.next_multiple_of(FRAME_ALIGNMENT),
        _ => frame_length,
    };
    let is_whole = header[VERSION_OFFSET] == VERSION && (kind.length_min()..=bytes.len()).contains(&extent);
    is_whole.then_some(extent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Setup;
    use crate::frame::data::FLAGS_UNFRAGMENTED;

    const HEAD: DataHeader = DataHeader {
        frame_length: 60,
        flags: FLAGS_UNFRAGMENTED,
        is_padding: false,
        term_offset: 640,
        session_id: 7,
        stream_id: 8,
        term_id: 9,
        reserved_value: 0,
    };

    fn data(header: DataHeader) -> Vec<u8> {
        let extent = if header.is_padding {
            0
        } else {
            header.frame_length as usize
        };
        let mut frame = vec![0; extent.next_multiple_of(FRAME_ALIGNMENT).max(DATA_HEADER_LENGTH)];
        header.encode(&mut frame);
        frame
    }

    fn at(term_offset: i32) -> DataHeader {
        DataHeader { term_offset, ..HEAD }
    }

    fn padding(term_offset: i32) -> DataHeader {
        DataHeader {
            is_padding: true,
            frame_length: 4096,
            ..at(term_offset)
        }
    }

    fn setup() -> Vec<u8> {
        let mut frame = vec![0; Setup::LENGTH];
        frame[..4].copy_from_slice(&(Setup::LENGTH as i32).to_le_bytes());
        frame[TYPE_OFFSET..TYPE_OFFSET + 2].copy_from_slice(&(FrameKind::Setup as u16).to_le_bytes());
        frame
    }

    /// The lengths of the parts that the frames are cut into.
    fn cut(frames: &[Vec<u8>]) -> Vec<usize> {
        let message = frames.concat();
        let (mut rest, mut lengths) = (message.as_slice(), Vec::new());
        while !rest.is_empty() {
            let first = first_datagram(rest);
            assert!((1..=rest.len()).contains(&first), "{first} of {}", rest.len());
            lengths.push(first);
            rest = &rest[first..];
        }
        lengths
    }

    #[test]
    fn frames_that_follow_each_other_in_a_term_are_one_datagram() {
        let second = DataHeader {
            frame_length: 100,
            ..at(704)
        };
        assert_eq!(cut(&[data(HEAD), data(second), data(at(832))]), [256]);
        assert_eq!(cut(&[data(HEAD), data(padding(704))]), [96]);
    }

    #[test]
    fn a_message_is_cut_where_another_datagram_begins() {
        let elsewhere = [
            at(1280),
            at(640),
            DataHeader {
                session_id: 1,
                ..at(704)
            },
            DataHeader {
                stream_id: 1,
                ..at(704)
            },
            DataHeader {
                term_id: 10,
                ..at(704)
            },
        ];
        for second in elsewhere {
            assert_eq!(
                cut(&[data(HEAD), data(second), data(HEAD)]),
                [64, 64, 64],
                "{second:?}"
            );
        }
        let after_its_end = [data(HEAD), data(padding(704)), data(at(736))];
        assert_eq!(cut(&after_its_end), [96, 64]);
    }

    #[test]
    fn what_carries_nothing_stands_alone() {
        let heartbeat = data(DataHeader::heartbeat(7, 8, 9, 704, FLAGS_UNFRAGMENTED));
        let frames = [
            heartbeat.clone(),
            heartbeat.clone(),
            data(padding(704)),
            setup(),
            setup(),
        ];
        assert_eq!(cut(&frames), [32, 32, 32, 40, 40]);
        assert_eq!(cut(&[data(HEAD), heartbeat, setup()]), [64, 32, 40]);
    }

    #[test]
    fn what_is_no_frame_is_left_whole() {
        let mut shorter = data(HEAD);
        shorter.truncate(50);
        let mut unknown = setup();
        unknown[TYPE_OFFSET] = 0x7F;
        let mut other_version = setup();
        other_version[VERSION_OFFSET] = 1;
        let mut negative = setup();
        negative[..4].copy_from_slice(&(-40i32).to_le_bytes());
        for broken in [shorter, unknown, other_version, negative, vec![0; 7], vec![0; 31]] {
            assert_eq!(cut(std::slice::from_ref(&broken)), [broken.len()]);
            assert_eq!(cut(&[setup(), broken.clone()]), [40 + broken.len()]);
        }
    }

    #[test]
    fn a_term_offset_near_the_largest_number_does_not_overflow() {
        assert_eq!(cut(&[data(at(i32::MAX - 31)), data(at(i32::MIN))]), [64, 64]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_a_first_datagram(bytes in proptest::collection::vec(0u8..8, 1..300)) {
            cut(&[bytes]);
        }
    }
}
