//! Puts the messages of a cluster's clients into its log on the leader: the work for each message.
//!
//! A message of the leader's term and of an open session goes into the log with the leader's timestamp, if it comes on
//! the stream on which the session connected: a session id is a small number that is easy to guess. A message of
//! another term, of no open session, or on another stream is skipped. The caller handles all other messages. Source:
//! cluster specification 3.5, 3.6.

use std::collections::HashMap;

use headrace_buffers::log::Append;

use super::session_header::{SESSION_HEADER_LENGTH, SessionHeader};
use crate::error::OfferError;
use crate::publication::ExclusivePublication;

const ATTEMPTS: usize = 3;

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequenced {
    /// It is in the log.
    Appended,
    /// It is of another term, of no open session or on a stream that is not its session's, and is skipped.
    Passed,
    /// The log has no room now: the caller must try again.
    NoRoom,
    /// It is not a message of a session, is of a session without a stream, or can never enter the log: the caller
    /// handles it.
    Other,
}

/// A client's stream to the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressStream {
    /// Registration id of the subscription.
    pub subscription_id: i64,
    /// The publisher there.
    pub session_id: i32,
}

#[derive(Debug)]
struct OpenSession {
    // None after an election, until the client is heard on the stream to its new leader.
    stream: Option<IngressStream>,
    is_heard: bool,
}

/// The open sessions of one term, and which of them sent messages.
#[derive(Debug)]
pub struct Sequencer {
    leadership_term_id: i64,
    sessions: HashMap<i64, OpenSession>,
}

impl Sequencer {
    /// A sequencer for a new term.
    pub fn new(leadership_term_id: i64) -> Self {
        Self {
            leadership_term_id,
            sessions: HashMap::new(),
        }
    }

    /// Puts messages of a session into the log from now on, if they come on its stream; without a stream the caller
    /// gets them.
    pub fn open(&mut self, cluster_session_id: i64, stream: Option<IngressStream>) {
        let is_heard = false;
        self.sessions
            .insert(cluster_session_id, OpenSession { stream, is_heard });
    }

    /// Skips messages of a session from now on.
    pub fn close(&mut self, cluster_session_id: i64) {
        self.sessions.remove(&cluster_session_id);
    }

    /// The sessions with messages that entered the log since the last call.
    pub fn take_heard(&mut self) -> Vec<i64> {
        let heard = self.sessions.iter_mut().filter(|(_, session)| session.is_heard);
        let mut ids: Vec<i64> = heard
            .map(|(id, session)| {
                session.is_heard = false;
                *id
            })
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Handles a message from a stream.
    ///
    /// # Errors
    /// Another thread writes to the log.
    #[inline]
    pub fn take(
        &mut self,
        message: &[u8],
        stream: IngressStream,
        timestamp: i64,
        log: &ExclusivePublication,
    ) -> Result<Sequenced, OfferError> {
        let Some(header) = SessionHeader::decode(message) else {
            return Ok(Sequenced::Other);
        };
        if header.leadership_term_id != self.leadership_term_id {
            return Ok(Sequenced::Passed);
        }
        let Some(session) = self.sessions.get_mut(&header.cluster_session_id) else {
            return Ok(Sequenced::Passed);
        };
        match session.stream {
            None => return Ok(Sequenced::Other),
            Some(own) if own != stream => return Ok(Sequenced::Passed),
            Some(_) => {}
        }
        let entry = SessionHeader { timestamp, ..header }.encode();
        let parts = [&entry, &message[SESSION_HEADER_LENGTH..]];
        for _ in 0..ATTEMPTS {
            let append = match log.offer_parts(&parts) {
                Err(OfferError::Append(_)) => return Ok(Sequenced::Other),
                append => append?,
            };
            match append {
                Append::Position(_) => {
                    session.is_heard = true;
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
    fn only_sessions_that_are_open_are_heard() {
        let mut sequencer = Sequencer::new(0);
        sequencer.open(2, None);
        sequencer.open(1, None);
        for session in sequencer.sessions.values_mut() {
            session.is_heard = true;
        }
        sequencer.close(3);
        assert_eq!(sequencer.take_heard(), [1, 2]);
        assert_eq!(sequencer.take_heard(), []);
    }
}
