//! Reading recordings: from the segment files that an archive wrote, or from an archive's replay.
//!
//! ```text
//!   RecordingReader   messages in a range of positions, put together from fragments, filtered
//!     Frames          frames at positions: is it what was recorded there?
//!       Segments      bytes from files: which file, which offset
//!       Replayed      bytes from an image, as they come
//!       Checksum      what frames carry where a recording was made with checksums
//! ```
//!
//! Files are read, not mapped: a file that somebody cuts short while it is read is an error that names it, and not
//! a signal that ends the process.

mod checksum;
mod error;
mod frames;
mod reader;
mod replayed;
mod segments;
#[cfg(test)]
mod tests;

pub use checksum::Checksum;
pub use error::RecordingError;
pub use frames::{Blocks, RecordingShape};
pub use reader::{MessageFilter, Range, RecordedMessage, RecordingReader};
pub use replayed::Replayed;
pub use segments::Segments;
