//! Publications with a single writer, which need not coordinate with other writers.
//!
//! The writer keeps its place in the log itself, so two threads must not use it at once. A lock that no thread waits
//! for guards it: taking it costs one atomic operation, a second thread is refused instead of waiting, and after a
//! panic of a writer the place is still right.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::append::{Progress, ReservedValue};
use headrace_buffers::log::frame::HEADER_LENGTH;
use headrace_buffers::log::{Append, AppendError, ClaimResult, ExclusiveAppender, RecordedResult};

use super::handle::PublicationHandle;
use crate::error::OfferError;
use crate::lock::try_lock;

/// A stream to one or more subscribers that shares neither session nor log and has one writer.
///
/// Any thread may call anything, but one at a time: a second writer is refused ([`OfferError::Busy`]). Dropping
/// closes.
pub struct ExclusivePublication {
    handle: Arc<PublicationHandle>,
    appender: Mutex<ExclusiveAppender>,
}

impl ExclusivePublication {
    pub(crate) fn new(handle: Arc<PublicationHandle>) -> Result<Self, AppendError> {
        let appender = Mutex::new(ExclusiveAppender::new(&handle.log)?);
        Ok(Self { handle, appender })
    }

    /// Takes the right to write until the guard is dropped. A loop that writes through one guard saves the cost of
    /// taking it for each message.
    #[inline]
    pub fn writer(&self) -> Result<Writer<'_>, OfferError> {
        try_lock(&self.appender)
            .map(|appender| Writer {
                handle: &self.handle,
                appender,
            })
            .ok_or(OfferError::Busy)
    }

    /// Sends one message, or returns why not. An error means that the message can never be sent, or that there is a
    /// second writer.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Append, OfferError> {
        self.writer()?.offer(message)
    }

    /// Sends messages in order until one is refused.
    pub fn offer_many(&self, messages: &[&[u8]]) -> Result<Progress, OfferError> {
        let mut writer = self.writer()?;
        let mut progress = Progress::default();
        for message in messages {
            if !progress.add(1, writer.offer(message)?) {
                break;
            }
        }
        Ok(progress)
    }

    /// As [`Self::offer`] for a message in parts.
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<Append, OfferError> {
        self.writer()?.offer_parts(parts)
    }

    /// As [`Self::offer_parts`]; calls `reserved` for the reserved value of each frame once its payload is written.
    #[inline]
    pub fn offer_reserved<R>(&self, parts: &[&[u8]], reserved: R) -> Result<Append, OfferError>
    where
        R: ReservedValue<AtomicBuffer>,
    {
        self.writer()?.offer_reserved(parts, reserved)
    }

    /// Claims room for a message of `length` bytes, at most the payload of one frame, to be filled in place.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<ClaimResult<'static>, OfferError> {
        Ok(match self.writer()?.try_claim(length)? {
            ClaimResult::Claimed(claim) => ClaimResult::Claimed(claim.into_owned()),
            ClaimResult::Refused(refusal) => ClaimResult::Refused(refusal),
        })
    }

    /// Sends padding as long as a frame with `length` bytes of payload.
    pub fn append_padding(&self, length: usize) -> Result<Append, OfferError> {
        self.writer()?.append_padding(length)
    }

    /// Sends whole frames that were made for exactly this place in the stream. All become visible at once.
    pub fn offer_block(&self, block: &[u8]) -> Result<Append, OfferError> {
        self.writer()?.offer_block(block)
    }

    /// Sends the whole data frames among `length` bytes of a recording; all become visible at once. Frames that begin
    /// at or after `within` bytes are not sent.
    ///
    /// `fill` gets the first header and the part of the log for the bytes after that header, and returns how many bytes
    /// it filled in both. They must have been recorded at exactly this position.
    pub fn offer_recorded<E: From<OfferError>>(
        &self,
        length: usize,
        within: usize,
        fill: impl FnOnce(&mut [u8; HEADER_LENGTH], AtomicBuffer) -> Result<usize, E>,
    ) -> Result<RecordedResult, E> {
        let mut writer = self.writer()?;
        let Some(limit) = writer.limit() else {
            return Ok(RecordedResult::Refused(Append::Closed));
        };
        let fill = |first: &mut [u8; HEADER_LENGTH], term: &AtomicBuffer, offset, length| {
            fill(first, term.slice(offset, length)).map_err(Failure::Fill)
        };
        match writer.appender.append_recorded(length, within, limit, fill) {
            Ok(result) => {
                self.handle.data_doorbell.ring();
                if let RecordedResult::Refused(refused) = result {
                    self.handle.announce(refused);
                }
                Ok(result)
            }
            Err(Failure::Fill(failure)) => Err(failure),
            Err(Failure::Append(failure)) => Err(OfferError::from(failure).into()),
        }
    }
}

/// What ends [`ExclusivePublication::offer_recorded`].
enum Failure<E> {
    Append(AppendError),
    Fill(E),
}

impl<E> From<AppendError> for Failure<E> {
    fn from(failure: AppendError) -> Self {
        Self::Append(failure)
    }
}

impl Deref for ExclusivePublication {
    type Target = PublicationHandle;

    fn deref(&self) -> &PublicationHandle {
        &self.handle
    }
}

impl Drop for ExclusivePublication {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// The right to write to an exclusive publication, held by one thread at a time.
pub struct Writer<'a> {
    handle: &'a PublicationHandle,
    appender: MutexGuard<'a, ExclusiveAppender>,
}

impl Writer<'_> {
    /// See [`ExclusivePublication::offer`].
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Append, OfferError> {
        match self.limit() {
            Some(limit) => {
                let append = self.appender.offer_one(message, limit)?;
                Ok(self.handle.announce(append))
            }
            None => Ok(Append::Closed),
        }
    }

    /// See [`ExclusivePublication::offer_parts`].
    #[inline]
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> Result<Append, OfferError> {
        match self.limit() {
            Some(limit) => {
                let append = self.appender.offer(parts, limit)?;
                Ok(self.handle.announce(append))
            }
            None => Ok(Append::Closed),
        }
    }

    /// See [`ExclusivePublication::offer_reserved`].
    #[inline]
    pub fn offer_reserved<R>(&mut self, parts: &[&[u8]], reserved: R) -> Result<Append, OfferError>
    where
        R: ReservedValue<AtomicBuffer>,
    {
        match self.limit() {
            Some(limit) => {
                let append = self.appender.offer_reserved(parts, limit, reserved)?;
                Ok(self.handle.announce(append))
            }
            None => Ok(Append::Closed),
        }
    }

    /// See [`ExclusivePublication::try_claim`].
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<ClaimResult<'_>, OfferError> {
        match self.limit() {
            Some(limit) => {
                let result = self.appender.try_claim(length, limit)?;
                Ok(self.handle.announce_when_committed(result))
            }
            None => Ok(ClaimResult::Refused(Append::Closed)),
        }
    }

    /// See [`ExclusivePublication::append_padding`].
    pub fn append_padding(&mut self, length: usize) -> Result<Append, OfferError> {
        match self.limit() {
            Some(limit) => {
                let append = self.appender.append_padding(length, limit)?;
                Ok(self.handle.announce(append))
            }
            None => Ok(Append::Closed),
        }
    }

    /// See [`ExclusivePublication::offer_block`].
    pub fn offer_block(&mut self, block: &[u8]) -> Result<Append, OfferError> {
        match self.limit() {
            Some(limit) => {
                let append = self.appender.offer_block(block, limit)?;
                Ok(self.handle.announce(append))
            }
            None => Ok(Append::Closed),
        }
    }

    /// The present limit; `None` once closed.
    #[inline(always)]
    fn limit(&self) -> Option<i64> {
        (!self.handle.is_closed()).then(|| self.handle.limit.get_acquire())
    }
}
