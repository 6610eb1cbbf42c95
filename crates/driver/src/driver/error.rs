//! Why a driver did not start or stop.

use std::io;

use headrace_buffers::BufferError;
use headrace_buffers::cnc::CncError;
use thiserror::Error;

use crate::config::ConfigError;
use crate::directory::DirectoryError;

/// Why a driver did not start or stop.
#[derive(Debug, Error)]
pub enum DriverError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The command-and-control file cannot be made.
    #[error("cannot create the CnC file: {0}")]
    Cnc(#[from] CncError),
    /// A buffer has a length that cannot be used.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// There is no room for the driver's files.
    #[error(
        "cannot {action}: insufficient usable storage, length={length} usable={usable} in {place}; make \
         aeron.counters.buffer.length={counters_length} smaller (it takes five times its length, and 1m is enough \
         for 8192 counters), or give the file system more room"
    )]
    Storage {
        /// What was tried.
        action: &'static str,
        /// Bytes needed.
        length: u64,
        /// Bytes there are.
        usable: u64,
        /// The setting that needs most of them.
        counters_length: usize,
        /// Where.
        place: String,
    },
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
