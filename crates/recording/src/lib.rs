//! Reading recordings: from the segment files that an archive wrote, or from any other source of their bytes.
//!
//! ```text
//!   RecordingReader   messages in a range of positions, put together from fragments, filtered
//!     Frames          frames at positions: is it what was recorded there?
//!       Blocks        bytes, wherever they come from; the client has one for images of replays
//!       Segments      bytes from files: which file, which offset
//!       Checksum      what frames carry where a recording was made with checksums
//!   FrameWalk         headers alone, of blocks that are handed in: where does a recording end?
//! ```
//!
//! Files are read, not mapped: a file that is cut short while it is read is an error that names it, and not
//! a signal that ends the process.

#![forbid(unsafe_code)]

mod checksum;
mod error;
mod frames;
mod header;
mod reader;
mod segments;
mod walk;

pub use checksum::Checksum;
pub use error::RecordingError;
pub use frames::{Blocks, RecordingShape};
pub use reader::{Incomplete, MessageFilter, Range, RecordedMessage, RecordingReader};
pub use segments::Segments;
pub use walk::{FrameWalk, UncertainFrame, Walked};
