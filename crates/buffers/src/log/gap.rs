//! Finding the first gap in a term that is filled out of order.

use crate::Memory;

use super::frame::{self, FRAME_ALIGNMENT};

/// A run of bytes that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Term with the gap.
    pub term_id: i32,
    /// Offset of the first missing byte.
    pub offset: usize,
    /// Missing bytes, as far as is known: up to the next frame or the limit of the scan.
    pub length: usize,
}

/// What [`scan_for_gap`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapScan {
    /// Everything before this offset has arrived. Lies beyond the limit if the last frame does.
    pub rebuild_offset: usize,
    /// The gap there, if something beyond it was sent.
    pub gap: Option<Gap>,
}

/// Walks frames from `offset` and reports the first gap below `limit`, the offset up to which the stream is
/// known to have been sent.
pub fn scan_for_gap<M: Memory>(term: &M, term_id: i32, offset: usize, limit: usize) -> GapScan {
    let limit = limit.min(term.capacity());
    let mut at = offset;
    if !offset.is_multiple_of(FRAME_ALIGNMENT) {
        return GapScan {
            rebuild_offset: offset,
            gap: None,
        };
    }
    while at < limit {
        let Some(found) = frame::committed(term, at) else {
            break;
        };
        at += found.span;
    }
    let end = end_of_empty_slots(term, at, limit);
    GapScan {
        rebuild_offset: at,
        gap: (end > at).then(|| Gap {
            term_id,
            offset: at,
            length: end - at,
        }),
    }
}

fn end_of_empty_slots<M: Memory>(term: &M, start: usize, limit: usize) -> usize {
    let mut at = start;
    while at < limit && frame::frame_length_acquire(term, at) == 0 {
        at += FRAME_ALIGNMENT;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;

    const LENGTH: usize = 65_536;

    fn term(frames: &[(usize, i32)]) -> AtomicBuffer {
        let term = AtomicBuffer::allocate(LENGTH);
        for (offset, length) in frames {
            term.put_i32_release(*offset, *length);
        }
        term
    }

    fn gap(offset: usize, length: usize) -> Option<Gap> {
        Some(Gap {
            term_id: 9,
            offset,
            length,
        })
    }

    #[test]
    fn a_contiguous_term_has_no_gap_below_the_high_water_mark() {
        let term = term(&[(0, 64), (64, 100), (192, 32)]);
        let scan = scan_for_gap(&term, 9, 0, 224);
        assert_eq!((scan.rebuild_offset, scan.gap), (224, None));
        let scan = scan_for_gap(&term, 9, 64, 150);
        assert_eq!(
            (scan.rebuild_offset, scan.gap),
            (192, None),
            "past a limit inside a frame"
        );
    }

    #[test]
    fn a_gap_reaches_to_the_next_frame_or_to_the_limit() {
        let term = term(&[(0, 64), (160, 32), (256, 32)]);
        let scan = scan_for_gap(&term, 9, 0, 288);
        assert_eq!((scan.rebuild_offset, scan.gap), (64, gap(64, 96)));
        assert_eq!(scan_for_gap(&term, 9, 0, 128).gap, gap(64, 64));
        assert_eq!(scan_for_gap(&term, 9, 192, LENGTH).gap, gap(192, 64));
        assert_eq!(
            scan_for_gap(&term, 9, LENGTH - 64, usize::MAX).gap,
            gap(LENGTH - 64, 64)
        );
    }

    #[test]
    fn nothing_is_missing_where_nothing_was_sent() {
        let term = term(&[(0, 64)]);
        assert_eq!(scan_for_gap(&term, 9, 64, 64).gap, None);
        assert_eq!(scan_for_gap(&term, 9, LENGTH, LENGTH).gap, None);
        assert_eq!(scan_for_gap(&term, 9, 33, LENGTH).gap, None, "off the grid");
    }

    #[test]
    fn a_frame_that_cannot_be_is_no_gap_that_could_be_repaired() {
        let term = term(&[(0, 64), (64, i32::MAX)]);
        let scan = scan_for_gap(&term, 9, 0, 128);
        assert_eq!((scan.rebuild_offset, scan.gap), (64, None));
    }
}
