//! What send and receive channels have in common.
//!
//! | state | leaves when |
//! |---|---|
//! | Active | the far side's new address cannot be used: Errored. The last user is gone: Closing |
//! | Errored | the name resolves to another address: Active. The last user is gone: Closing |
//! | Closing | the agent closed the socket: counters freed, forgotten |

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::UdpChannel;

use crate::conductor::context::Context;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;

/// Where a channel is in its life, as its status counter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum ChannelState {
    Active = 1,
    Errored = -1,
    Closing = 2,
}

/// The counters of one open channel.
#[derive(Debug)]
pub(crate) struct EndpointCounters {
    pub(crate) status: Counter,
    pub(crate) local_address: Counter,
    pub(crate) offload: Counter,
}

/// An open channel.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) channel: UdpChannel,
    pub(crate) counters: EndpointCounters,
    pub(crate) port: u16,
    state: ChannelState,
}

impl Endpoint {
    /// A channel whose counters say that it is active.
    pub(crate) fn new(id: EndpointId, channel: UdpChannel, counters: EndpointCounters, port: u16) -> Self {
        Self {
            id,
            channel,
            counters,
            port,
            state: ChannelState::Active,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state == ChannelState::Closing
    }

    /// The one place where the state changes. A closing channel stays so.
    pub(crate) fn enter(&mut self, state: ChannelState, reason: &'static str) {
        debug_assert!(!reason.is_empty());
        if !self.is_closing() {
            self.state = state;
            self.counters.status.set_release(state as i64);
        }
    }

    /// Gives up the counters.
    pub(crate) fn free(self, cx: &mut Context) {
        let counters = &self.counters;
        cx.counters
            .free_all([&counters.status, &counters.local_address, &counters.offload]);
    }
}

/// The open channel that `channel` means, if there is one.
pub(crate) fn find<'a>(
    endpoints: impl Iterator<Item = &'a Endpoint> + Clone,
    channel: &UdpChannel,
    kind: &str,
) -> Result<Option<&'a Endpoint>, CommandError> {
    let mut found = None;
    for endpoint in endpoints.clone() {
        if channel.matches_tag(&endpoint.channel)? {
            found = Some(endpoint);
        }
    }
    if found.is_none() {
        found = endpoints
            .clone()
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
