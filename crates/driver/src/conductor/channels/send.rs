//! Channels that publications send through.

use std::net::{IpAddr, SocketAddr};

use headrace_buffers::counters::{Counter, type_ids};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelUri, TimestampOffset, UdpChannel, UdpChannelKind, check_send_timestamp, keys,
};

use super::destination_counters::DestinationCounters;
use super::endpoint::{Binding, ChannelState, Endpoint, find};
use super::ports::Ports;
use super::sockets::{
    SEND, Sockets, channel_counters, group_request, names_a_host, open_error, socket_options, usable_length,
};
use super::unresolved::Unresolved;
use crate::conductor::context::Context;
use crate::config::DriverConfig;
use crate::endpoint::{
    DestinationChange, EndpointId, GroupSockets, SendDestinations, SendEndpointSpec, SendGroup,
    ShownDestination,
};
use crate::environment::{OpenSocket, SocketRequest};
use crate::errors::CommandError;
use crate::event_recorder::Reason;
use crate::proxy::SenderCommand;
use crate::resource_tasks::{Resolve, ResourceTask};

/// Key of the error, recorded once a minute, that a channel cannot use its new address. A name without an address has
/// another.
const RECONNECT: &str = "reconnect";

/// One of them.
#[derive(Debug)]
pub(crate) struct SendChannel {
    pub(crate) endpoint: Endpoint,
    binding: Binding,
    pub(crate) send_buffer_length: usize,
    timestamp: Option<TimestampOffset>,
    publication_count: usize,
    // Shows how many destinations a channel has that may have several.
    destination_count: Option<Counter>,
    destinations: DestinationCounters,
}

impl SendChannel {
    /// Fails unless it writes the time of sending where `channel` wants it.
    pub(crate) fn check_timestamp(
        &self,
        wanted: Option<TimestampOffset>,
        channel: &UdpChannel,
    ) -> Result<(), CommandError> {
        check_send_timestamp(wanted, &channel.uri, self.timestamp, &self.endpoint.channel.uri)?;
        Ok(())
    }
}

/// A channel that a publication sends through.
#[derive(Clone, Copy)]
pub(crate) struct SendRequest<'a> {
    pub(crate) registration_id: i64,
    pub(crate) channel: &'a UdpChannel,
    /// Where the time of sending is written.
    pub(crate) timestamp: Option<TimestampOffset>,
}

/// All of them, and their ports.
pub(crate) struct SendChannels {
    channels: Vec<SendChannel>,
    unresolved: Unresolved,
    ports: Ports,
}

impl SendChannels {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            channels: Vec::new(),
            unresolved: Unresolved::default(),
            ports,
        }
    }

    /// The open channel that `channel` means, if there is one.
    pub(crate) fn find(&self, channel: &UdpChannel) -> Result<Option<&SendChannel>, CommandError> {
        let endpoints = self.channels.iter().map(|send| &send.endpoint);
        let found = find(endpoints, channel, "SendChannelEndpoint", gives_way)?;
        match found {
            Some(endpoint) => channel.check_carries_responses(&endpoint.channel)?,
            None => channel.check_original()?,
        }
        Ok(found.and_then(|endpoint| self.channels.iter().find(|send| send.endpoint.id == endpoint.id)))
    }

    /// Ports of the sockets that the sender is about to close.
    pub(crate) fn leaving_ports(&self) -> impl Iterator<Item = u16> {
        let closing = self.channels.iter().filter(|send| send.endpoint.is_closing());
        closing.map(|send| send.binding.address.port())
    }

    fn get(&mut self, id: EndpointId) -> Option<&mut SendChannel> {
        self.channels.iter_mut().find(|send| send.endpoint.id == id)
    }

    /// Adds a publication to a channel, which is opened if it is the first.
    pub(crate) fn join(
        &mut self,
        cx: &mut Context,
        sockets: &mut Sockets,
        request: SendRequest<'_>,
    ) -> Result<&SendChannel, CommandError> {
        let id = match self.find(request.channel)? {
            Some(send) => {
                send.check_timestamp(request.timestamp, request.channel)?;
                send.endpoint.id
            }
            None => self.open(cx, sockets, request)?,
        };
        let index = self.channels.iter().position(|send| send.endpoint.id == id);
        let send = &mut self.channels[index.expect("found or opened just now")];
        send.publication_count += 1;
        Ok(send)
    }

    /// A publication with this channel has joined. The tag that the transport has only since.
    pub(crate) fn take_tag_of(&mut self, id: EndpointId, joined: &UdpChannel) -> Option<i64> {
        self.get(id)?.endpoint.take_tag_of(joined)
    }

    fn open(
        &mut self,
        cx: &mut Context,
        sockets: &mut Sockets,
        request: SendRequest<'_>,
    ) -> Result<EndpointId, CommandError> {
        let registration_id = request.registration_id;
        let channel = request.channel.clone();
        let OpenSend { socket, group, port } = self.open_sockets(cx, sockets, &channel)?;
        let counters = channel_counters(cx, &SEND, registration_id, &channel, &socket, port);
        if counters.is_err() {
            self.ports.release(port);
        }
        let (status, binding) = counters?;
        let destination_count = match count_of_destinations(cx, registration_id, &channel) {
            Ok(count) => count,
            Err(error) => {
                self.ports.release(port);
                binding.free(cx);
                cx.counters.free(status.id());
                return Err(error);
            }
        };
        let id = sockets.next_endpoint_id();
        let spec = SendEndpointSpec {
            id,
            destinations: destinations(&cx.config, &channel, &socket, destination_count.clone()),
            transport: socket.transport,
            remote: channel.remote,
            is_re_resolvable: group.is_none()
                && channel.kind.has_peer()
                && channel.endpoint.as_deref().is_some_and(names_a_host),
            group,
            timestamp: request.timestamp,
            offload_mode: Some(binding.offload.clone()),
        };
        cx.sender.send(SenderCommand::AddEndpoint(Box::new(spec)));
        let asked = socket_options(&cx.config, &channel).send_buffer_length;
        self.channels.push(SendChannel {
            endpoint: Endpoint::new(&cx.recorder, id, channel, status),
            binding,
            send_buffer_length: usable_length(asked, socket.send_buffer_length),
            timestamp: request.timestamp,
            publication_count: 0,
            destination_count,
            destinations: DestinationCounters::of_sends(),
        });
        Ok(id)
    }

    /// Plain publications keep the system's ephemeral ports; a control address draws from the range. Sockets of a group
    /// share its port with others, so it is not one of this driver's.
    fn open_sockets(
        &mut self,
        cx: &Context,
        sockets: &Sockets,
        channel: &UdpChannel,
    ) -> Result<OpenSend, CommandError> {
        let Some(group) = channel.kind.group() else {
            let request = SocketRequest {
                local: channel.local,
                remote: connected_to(&cx.config, channel),
                options: socket_options(&cx.config, channel),
            };
            let (socket, port) = if is_port_left_to_system(channel) {
                (sockets.open(channel, &request)?, 0)
            } else {
                sockets.open_with_port(&mut self.ports, channel, request)?
            };
            return Ok(OpenSend {
                socket,
                group: None,
                port,
            });
        };
        let to_group = SocketRequest {
            remote: connected_to(&cx.config, channel),
            ..group_request(&cx.config, channel, &group, None)
        };
        let from_members = group_request(&cx.config, channel, &group, Some(group.control));
        let socket = sockets.open(channel, &to_group)?;
        let feedback = sockets.open(channel, &from_members)?.transport;
        let ttl = socket.group_ttl;
        Ok(OpenSend {
            socket,
            group: Some(SendGroup { feedback, ttl }),
            port: 0,
        })
    }

    /// A publication no longer sends; the channel closes with its last one.
    pub(crate) fn release(&mut self, cx: &mut Context, id: EndpointId) {
        let Some(send) = self.get(id) else {
            return;
        };
        send.publication_count -= 1;
        if send.publication_count == 0 && !send.endpoint.is_closing() {
            send.endpoint.enter(
                &cx.recorder,
                ChannelState::Closing,
                "its last publication is gone",
            );
            cx.sender.send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// The sender closed the socket.
    pub(crate) fn on_closed(&mut self, cx: &mut Context, id: EndpointId) {
        self.unresolved.forget(id);
        for send in self.channels.extract_if(.., |send| send.endpoint.id == id) {
            self.ports.release(send.binding.port);
            send.binding.free(cx);
            cx.counters.free_all(&send.destination_count);
            send.destinations.free(&mut cx.counters);
            send.endpoint.free(cx);
        }
    }

    /// The sender says which destinations a channel has.
    pub(crate) fn show_destinations(
        &mut self,
        cx: &mut Context,
        id: EndpointId,
        destinations: &[ShownDestination],
    ) {
        if let Some(send) = self.get(id) {
            let status_id = send.endpoint.status.id();
            send.destinations.show(&mut cx.counters, status_id, destinations);
        }
    }

    /// The sender heard nothing of the far side: its name is looked up again.
    pub(crate) fn re_resolve(&mut self, cx: &mut Context, endpoint: EndpointId, destination: Option<String>) {
        let Some(send) = self.get(endpoint) else {
            return;
        };
        let Some(name) = destination.or_else(|| send.endpoint.channel.endpoint.clone()) else {
            return;
        };
        if !send.endpoint.is_closing() {
            cx.tasks
                .send(ResourceTask::Resolve(Box::new(Resolve { endpoint, name })));
        }
    }

    /// A name was looked up again.
    pub(crate) fn on_resolved(
        &mut self,
        cx: &mut Context,
        endpoint: EndpointId,
        name: String,
        result: Result<SocketAddr, String>,
    ) {
        if result.is_ok() {
            self.unresolved.succeeds(endpoint, &name);
        }
        let found = self.channels.iter_mut().find(|send| send.endpoint.id == endpoint);
        let Some(send) = found else {
            return;
        };
        match result {
            Ok(address) if send.endpoint.channel.kind.has_destinations() => {
                cx.sender.send(SenderCommand::ChangeDestinations {
                    endpoint,
                    change: DestinationChange::Move { name, address },
                });
            }
            Ok(_) if send.endpoint.is_closing() => {}
            // An address that could not be used may be reached by now.
            Ok(remote) if remote != send.endpoint.channel.remote || send.endpoint.is_errored() => {
                send.endpoint.channel.remote = remote;
                cx.sender.send(SenderCommand::Reconnect { endpoint, remote });
            }
            Ok(_) => {}
            Err(reason) => {
                if self.unresolved.fails(endpoint, &name, &reason, cx.now_ns) {
                    cx.doubt(&format!("could not re-resolve: endpoint={name}: {reason}"));
                }
            }
        }
    }

    /// True for a channel whose destinations are what clients add.
    pub(crate) fn is_manual(&self, id: EndpointId) -> bool {
        let found = self.channels.iter().find(|send| send.endpoint.id == id);
        found.is_some_and(|send| send.endpoint.channel.kind == UdpChannelKind::Manual)
    }

    /// Puts into `destination`, which names a group, what it leaves open and the channel says: the interface, which is
    /// that of the address the channel is bound to, and the time to live.
    pub(crate) fn complete_group(
        &self,
        id: EndpointId,
        group: SocketAddr,
        destination: &mut ChannelUri,
    ) -> Result<(), CommandError> {
        let Some(send) = self.channels.iter().find(|send| send.endpoint.id == id) else {
            return Ok(()); // it is going
        };
        let channel = &send.endpoint.channel;
        let local = channel.local.ip();
        if !destination.contains(keys::INTERFACE)
            && !local.is_unspecified()
            && local.is_ipv4() == group.is_ipv4()
        {
            let text = match local {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            destination.put(keys::INTERFACE, text)?;
        }
        let own = ChannelUri::parse(&channel.uri)?;
        if let Some(ttl) = own.get(keys::TTL)
            && !destination.contains(keys::TTL)
        {
            destination.put(keys::TTL, ttl)?;
        }
        Ok(())
    }

    /// Opens the sockets of a destination that is a group, which a client adds to a channel. None for one address, which
    /// the channel's own socket sends to.
    pub(crate) fn open_group(
        &self,
        cx: &Context,
        sockets: &Sockets,
        id: EndpointId,
        mut destination: UdpChannel,
    ) -> Result<Option<GroupSockets>, CommandError> {
        let found = self.channels.iter().find(|send| send.endpoint.id == id);
        let (Some(send), Some(group)) = (found, destination.kind.group()) else {
            return Ok(None);
        };
        destination.take_buffers_of(&send.endpoint.channel);
        let to_group = group_request(&cx.config, &destination, &group, None);
        let from_members = group_request(&cx.config, &destination, &group, Some(group.control));
        Ok(Some(GroupSockets {
            transport: sockets.open(&destination, &to_group)?.transport,
            feedback: sockets.open(&destination, &from_members)?.transport,
            interface: group.interface_address,
        }))
    }

    /// Fails if the socket of a channel cannot send to this address.
    pub(crate) fn check_reaches(&self, id: EndpointId, address: SocketAddr) -> Result<(), CommandError> {
        let Some(send) = self.channels.iter().find(|send| send.endpoint.id == id) else {
            return Ok(()); // it is going
        };
        let local = send.endpoint.channel.local;
        if local.is_ipv4() == address.is_ipv4() {
            return Ok(());
        }
        let family = |address: SocketAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
        Err(CommandError::new(
            ErrorCode::InvalidChannel,
            format!(
                "destination is {} and the publication's socket {}: both must be of one family; give the publication a control or interface address of the destination's, destination={address} local={local}",
                family(address),
                family(local)
            ),
        ))
    }

    /// The sender sends to the new address.
    pub(crate) fn on_reconnected(&mut self, cx: &mut Context, endpoint: EndpointId) {
        self.unresolved.succeeds(endpoint, RECONNECT);
        if let Some(send) = self.get(endpoint) {
            send.endpoint.enter(
                &cx.recorder,
                ChannelState::Active,
                "its name resolves to an address that can be used",
            );
        }
    }

    /// The sender could not use the new address. It is tried again each time the name is looked up.
    pub(crate) fn on_reconnect_failed(&mut self, cx: &mut Context, endpoint: EndpointId, reason: &str) {
        let is_told = self.unresolved.fails(endpoint, RECONNECT, reason, cx.now_ns);
        let Some(send) = self.get(endpoint) else {
            return;
        };
        send.endpoint.enter(
            &cx.recorder,
            ChannelState::Errored,
            Reason::fault("its new address cannot be used"),
        );
        if is_told {
            cx.record(&open_error(
                &format!("failed to reconnect: {reason}"),
                &send.endpoint.channel,
            ));
        }
    }
}

/// The length of a send buffer that a channel asks for, or gets from the settings or the system.
pub(crate) fn wanted_send_buffer_length(cx: &Context, channel: &UdpChannel) -> usize {
    socket_options(&cx.config, channel)
        .send_buffer_length
        .unwrap_or(cx.system_buffers.default_send_length)
}

/// What opening a channel made.
struct OpenSend {
    socket: OpenSocket,
    group: Option<SendGroup>,
    /// Taken for it.
    port: u16,
}

fn is_port_left_to_system(channel: &UdpChannel) -> bool {
    let is_plain = match channel.kind {
        UdpChannelKind::Unicast => true,
        UdpChannelKind::Manual | UdpChannelKind::Response => channel.control.is_none(),
        _ => false,
    };
    is_plain && channel.local.port() == 0
}

/// A plain channel that closes holds no port that another one needs. Some clients do not wait for it: a cluster client
/// of Aeron's does not connect at all if the driver asks its publication to try again.
fn gives_way(closing: &UdpChannel) -> bool {
    closing.kind == UdpChannelKind::Unicast && closing.local.port() == 0
}

/// How many destinations a channel has that may have several.
fn count_of_destinations(
    cx: &mut Context,
    registration_id: i64,
    channel: &UdpChannel,
) -> Result<Option<Counter>, CommandError> {
    if !channel.kind.has_destinations() {
        return Ok(None);
    }
    let type_id = type_ids::MULTI_DESTINATION_COUNT;
    let counters = &mut cx.counters;
    counters
        .channel_status(type_id, "mdc-num-dest", registration_id, &channel.uri)
        .map(Some)
}

/// The peer of the socket, if it is to have one.
fn connected_to(config: &DriverConfig, channel: &UdpChannel) -> Option<SocketAddr> {
    let is_connected = config.connects_sockets && channel.kind.has_peer();
    is_connected.then_some(channel.remote)
}

fn destinations(
    config: &DriverConfig,
    channel: &UdpChannel,
    socket: &OpenSocket,
    count: Option<Counter>,
) -> SendDestinations {
    match (channel.kind, count) {
        (UdpChannelKind::Dynamic, Some(count)) => SendDestinations::Dynamic(count),
        (UdpChannelKind::Manual, Some(count)) => SendDestinations::Manual(count),
        (UdpChannelKind::Response, _) => SendDestinations::Response,
        _ if socket.is_connected => SendDestinations::Connected,
        _ if config.connects_sockets => SendDestinations::Unreached(channel.remote),
        _ => SendDestinations::Peer(channel.remote),
    }
}
