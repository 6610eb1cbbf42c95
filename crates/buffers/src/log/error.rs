//! What can be wrong with a log file.

use std::io;
use std::path::PathBuf;

/// A log could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("cannot {action} log path={}: {source}", path.display())]
    Io {
        /// What was tried: "create" or "map".
        action: &'static str,
        /// File concerned.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A value asked for, or found in the metadata, breaks its rule.
    #[error("invalid {name}={value}: {rule}")]
    Invalid {
        /// Field.
        name: &'static str,
        /// Its value.
        value: i64,
        /// What it has to satisfy.
        rule: String,
    },
    /// A file was refused; says which and why.
    #[error("refused log path={}: {reason}", path.display())]
    Refused {
        /// File concerned.
        path: PathBuf,
        /// The rule it breaks.
        reason: Box<LogError>,
    },
}
