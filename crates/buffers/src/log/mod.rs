//! Log buffers: the shared file of one stream, and the algorithms over it.
//!
//! A log is three terms of equal length and a metadata section. Publishers claim space by adding to the raw
//! tail of the active term, write a frame there and publish it by storing its length; readers walk frames by
//! their lengths. When a term is full its last frame pads it out and the stream moves to the next partition,
//! which the driver has zeroed meanwhile. See [`frame`] for the order of stores all of this rests on.
//!
//! Readers, scanners and repair treat what they find as written by a stranger: no content of a log makes them
//! leave the term, loop without end or panic.

pub mod append;
pub mod buffers;
pub mod clean;
pub mod descriptor;
pub mod error;
pub mod frame;
pub mod gap;
pub mod header;
#[cfg(all(test, loom))]
mod loom_models;
pub mod metadata;
pub mod position;
pub mod raw_tail;
pub mod read;
pub mod rebuild;
pub mod rotation;
pub mod scan;
pub mod spec;
pub mod unblock;

pub use append::{
    Append, AppendError, BlockError, Claim, ClaimResult, ConcurrentAppender, ExclusiveAppender, RecordedEnd,
    RecordedResult,
};
pub use buffers::LogBuffers;
pub use error::LogError;
pub use frame::FrameHeader;
pub use gap::Gap;
pub use header::Header;
pub use metadata::LogMetadata;
pub use position::TermGeometry;
pub use read::Action;
pub use rebuild::Insert;
pub use scan::Datagram;
pub use spec::{LogSpec, LogType, StartPosition};
pub use unblock::Unblock;
