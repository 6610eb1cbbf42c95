//! A publication of the client of either kind.

use std::ops::Deref;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::Append;
use headrace_buffers::log::append::Progress;
use headrace_client::{Awaited, OfferError, PublicationHandle};

use crate::waiting::waitable::Waitable;

/// The two kinds in one class, so that the methods they share are written, and documented, once.
pub(crate) enum AnyPublication {
    Concurrent(headrace_client::Publication),
    Exclusive(headrace_client::ExclusivePublication),
}

impl AnyPublication {
    #[inline]
    pub(crate) fn offer(&self, message: &[u8]) -> Result<Append, OfferError> {
        match self {
            Self::Concurrent(publication) => publication.offer(message),
            Self::Exclusive(publication) => publication.offer(message),
        }
    }

    pub(crate) fn offer_many(&self, messages: &[&[u8]]) -> Result<Progress, OfferError> {
        match self {
            Self::Concurrent(publication) => publication.offer_many(messages),
            Self::Exclusive(publication) => publication.offer_many(messages),
        }
    }

    /// As [`Self::offer_parts`], with the same value in the header of each frame.
    pub(crate) fn offer_reserved(&self, parts: &[&[u8]], value: i64) -> Result<Append, OfferError> {
        let reserved = |_: &AtomicBuffer, _: usize, _: usize| value;
        match self {
            Self::Concurrent(publication) => publication.offer_reserved(parts, reserved),
            Self::Exclusive(publication) => publication.offer_reserved(parts, reserved),
        }
    }

    pub(crate) fn offer_parts(&self, parts: &[&[u8]]) -> Result<Append, OfferError> {
        match self {
            Self::Concurrent(publication) => publication.offer_parts(parts),
            Self::Exclusive(publication) => publication.offer_parts(parts),
        }
    }
}

impl Deref for AnyPublication {
    type Target = PublicationHandle;

    fn deref(&self) -> &PublicationHandle {
        match self {
            Self::Concurrent(publication) => publication,
            Self::Exclusive(publication) => publication,
        }
    }
}

impl Waitable for AnyPublication {
    /// True when an offer is likely to be accepted, or cannot ever be.
    fn is_ready(&self) -> bool {
        self.is_closed() || (self.is_connected() && self.available_window().is_none_or(|window| window > 0))
    }

    fn awaited(&self) -> &(dyn Awaited + Sync) {
        &**self
    }
}
