//! What can be wrong with a recording. Every text names the file, or the replay.

use std::io;
use std::path::PathBuf;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A segment file is not there.
    #[error(
        "missing segment file: {}: recording_id={recording_id} has bytes of position={position} in it",
        path.display()
    )]
    MissingSegment {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        recording_id: i64,
        /// What was to be read from it.
        position: i64,
    },

    /// A segment file ends before what was recorded does.
    #[error("truncated segment file: {}: length={length} where at least {needed} bytes were recorded", path.display())]
    TruncatedSegment {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        length: u64,
        /// The bytes it must have.
        needed: u64,
    },

    /// There is no sound frame at a position where one was recorded.
    #[error("bad frame: {place} position={position}: {reason}")]
    BadFrame {
        /// The file and where in it, or the replay.
        place: String,
        /// Where in the stream.
        position: i64,
        /// What is wrong with it.
        reason: String,
    },

    /// Fragments that follow each other add up to more than a message can be.
    #[error(
        "message too long: {place}: the message that begins at position={position} in recording_id={recording_id} has \
         more than {length_max} bytes, which is more than its terms allow: frames are damaged, or were not written \
         as messages"
    )]
    MessageTooLong {
        /// The file and where in it, or the replay.
        place: String,
        /// Whose it is.
        recording_id: i64,
        /// Where its first fragment is.
        position: i64,
        /// Bytes that a message can have.
        length_max: usize,
    },

    /// A replay is not where the reader is: it began elsewhere, or another reader takes its fragments.
    #[error("wrong position: {place} continues at position={found}, expected position={position}")]
    Misplaced {
        /// The replay.
        place: String,
        /// What was to be read from it.
        position: i64,
        /// What it gives next.
        found: i64,
    },

    /// What the bytes come from gives none.
    #[error("cannot read {place}: {source}")]
    Source {
        /// The replay.
        place: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The operating system refused.
    #[error("cannot read segment file: {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },

    /// A description of a recording, or a range of it, that cannot be.
    #[error("{name}={value}: {rule}")]
    InvalidArgument {
        /// The argument.
        name: &'static str,
        /// What was given.
        value: i64,
        /// What is allowed.
        rule: &'static str,
    },
}

impl RecordingError {
    pub(super) fn argument(name: &'static str, value: impl Into<i64>, rule: &'static str) -> Self {
        Self::InvalidArgument {
            name,
            value: value.into(),
            rule,
        }
    }
}
