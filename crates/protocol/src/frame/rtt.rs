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
/// The receiver id of a probe that every receiver of the stream answers, each with its own id.
pub const EVERY_RECEIVER: i64 = 0;
/// In an echo of a sender of this project: 1 plus the logarithm, to base 2 and rounded up, of its number of receivers.
/// Other senders leave it 0, and other receivers do not look at it.
const RECEIVER_COUNT_MASK: u8 = 0x0f;

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

    /// The same echo, telling how many receivers the sender has.
    #[must_use]
    pub fn with_receiver_count(self, count: usize) -> Self {
        let told = match count {
            0 => 0,
            _ => (1 + count.next_power_of_two().trailing_zeros()).min(RECEIVER_COUNT_MASK.into()) as u8,
        };
        Self {
            flags: self.flags & !RECEIVER_COUNT_MASK | told,
            ..self
        }
    }

    /// How many receivers the sender has at most; none where it does not say so.
    pub fn receiver_count(&self) -> Option<u32> {
        let told = self.flags & RECEIVER_COUNT_MASK;
        (told > 0).then(|| 1 << (told - 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_tells_a_number_of_receivers_that_is_at_most_twice_theirs() {
        let echo = RttMeasurement {
            flags: FLAG_REPLY,
            session_id: 1,
            stream_id: 2,
            echo_timestamp_ns: 3,
            reception_delta_ns: 0,
            receiver_id: 4,
        }
        .echo();
        assert_eq!(echo.receiver_count(), None);
        assert_eq!(echo.with_receiver_count(0), echo);
        for (count, told) in [
            (1, 1),
            (2, 2),
            (3, 4),
            (50, 64),
            (4096, 4096),
            (usize::MAX / 2, 1 << 14),
        ] {
            let telling = echo.with_receiver_count(count);
            assert_eq!(telling.receiver_count(), Some(told));
            assert!(
                !telling.asks_for_reply(),
                "what other receivers look at stays as it was"
            );
        }
    }
}
