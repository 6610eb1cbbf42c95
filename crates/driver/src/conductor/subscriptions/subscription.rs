//! A client's subscription.

use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::channel::{SubscriptionParams, UdpChannel};

use super::links::LinkSpec;
use crate::conductor::channels::{Interest, Sessions};
use crate::conductor::counters::StreamKey;
use crate::endpoint::EndpointId;
use crate::event_recorder::Subject;
use crate::states::states;

/// Where the streams of a subscription come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SubscriptionKind {
    /// IPC publications of this driver.
    Ipc,
    /// Network publications of this driver.
    Spy(SpiedChannel),
    /// Images that arrive through a receive channel.
    Network {
        endpoint: EndpointId,
        params: Box<SubscriptionParams>,
    },
}

states! {
    /// A client's subscription. Links tie it to the streams that it reads.
    pub(crate) enum SubscriptionState, "subscription" {
        /// It is linked to each stream that it wants.
        Active => [Closed];
        /// Its client closed it, or is gone.
        Closed => [];
    }
}

/// How a spy knows the publications it watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpiedChannel {
    /// At most one of a spy; of a publication those that its transport has.
    pub(crate) tags: Vec<i64>,
    pub(crate) canonical_form: String,
}

impl From<&UdpChannel> for SpiedChannel {
    fn from(channel: &UdpChannel) -> Self {
        Self {
            tags: channel.channel_tag.into_iter().collect(),
            canonical_form: channel.canonical_form.clone(),
        }
    }
}

/// One subscription of one client, or a destination of one that is published on this host.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) registration_id: i64,
    /// Of the command that added it as a destination of the subscription; none for the subscription itself.
    pub(crate) destination_id: Option<i64>,
    pub(crate) client_id: i64,
    pub(crate) stream_id: i32,
    /// Only this session. Without one all, but for a subscription of responses, which then wants none.
    pub(crate) session_id: Option<i32>,
    /// It reads responses; the driver learns from the responding publication which session they have.
    pub(crate) is_response: bool,
    pub(crate) channel: Arc<str>,
    pub(crate) is_tethered: bool,
    pub(crate) may_rejoin: bool,
    pub(crate) kind: SubscriptionKind,
}

impl Subscription {
    /// True when it wants the stream, wherever that comes from.
    pub(crate) fn matches_stream(&self, stream_id: i32, session_id: i32) -> bool {
        self.stream_id == stream_id
            && self
                .session_id
                .map_or(!self.is_response, |wanted| wanted == session_id)
    }

    /// True for a spy that watches the stream: on a channel of its tag, whatever the session, or on its channel.
    pub(crate) fn spies_on(&self, channel: &SpiedChannel, stream_id: i32, session_id: i32) -> bool {
        let SubscriptionKind::Spy(own) = &self.kind else {
            return false;
        };
        let is_tagged = own.tags.iter().any(|tag| channel.tags.contains(tag));
        if is_tagged {
            self.stream_id == stream_id
        } else {
            own.canonical_form == channel.canonical_form && self.matches_stream(stream_id, session_id)
        }
    }

    /// The receive channel, with the parameters that its images take over.
    pub(crate) fn network(&self) -> Option<(EndpointId, &SubscriptionParams)> {
        match &self.kind {
            SubscriptionKind::Ipc | SubscriptionKind::Spy(_) => None,
            SubscriptionKind::Network { endpoint, params } => Some((*endpoint, params)),
        }
    }

    /// What it wants of its receive channel.
    pub(crate) fn interest(&self) -> Interest {
        let sessions = match self.session_id {
            Some(session_id) => Sessions::One(session_id),
            None if self.is_response => Sessions::NoneYet,
            None => Sessions::All,
        };
        Interest {
            stream_id: self.stream_id,
            sessions,
        }
    }

    /// It, for the event log.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            id: self.destination_id.unwrap_or(self.registration_id),
            parent_id: Some(self.client_id),
            stream_id: Some(self.stream_id),
            session_id: self.session_id,
            detail: &self.channel,
        }
    }

    /// A link to a stream, reading at `position`.
    pub(crate) fn link(&self, position: Counter) -> LinkSpec {
        LinkSpec {
            subscription_id: self.registration_id,
            client_id: self.client_id,
            stream_id: self.stream_id,
            channel: Arc::clone(&self.channel),
            position,
            is_tethered: self.is_tethered,
            may_rejoin: self.may_rejoin,
        }
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
