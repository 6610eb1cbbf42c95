//! Reading recordings where an archive wrote them: segment files in a directory.
//!
//! ```text
//!   RecordingReader   messages in a range of positions, put together from fragments, filtered
//!     Segments        frames at positions: which file, which offset, is it what was recorded there?
//!   Checksum          what frames carry where a recording was made with checksums
//! ```
//!
//! Files are read, not mapped: a file that somebody cuts short while it is read is an error that names it, and not
//! a signal that ends the process.

mod checksum;
mod error;
mod reader;
mod segments;
#[cfg(test)]
mod tests;

pub use checksum::Checksum;
pub use error::RecordingError;
pub use reader::{MessageFilter, Range, RecordedMessage, RecordingReader};
pub use segments::{RecordedChecksum, RecordingSource};
