//! Errors of the driver: for answers to clients, and for the error log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headrace_buffers::counters::Counter;
use headrace_buffers::error_log::DistinctErrorLog;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::ChannelError;
use thiserror::Error;

use crate::config::FallbackLogger;

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

    /// Names the channel that was asked for.
    pub(crate) fn in_channel(self, channel: &str) -> Self {
        let detail = format!("{}, channel={channel}", self.detail);
        Self { detail, ..self }
    }

    pub(crate) fn invalid_channel(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidChannel, detail)
    }
}

impl From<ChannelError> for CommandError {
    fn from(error: ChannelError) -> Self {
        Self::new(error.code, error.message)
    }
}

/// Keeps errors where the tools find them. Any thread may record; clones share the log.
#[derive(Clone)]
pub(crate) struct ErrorRecorder {
    log: Arc<Mutex<ErrorLog>>,
    count: Counter,
}

type Fallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Text to write outside the log after unlocking it, so that a slow reader holds up one agent and not all.
#[must_use]
struct Overflow(Option<(Fallback, String)>);

impl Overflow {
    fn write(self) {
        if let Some((fallback, text)) = self.0 {
            fallback(&text);
        }
    }
}

struct ErrorLog {
    log: DistinctErrorLog,
    is_full: bool,
    /// Where the first goes that finds no room.
    fallback: Fallback,
    /// Distinct texts that each group has in the log.
    text_counts: [usize; ErrorGroup::COUNT],
}

/// Texts of one group that the log keeps; what the rest said is only counted, in one entry.
const GROUP_TEXTS_MAX: usize = 32;
/// The same for what clients ask for, which people look up in the log.
const CLIENT_TEXTS_MAX: usize = 256;

/// Entries whose texts hold values that others choose: addresses, ids and texts from the network, channels of clients, a
/// disk's free space. Every such entry belongs to a group, which bounds what it may take of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorGroup {
    /// A receiver refused a stream with an error frame.
    ErrorFrames,
    /// A subscriber of this driver rejected an image.
    Rejections,
    /// An image could not be made, or a subscription could not join it.
    Images,
    /// What the sender and the receiver met on their sockets.
    Sockets,
    /// Files that could not be deleted, and little space.
    Storage,
    /// What other drivers told of names, and neighbours that could not be found or sent to.
    Resolution,
    /// Commands of clients that were refused.
    Refusals,
    /// What looks wrong in the channels of clients.
    Doubts,
}

impl ErrorGroup {
    const COUNT: usize = Self::Doubts as usize + 1;

    /// Most texts of the group.
    fn texts_max(self) -> usize {
        match self {
            Self::Refusals | Self::Doubts => CLIENT_TEXTS_MAX,
            Self::ErrorFrames
            | Self::Rejections
            | Self::Images
            | Self::Sockets
            | Self::Storage
            | Self::Resolution => GROUP_TEXTS_MAX,
        }
    }

    /// The entry of all texts that found their group full.
    fn rest(self) -> &'static str {
        match self {
            Self::ErrorFrames => {
                "WARN - more error frames received: their texts are not kept, only counted here"
            }
            Self::Rejections => "WARN - more images rejected: their texts are not kept, only counted here",
            Self::Images => {
                "WARN - more images not created or joined: their texts are not kept, only counted here"
            }
            Self::Sockets => "WARN - more failures on sockets: their texts are not kept, only counted here",
            Self::Storage => "WARN - more problems with storage: their texts are not kept, only counted here",
            Self::Resolution => {
                "WARN - more problems with name resolution: their texts are not kept, only counted here"
            }
            Self::Refusals => "WARN - more commands refused: their texts are not kept, only counted here",
            Self::Doubts => "WARN - more doubts about channels: their texts are not kept, only counted here",
        }
    }
}

impl ErrorLog {
    /// Room for one more text of the group, taken.
    fn take_room(&mut self, group: ErrorGroup) -> bool {
        let count = &mut self.text_counts[group as usize];
        let has_room = *count < group.texts_max();
        *count += usize::from(has_room);
        has_room
    }

    fn record(&mut self, code: i32, text: &str, now_ms: i64) -> Overflow {
        if self.log.record(code, text, now_ms) || std::mem::replace(&mut self.is_full, true) {
            return Overflow(None);
        }
        let text = format!("the error log is full, new errors are only counted from now on: {text}");
        Overflow(Some((Arc::clone(&self.fallback), text)))
    }
}

impl ErrorRecorder {
    /// Records into `log` and counts in `count`.
    pub(crate) fn new(log: DistinctErrorLog, count: Counter) -> Self {
        let log = ErrorLog {
            log,
            is_full: false,
            fallback: Arc::new(|text| FallbackLogger::Stderr.log(text)),
            text_counts: [0; ErrorGroup::COUNT],
        };
        Self {
            log: Arc::new(Mutex::new(log)),
            count,
        }
    }

    /// The same; what finds the log full goes there.
    #[must_use]
    pub(crate) fn with_fallback(self, fallback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.lock().fallback = Arc::new(fallback);
        self
    }

    /// Keeps one observation of an error. The first that finds the log full goes to the fallback instead; later ones
    /// are only counted. A text with values that others choose goes through `record_in`.
    pub(crate) fn record(&self, code: i32, text: &str, now_ms: i64) {
        self.count.get_and_add(1);
        let overflow = self.lock().record(code, text, now_ms);
        overflow.write();
    }

    /// Keeps one observation of an error whose text holds values that others choose: at most
    /// [`ErrorGroup::texts_max`] texts of one group, then one entry that counts the rest.
    pub(crate) fn record_in(&self, group: ErrorGroup, code: i32, text: &str, now_ms: i64) {
        self.count.get_and_add(1);
        let mut errors = self.lock();
        if errors.log.record_known(code, text, now_ms) {
            return;
        }
        let overflow = if errors.take_room(group) {
            errors.record(code, text, now_ms)
        } else {
            errors.record(ErrorCode::GenericError.value(), group.rest(), now_ms)
        };
        drop(errors);
        overflow.write();
    }

    /// Keeps something worth knowing that is not a failure.
    pub(crate) fn warn(&self, text: &str, now_ms: i64) {
        self.record(ErrorCode::GenericError.value(), &format!("WARN - {text}"), now_ms);
    }

    /// The same for a text with values that others choose.
    pub(crate) fn warn_in(&self, group: ErrorGroup, text: &str, now_ms: i64) {
        let code = ErrorCode::GenericError.value();
        self.record_in(group, code, &format!("WARN - {text}"), now_ms);
    }

    fn lock(&self) -> MutexGuard<'_, ErrorLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use headrace_buffers::{AtomicBuffer, error_log};

    use super::*;

    #[test]
    fn a_group_keeps_its_first_texts_and_counts_the_rest_in_one_entry() {
        let memory = AtomicBuffer::allocate(1 << 20);
        let count = Counter::new(AtomicBuffer::allocate(128), 0).unwrap();
        let errors = ErrorRecorder::new(DistinctErrorLog::new(memory.clone()), count.clone());
        for port in 0..GROUP_TEXTS_MAX + 8 {
            errors.warn_in(ErrorGroup::Sockets, &format!("port={port}"), 1);
        }
        errors.warn_in(ErrorGroup::Sockets, "port=0", 2);
        errors.warn_in(ErrorGroup::Images, "another group", 3);
        errors.warn("a failure of the driver's own", 4);
        let entries = error_log::read(&memory, 0);
        let counts: Vec<_> = entries.iter().map(|entry| entry.observation_count).collect();
        assert_eq!(counts[0], 2, "known texts are counted where they are");
        assert_eq!(counts[GROUP_TEXTS_MAX..], [8, 1, 1]);
        assert_eq!(entries[GROUP_TEXTS_MAX].text, ErrorGroup::Sockets.rest());
        assert_eq!(count.get(), GROUP_TEXTS_MAX as i64 + 11);
    }

    #[test]
    fn the_first_text_that_finds_the_log_full_goes_elsewhere_and_holds_nothing_up_meanwhile() {
        let count = Counter::new(AtomicBuffer::allocate(128), 0).unwrap();
        let log = DistinctErrorLog::new(AtomicBuffer::allocate(64));
        let errors = ErrorRecorder::new(log, count.clone());
        let (other, (sender, texts)) = (errors.clone(), mpsc::channel());
        let errors = errors.with_fallback(move |text| {
            let is_free = other.log.try_lock().is_ok();
            sender.send((text.to_owned(), is_free)).unwrap();
        });
        for text in ["one that fits", "one that does not fit any more", "another"] {
            errors.record(1, text, 1);
        }
        let texts: Vec<_> = texts.try_iter().collect();
        assert!(
            texts.len() == 1 && texts[0].0.ends_with("now on: one that does not fit any more"),
            "{texts:?}"
        );
        assert!(texts[0].1, "other agents may record while it is written");
        assert_eq!(count.get(), 3);
    }

    #[test]
    fn a_refusal_reads_as_the_reference_words_it() {
        let error = CommandError::invalid_channel("unknown media: tcp");
        assert_eq!(error.to_string(), "(-1) invalid channel: unknown media: tcp");
    }
}
