//! The common part of send and receive channels.
//!
//! | state | leaves when |
//! |---|---|
//! | Active | the far side's new address cannot be used: Errored. The last user is gone: Closing |
//! | Errored | the name resolves to another address: Active. The last user is gone: Closing |
//! | Closing | the agent closed the socket: counters freed, forgotten |

use std::net::SocketAddr;

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::UdpChannel;

use crate::conductor::context::Context;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::event_recorder::{EventRecorder, Reason, Subject};
use crate::states::states;

states! {
    /// A socket of publications or subscriptions.
    pub(crate) enum ChannelState, "channel" {
        /// Its socket can be used.
        Active => [Errored, Closing];
        /// The new address of the far side cannot be used.
        Errored => [Active, Closing];
        /// Its last user is gone; sender or receiver is about to close it.
        Closing => [Closed];
        /// The socket is closed.
        Closed => [];
    }
}

impl ChannelState {
    /// What its status counter says.
    pub(crate) fn status(self) -> i64 {
        match self {
            Self::Active => 1,
            Self::Errored => -1,
            Self::Closing | Self::Closed => 2,
        }
    }
}

/// A socket of an open channel, as its counters show it.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Where it is bound.
    pub(crate) address: SocketAddr,
    /// The port that is this driver's while it is open; 0 for one that others share, or that the system chose.
    pub(crate) port: u16,
    pub(crate) local_address: Counter,
    pub(crate) offload: Counter,
}

impl Binding {
    /// Gives up the counters.
    pub(crate) fn free(&self, cx: &mut Context) {
        cx.counters.free_all([&self.local_address, &self.offload]);
    }
}

/// An open channel.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) channel: UdpChannel,
    /// Those of all channels that joined it.
    tags: Vec<i64>,
    pub(crate) status: Counter,
    state: ChannelState,
}

impl Endpoint {
    /// A channel whose counter says that it is active.
    pub(crate) fn new(
        recorder: &EventRecorder,
        id: EndpointId,
        channel: UdpChannel,
        status: Counter,
    ) -> Self {
        let state = recorder.begin("opened", &subject(id, &channel));
        Self {
            id,
            tags: channel.channel_tag.into_iter().collect(),
            channel,
            status,
            state,
        }
    }

    pub(crate) fn tags(&self) -> &[i64] {
        &self.tags
    }

    /// A channel joined it: from now on it goes by the tag of that one too, which is returned if it is new.
    pub(crate) fn take_tag_of(&mut self, joined: &UdpChannel) -> Option<i64> {
        let tag = joined.channel_tag.filter(|tag| !self.tags.contains(tag))?;
        self.tags.push(tag);
        Some(tag)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state == ChannelState::Closing
    }

    pub(crate) fn is_errored(&self) -> bool {
        self.state == ChannelState::Errored
    }

    /// The one place where the state changes. A closing channel is only closed yet.
    pub(crate) fn enter(
        &mut self,
        recorder: &EventRecorder,
        new: ChannelState,
        reason: impl Into<Reason<'static>>,
    ) {
        let is_late = self.is_closing() && new != ChannelState::Closed;
        if self.state != new && !is_late {
            recorder.change(&mut self.state, new, reason, &subject(self.id, &self.channel));
            self.status.set_release(self.state.status());
        }
    }

    /// Its sockets are closed: gives up the counter.
    pub(crate) fn free(mut self, cx: &mut Context) {
        self.enter(&cx.recorder, ChannelState::Closed, "its socket is closed");
        cx.counters.free(self.status.id());
    }
}

fn subject(id: EndpointId, channel: &UdpChannel) -> Subject<'_> {
    Subject {
        id: id.0,
        detail: &channel.uri,
        ..Subject::default()
    }
}

/// The open channel that `channel` means, if there is one. One that is closing is to be waited for, unless it `gives_way`
/// to another with the same addresses.
pub(crate) fn find<'a>(
    endpoints: impl Iterator<Item = &'a Endpoint> + Clone,
    channel: &UdpChannel,
    kind: &str,
    gives_way: impl Fn(&UdpChannel) -> bool,
) -> Result<Option<&'a Endpoint>, CommandError> {
    let mut found = None;
    for endpoint in endpoints.clone() {
        match channel.matches_tag(&endpoint.channel, &endpoint.tags) {
            Ok(false) => {}
            Ok(true) => found = Some(endpoint),
            // Its tag may go to other addresses once it is closed.
            Err(_) if endpoint.is_closing() => found = found.or(Some(endpoint)),
            Err(error) => return Err(error.into()),
        }
    }
    if found.is_none() {
        found = endpoints
            .filter(|endpoint| !(endpoint.is_closing() && gives_way(&endpoint.channel)))
            .find(|endpoint| channel.matches_canonical_form(&endpoint.channel));
    }
    match found {
        Some(endpoint) if endpoint.is_closing() => Err(CommandError::new(
            ErrorCode::ResourceTemporarilyUnavailable,
            format!(
                "{kind} found in CLOSING state, please retry, channel={}",
                channel.uri
            ),
        )),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;
    use headrace_buffers::error_log::DistinctErrorLog;
    use headrace_protocol::channel::{ChannelRole, ChannelUri, ResolveError, Resolver, UdpEnvironment};
    use headrace_sys::clock::ManualClock;

    use super::*;
    use crate::errors::ErrorRecorder;

    /// Every name is this host.
    struct ThisHost;

    impl Resolver for ThisHost {
        fn resolve(&self, _host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
            Ok((Ipv4Addr::LOCALHOST, port).into())
        }
    }

    fn channel(uri: &str) -> UdpChannel {
        let environment = UdpEnvironment {
            interfaces: &[],
            resolver: &ThisHost,
        };
        let uri = ChannelUri::parse(uri).unwrap();
        UdpChannel::parse(&uri, ChannelRole::Subscription, &environment, 1).unwrap()
    }

    fn counters() -> CountersManager {
        CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0)
    }

    #[test]
    fn a_closing_channel_asks_to_be_tried_again() {
        let mut manager = counters();
        let mut counter = || {
            let id = manager.allocate(0, &[], "", 0).unwrap();
            manager.counter(id)
        };
        let errors = ErrorRecorder::new(DistinctErrorLog::new(AtomicBuffer::allocate(1024)), counter());
        let recorder = EventRecorder::new(None, None, Arc::new(ManualClock::new(0, 0)), errors);
        let known = channel("aeron:udp?endpoint=localhost:24325|alias=first");
        let mut endpoint = Endpoint::new(&recorder, EndpointId(5), known, counter());
        let asked = channel("aeron:udp?endpoint=localhost:24325|alias=second");
        let other = channel("aeron:udp?endpoint=localhost:24326");
        let id_of = |endpoint: &Endpoint, channel| {
            find([endpoint].into_iter(), channel, "ReceiveChannelEndpoint", |_| {
                false
            })
            .map(|found| found.map(|endpoint| endpoint.id))
        };
        assert_eq!(id_of(&endpoint, &asked), Ok(Some(EndpointId(5))));
        assert_eq!(id_of(&endpoint, &other), Ok(None));

        endpoint.enter(&recorder, ChannelState::Closing, "its last user is gone");
        assert_eq!(endpoint.status.get(), 2);
        let refusal = id_of(&endpoint, &asked).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::ResourceTemporarilyUnavailable);
        assert!(
            refusal
                .detail
                .contains("ReceiveChannelEndpoint found in CLOSING state, please retry"),
            "{refusal}"
        );
        assert_eq!(id_of(&endpoint, &other), Ok(None));
        let no_one = find([&endpoint].into_iter(), &asked, "SendChannelEndpoint", |_| true);
        assert!(no_one.is_ok_and(|found| found.is_none()), "it gives way");
        endpoint.enter(&recorder, ChannelState::Errored, "too late");
        assert!(endpoint.is_closing());
    }

    #[test]
    fn a_tag_is_free_for_other_addresses_once_its_channel_is_closed() {
        let mut manager = counters();
        let mut counter = || {
            let id = manager.allocate(0, &[], "", 0).unwrap();
            manager.counter(id)
        };
        let errors = ErrorRecorder::new(DistinctErrorLog::new(AtomicBuffer::allocate(1024)), counter());
        let recorder = EventRecorder::new(None, None, Arc::new(ManualClock::new(0, 0)), errors);
        let known = channel("aeron:udp?tags=1|endpoint=localhost:24325");
        let asked = channel("aeron:udp?tags=1|endpoint=localhost:24326");
        let mut endpoint = Endpoint::new(&recorder, EndpointId(5), known, counter());
        let refusal = |endpoint: &Endpoint| {
            let found = find([endpoint].into_iter(), &asked, "SendChannelEndpoint", |_| false);
            found.map(|found| found.map(|endpoint| endpoint.id)).unwrap_err()
        };
        assert_eq!(refusal(&endpoint).code, ErrorCode::GenericError);
        endpoint.enter(&recorder, ChannelState::Closing, "its last user is gone");
        assert_eq!(refusal(&endpoint).code, ErrorCode::ResourceTemporarilyUnavailable);
    }
}
