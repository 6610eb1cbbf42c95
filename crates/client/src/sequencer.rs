//! Puts what the clients of a cluster send into its log, where the member leads: what is done once per message.
//!
//! ```text
//! 0  u16 block length 24 | u16 template 1 | u16 schema 111 | u16 version
//! 8  i64 leadership term id | i64 cluster session id | i64 timestamp
//! 32 what the client sent
//! ```
//!
//! A message of the leader's term and of an open session goes into the log with the leader's timestamp. One of another
//! term, or of no open session, is passed over. Everything else is for the caller. Source: cluster specification 3.5, 3.6.

use std::collections::HashMap;

use headrace_buffers::log::Append;

use crate::error::OfferError;
use crate::exclusive::ExclusivePublication;

/// Bytes before what a client sent.
pub const SESSION_HEADER_LENGTH: usize = 32;

/// Template and schema, which stand beside each other.
const SESSION_MESSAGE: u32 = 1 | 111 << 16;
const BLOCK_LENGTH: u16 = 24;
const SCHEMA_VERSION: u16 = 17;
const ATTEMPTS: usize = 3;

/// The header of an application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// Of the leader that the sender knows, or of the log entry.
    pub leadership_term_id: i64,
    /// Of a client above 0, of a service's message to itself below.
    pub cluster_session_id: i64,
    /// When the leader took it, in the cluster's time.
    pub timestamp: i64,
}

impl SessionHeader {
    /// That of a message; nothing if it is another one, or too short.
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

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequenced {
    /// It is in the log.
    Appended,
    /// It is of another term or of no open session, and nothing comes of it.
    Passed,
    /// The log has no room now: the message is to come again.
    NoRoom,
    /// It is no message of a session, or can never enter the log: the caller sees to it.
    Other,
}

/// The open sessions of one term, and which of them were heard.
#[derive(Debug)]
pub struct Sequencer {
    leadership_term_id: i64,
    sessions: HashMap<i64, bool>,
}

impl Sequencer {
    /// For a term that begins.
    pub fn new(leadership_term_id: i64) -> Self {
        Self {
            leadership_term_id,
            sessions: HashMap::new(),
        }
    }

    /// Messages of a session enter the log from now on.
    pub fn open(&mut self, cluster_session_id: i64) {
        self.sessions.insert(cluster_session_id, false);
    }

    /// Messages of a session are passed over from now on.
    pub fn close(&mut self, cluster_session_id: i64) {
        self.sessions.remove(&cluster_session_id);
    }

    /// The sessions of which a message entered the log since the last call.
    pub fn take_heard(&mut self) -> Vec<i64> {
        let heard = self.sessions.iter_mut().filter(|(_, is_heard)| **is_heard);
        let mut ids: Vec<i64> = heard
            .map(|(id, is_heard)| {
                *is_heard = false;
                *id
            })
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Takes a message that came.
    ///
    /// # Errors
    /// Another thread writes to the log.
    #[inline]
    pub fn take(
        &mut self,
        message: &[u8],
        timestamp: i64,
        log: &ExclusivePublication,
    ) -> Result<Sequenced, OfferError> {
        let Some(header) = SessionHeader::decode(message) else {
            return Ok(Sequenced::Other);
        };
        if header.leadership_term_id != self.leadership_term_id {
            return Ok(Sequenced::Passed);
        }
        let Some(is_heard) = self.sessions.get_mut(&header.cluster_session_id) else {
            return Ok(Sequenced::Passed);
        };
        let entry = SessionHeader { timestamp, ..header }.encode();
        let parts = [&entry, &message[SESSION_HEADER_LENGTH..]];
        for _ in 0..ATTEMPTS {
            let append = match log.offer_parts(&parts) {
                Err(OfferError::Append(_)) => return Ok(Sequenced::Other),
                append => append?,
            };
            match append {
                Append::Position(_) => {
                    *is_heard = true;
                    return Ok(Sequenced::Appended);
                }
                Append::AdminAction => {}
                Append::NotConnected | Append::BackPressured => return Ok(Sequenced::NoRoom),
                Append::Closed | Append::MaxPositionExceeded => return Ok(Sequenced::Other),
            }
        }
        Ok(Sequenced::NoRoom)
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

    #[test]
    fn only_sessions_that_are_open_are_heard() {
        let mut sequencer = Sequencer::new(0);
        sequencer.open(2);
        sequencer.open(1);
        for is_heard in sequencer.sessions.values_mut() {
            *is_heard = true;
        }
        sequencer.close(3);
        assert_eq!(sequencer.take_heard(), [1, 2]);
        assert_eq!(sequencer.take_heard(), []);
    }
}
