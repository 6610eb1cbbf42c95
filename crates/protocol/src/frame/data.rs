//! Header of data and padding frames.
//!
//! ```text
//!   0        8             12         16        20      24             32
//!   | common | term offset | session  | stream  | term  | reserved     | payload
//! ```

use super::{
    DATA_HEADER_LENGTH, FLAGS_OFFSET, FrameError, FrameKind, TYPE_DATA, TYPE_OFFSET, TYPE_PAD, VERSION,
    VERSION_OFFSET,
};
use crate::bytes::{i32_at, i64_at, put_i32, put_i64, put_u16, u16_at};

/// First fragment of a message.
pub const FLAG_BEGIN: u8 = 0x80;
/// Last fragment of a message.
pub const FLAG_END: u8 = 0x40;
/// A whole message in one frame.
pub const FLAGS_UNFRAGMENTED: u8 = FLAG_BEGIN | FLAG_END;
/// The stream ends here; only in heartbeats.
pub const FLAG_END_OF_STREAM: u8 = 0x20;
/// The publication was revoked; only in heartbeats.
pub const FLAG_REVOKED: u8 = 0x10;

const TERM_OFFSET_OFFSET: usize = 8;
const SESSION_ID_OFFSET: usize = 12;
const STREAM_ID_OFFSET: usize = 16;
const TERM_ID_OFFSET: usize = 20;
const RESERVED_VALUE_OFFSET: usize = 24;

/// The 32 bytes before each payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataHeader {
    /// Header and payload, without padding to the frame alignment. 0 in heartbeats.
    pub frame_length: i32,
    /// `FLAG_*` bits.
    pub flags: u8,
    /// True for a padding frame.
    pub is_padding: bool,
    /// Where in its term the frame starts.
    pub term_offset: i32,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Term the frame belongs to.
    pub term_id: i32,
    /// Free for the application.
    pub reserved_value: i64,
}

impl DataHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = DATA_HEADER_LENGTH;

    /// A heartbeat at a position; `flags` are the unfragmented flags and those that end a stream.
    pub fn heartbeat(session_id: i32, stream_id: i32, term_id: i32, term_offset: i32, flags: u8) -> Self {
        Self {
            frame_length: 0,
            flags,
            is_padding: false,
            term_offset,
            session_id,
            stream_id,
            term_id,
            reserved_value: 0,
        }
    }

    /// Reads the header at the start of `bytes`, which may be one frame of several in a datagram.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let Some(header) = bytes.first_chunk::<DATA_HEADER_LENGTH>() else {
            return Err(FrameError::Length { length: bytes.len() });
        };
        let frame_length = i32_at(header, 0);
        if frame_length < 0 {
            return Err(FrameError::FrameLength { frame_length });
        }
        if header[VERSION_OFFSET] != VERSION {
            return Err(FrameError::Version {
                version: header[VERSION_OFFSET],
            });
        }
        let code = u16_at(header, TYPE_OFFSET);
        if code != TYPE_DATA && code != TYPE_PAD {
            return Err(FrameError::Type { code });
        }
        Ok(Self {
            frame_length,
            flags: header[FLAGS_OFFSET],
            is_padding: code == TYPE_PAD,
            term_offset: i32_at(header, TERM_OFFSET_OFFSET),
            session_id: i32_at(header, SESSION_ID_OFFSET),
            stream_id: i32_at(header, STREAM_ID_OFFSET),
            term_id: i32_at(header, TERM_ID_OFFSET),
            reserved_value: i64_at(header, RESERVED_VALUE_OFFSET),
        })
    }

    /// Writes the header; returns its length. Panics if `into` is shorter.
    #[inline]
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let into = &mut into[..Self::LENGTH];
        let kind = if self.is_padding {
            FrameKind::Pad
        } else {
            FrameKind::Data
        };
        put_i32(into, 0, self.frame_length);
        into[VERSION_OFFSET] = VERSION;
        into[FLAGS_OFFSET] = self.flags;
        put_u16(into, TYPE_OFFSET, kind as u16);
        put_i32(into, TERM_OFFSET_OFFSET, self.term_offset);
        put_i32(into, SESSION_ID_OFFSET, self.session_id);
        put_i32(into, STREAM_ID_OFFSET, self.stream_id);
        put_i32(into, TERM_ID_OFFSET, self.term_id);
        put_i64(into, RESERVED_VALUE_OFFSET, self.reserved_value);
        Self::LENGTH
    }
}
