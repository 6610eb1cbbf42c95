//! Tells a requester on which session the responses to it come.
//!
//! The frame goes out at once, and again at each status message time-out, until a receiver reads the responses or their
//! stream ends. It does so again when that receiver is lost. Where several publications respond, the receiver announces
//! each when those before it have ended.

use std::sync::{Arc, Weak};

use headrace_protocol::frame::ResponseSetup;

use crate::shared::{ImageShared, PublicationShared};

/// The streams of responses to a requester.
#[derive(Default)]
pub(super) struct Announcement {
    /// In the order in which they were made. The receiver announces the first one that lives.
    responses: Vec<Weak<PublicationShared>>,
    last_sent_ns: Option<i64>,
}

impl Announcement {
    pub(super) fn add(&mut self, responses: Weak<PublicationShared>) {
        self.responses.push(responses);
        self.last_sent_ns = None;
    }

    /// The first that lives. Forgets those that have ended, so that the receiver announces the next one at once.
    fn first(&mut self) -> Option<Arc<PublicationShared>> {
        while let Some(first) = self.responses.first() {
            match first.upgrade() {
                Some(responses) if !responses.is_end_of_stream() => return Some(responses),
                _ => {
                    self.responses.remove(0);
                    self.last_sent_ns = None;
                }
            }
        }
        None
    }

    /// What to tell the publisher of the requests, if it is time.
    pub(super) fn take_due(
        &mut self,
        requests: &ImageShared,
        now_ns: i64,
        interval_ns: i64,
    ) -> Option<ResponseSetup> {
        let responses = self.first()?;
        let is_due = self
            .last_sent_ns
            .is_none_or(|last_ns| now_ns - last_ns > interval_ns);
        if !is_due || responses.has_receivers() {
            return None;
        }
        self.last_sent_ns = Some(now_ns);
        Some(ResponseSetup {
            flags: 0,
            session_id: requests.session_id,
            stream_id: requests.stream_id,
            response_session_id: responses.session_id,
        })
    }
}
