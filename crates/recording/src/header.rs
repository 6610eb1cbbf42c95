//! Words of a frame's header, read from bytes.

use headrace_buffers::log::frame::TYPE_OFFSET;

/// A word of a frame's header, at an offset in some bytes.
#[inline]
pub(crate) fn word(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// The type in a frame's header.
#[inline]
pub(crate) fn kind(header: &[u8]) -> u16 {
    u16::from_le_bytes([header[TYPE_OFFSET], header[TYPE_OFFSET + 1]])
}
