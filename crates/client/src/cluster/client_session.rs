//! The open session of a cluster's client: the work for each message.
//!
//! A client sends each message behind a header with its session and the term of the leader that it knows. It hears all that
//! the cluster sends on its stream, which other sessions may share: messages of services, and events. Source: cluster
//! specification 3.5, 3.7.

use std::sync::atomic::{AtomicI64, Ordering};

use super::session_header::{SESSION_HEADER_LENGTH, SessionHeader};

/// What a message from the cluster is to a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// A service's to this session: its header, and what the service sent.
    Message(SessionHeader, &'a [u8]),
    /// A service's to another session.
    OfAnother,
    /// An event, or no message of a cluster: for the caller.
    Other,
}

/// The session, and when it last sent something. Any thread may use it.
#[derive(Debug)]
pub struct ClientSession {
    cluster_session_id: i64,
    leadership_term_id: AtomicI64,
    keep_alive_interval_ns: i64,
    last_sent_ns: AtomicI64,
    seen_position: AtomicI64,
}

impl ClientSession {
    /// A session that sends keepalives after `keep_alive_interval_ns` without a message; with 0, never.
    pub fn new(
        cluster_session_id: i64,
        leadership_term_id: i64,
        keep_alive_interval_ns: i64,
        now_ns: i64,
    ) -> Self {
        Self {
            cluster_session_id,
            leadership_term_id: AtomicI64::new(leadership_term_id),
            keep_alive_interval_ns,
            last_sent_ns: AtomicI64::new(now_ns),
            seen_position: AtomicI64::new(0),
        }
    }

    /// From now on another leader's term is sent.
    pub fn follow(&self, leadership_term_id: i64) {
        self.leadership_term_id
            .store(leadership_term_id, Ordering::Relaxed);
    }

    /// What goes before each message.
    #[inline]
    pub fn header(&self) -> [u8; SESSION_HEADER_LENGTH] {
        SessionHeader {
            leadership_term_id: self.leadership_term_id.load(Ordering::Relaxed),
            cluster_session_id: self.cluster_session_id,
            timestamp: 0,
        }
        .encode()
    }

    /// Says what a message from the cluster is.
    #[inline]
    pub fn sort<'a>(&self, message: &'a [u8]) -> Received<'a> {
        match SessionHeader::decode(message) {
            None => Received::Other,
            Some(header) if header.cluster_session_id == self.cluster_session_id => {
                Received::Message(header, &message[SESSION_HEADER_LENGTH..])
            }
            Some(_) => Received::OfAnother,
        }
    }

    /// The program gets a message of a service that had read the log so far.
    #[inline]
    pub fn note_seen(&self, log_position: i64) {
        self.seen_position.fetch_max(log_position, Ordering::Relaxed);
    }

    /// The furthest that a service had read the log, by its messages; 0 before the first.
    pub fn seen_position(&self) -> i64 {
        self.seen_position.load(Ordering::Relaxed)
    }

    /// The leader's stream has taken something.
    #[inline]
    pub fn note_sent(&self, now_ns: i64) {
        self.last_sent_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Whether nothing was sent for so long that a keepalive is due.
    #[inline]
    pub fn is_keep_alive_due(&self, now_ns: i64) -> bool {
        self.keep_alive_interval_ns > 0
            && now_ns - self.last_sent_ns.load(Ordering::Relaxed) >= self.keep_alive_interval_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_sorted_by_session_and_kind() {
        let session = ClientSession::new(7, 3, 0, 0);
        let sent = |cluster_session_id| SessionHeader {
            leadership_term_id: 4,
            cluster_session_id,
            timestamp: 9,
        };
        let mut message = [&sent(7).encode()[..], b"hello"].concat();
        assert_eq!(session.sort(&message), Received::Message(sent(7), b"hello"));
        assert_eq!(session.sort(&sent(8).encode()), Received::OfAnother);
        assert_eq!(session.sort(&message[..31]), Received::Other);
        message[2] = 2;
        assert_eq!(session.sort(&message), Received::Other);
    }

    #[test]
    fn a_new_leaders_term_goes_before_messages() {
        let session = ClientSession::new(7, 3, 0, 0);
        let term_id = || SessionHeader::decode(&session.header()).map(|header| header.leadership_term_id);
        assert_eq!(term_id(), Some(3));
        session.follow(5);
        assert_eq!(term_id(), Some(5));
    }

    #[test]
    fn a_keepalive_is_due_after_a_while_without_a_message() {
        let session = ClientSession::new(7, 3, 10, 100);
        assert!(!session.is_keep_alive_due(109) && session.is_keep_alive_due(110));
        session.note_sent(110);
        assert!(!session.is_keep_alive_due(119) && session.is_keep_alive_due(120));
        assert!(
            !ClientSession::new(7, 3, 0, 0).is_keep_alive_due(i64::MAX),
            "never"
        );
    }
}
