//! Cutting committed frames into datagrams.
//!
//! A datagram is a run of whole frames of one term, no longer than the MTU. Of a padding frame only the header
//! is sent; what it spans ends the datagram, because the next frame does not follow on in memory.

use crate::Memory;

use super::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH};

/// How far ahead of the frame that is looked at its lines are asked for. The publisher's processor has just written them,
/// and both the walk and the kernel's copy would wait for each in turn. Further ahead are lines that it still writes.
const PREFETCH_DISTANCE: usize = 512;

/// One datagram's worth of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Bytes to send, from the offset scanned.
    pub available: usize,
    /// Bytes of the term that the padding frame at the end spans beyond its header.
    pub padding: usize,
    /// Nothing is available although a frame is there: it is longer than the limit.
    pub blocked: bool,
}

/// A datagram within a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Offset of its first frame in the term.
    pub offset: usize,
    /// Bytes to send.
    pub length: usize,
    /// Bytes of the term that it covers but that are not sent.
    pub padding: usize,
}

/// What [`scan_datagrams`] found besides the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Bytes to send, over all datagrams.
    pub bytes: usize,
    /// Distance by which the position moves when all are sent.
    pub advance: usize,
    /// A committed frame was not sent because it exceeds the window or the MTU.
    pub blocked: bool,
}

/// Collects whole frames from `offset`, up to `limit` bytes.
#[inline]
pub fn scan_available<M: Memory>(term: &M, offset: usize, limit: usize) -> Scan {
    let mut scan = Scan::default();
    if !offset.is_multiple_of(FRAME_ALIGNMENT) {
        return scan;
    }
    let mut at = offset;
    while at < term.capacity() && scan.available < limit {
        let Some(found) = frame::committed(term, at) else {
            break;
        };
        let padding = frame::is_padding(term, at);
        let size = if padding { HEADER_LENGTH } else { found.span };
        if scan.available + size > limit {
            scan.blocked = scan.available == 0;
            break;
        }
        term.prefetch_range(at + PREFETCH_DISTANCE, size);
        scan.available += size;
        at += found.span;
        if found.span > size {
            scan.padding = found.span - size;
            break;
        }
        // Frames as long as the one before are found without waiting for the length of each in turn.
        while !padding
            && scan.available + size <= limit
            && size <= term.capacity() - at
            && frame::frame_length_acquire(term, at) == found.length as i32
            && !frame::is_padding(term, at)
        {
            term.prefetch_range(at + PREFETCH_DISTANCE, size);
            scan.available += size;
            at += size;
        }
    }
    scan
}

/// Cuts all that is committed from `offset` to the end of the term into datagrams of at most `mtu` bytes, as
/// repeated calls of [`scan_available`] would, and appends them to `datagrams`.
///
/// `window` is how far the position may move; no datagram starts that could bring the bytes to send above
/// `limit_bytes`, except the first.
pub fn scan_datagrams<M: Memory>(
    term: &M,
    offset: usize,
    window: usize,
    mtu: usize,
    limit_bytes: usize,
    datagrams: &mut Vec<Datagram>,
) -> Datagrams {
    let mut total = Datagrams::default();
    while total.advance < window {
        let limit = mtu.min(window - total.advance);
        if total.bytes > 0 && total.bytes + limit > limit_bytes {
            break;
        }
        let start = offset + total.advance;
        let scan = scan_available(term, start, limit);
        if scan.available == 0 {
            total.blocked = scan.blocked;
            break;
        }
        datagrams.push(Datagram {
            offset: start,
            length: scan.available,
            padding: scan.padding,
        });
        total.bytes += scan.available;
        total.advance += scan.available + scan.padding;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;
    use crate::log::frame::{FLAGS_UNFRAGMENTED, TYPE_DATA, TermIdentity};

    const LENGTH: usize = 65_536;
    const IDENTITY: TermIdentity = TermIdentity {
        session_id: 1,
        stream_id: 2,
        term_id: 3,
    };

    /// Frames of the given lengths back to back; a negative one is a padding frame.
    fn term_of(lengths: &[i32]) -> AtomicBuffer {
        let term = AtomicBuffer::allocate(LENGTH);
        let mut at = 0;
        for length in lengths {
            let absolute = length.unsigned_abs() as usize;
            if *length < 0 {
                frame::put_padding(&term, at, absolute, IDENTITY);
            } else {
                let kind = frame::kind(FLAGS_UNFRAGMENTED, TYPE_DATA);
                frame::claim(&term, at, absolute, kind, IDENTITY);
                frame::commit(&term, at, absolute);
            }
            at += crate::align(absolute, FRAME_ALIGNMENT);
        }
        term
    }

    fn cut(
        lengths: &[i32],
        window: usize,
        mtu: usize,
        limit: usize,
    ) -> (Vec<(usize, usize, usize)>, Datagrams) {
        let mut datagrams = Vec::new();
        let total = scan_datagrams(&term_of(lengths), 0, window, mtu, limit, &mut datagrams);
        let tuples = datagrams
            .iter()
            .map(|d| (d.offset, d.length, d.padding))
            .collect();
        (tuples, total)
    }

    #[test]
    fn datagrams_hold_as_many_whole_frames_as_the_mtu_takes() {
        let (datagrams, total) = cut(&[64; 50], LENGTH, 1408, LENGTH);
        assert_eq!(datagrams, [(0, 1408, 0), (1408, 1408, 0), (2816, 384, 0)]);
        assert_eq!(
            total,
            Datagrams {
                bytes: 3200,
                advance: 3200,
                blocked: false
            }
        );
        let (datagrams, _) = cut(&[1000, 400, 200], LENGTH, 1408, LENGTH);
        assert_eq!(datagrams, [(0, 1024, 0), (1024, 640, 0)]);
    }

    #[test]
    fn a_datagram_ends_after_the_header_of_a_long_pad_but_not_of_a_short_one() {
        let (datagrams, total) = cut(&[64, -96, 64, -32, 64], LENGTH, 1408, LENGTH);
        assert_eq!(datagrams, [(0, 96, 64), (160, 160, 0)]);
        assert_eq!((total.bytes, total.advance), (256, 320));
    }

    #[test]
    fn a_pad_whose_header_does_not_fit_waits_for_the_next_datagram() {
        let (datagrams, _) = cut(&[1408, -64], LENGTH, 1408, LENGTH);
        assert_eq!(datagrams, [(0, 1408, 0), (1408, 32, 32)]);
    }

    #[test]
    fn the_window_stops_whole_frames_and_says_so() {
        let (datagrams, total) = cut(&[1408, 1408, 1408], 3000, 1408, LENGTH);
        assert_eq!(datagrams, [(0, 1408, 0), (1408, 1408, 0)]);
        assert!(total.blocked);
        let (datagrams, total) = cut(&[128], 96, 1408, LENGTH);
        assert_eq!((datagrams.len(), total.blocked), (0, true));
        let (_, total) = cut(&[1408, 1408], 1408, 1408, LENGTH);
        assert!(!total.blocked, "an exhausted window shows in the next scan");
    }

    #[test]
    fn the_byte_limit_ends_a_batch_without_calling_it_blocked() {
        let (datagrams, total) = cut(&[1408; 10], LENGTH, 1408, 3 * 1408 + 1000);
        assert_eq!((datagrams.len(), total.blocked), (3, false));
        let (datagrams, _) = cut(&[1408; 10], LENGTH, 1408, 1);
        assert_eq!(datagrams.len(), 1);
    }

    #[test]
    fn a_scan_stops_at_an_uncommitted_frame_and_at_the_end_of_the_term() {
        let term = term_of(&[64, 64]);
        term.put_i32(64, -64);
        assert_eq!(scan_available(&term, 0, 1408).available, 64);
        let last = LENGTH - 32;
        frame::put_padding(&term, last, 32, IDENTITY);
        assert_eq!(scan_available(&term, last, 1408).available, 32);
        for outside in [LENGTH, LENGTH + 32, 7] {
            assert_eq!(scan_available(&term, outside, 1408), Scan::default());
        }
    }
}
