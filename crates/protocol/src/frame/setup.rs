//! SETUP: a sender describes a stream so that a receiver can make room for it.
//!
//! ```text
//!   0        8             12        16       20             24            28            32    36    40
//!   | common | term offset | session | stream | initial term | active term | term length | mtu | ttl |
//! ```

use super::{
    DATA_HEADER_LENGTH, DATAGRAM_LENGTH_MAX, FLAGS_OFFSET, FRAME_ALIGNMENT, FrameError, FrameKind,
    TERM_LENGTH_MAX, TERM_LENGTH_MIN, check_term_offset, expect, put_common_header,
};
use crate::bytes::{i32_at, put_i32};

/// The sender wants a response channel.
pub const FLAG_RESPONSE: u8 = 0x80;
/// The publication has several receivers: multicast or multi-destination.
pub const FLAG_GROUP: u8 = 0x40;
/// The sender waits for the slowest of several receivers, each with a window of its own. Ours: Aeron's drivers neither set it
/// nor look at it, and want receivers with equal windows.
pub const FLAG_OWN_WINDOWS: u8 = 0x01;

/// Where a stream is and how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    /// `FLAG_*` bits.
    pub flags: u8,
    /// Offset of the sender's position in the active term.
    pub term_offset: i32,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Term the stream began in.
    pub initial_term_id: i32,
    /// Term of the sender's position.
    pub active_term_id: i32,
    /// Length of every term.
    pub term_length: i32,
    /// Longest datagram the sender makes.
    pub mtu: i32,
    /// Multicast time to live; 0 for unicast.
    pub ttl: i32,
}

impl Setup {
    /// Bytes of the frame.
    pub const LENGTH: usize = 40;

    /// Reads the fields. [`Setup::check`] says whether they can be used.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::Setup)?;
        Ok(Self {
            flags: datagram[FLAGS_OFFSET],
            term_offset: i32_at(datagram, 8),
            session_id: i32_at(datagram, 12),
            stream_id: i32_at(datagram, 16),
            initial_term_id: i32_at(datagram, 20),
            active_term_id: i32_at(datagram, 24),
            term_length: i32_at(datagram, 28),
            mtu: i32_at(datagram, 32),
            ttl: i32_at(datagram, 36),
        })
    }

    /// Fails unless a log can be made for the stream: term length, offset and MTU in range.
    pub fn check(&self) -> Result<(), FrameError> {
        let length = self.term_length;
        if !(TERM_LENGTH_MIN..=TERM_LENGTH_MAX).contains(&length) || !(length as u32).is_power_of_two() {
            return Err(FrameError::Field {
                field: "term_length",
                value: length.into(),
            });
        }
        check_term_offset(self.term_offset, length)?;
        let mtu_range = DATA_HEADER_LENGTH as i32..=DATAGRAM_LENGTH_MAX as i32;
        if !mtu_range.contains(&self.mtu) || self.mtu % FRAME_ALIGNMENT as i32 != 0 {
            return Err(FrameError::Field {
                field: "mtu",
                value: self.mtu.into(),
            });
        }
        Ok(())
    }

    /// Writes the frame; returns its length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let into = &mut into[..Self::LENGTH];
        put_common_header(into, Self::LENGTH, self.flags, FrameKind::Setup);
        put_i32(into, 8, self.term_offset);
        put_i32(into, 12, self.session_id);
        put_i32(into, 16, self.stream_id);
        put_i32(into, 20, self.initial_term_id);
        put_i32(into, 24, self.active_term_id);
        put_i32(into, 28, self.term_length);
        put_i32(into, 32, self.mtu);
        put_i32(into, 36, self.ttl);
        Self::LENGTH
    }
}
