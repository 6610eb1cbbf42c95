//! Returning used parts of a term to zero.

use crate::Memory;

use super::frame::{FRAME_ALIGNMENT, FRAME_LENGTH_OFFSET, VERSION_OFFSET};

/// Zeroes `length` bytes from `offset`, both multiples of 32 inside the term.
///
/// The first word goes last, with release: a word that reads as zero there means that the rest of the range
/// is zero as well, so no reader takes a half-cleaned frame for an empty slot.
pub fn zero_range<M: Memory>(term: &M, offset: usize, length: usize) {
    debug_assert!(offset.is_multiple_of(FRAME_ALIGNMENT) && length.is_multiple_of(FRAME_ALIGNMENT));
    if length == 0 {
        return;
    }
    term.zero(offset + 8, length - 8);
    term.put_i32(offset + VERSION_OFFSET, 0);
    term.put_i32_release(offset + FRAME_LENGTH_OFFSET, 0);
}
