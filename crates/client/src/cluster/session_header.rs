//! The header of each message of a cluster's client, in the log and on the way to it.
//!
//! ```text
//! 0  u16 block length 24 | u16 template 1 | u16 schema 111 | u16 version
//! 8  i64 leadership term id | i64 cluster session id | i64 timestamp
//! 32 what the client sent
//! ```
//!
//! Source: cluster specification 3.5, 3.6.

/// Bytes of the header.
pub const SESSION_HEADER_LENGTH: usize = 32;

/// Template and schema, which stand beside each other.
const SESSION_MESSAGE: u32 = 1 | 111 << 16;
const BLOCK_LENGTH: u16 = 24;
const SCHEMA_VERSION: u16 = 17;

/// The header of an application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// The term of the leader that the sender knows, or of the log entry.
    pub leadership_term_id: i64,
    /// Above 0 for a client, below 0 for a service's message to itself.
    pub cluster_session_id: i64,
    /// When the leader accepted the message, in the cluster's time.
    pub timestamp: i64,
}

impl SessionHeader {
    /// Decodes the header of a message; `None` for another kind of message, or a short one.
    #[inline]
    pub fn decode(message: &[u8]) -> Option<Self> {
        let header: &[u8; SESSION_HEADER_LENGTH] = message.get(..SESSION_HEADER_LENGTH)?.try_into().ok()?;
        let long = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[at..at + 8]);
            i64::from_le_bytes(bytes)
        };
        let kind = u32::from_le_bytes([header[2], header[3], header[4], header[5]]);
        (kind == SESSION_MESSAGE).then(|| Self {
            leadership_term_id: long(8),
            cluster_session_id: long(16),
            timestamp: long(24),
        })
    }

    /// Its bytes.
    #[inline]
    pub fn encode(&self) -> [u8; SESSION_HEADER_LENGTH] {
        let mut header = [0; SESSION_HEADER_LENGTH];
        header[..2].copy_from_slice(&BLOCK_LENGTH.to_le_bytes());
        header[2..6].copy_from_slice(&SESSION_MESSAGE.to_le_bytes());
        header[6..8].copy_from_slice(&SCHEMA_VERSION.to_le_bytes());
        header[8..16].copy_from_slice(&self.leadership_term_id.to_le_bytes());
        header[16..24].copy_from_slice(&self.cluster_session_id.to_le_bytes());
        header[24..].copy_from_slice(&self.timestamp.to_le_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let header = SessionHeader {
            leadership_term_id: 7,
            cluster_session_id: -3,
            timestamp: i64::MAX,
        };
        let bytes = header.encode();
        assert_eq!(SessionHeader::decode(&bytes), Some(header));
        assert_eq!(bytes[..8], [24, 0, 1, 0, 111, 0, 17, 0]);
        for length in 0..SESSION_HEADER_LENGTH {
            assert_eq!(SessionHeader::decode(&bytes[..length]), None);
        }
        for (offset, value) in [(2, 2), (4, 110), (5, 1)] {
            let mut other = bytes;
            other[offset] = value;
            assert_eq!(SessionHeader::decode(&other), None, "offset {offset}");
        }
    }
}
