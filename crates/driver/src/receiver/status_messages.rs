//! How far the subscribers of an image are, and how much more may come: when to tell its senders.

use headrace_protocol::frame::{StatusMessage, status_message};

use super::outgoing::Outgoing;
use crate::shared::{ImageShared, StatusMessageDue};

/// The status messages of one image.
pub(super) struct StatusMessages {
    /// The last one that the conductor scheduled, which the timer repeats.
    pub(super) due: StatusMessageDue,
    change: i64,
    last_sent_ns: i64,
    /// One waits until the sender says something.
    pub(super) is_owed: bool,
    /// A status message has said that this receiver goes away.
    pub(super) said_goodbye: bool,
}

impl StatusMessages {
    pub(super) fn new(shared: &ImageShared, now_ns: i64) -> Self {
        Self {
            due: StatusMessageDue {
                position: shared.join_position,
                window_length: shared.initial_window_length,
            },
            change: 0,
            last_sent_ns: now_ns,
            is_owed: false,
            said_goodbye: false,
        }
    }

    /// The timer fires.
    pub(super) fn is_late(&self, now_ns: i64, interval_ns: i64) -> bool {
        now_ns - self.last_sent_ns > interval_ns
    }

    /// Takes what the conductor scheduled, and what it asks for. True if one is owed.
    pub(super) fn update(&mut self, shared: &ImageShared, now_ns: i64, interval_ns: i64) -> bool {
        let scheduled = shared.status_message_after(self.change);
        if let Some((change, due)) = scheduled {
            self.change = change;
            self.due = due;
        }
        let requested = shared.take_status_message_request();
        self.is_owed |= scheduled.is_some() || requested || self.is_late(now_ns, interval_ns);
        self.is_owed
    }

    /// The image ends, and has not told its senders yet.
    pub(super) fn owe_goodbye(&self, shared: &ImageShared) -> bool {
        shared.sends_end_of_stream_status() && !self.said_goodbye
    }

    /// How it tells the senders where the subscribers are.
    pub(super) fn message(&self, shared: &ImageShared, out: &Outgoing<'_>) -> StatusMessage {
        let geometry = shared.log.geometry();
        let position = self.due.position;
        let ends = shared.sends_end_of_stream_status();
        StatusMessage {
            flags: if ends {
                status_message::FLAG_END_OF_STREAM
            } else {
                0
            },
            session_id: shared.session_id,
            stream_id: shared.stream_id,
            consumption_term_id: geometry.term_id(position),
            consumption_term_offset: geometry.term_offset(position) as i32,
            receiver_window_length: self.due.window_length,
            receiver_id: out.receiver_id,
            group_tag: out.group_tag,
        }
    }

    /// One leaves, or the error frame of a rejected image.
    pub(super) fn on_sent(&mut self, now_ns: i64) {
        self.is_owed = false;
        self.last_sent_ns = now_ns;
    }
}
