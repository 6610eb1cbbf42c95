//! Tells a requester on which session the answers to it come.
//!
//! The frame goes out at once, and again at each status message time-out, until a receiver reads the answers or their
//! stream ends. It does so again when that receiver is lost.

use std::sync::Weak;

use headrace_protocol::frame::ResponseSetup;

use crate::shared::{ImageShared, PublicationShared};

/// A stream of answers that the requester is told of.
pub(super) struct Announcement {
    answers: Weak<PublicationShared>,
    last_sent_ns: Option<i64>,
}

impl Announcement {
    pub(super) fn new(answers: Weak<PublicationShared>) -> Self {
        Self {
            answers,
            last_sent_ns: None,
        }
    }

    /// What to tell the publisher of the requests, if it is time.
    pub(super) fn take_due(
        &mut self,
        requests: &ImageShared,
        now_ns: i64,
        interval_ns: i64,
    ) -> Option<ResponseSetup> {
        let is_due = self
            .last_sent_ns
            .is_none_or(|last_ns| now_ns - last_ns > interval_ns);
        if !is_due {
            return None;
        }
        let answers = self.answers.upgrade()?;
        if answers.has_receivers() || answers.is_end_of_stream() {
            return None;
        }
        self.last_sent_ns = Some(now_ns);
        Some(ResponseSetup {
            flags: 0,
            session_id: requests.session_id,
            stream_id: requests.stream_id,
            response_session_id: answers.session_id,
        })
    }
}
