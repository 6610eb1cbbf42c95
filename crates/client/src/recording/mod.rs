//! Reading recordings: from the segment files that an archive wrote, or from an archive's replay.
//!
//! ```text
//!   RecordingReader   messages in a range of positions, put together from fragments, filtered
//!     Frames          frames at positions: is it what was recorded there?
//!       Segments      bytes from files: which file, which offset
//!       Replayed      bytes from an image, as they come
//!       Checksum      what frames carry where a recording was made with checksums
//!   FrameWalk         headers alone, of blocks that are handed in: where does a recording end?
//! ```
//!
//! Files are read, not mapped: a file that is cut short while it is read is an error that names it, and not
//! a signal that ends the process.

mod checksum;
mod error;
mod frames;
mod reader;
mod replayed;
mod segments;
#[cfg(test)]
mod tests;
mod walk;

use headrace_buffers::log::frame::TYPE_OFFSET;

pub use checksum::Checksum;
pub use error::RecordingError;
pub use frames::{Blocks, RecordingShape};
pub use reader::{Incomplete, MessageFilter, Range, RecordedMessage, RecordingReader};
pub use replayed::Replayed;
pub use segments::Segments;
pub use walk::{FrameWalk, UncertainFrame, Walked};

/// A word of a frame's header, at an offset in some bytes.
#[inline]
fn word(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// The type in a frame's header.
#[inline]
fn kind(header: &[u8]) -> u16 {
    u16::from_le_bytes([header[TYPE_OFFSET], header[TYPE_OFFSET + 1]])
}
