//! The bytes of a message, in one piece or several.

use crate::Memory;

/// A message to copy into a term.
pub(super) trait Payload {
    /// Bytes in all.
    fn length(&self) -> usize;
    /// Copies all of it.
    fn put_all<M: Memory>(&mut self, term: &M, at: usize);
    /// Copies the next `length` bytes that have not been copied yet.
    fn put_next<M: Memory>(&mut self, term: &M, at: usize, length: usize);
}

/// A message in one piece.
pub(super) struct Whole<'a>(pub(super) &'a [u8]);

impl Payload for Whole<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn put_all<M: Memory>(&mut self, term: &M, at: usize) {
        term.put_bytes(at, self.0);
    }

    fn put_next<M: Memory>(&mut self, term: &M, at: usize, length: usize) {
        let (next, rest) = self.0.split_at(length);
        term.put_bytes(at, next);
        self.0 = rest;
    }
}

/// A message gathered from several pieces.
pub(super) struct Gathered<'a> {
    parts: &'a [&'a [u8]],
    length: usize,
    // Bytes of the first part that have been copied.
    consumed: usize,
}

impl<'a> Gathered<'a> {
    #[inline]
    pub(super) fn new(parts: &'a [&'a [u8]]) -> Self {
        // The same bytes may be listed many times, so the sum can exceed memory; saturated, it is refused as
        // too long.
        let length = parts
            .iter()
            .fold(0usize, |sum, part| sum.saturating_add(part.len()));
        Self {
            parts,
            length,
            consumed: 0,
        }
    }
}

impl Payload for Gathered<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn put_all<M: Memory>(&mut self, term: &M, mut at: usize) {
        for part in self.parts {
            term.put_bytes(at, part);
            at += part.len();
        }
    }

    fn put_next<M: Memory>(&mut self, term: &M, mut at: usize, mut length: usize) {
        while length > 0 {
            let Some((first, rest)) = self.parts.split_first() else {
                return;
            };
            let unread = &first[self.consumed..];
            let taken = unread.len().min(length);
            term.put_bytes(at, &unread[..taken]);
            at += taken;
            length -= taken;
            self.consumed += taken;
            if self.consumed == first.len() {
                self.parts = rest;
                self.consumed = 0;
            }
        }
    }
}
