//! Open channels: sockets handed to the sender or the receiver, and who uses them.
//!
//! | state | leaves when |
//! |---|---|
//! | Active | the last user is gone: status CLOSING, agent told to close the socket, Closing |
//! | Closing | the agent closed it: counters freed, forgotten |

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::UdpChannel;

use super::Conductor;
use crate::errors::CommandError;
use crate::proxy::{EndpointId, ReceiverCommand, SenderCommand};

/// Values of a channel's status counter.
pub(crate) mod status {
    pub(crate) const ACTIVE: i64 = 1;
    pub(crate) const CLOSING: i64 = 2;
    pub(crate) const ERRORED: i64 = -1;
}

/// The counters of one open channel.
#[derive(Debug)]
pub(crate) struct EndpointCounters {
    pub(crate) status: Counter,
    pub(crate) local_address: Counter,
    pub(crate) offload: Counter,
}

/// What send and receive channels have in common.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) channel: UdpChannel,
    pub(crate) counters: EndpointCounters,
    pub(crate) port: u16,
    is_closing: bool,
}

impl Endpoint {
    pub(crate) fn new(id: EndpointId, channel: UdpChannel, counters: EndpointCounters, port: u16) -> Self {
        Self {
            id,
            channel,
            counters,
            port,
            is_closing: false,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn begin_close(&mut self) {
        self.is_closing = true;
        self.counters.status.set_release(status::CLOSING);
    }
}

/// A channel that publications send through.
#[derive(Debug)]
pub(crate) struct SendChannel {
    pub(crate) endpoint: Endpoint,
    pub(crate) send_buffer_length: usize,
    pub(crate) publication_count: usize,
}

/// One stream, or one session of it, that a receive channel accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interest {
    stream_id: i32,
    session_id: Option<i32>,
    subscription_count: usize,
}

/// A channel that subscriptions receive through.
#[derive(Debug)]
pub(crate) struct ReceiveChannel {
    pub(crate) endpoint: Endpoint,
    pub(crate) receive_buffer_length: usize,
    /// Images being made, or not yet at their linger.
    pub(crate) image_count: usize,
    interests: Vec<Interest>,
}

impl ReceiveChannel {
    pub(crate) fn new(endpoint: Endpoint, receive_buffer_length: usize) -> Self {
        Self {
            endpoint,
            receive_buffer_length,
            image_count: 0,
            interests: Vec::new(),
        }
    }

    /// Counts a subscription; true for the first of its kind.
    fn add_interest(&mut self, stream_id: i32, session_id: Option<i32>) -> bool {
        let same =
            |interest: &&mut Interest| interest.stream_id == stream_id && interest.session_id == session_id;
        if let Some(interest) = self.interests.iter_mut().find(same) {
            interest.subscription_count += 1;
            return false;
        }
        self.interests.push(Interest {
            stream_id,
            session_id,
            subscription_count: 1,
        });
        true
    }

    /// Takes a subscription away; true for the last of its kind.
    fn remove_interest(&mut self, stream_id: i32, session_id: Option<i32>) -> bool {
        let same = |interest: &Interest| interest.stream_id == stream_id && interest.session_id == session_id;
        let Some(index) = self.interests.iter().position(same) else {
            return false;
        };
        self.interests[index].subscription_count -= 1;
        let is_last = self.interests[index].subscription_count == 0;
        if is_last {
            self.interests.remove(index);
        }
        is_last
    }

    fn is_unused(&self) -> bool {
        self.interests.is_empty() && self.image_count == 0
    }
}

/// The open channel that `channel` means, if there is one.
fn find<'a>(
    endpoints: impl Iterator<Item = &'a Endpoint> + Clone,
    channel: &UdpChannel,
    kind: &str,
) -> Result<Option<EndpointId>, CommandError> {
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
        found => Ok(found.map(|endpoint| endpoint.id)),
    }
}

impl Conductor {
    pub(crate) fn find_send_channel(&self, channel: &UdpChannel) -> Result<Option<EndpointId>, CommandError> {
        let endpoints = self.send_channels.iter().map(|send| &send.endpoint);
        let found = find(endpoints, channel, "SendChannelEndpoint")?;
        if found.is_none() {
            channel.check_original()?;
        }
        Ok(found)
    }

    pub(crate) fn find_receive_channel(
        &self,
        channel: &UdpChannel,
    ) -> Result<Option<EndpointId>, CommandError> {
        let endpoints = self.receive_channels.iter().map(|receive| &receive.endpoint);
        find(endpoints, channel, "ReceiveChannelEndpoint")
    }

    pub(crate) fn send_channel(&mut self, id: EndpointId) -> Option<&mut SendChannel> {
        self.send_channels.iter_mut().find(|send| send.endpoint.id == id)
    }

    pub(crate) fn receive_channel(&mut self, id: EndpointId) -> Option<&mut ReceiveChannel> {
        self.receive_channels
            .iter_mut()
            .find(|receive| receive.endpoint.id == id)
    }

    /// A publication no longer sends; the channel closes with its last one.
    pub(crate) fn release_send_channel(&mut self, id: EndpointId) {
        let Some(send) = self.send_channel(id) else {
            return;
        };
        send.publication_count -= 1;
        if send.publication_count == 0 && !send.endpoint.is_closing() {
            send.endpoint.begin_close();
            self.sender.send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// A subscription is added to a channel; the receiver learns of the first of its kind.
    pub(crate) fn add_interest(&mut self, id: EndpointId, stream_id: i32, session_id: Option<i32>) {
        let is_first = self
            .receive_channel(id)
            .is_some_and(|receive| receive.add_interest(stream_id, session_id));
        if is_first {
            self.receiver.send(ReceiverCommand::AddSubscription {
                endpoint: id,
                stream_id,
                session_id,
            });
        }
    }

    /// A subscription is gone; the receiver learns of the last of its kind.
    pub(crate) fn remove_interest(&mut self, id: EndpointId, stream_id: i32, session_id: Option<i32>) {
        let is_last = self
            .receive_channel(id)
            .is_some_and(|receive| receive.remove_interest(stream_id, session_id));
        if is_last {
            self.receiver.send(ReceiverCommand::RemoveSubscription {
                endpoint: id,
                stream_id,
                session_id,
            });
        }
        self.close_unused_receive_channel(id);
    }

    /// An image no longer receives.
    pub(crate) fn detach_image(&mut self, id: EndpointId) {
        if let Some(receive) = self.receive_channel(id) {
            receive.image_count -= 1;
        }
        self.close_unused_receive_channel(id);
    }

    fn close_unused_receive_channel(&mut self, id: EndpointId) {
        let Some(receive) = self.receive_channel(id) else {
            return;
        };
        if receive.is_unused() && !receive.endpoint.is_closing() {
            receive.endpoint.begin_close();
            self.receiver.send(ReceiverCommand::RemoveEndpoint(id));
        }
    }

    pub(crate) fn on_send_channel_closed(&mut self, id: EndpointId) {
        let closed: Vec<_> = self
            .send_channels
            .extract_if(.., |send| send.endpoint.id == id)
            .collect();
        for send in closed {
            self.send_ports.release(send.endpoint.port);
            self.free_endpoint_counters(&send.endpoint);
        }
    }

    pub(crate) fn on_receive_channel_closed(&mut self, id: EndpointId) {
        let closed: Vec<_> = self
            .receive_channels
            .extract_if(.., |receive| receive.endpoint.id == id)
            .collect();
        for receive in closed {
            self.receive_ports.release(receive.endpoint.port);
            self.free_endpoint_counters(&receive.endpoint);
        }
    }

    fn free_endpoint_counters(&mut self, endpoint: &Endpoint) {
        let counters = &endpoint.counters;
        self.cx
            .counters
            .free_all([&counters.status, &counters.local_address, &counters.offload]);
    }
}
