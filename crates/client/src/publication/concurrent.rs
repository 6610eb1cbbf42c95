//! Publications that any number of threads, and processes, may write to at once.

use std::ops::Deref;
use std::sync::Arc;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::append::{Progress, ReservedValue};
use headrace_buffers::log::{Append, ClaimResult, ConcurrentAppender};

use super::handle::PublicationHandle;
use crate::error::OfferError;

/// A stream to one or more subscribers, shared by any number of writers.
///
/// Usable from any thread; offers neither lock nor allocate nor call the system. Dropping closes.
pub struct Publication {
    handle: Arc<PublicationHandle>,
    appender: ConcurrentAppender,
}

impl Publication {
    pub(crate) fn new(handle: Arc<PublicationHandle>) -> Self {
        let appender = ConcurrentAppender::new(&handle.log);
        Self { handle, appender }
    }

    /// Sends one message, or returns why not. An error means that the message can never be sent.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Append, OfferError> {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self
            .appender
            .offer_one(message, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce(append))
    }

    /// Sends messages in order until one is refused.
    pub fn offer_many(&self, messages: &[&[u8]]) -> Result<Progress, OfferError> {
        if self.handle.is_closed() {
            return Ok(Progress {
                refused: Some(Append::Closed),
                ..Progress::default()
            });
        }
        let progress = self
            .appender
            .offer_many(messages, self.handle.limit.get_acquire())?;
        self.handle.data_doorbell.ring();
        if let Some(refused) = progress.refused {
            self.handle.announce(refused);
        }
        Ok(progress)
    }

    /// As [`Self::offer`] for a message in parts.
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<Append, OfferError> {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self.appender.offer(parts, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce(append))
    }

    /// As [`Self::offer_parts`]; calls `reserved` for the reserved value of each frame once its payload is written.
    #[inline]
    pub fn offer_reserved<R>(&self, parts: &[&[u8]], reserved: R) -> Result<Append, OfferError>
    where
        R: ReservedValue<AtomicBuffer>,
    {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self
            .appender
            .offer_reserved(parts, self.handle.limit.get_acquire(), reserved)?;
        Ok(self.handle.announce(append))
    }

    /// Claims room for a message of `length` bytes, at most the payload of one frame, to be filled in place.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<ClaimResult<'_>, OfferError> {
        if self.handle.is_closed() {
            return Ok(ClaimResult::Refused(Append::Closed));
        }
        let result = self.appender.try_claim(length, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce_when_committed(result))
    }
}

impl Deref for Publication {
    type Target = PublicationHandle;

    fn deref(&self) -> &PublicationHandle {
        &self.handle
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.handle.close();
    }
}
