//! Errors of the driver: what a client is answered, and what the error log keeps.

use std::sync::{Arc, Mutex, PoisonError};

use headrace_buffers::counters::Counter;
use headrace_buffers::error_log::DistinctErrorLog;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::ChannelError;
use thiserror::Error;

/// Why a command was refused: the code and text of the error reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .code.describe(.detail))]
pub(crate) struct CommandError {
    /// Code of the reply.
    pub(crate) code: ErrorCode,
    /// One line that names what was asked for and the rule it breaks.
    pub(crate) detail: String,
}

impl CommandError {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(crate) fn generic(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::GenericError, detail)
    }

    pub(crate) fn invalid_channel(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidChannel, detail)
    }

    pub(crate) fn not_supported(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotSupported, detail)
    }
}

impl From<ChannelError> for CommandError {
    fn from(error: ChannelError) -> Self {
        Self::new(error.code, error.message)
    }
}

/// Keeps errors where the tools find them. Any thread may record; clones share the log.
#[derive(Clone)]
pub struct ErrorRecorder {
    log: Arc<Mutex<ErrorLog>>,
    count: Counter,
}

struct ErrorLog {
    log: DistinctErrorLog,
    is_full: bool,
}

impl ErrorRecorder {
    /// Records into `log` and counts in `count`.
    pub fn new(log: DistinctErrorLog, count: Counter) -> Self {
        Self {
            log: Arc::new(Mutex::new(ErrorLog { log, is_full: false })),
            count,
        }
    }

    /// Keeps one observation of an error. The first that finds the log full goes to stderr instead; later ones
    /// are only counted, since strangers can cause ever new texts.
    pub fn record(&self, code: i32, text: &str, now_ms: i64) {
        self.count.get_and_add(1);
        let mut errors = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if !errors.log.record(code, text, now_ms) && !std::mem::replace(&mut errors.is_full, true) {
            eprintln!("the error log is full, new errors are only counted from now on: {text}");
        }
    }

    /// Keeps something worth knowing that is not a failure.
    pub fn warn(&self, text: &str, now_ms: i64) {
        self.record(ErrorCode::GenericError.value(), &format!("WARN - {text}"), now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_the_reference_words_it() {
        let error = CommandError::invalid_channel("unknown media: tcp");
        assert_eq!(error.to_string(), "(-1) invalid channel: unknown media: tcp");
    }
}
