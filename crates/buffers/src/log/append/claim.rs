//! Space in the log that its owner fills in place.

use std::fmt;

use crate::doorbell::Doorbell;
use crate::{AtomicBuffer, Memory};

use super::Append;
use crate::log::frame::{self, FLAGS_UNFRAGMENTED, HEADER_LENGTH, TYPE_PAD};

/// Outcome of a claim.
#[derive(Debug)]
pub enum ClaimResult<'a, M: Memory = AtomicBuffer> {
    /// Space was claimed.
    Claimed(Claim<'a, M>),
    /// There was none; never [`Append::Position`].
    Refused(Append),
}

/// One frame, claimed and not yet visible. Dropped without [`Claim::commit`], it becomes padding.
///
/// While a claim is open no reader passes it, so it should be filled and committed without delay; the driver
/// takes it away after the unblock timeout. [`Claim::commit`] then says so; what the owner still writes may overwrite
/// another message, once the log has come round.
pub struct Claim<'a, M: Memory = AtomicBuffer> {
    term: Term<'a, M>,
    offset: usize,
    stream_and_term: i64,
    frame_length: usize,
    position: i64,
    is_finished: bool,
    // Rung once the frame is visible.
    doorbell: Option<Doorbell>,
}

enum Term<'a, M> {
    Borrowed(&'a M),
    Owned(M),
}

impl<M> Term<'_, M> {
    #[inline]
    fn get(&self) -> &M {
        match self {
            Term::Borrowed(term) => term,
            Term::Owned(term) => term,
        }
    }
}

impl<'a, M: Memory> Claim<'a, M> {
    /// Over a frame whose header was written by [`frame::claim`].
    #[inline]
    pub(super) fn new(term: &'a M, offset: usize, frame_length: usize, position: i64) -> Self {
        Self {
            term: Term::Borrowed(term),
            offset,
            stream_and_term: frame::stream_and_term(term, offset),
            frame_length,
            position,
            is_finished: false,
            doorbell: None,
        }
    }

    /// The same claim, which wakes readers when it ends.
    #[inline]
    #[must_use]
    pub fn with_doorbell(mut self, doorbell: &Doorbell) -> Self {
        self.doorbell = Some(doorbell.clone());
        self
    }

    /// Position of the stream after this frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Bytes of payload.
    #[inline]
    pub fn length(&self) -> usize {
        self.frame_length - HEADER_LENGTH
    }

    /// Copies `bytes` to `offset` within the payload. Panics when they do not fit.
    #[inline]
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        let length = self.length();
        assert!(
            offset <= length && bytes.len() <= length - offset,
            "offset={offset} length={} is outside a claim of length={length}",
            bytes.len()
        );
        self.term
            .get()
            .put_bytes(self.offset + HEADER_LENGTH + offset, bytes);
    }

    /// Flags that the frame will carry.
    pub fn flags(&self) -> u8 {
        frame::flags(self.term.get(), self.offset)
    }

    /// Sets the flags, for a publisher that fragments by itself.
    pub fn set_flags(&mut self, flags: u8) {
        frame::put_kind(self.term.get(), self.offset, flags, self.frame_type());
    }

    /// Type that the frame will have.
    pub fn frame_type(&self) -> u16 {
        frame::frame_type(self.term.get(), self.offset)
    }

    /// Value that the frame will carry besides its payload.
    pub fn reserved_value(&self) -> i64 {
        frame::reserved_value(self.term.get(), self.offset)
    }

    /// Sets the reserved value.
    pub fn set_reserved_value(&mut self, value: i64) {
        let offset = self.offset + frame::RESERVED_VALUE_OFFSET;
        self.term.get().put_i64(offset, value);
    }

    /// Publishes the frame. False, with nothing done, if the driver took the claim away before.
    #[inline]
    #[must_use = "a claim that was held too long is not sent"]
    pub fn commit(mut self) -> bool {
        self.is_finished = true;
        self.finish()
    }

    /// Makes the frame visible, if it is this claim's still.
    #[inline]
    fn finish(&self) -> bool {
        let is_finished =
            self.is_open() && frame::commit_claim(self.term.get(), self.offset, self.frame_length);
        if let (true, Some(doorbell)) = (is_finished, &self.doorbell) {
            doorbell.ring();
        }
        is_finished
    }

    /// The driver pads a claim that it takes away, and the log's next lap has other terms.
    #[inline]
    fn is_open(&self) -> bool {
        let (term, offset) = (self.term.get(), self.offset);
        frame::is_claimed(term, offset, self.frame_length)
            && frame::stream_and_term(term, offset) == self.stream_and_term
    }

    /// Gives the space back as padding, as dropping does.
    pub fn abort(self) {
        drop(self);
    }

    /// The same claim, free of the borrow of its appender.
    pub fn into_owned(mut self) -> Claim<'static, M>
    where
        M: Clone,
    {
        self.is_finished = true;
        Claim {
            term: Term::Owned(self.term.get().clone()),
            offset: self.offset,
            stream_and_term: self.stream_and_term,
            frame_length: self.frame_length,
            position: self.position,
            is_finished: false,
            doorbell: self.doorbell.take(),
        }
    }
}

impl Claim<'_> {
    /// The payload's memory, which stays mapped as long as the result is held. A caller that fills it through
    /// the result must stop when the claim is committed or aborted.
    pub fn memory(&self) -> AtomicBuffer {
        self.term.get().slice(self.offset + HEADER_LENGTH, self.length())
    }

    /// The payload, to be filled in place.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        let length = self.length();
        // Taking the region checks that the range lies inside the term.
        let start = self
            .term
            .get()
            .region(self.offset + HEADER_LENGTH, length)
            .as_ptr()
            .cast_mut();
        // SAFETY: the range is in bounds of memory that the term keeps mapped, and the claim makes this object
        // its only user: readers stop before it until it is committed, which consumes the claim.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

impl<M: Memory> Drop for Claim<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if self.is_finished || !self.is_open() {
            return;
        }
        frame::put_kind(self.term.get(), self.offset, FLAGS_UNFRAGMENTED, TYPE_PAD);
        self.finish();
    }
}

impl<M: Memory> fmt::Debug for Claim<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("offset", &self.offset)
            .field("frame_length", &self.frame_length)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
