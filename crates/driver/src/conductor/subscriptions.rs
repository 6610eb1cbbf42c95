//! What clients subscribed to.

use std::sync::Arc;

use super::counters::StreamKey;

/// Where the streams of a subscription come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionKind {
    /// IPC publications of this driver.
    Ipc,
}

/// One subscription of one client.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) registration_id: i64,
    pub(crate) client_id: i64,
    pub(crate) stream_id: i32,
    /// Only this session, or all.
    pub(crate) session_id: Option<i32>,
    pub(crate) channel: Arc<str>,
    pub(crate) is_tethered: bool,
    pub(crate) may_rejoin: bool,
    pub(crate) kind: SubscriptionKind,
}

impl Subscription {
    /// True when it wants the stream, wherever that comes from.
    pub(crate) fn matches_stream(&self, stream_id: i32, session_id: i32) -> bool {
        self.stream_id == stream_id && self.session_id.is_none_or(|wanted| wanted == session_id)
    }

    /// What the position counter of a link to `session_id` says.
    pub(crate) fn key(&self, session_id: i32) -> StreamKey<'_> {
        StreamKey {
            registration_id: self.registration_id,
            owner_id: self.client_id,
            session_id,
            stream_id: self.stream_id,
            channel: &self.channel,
        }
    }
}
