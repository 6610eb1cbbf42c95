//! Status message: what a receiver has consumed and how much more it can take.
//!
//! ```text
//!   0        8         12       16      20            24       28            36          44
//!   | common | session | stream | term  | term offset | window | receiver id | group tag |
//! ```
//!
//! The group tag is there only when the frame length is 44. The receiver id is not 8-byte aligned.

use super::{FLAGS_OFFSET, FrameError, FrameKind, check_term_offset, expect, put_common_header};
use crate::bytes::{i32_at, i64_at, put_i32, put_i64};

/// "Send me a SETUP": the receiver does not know the stream yet, and the position means nothing.
pub const FLAG_SETUP: u8 = 0x80;
/// "I am going away."
pub const FLAG_END_OF_STREAM: u8 = 0x40;

/// A receiver's position and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusMessage {
    /// `FLAG_*` bits.
    pub flags: u8,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Term of the consumed position.
    pub consumption_term_id: i32,
    /// Offset of the consumed position.
    pub consumption_term_offset: i32,
    /// Bytes the receiver can take beyond that position.
    pub receiver_window_length: i32,
    /// The receiving endpoint.
    pub receiver_id: i64,
    /// Group the receiver says it belongs to.
    pub group_tag: Option<i64>,
}

impl StatusMessage {
    /// Bytes of the frame without a group tag.
    pub const LENGTH: usize = 36;
    /// Bytes of the frame with a group tag.
    pub const LENGTH_WITH_GROUP_TAG: usize = 44;

    /// A request for a SETUP of a stream.
    pub fn eliciting_setup(
        session_id: i32,
        stream_id: i32,
        receiver_id: i64,
        group_tag: Option<i64>,
    ) -> Self {
        Self {
            flags: FLAG_SETUP,
            session_id,
            stream_id,
            consumption_term_id: 0,
            consumption_term_offset: 0,
            receiver_window_length: 0,
            receiver_id,
            group_tag,
        }
    }

    /// Reads the fields. [`StatusMessage::check`] says whether they can be used.
    ///
    /// A tail of any length but the group tag's is skipped: old senders put free bytes there.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::StatusMessage)?;
        // `expect` compared the frame length with the datagram, so the tag lies inside.
        let is_tagged = i32_at(datagram, 0) as usize == Self::LENGTH_WITH_GROUP_TAG;
        Ok(Self {
            flags: datagram[FLAGS_OFFSET],
            session_id: i32_at(datagram, 8),
            stream_id: i32_at(datagram, 12),
            consumption_term_id: i32_at(datagram, 16),
            consumption_term_offset: i32_at(datagram, 20),
            receiver_window_length: i32_at(datagram, 24),
            receiver_id: i64_at(datagram, 28),
            group_tag: is_tagged.then(|| i64_at(datagram, 36)),
        })
    }

    /// Fails unless offset and window fit a term of `term_length`, the publication's or the longest there is.
    pub fn check(&self, term_length: i32) -> Result<(), FrameError> {
        check_term_offset(self.consumption_term_offset, term_length)?;
        if !(0..=term_length / 2).contains(&self.receiver_window_length) {
            let value = self.receiver_window_length.into();
            return Err(FrameError::Field {
                field: "receiver_window_length",
                value,
            });
        }
        Ok(())
    }

    /// True if the receiver asks for a SETUP. Such a message says nothing else, whatever its other flags.
    pub fn asks_for_setup(&self) -> bool {
        self.flags & FLAG_SETUP != 0
    }

    /// True if the receiver is going away.
    pub fn is_end_of_stream(&self) -> bool {
        self.flags & FLAG_END_OF_STREAM != 0 && !self.asks_for_setup()
    }

    /// Stream position of what the receiver consumed, in a log of `1 << position_bits_to_shift` long terms.
    pub fn position(&self, initial_term_id: i32, position_bits_to_shift: u32) -> i64 {
        let term_count = i64::from(self.consumption_term_id.wrapping_sub(initial_term_id));
        (term_count << position_bits_to_shift) + i64::from(self.consumption_term_offset)
    }

    /// Bytes of the frame.
    pub fn length(&self) -> usize {
        match self.group_tag {
            Some(_) => Self::LENGTH_WITH_GROUP_TAG,
            None => Self::LENGTH,
        }
    }

    /// Writes the frame; returns its length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let length = self.length();
        let into = &mut into[..length];
        put_common_header(into, length, self.flags, FrameKind::StatusMessage);
        put_i32(into, 8, self.session_id);
        put_i32(into, 12, self.stream_id);
        put_i32(into, 16, self.consumption_term_id);
        put_i32(into, 20, self.consumption_term_offset);
        put_i32(into, 24, self.receiver_window_length);
        put_i64(into, 28, self.receiver_id);
        if let Some(group_tag) = self.group_tag {
            put_i64(into, 36, group_tag);
        }
        length
    }
}
