//! ERR: a receiver tells a sender that it refuses a stream.
//!
//! ```text
//!   0        8         12       16            24          32     36            40
//!   | common | session | stream | receiver id | group tag | code | text length | text
//! ```

use super::{FLAGS_OFFSET, FrameError, FrameKind, expect, put_common_header};
use crate::bytes::{i32_at, i64_at, put_i32, put_i64, text};

/// The group tag field means something.
pub const FLAG_GROUP_TAG: u8 = 0x08;

/// A receiver's refusal and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorFrame {
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// The receiving endpoint.
    pub receiver_id: i64,
    /// Group the receiver says it belongs to.
    pub group_tag: Option<i64>,
    /// An [`ErrorCode`](crate::ErrorCode) value, kept as sent.
    pub error_code: i32,
    /// The reason, at most [`ErrorFrame::TEXT_LENGTH_MAX`] bytes.
    pub text: String,
}

impl ErrorFrame {
    /// Bytes before the text.
    pub const LENGTH_MIN: usize = 40;
    /// Longest text.
    pub const TEXT_LENGTH_MAX: usize = 1023;
    /// Longest frame.
    pub const LENGTH_MAX: usize = Self::LENGTH_MIN + Self::TEXT_LENGTH_MAX;

    /// Reads the frame, text included.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::Error)?;
        let frame_length = i32_at(datagram, 0) as usize;
        let text_length = i32_at(datagram, 36);
        let bytes = usize::try_from(text_length)
            .ok()
            .filter(|&length| length <= Self::TEXT_LENGTH_MAX && Self::LENGTH_MIN + length <= frame_length)
            .map(|length| &datagram[Self::LENGTH_MIN..Self::LENGTH_MIN + length])
            .ok_or(FrameError::Field {
                field: "text_length",
                value: text_length.into(),
            })?;
        let is_tagged = datagram[FLAGS_OFFSET] & FLAG_GROUP_TAG != 0;
        Ok(Self {
            session_id: i32_at(datagram, 8),
            stream_id: i32_at(datagram, 12),
            receiver_id: i64_at(datagram, 16),
            group_tag: is_tagged.then(|| i64_at(datagram, 24)),
            error_code: i32_at(datagram, 32),
            text: text(bytes).into_owned(),
        })
    }

    /// Writes the frame, the text cut to the longest allowed; returns the length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let text = &self.text.as_bytes()[..self.text.len().min(Self::TEXT_LENGTH_MAX)];
        let length = Self::LENGTH_MIN + text.len();
        let into = &mut into[..length];
        let flags = if self.group_tag.is_some() {
            FLAG_GROUP_TAG
        } else {
            0
        };
        put_common_header(into, length, flags, FrameKind::Error);
        put_i32(into, 8, self.session_id);
        put_i32(into, 12, self.stream_id);
        put_i64(into, 16, self.receiver_id);
        put_i64(into, 24, self.group_tag.unwrap_or(0));
        put_i32(into, 32, self.error_code);
        put_i32(into, 36, text.len() as i32);
        into[Self::LENGTH_MIN..].copy_from_slice(text);
        length
    }
}
