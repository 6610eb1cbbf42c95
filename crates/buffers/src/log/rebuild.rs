//! Putting a publisher's datagrams into the image of its log, in whatever order they arrive.
//!
//! Only the receiver of an image writes its terms. A datagram becomes visible by the length of its first
//! frame, which is stored last; a slot that already has one is a duplicate and is left alone, because readers
//! may be in it. What follows it in the datagram may be new all the same: another publisher of the stream, or a repair,
//! cuts it elsewhere.

use crate::Memory;

use super::frame::{self, FRAME_ALIGNMENT, FRAME_LENGTH_OFFSET, HEADER_LENGTH, TermIdentity, VERSION_OFFSET};

/// How far after a datagram the lines are asked for that the next ones are copied to. The image had them three terms ago:
/// they are in no cache, and a copy would wait for each as soon as the processor's queue of stores is full.
const PREFETCH_DISTANCE: usize = 2048;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// It is in the term.
    Inserted,
    /// It was there already.
    Duplicate,
    /// It does not fit the term at that offset, or is no frame.
    Refused,
}

/// Copies a datagram of whole frames to `offset` in the term.
#[inline]
pub fn insert<M: Memory>(term: &M, offset: usize, packet: &[u8]) -> Insert {
    let Some((header, rest)) = packet.split_first_chunk::<HEADER_LENGTH>() else {
        return Insert::Refused;
    };
    if !offset.is_multiple_of(FRAME_ALIGNMENT)
        || offset > term.capacity()
        || packet.len() > term.capacity() - offset
    {
        return Insert::Refused;
    }
    let frame_length = i32_at(header, FRAME_LENGTH_OFFSET);
    if frame_length < HEADER_LENGTH as i32 {
        return Insert::Refused;
    }
    // Relaxed suffices: this thread wrote whatever is there, or the driver's cleaning was ordered before it.
    if term.get_i32(offset + FRAME_LENGTH_OFFSET) != 0 {
        return insert_what_follows(term, offset, packet);
    }
    term.prefetch_range_to_write(offset + PREFETCH_DISTANCE, packet.len());
    term.put_bytes(offset + HEADER_LENGTH, rest);
    for word in [24, 16, 8] {
        term.put_i64(offset + word, i64_at(header, word));
    }
    term.put_i32(offset + VERSION_OFFSET, i32_at(header, VERSION_OFFSET));
    term.put_i32_release(offset + FRAME_LENGTH_OFFSET, frame_length);
    Insert::Inserted
}

/// The frames of a datagram after those that are there already.
#[cold]
fn insert_what_follows<M: Memory>(term: &M, offset: usize, packet: &[u8]) -> Insert {
    let mut at = 0;
    while let Some(header) = packet.get(at..).and_then(<[u8]>::first_chunk) {
        let length = i32_at(header, FRAME_LENGTH_OFFSET);
        match term.get_i32(offset + at + FRAME_LENGTH_OFFSET) {
            0 => return insert(term, offset + at, &packet[at..]),
            there if there != length || length < HEADER_LENGTH as i32 => break,
            _ => at += (length as usize).next_multiple_of(FRAME_ALIGNMENT),
        }
    }
    Insert::Duplicate
}

/// The frames of a datagram after the first `skipped` bytes, if one begins there.
#[cold]
pub fn frames_from(packet: &[u8], skipped: usize) -> Option<&[u8]> {
    let mut at = 0;
    while at < skipped {
        let header = packet.get(at..)?.first_chunk()?;
        let length = usize::try_from(i32_at(header, FRAME_LENGTH_OFFSET)).ok()?;
        at += length.max(HEADER_LENGTH).next_multiple_of(FRAME_ALIGNMENT);
    }
    let rest = packet.get(at..)?;
    (at == skipped && rest.len() >= HEADER_LENGTH).then_some(rest)
}

/// The whole frames at the start of a datagram that lie within `room` bytes, if there are any.
#[cold]
pub fn frames_within(packet: &[u8], room: usize) -> Option<&[u8]> {
    let mut end = 0;
    while let Some(header) = packet.get(end..).and_then(<[u8]>::first_chunk) {
        let length = usize::try_from(i32_at(header, FRAME_LENGTH_OFFSET)).ok()?;
        let next = end + length.max(HEADER_LENGTH).next_multiple_of(FRAME_ALIGNMENT);
        if next > room.min(packet.len()) {
            break;
        }
        end = next;
    }
    (end > 0).then(|| &packet[..end])
}

/// Inserts datagrams of `datagram_length` bytes, the last of which may be shorter, that lie back to back both
/// in `packets` and in the term. Each becomes visible as soon as it is copied, so a reader need not wait for
/// the last. Returns how many were not there before.
pub fn insert_run<M: Memory>(term: &M, offset: usize, packets: &[u8], datagram_length: usize) -> usize {
    let mut inserted = 0;
    let mut at = offset;
    for packet in packets.chunks(datagram_length.max(1)) {
        match insert(term, at, packet) {
            Insert::Inserted => inserted += 1,
            Insert::Duplicate => {}
            Insert::Refused => break,
        }
        at += packet.len();
    }
    inserted
}

/// Covers a gap with a padding frame, for a stream that does without lost data. False if something of it has
/// arrived, or if it is no run of slots in the term.
pub fn fill_gap<M: Memory>(term: &M, identity: TermIdentity, offset: usize, length: usize) -> bool {
    let capacity = term.capacity();
    if !offset.is_multiple_of(FRAME_ALIGNMENT)
        || !length.is_multiple_of(FRAME_ALIGNMENT)
        || length == 0
        || offset > capacity
        || length > capacity - offset
    {
        return false;
    }
    let empty = |at| frame::frame_length_acquire(term, at) == 0;
    if !(offset..offset + length).step_by(FRAME_ALIGNMENT).all(empty) {
        return false;
    }
    frame::put_padding(term, offset, length, identity);
    true
}

fn i32_at(header: &[u8; HEADER_LENGTH], offset: usize) -> i32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[offset..offset + 4]);
    i32::from_le_bytes(bytes)
}

fn i64_at(header: &[u8; HEADER_LENGTH], offset: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[offset..offset + 8]);
    i64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;
    use crate::log::frame::{FrameHeader, TYPE_PAD};

    const LENGTH: usize = 65_536;

    /// A datagram of one frame with `payload`, aligned, whose other header bytes are all different.
    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..32).collect();
        bytes[..4].copy_from_slice(&(32 + payload.len() as i32).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(crate::align(bytes.len(), FRAME_ALIGNMENT), 0);
        bytes
    }

    fn bytes(term: &AtomicBuffer, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        term.get_bytes(offset, &mut bytes);
        bytes
    }

    #[test]
    fn every_byte_of_a_datagram_arrives() {
        let term = AtomicBuffer::allocate(LENGTH);
        let packet = packet(b"payload");
        assert_eq!(insert(&term, 96, &packet), Insert::Inserted);
        assert_eq!(bytes(&term, 96, 64), packet);
        assert_eq!(insert(&term, LENGTH - 64, &packet), Insert::Inserted);
    }

    #[test]
    fn what_follows_a_frame_that_is_there_is_taken() {
        let [one, two, three] = [b"one", b"two", b"333"].map(|payload| packet(payload));
        let term = AtomicBuffer::allocate(LENGTH);
        insert(&term, 0, &one);
        let both = [one.clone(), two.clone()].concat();
        assert_eq!(insert(&term, 0, &both), Insert::Inserted);
        assert_eq!(bytes(&term, 0, 128), both);
        assert_eq!(insert(&term, 0, &both), Insert::Duplicate);
        let all = [one.clone(), two, three].concat();
        assert_eq!(insert(&term, 0, &all), Insert::Inserted);
        assert_eq!(bytes(&term, 0, 192), all);
        // Nor does a datagram that is cut otherwise change what is there.
        let other = [packet(&[7; 40]), one].concat();
        assert_eq!(insert(&term, 0, &other), Insert::Duplicate);
        assert_eq!(insert(&term, 0, &all[..40]), Insert::Duplicate);
        assert_eq!(bytes(&term, 0, 224), [all, vec![0; 32]].concat());
    }

    #[test]
    fn a_datagram_is_cut_between_frames_alone() {
        let [one, two] = [b"one", b"two"].map(|payload| packet(payload));
        let both = [one, two.clone()].concat();
        assert_eq!(frames_from(&both, 0), Some(&both[..]));
        assert_eq!(frames_from(&both, 64), Some(&two[..]));
        for skipped in [32, 96, 128, 1 << 40] {
            assert_eq!(frames_from(&both, skipped), None);
        }
        assert_eq!(frames_from(&[0xff; 96], 32), None);
        for (room, kept) in [(64, 64), (96, 64), (127, 64), (128, 128), (usize::MAX, 128)] {
            assert_eq!(frames_within(&both, room), Some(&both[..kept]), "{room}");
        }
        assert_eq!(frames_within(&both, 63), None);
        assert_eq!(frames_within(&both[..96], 128), Some(&both[..64]));
        assert_eq!(frames_within(&[0xff; 96], 96), None);
    }

    #[test]
    fn a_slot_that_has_a_frame_keeps_it() {
        let term = AtomicBuffer::allocate(LENGTH);
        insert(&term, 0, &packet(b"first"));
        assert_eq!(insert(&term, 0, &packet(b"later")), Insert::Duplicate);
        assert_eq!(&bytes(&term, 32, 5), b"first");
    }

    #[test]
    fn what_does_not_fit_or_is_no_frame_is_refused() {
        let term = AtomicBuffer::allocate(LENGTH);
        let packet = packet(b"x");
        for offset in [7, LENGTH - 32, LENGTH, LENGTH + 32, usize::MAX - 31] {
            assert_eq!(insert(&term, offset, &packet), Insert::Refused, "{offset}");
        }
        assert_eq!(insert(&term, 0, &packet[..31]), Insert::Refused);
        assert_eq!(
            insert(&term, 0, &[0; 32]),
            Insert::Refused,
            "a heartbeat is not for the term"
        );
        assert_eq!(insert(&term, 0, &[0xff; 64]), Insert::Refused);
    }

    #[test]
    fn a_run_of_datagrams_goes_in_whole_around_those_that_are_there() {
        let term = AtomicBuffer::allocate(LENGTH);
        let parts = [
            packet(&[1; 64]),
            packet(&[2; 64]),
            packet(&[3; 64]),
            packet(&[4; 10]),
        ];
        let run = parts.concat();
        insert(&term, 96, &parts[1]);
        assert_eq!(insert_run(&term, 0, &run, 96), 3);
        assert_eq!(bytes(&term, 0, run.len()), run);
        assert_eq!(insert_run(&term, 0, &run, 96), 0);
        assert_eq!(
            insert_run(&term, LENGTH - 96, &run, 96),
            1,
            "stops at the end of the term"
        );
        assert_eq!(insert_run(&term, 1024, &run, 0), 0);
    }

    #[test]
    fn a_gap_is_filled_only_while_all_of_it_is_missing() {
        let identity = TermIdentity {
            session_id: 1,
            stream_id: 2,
            term_id: 3,
        };
        let term = AtomicBuffer::allocate(LENGTH);
        insert(&term, 128, &packet(b"x"));
        assert!(!fill_gap(&term, identity, 64, 96));
        assert!(fill_gap(&term, identity, 64, 64));
        let pad = FrameHeader::read(&term, 64);
        assert_eq!((pad.frame_length, pad.frame_type, pad.term_id), (64, TYPE_PAD, 3));
        assert_eq!((pad.term_offset, pad.session_id, pad.stream_id), (64, 1, 2));
        for (offset, length) in [
            (0, 0),
            (0, 33),
            (5, 32),
            (LENGTH, 32),
            (32, LENGTH),
            (32, usize::MAX - 31),
        ] {
            assert!(!fill_gap(&term, identity, offset, length), "{offset} {length}");
        }
    }
}
