//! Round-trip measurement: a probe, and its echo.
//!
//! ```text
//!   0        8         12       16               24                32            40
//!   | common | session | stream | echo timestamp | reception delta | receiver id |
//! ```

use super::{FLAGS_OFFSET, FrameError, FrameKind, expect, put_common_header};
use crate::bytes::{i32_at, i64_at, put_i32, put_i64};

/// A probe: the other side sends it back with the flag clear.
pub const FLAG_REPLY: u8 = 0x80;

/// Probe or echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RttMeasurement {
    /// `FLAG_*` bits.
    pub flags: u8,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// The originator's clock, in nanoseconds, when the probe left.
    pub echo_timestamp_ns: i64,
    /// Nanoseconds the answering side held the probe.
    pub reception_delta_ns: i64,
    /// The receiving endpoint.
    pub receiver_id: i64,
}

impl RttMeasurement {
    /// Bytes of the frame.
    pub const LENGTH: usize = 40;

    /// Reads the frame.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::RttMeasurement)?;
        Ok(Self {
            flags: datagram[FLAGS_OFFSET],
            session_id: i32_at(datagram, 8),
            stream_id: i32_at(datagram, 12),
            echo_timestamp_ns: i64_at(datagram, 16),
            reception_delta_ns: i64_at(datagram, 24),
            receiver_id: i64_at(datagram, 32),
        })
    }

    /// True if the other side waits for an echo.
    pub fn asks_for_reply(&self) -> bool {
        self.flags & FLAG_REPLY != 0
    }

    /// The answer to a probe.
    pub fn echo(&self) -> Self {
        Self {
            flags: 0,
            reception_delta_ns: 0,
            ..*self
        }
    }

    /// Writes the frame; returns its length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let into = &mut into[..Self::LENGTH];
        put_common_header(into, Self::LENGTH, self.flags, FrameKind::RttMeasurement);
        put_i32(into, 8, self.session_id);
        put_i32(into, 12, self.stream_id);
        put_i64(into, 16, self.echo_timestamp_ns);
        put_i64(into, 24, self.reception_delta_ns);
        put_i64(into, 32, self.receiver_id);
        Self::LENGTH
    }
}
