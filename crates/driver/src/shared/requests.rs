//! Requests for the same missing bytes, again and again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Requests for a repair of one stream. Writer: the agent that sends or hears them. Reader: conductor, on its timer.
#[derive(Debug, Default)]
pub(crate) struct RepairRequests {
    position: AtomicI64,
    count: AtomicI64,
    heard_ns: AtomicI64,
    receiver: Mutex<Option<SocketAddr>>,
}

impl RepairRequests {
    /// What lies at a position is asked for.
    pub(crate) fn note(&self, position: i64) {
        let is_again = self.position.swap(position, Ordering::Relaxed) == position;
        let before = if is_again {
            self.count.load(Ordering::Relaxed)
        } else {
            0
        };
        self.count.store(before.wrapping_add(1), Ordering::Release);
    }

    /// The same, by a receiver.
    pub(crate) fn note_from(&self, position: i64, receiver: SocketAddr) {
        *self.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        self.note(position);
    }

    /// The last that asked.
    pub(crate) fn receiver(&self) -> Option<SocketAddr> {
        *self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same of a publisher that was heard last at `heard_ns`: nothing can come of one that has been silent since the
    /// request before.
    pub(crate) fn note_if_heard(&self, position: i64, heard_ns: i64) {
        if self.heard_ns.swap(heard_ns, Ordering::Relaxed) != heard_ns {
            self.note(position);
        }
    }

    /// What was asked for last, and how many times in a row.
    pub(crate) fn look(&self) -> (i64, i64) {
        let count = self.count.load(Ordering::Acquire);
        (self.position.load(Ordering::Relaxed), count)
    }
}
