//! The time of sending, in messages that are about to leave.

use headrace_buffers::Memory;
use headrace_buffers::log::frame;
use headrace_buffers::log::scan::Datagram;
use headrace_protocol::channel::TimestampOffset;
use headrace_protocol::frame::timestamp::takes_timestamp;

/// Writes the time into the first frame of each datagram, in place: destinations and repairs send the same bytes, and
/// spies, which read no further than what was sent, see them too.
pub(super) fn write<M: Memory>(term: &M, datagrams: &[Datagram], timestamp: TimestampOffset, time_ns: i64) {
    let at = timestamp.in_frame();
    for Datagram { offset, length, .. } in datagrams {
        // The publisher writes its log itself: what it says of a frame's length may be wrong, and holds no further than
        // the datagram.
        let frame_length = frame::frame_length_acquire(term, *offset).clamp(0, *length as i32) as usize;
        let (frame_type, flags) = (frame::frame_type(term, *offset), frame::flags(term, *offset));
        if takes_timestamp(frame_type, flags, frame_length, at) {
            term.put_bytes_relaxed(offset + at, &time_ns.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::log::frame::TermIdentity;
    use headrace_protocol::channel::{ChannelDefaults, ChannelUri, PublicationParams};

    use super::*;

    const TIME: i64 = 0x0807_0605_0403_0201;

    fn offset(value: &str) -> TimestampOffset {
        let uri = format!("aeron:udp?endpoint=localhost:1|channel-snd-ts-offset={value}");
        let uri = ChannelUri::parse(&uri).unwrap();
        let params = PublicationParams::from_uri(&uri, &ChannelDefaults::default()).unwrap();
        params.send_timestamp.unwrap()
    }

    /// Frames of 64 bytes: two messages in a datagram, then the middle of one, then one that is shorter than it looks.
    fn term() -> AtomicBuffer {
        let term = AtomicBuffer::allocate(65_536);
        let identity = TermIdentity {
            session_id: 1,
            stream_id: 2,
            term_id: 3,
        };
        for (at, length, flags) in [
            (0, 48, frame::FLAGS_UNFRAGMENTED),
            (64, 48, frame::FLAGS_UNFRAGMENTED),
            (128, 64, 0),
            (192, 39, frame::FLAGS_UNFRAGMENTED),
            (256, i32::MAX as usize, frame::FLAGS_UNFRAGMENTED),
        ] {
            frame::claim(&term, at, length, frame::kind(flags, frame::TYPE_DATA), identity);
            frame::commit(&term, at, length);
        }
        term
    }

    fn stamped(value: &str) -> Vec<usize> {
        let term = term();
        let before = term.region(0, 4_096).to_vec();
        let datagram = |offset, length| Datagram {
            offset,
            length,
            padding: 0,
        };
        let datagrams = [
            datagram(0, 128),
            datagram(128, 64),
            datagram(192, 64),
            datagram(256, 64),
        ];
        write(&term, &datagrams, offset(value), TIME);
        let after = term.region(0, 4_096).to_vec();
        let changed = (0..before.len()).filter(|at| before[*at] != after[*at]);
        let found: Vec<usize> = changed.collect();
        for run in found.chunks(8) {
            assert_eq!(after[run[0]..run[0] + 8], TIME.to_le_bytes());
        }
        found.chunks(8).map(|run| run[0]).collect()
    }

    #[test]
    fn the_first_frame_of_a_datagram_takes_the_time_if_it_begins_a_message_and_has_room() {
        assert_eq!(stamped("reserved"), [24, 192 + 24, 256 + 24]);
        assert_eq!(stamped("0"), [32, 256 + 32]);
        assert_eq!(stamped("8"), [40, 256 + 40]);
        assert_eq!(stamped("9"), [256 + 41]); // across words
        assert_eq!(stamped("24"), [256 + 56]);
        assert_eq!(stamped("25"), [0; 0]);
    }
}
