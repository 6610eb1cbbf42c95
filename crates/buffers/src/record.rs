//! The record that the command ring and the event broadcast share.
//!
//! ```text
//! 0        4         8
//! | length | type id | message, padded to ALIGNMENT
//! ```
//!
//! `length` counts the header and the message without padding.

use crate::memory::Memory;

/// Length of a record header.
pub(crate) const HEADER_LENGTH: usize = 8;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// Type id of a record that only fills space.
pub(crate) const PADDING_TYPE_ID: i32 = -1;
/// Lengths are 32-bit, so a data area must be shorter than 2^31.
pub(crate) const CAPACITY_MAX: usize = 1 << 30;

const TYPE_OFFSET: usize = 4;
const _: () = assert!(HEADER_LENGTH.is_multiple_of(ALIGNMENT)); // messages start aligned

/// Offset of the type id of the record at `record`.
#[inline]
pub(crate) const fn type_offset(record: usize) -> usize {
    record + TYPE_OFFSET
}

/// Offset of the message of the record at `record`.
#[inline]
pub(crate) const fn message_offset(record: usize) -> usize {
    record + HEADER_LENGTH
}

/// A position is only usable when it is a multiple of the record alignment.
#[inline]
pub(crate) const fn is_aligned(position: i64) -> bool {
    position & (ALIGNMENT as i64 - 1) == 0
}

/// Copies the message of a record of `length` bytes into `into`, which then holds nothing else.
#[inline]
pub(crate) fn copy_message<M: Memory>(memory: &M, record: usize, length: usize, into: &mut Vec<u8>) {
    into.clear();
    into.resize(length - HEADER_LENGTH, 0);
    memory.get_bytes_relaxed(message_offset(record), into);
}
