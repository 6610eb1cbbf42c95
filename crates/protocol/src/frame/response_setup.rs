//! Response setup: a receiver tells a sender which session its responses will come on.
//!
//! ```text
//!   0        8         12       16                 20
//!   | common | session | stream | response session |
//! ```

use super::{FLAGS_OFFSET, FrameError, FrameKind, expect, put_common_header};
use crate::bytes::{i32_at, put_i32};

/// Ties a request stream to the session of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseSetup {
    /// No flags are in use.
    pub flags: u8,
    /// Session of the request stream.
    pub session_id: i32,
    /// Stream of the request.
    pub stream_id: i32,
    /// Session the response publication will use.
    pub response_session_id: i32,
}

impl ResponseSetup {
    /// Bytes of the frame.
    pub const LENGTH: usize = 20;

    /// Reads the frame.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::ResponseSetup)?;
        Ok(Self {
            flags: datagram[FLAGS_OFFSET],
            session_id: i32_at(datagram, 8),
            stream_id: i32_at(datagram, 12),
            response_session_id: i32_at(datagram, 16),
        })
    }

    /// Writes the frame; returns its length. Panics if `into` is shorter.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        let into = &mut into[..Self::LENGTH];
        put_common_header(into, Self::LENGTH, self.flags, FrameKind::ResponseSetup);
        put_i32(into, 8, self.session_id);
        put_i32(into, 12, self.stream_id);
        put_i32(into, 16, self.response_session_id);
        Self::LENGTH
    }
}
