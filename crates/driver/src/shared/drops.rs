//! Counts datagrams that an image does not accept because they lie outside the window.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Where a datagram lies that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// More than half a term beyond what the slowest reader has read: the log has no room for it.
    Ahead,
    /// More than a window before that: it was read long ago, or the publisher counts its positions from elsewhere.
    Old,
}

/// A datagram that was not taken, as the end of a label tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) source: SocketAddr,
    pub(crate) outside: Outside,
}

impl fmt::Display for Dropped {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.outside {
            Outside::Ahead => "more than half a term ahead of the slowest reader",
            Outside::Old => "more than a window older than what was read",
        };
        write!(text, "from {}, {place}", self.source)
    }
}

/// Drops of one image. Writer: receiver. Reader: conductor, on its timer.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    count: AtomicI64,
    /// The conductor has seen `last`.
    is_seen: AtomicBool,
    // Taken once a look by either side.
    last: Mutex<Option<Dropped>>,
}

impl Drops {
    /// The receiver did not take a datagram.
    #[cold]
    pub(crate) fn note(&self, source: SocketAddr, outside: Outside) {
        let count = self.count.load(Ordering::Relaxed);
        if count == 0 || self.is_seen.load(Ordering::Acquire) {
            self.is_seen.store(false, Ordering::Relaxed);
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Dropped { source, outside });
        }
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// How many there were, and the first of those since the last look, or the last one if there was none since.
    pub(crate) fn look(&self) -> (i64, Option<Dropped>) {
        let count = self.count.load(Ordering::Acquire);
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_seen.store(true, Ordering::Release);
        (count, last)
    }
}
