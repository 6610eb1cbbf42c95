//! Channels that subscriptions receive through.

use std::net::SocketAddr;

use headrace_protocol::channel::UdpChannel;

use super::endpoint::{ChannelState, Endpoint, EndpointCounters, find};
use super::interests::{Interest, Interests};
use super::ports::Ports;
use super::sockets::{
    RECEIVE, Sockets, channel_counters, group_request, names_a_host, open_error, socket_options,
    usable_length,
};
use crate::conductor::context::Context;
use crate::endpoint::{ControlAddress, EndpointId, ReceiveEndpointSpec, ReceiveGroup};
use crate::environment::{OpenSocket, SocketRequest};
use crate::errors::CommandError;
use crate::proxy::ReceiverCommand;
use crate::resource_tasks::{Resolve, ResourceTask};

/// One of them.
#[derive(Debug)]
pub(crate) struct ReceiveChannel {
    pub(crate) endpoint: Endpoint,
    pub(crate) receive_buffer_length: usize,
    /// Group that its status messages and error frames claim.
    pub(crate) group_tag: Option<i64>,
    /// Images being made, or not yet at their linger.
    image_count: usize,
    interests: Interests,
}

/// A channel to open.
pub(crate) struct ReceiveRequest {
    pub(crate) registration_id: i64,
    pub(crate) channel: UdpChannel,
    /// Window that its images shall have, which must fit the socket's buffer.
    pub(crate) window_length: i32,
    /// Group that the channel names.
    pub(crate) group_tag: Option<i64>,
}

/// All of them, and their ports.
pub(crate) struct ReceiveChannels {
    channels: Vec<ReceiveChannel>,
    ports: Ports,
    next_receiver_id: i64,
}

impl ReceiveChannels {
    /// Channels with ports of `ports` and receiver ids from `first_receiver_id`.
    pub(crate) fn new(ports: Ports, first_receiver_id: i64) -> Self {
        Self {
            channels: Vec::new(),
            ports,
            next_receiver_id: first_receiver_id,
        }
    }

    /// The open channel that `channel` means, if there is one.
    pub(crate) fn find(&self, channel: &UdpChannel) -> Result<Option<&ReceiveChannel>, CommandError> {
        let endpoints = self.channels.iter().map(|receive| &receive.endpoint);
        let found = find(endpoints, channel, "ReceiveChannelEndpoint")?;
        Ok(found.and_then(|endpoint| {
            self.channels
                .iter()
                .find(|receive| receive.endpoint.id == endpoint.id)
        }))
    }

    pub(crate) fn contains(&self, id: EndpointId) -> bool {
        self.channels.iter().any(|receive| receive.endpoint.id == id)
    }

    fn get(&mut self, id: EndpointId) -> Option<&mut ReceiveChannel> {
        self.channels.iter_mut().find(|receive| receive.endpoint.id == id)
    }

    /// Opens a channel; returns its name and the id of its status counter.
    pub(crate) fn open(
        &mut self,
        cx: &mut Context,
        sockets: &mut Sockets,
        request: ReceiveRequest,
    ) -> Result<EndpointId, CommandError> {
        let port = self.take_port(&request.channel)?;
        let local = SocketAddr::new(request.channel.remote.ip(), port);
        let opened = open_socket(cx, sockets, &request, local);
        if opened.is_err() {
            self.ports.release(port);
        }
        let (socket, counters) = opened?;
        let id = sockets.next_endpoint_id();
        let receiver_id = self.next_receiver_id;
        self.next_receiver_id = receiver_id.wrapping_add(1);
        let group_tag = request.group_tag.or(cx.config.receiver_group_tag);
        let spec = ReceiveEndpointSpec {
            id,
            transport: socket.transport,
            control: control_address(&request.channel),
            receiver_id,
            group: request.channel.kind.group().map(|group| ReceiveGroup {
                control: group.control,
                ttl: socket.group_ttl,
            }),
            group_tag,
            offload_mode: Some(counters.offload.clone()),
        };
        cx.receiver.send(ReceiverCommand::AddEndpoint(Box::new(spec)));
        let asked = socket_options(&cx.config, &request.channel).receive_buffer_length;
        self.channels.push(ReceiveChannel {
            endpoint: Endpoint::new(&cx.recorder, id, request.channel, counters, port),
            receive_buffer_length: usable_length(asked, socket.receive_buffer_length),
            group_tag,
            image_count: 0,
            interests: Interests::default(),
        });
        Ok(id)
    }

    /// Sockets of a group share its port with others, so it is not one of this driver's.
    fn take_port(&mut self, channel: &UdpChannel) -> Result<u16, CommandError> {
        if channel.kind.group().is_some() {
            return Ok(0);
        }
        self.ports
            .take(channel.remote.port())
            .map_err(|fault| open_error(&fault, channel))
    }

    /// True for a channel in a multicast group.
    pub(crate) fn is_group(&self, id: EndpointId) -> bool {
        let found = self.channels.iter().find(|receive| receive.endpoint.id == id);
        found.is_some_and(|receive| receive.endpoint.channel.kind.group().is_some())
    }

    /// A subscription is added to a channel; the receiver learns of the first of its kind. Returns the id of the
    /// channel's status counter.
    pub(crate) fn add_interest(&mut self, cx: &mut Context, id: EndpointId, interest: Interest) -> i32 {
        let Some(receive) = self.get(id) else {
            return headrace_buffers::counters::NULL_COUNTER_ID;
        };
        if receive.interests.add(interest) {
            cx.receiver.send(ReceiverCommand::AddSubscription {
                endpoint: id,
                stream_id: interest.stream_id,
                session_id: interest.session_id,
            });
        }
        receive.endpoint.counters.status.id()
    }

    /// A subscription is gone; the receiver learns of the last of its kind.
    pub(crate) fn remove_interest(&mut self, cx: &mut Context, id: EndpointId, interest: Interest) {
        let Some(receive) = self.get(id) else {
            return;
        };
        if receive.interests.remove(interest) {
            cx.receiver.send(ReceiverCommand::RemoveSubscription {
                endpoint: id,
                stream_id: interest.stream_id,
                session_id: interest.session_id,
            });
        }
        receive.close_if_unused(cx);
    }

    /// An image is being made that will receive through the channel.
    pub(crate) fn attach_image(&mut self, id: EndpointId) {
        if let Some(receive) = self.get(id) {
            receive.image_count += 1;
        }
    }

    /// An image no longer receives.
    pub(crate) fn detach_image(&mut self, cx: &mut Context, id: EndpointId) {
        if let Some(receive) = self.get(id) {
            receive.image_count -= 1;
            receive.close_if_unused(cx);
        }
    }

    /// The receiver heard nothing of the sender at the control address: its name is looked up again.
    pub(crate) fn re_resolve(&mut self, cx: &mut Context, endpoint: EndpointId) {
        let name = self
            .get(endpoint)
            .filter(|receive| !receive.endpoint.is_closing())
            .and_then(|receive| receive.endpoint.channel.control.clone());
        if let Some(name) = name {
            cx.tasks
                .send(ResourceTask::Resolve(Box::new(Resolve { endpoint, name })));
        }
    }

    /// The name of a control address was looked up again.
    pub(crate) fn on_resolved(
        &mut self,
        cx: &mut Context,
        endpoint: EndpointId,
        name: &str,
        result: Result<SocketAddr, String>,
    ) {
        let Some(receive) = self.get(endpoint) else {
            return;
        };
        match result {
            Ok(address) => {
                receive.endpoint.channel.local = address;
                cx.receiver
                    .send(ReceiverCommand::MoveControl { endpoint, address });
            }
            Err(reason) => cx.warn(&format!("could not re-resolve: control={name}: {reason}")),
        }
    }

    /// The receiver closed the socket.
    pub(crate) fn on_closed(&mut self, cx: &mut Context, id: EndpointId) {
        for receive in self.channels.extract_if(.., |receive| receive.endpoint.id == id) {
            self.ports.release(receive.endpoint.port);
            receive.endpoint.free(cx);
        }
    }
}

impl ReceiveChannel {
    fn close_if_unused(&mut self, cx: &mut Context) {
        let is_unused = self.interests.is_empty() && self.image_count == 0;
        if is_unused && !self.endpoint.is_closing() {
            self.endpoint.enter(
                &cx.recorder,
                ChannelState::Closing,
                "its last subscription and image are gone",
            );
            cx.receiver
                .send(ReceiverCommand::RemoveEndpoint(self.endpoint.id));
        }
    }
}

/// Where the channel says that its sender listens.
fn control_address(channel: &UdpChannel) -> Option<ControlAddress> {
    channel.control.as_deref().map(|control| ControlAddress {
        address: channel.local,
        is_re_resolvable: names_a_host(control),
    })
}

fn open_socket(
    cx: &mut Context,
    sockets: &Sockets,
    request: &ReceiveRequest,
    local: SocketAddr,
) -> Result<(OpenSocket, EndpointCounters), CommandError> {
    let channel = &request.channel;
    let socket_request = match channel.kind.group() {
        Some(group) => group_request(&cx.config, channel, &group, Some(channel.remote)),
        None => SocketRequest {
            local,
            remote: None,
            options: socket_options(&cx.config, channel),
        },
    };
    let socket = sockets.open(channel, &socket_request)?;
    let asked = socket_request.options.receive_buffer_length;
    let length = usable_length(asked, socket.receive_buffer_length);
    channel.check_receiver_window(request.window_length, length)?;
    let counters = channel_counters(cx, &RECEIVE, request.registration_id, channel, &socket)?;
    Ok((socket, counters))
}
