//! NAK: a receiver asks for a range again.
//!
//! ```text
//!   0        8         12       16      20            24       28
//!   | common | session | stream | term  | term offset | length |
//! ```

use super::{FLAGS_OFFSET, FrameError, FrameKind, check_term_offset, expect, put_common_header};
use crate::bytes::{i32_at, put_i32};

/// A missing range. It stays inside one term and may be longer than a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nak {
    /// No flags are in use.
    pub flags: u8,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Term of the range.
    pub term_id: i32,
    /// First missing byte.
    pub term_offset: i32,
    /// Missing bytes.
    pub length: i32,
}

impl Nak {
    /// Bytes of the frame.
    pub const LENGTH: usize = 28;

    /// Reads the fields. [`Nak::check`] says whether they can be used.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::Nak)?;
        Ok(Self {
            flags: datagram[FLAGS_OFFSET],
            session_id: i32_at(datagram, 8),
            stream_id: i32_at(datagram, 12),
            term_id: i32_at(datagram, 16),
            term_offset: i32_at(datagram, 20),
            length: i32_at(datagram, 24),
        })
    }

    /// Fails unless the range lies in a term of `term_length`.
    pub fn check(&self, term_length: i32) -> Result<(), FrameError> {
        check_term_offset(self.term_offset, term_length)?;
        if self.length < 0 || self.length > term_length - self.term_offset {
            return Err(FrameError::Field {
                field: "length",
                value: self.length.into(),
            });
        }
        Ok(())
    }

    /// Writes the frame; returns its length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let into = &mut into[..Self::LENGTH];
        put_common_header(into, Self::LENGTH, self.flags, FrameKind::Nak);
        put_i32(into, 8, self.session_id);
        put_i32(into, 12, self.stream_id);
        put_i32(into, 16, self.term_id);
        put_i32(into, 20, self.term_offset);
        put_i32(into, 24, self.length);
        Self::LENGTH
    }
}
