//! Channels that subscriptions receive through.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::channel::{ReceiveTimestamps, UdpChannel, UdpChannelKind};

use super::destination_counters::DestinationCounters;
use super::endpoint::{Binding, ChannelState, Endpoint, find};
use super::interests::{Interest, Interests};
use super::ports::Ports;
use super::receive_paths::{Destination, Destinations, ReceivePaths};
use super::sockets::{
    BindingOwner, RECEIVE, Sockets, binding, channel_counters, group_request, names_a_host, socket_options,
    status_counter, usable_length,
};
use super::unresolved::Unresolved;
use crate::conductor::context::Context;
use crate::config::{BUFFER_PER_LOCAL_WINDOW, DriverConfig};
use crate::endpoint::{
    ControlAddress, EndpointId, LastHeard, ONLY_PATH, ReceiveEndpointSpec, ReceiveGroup, ReceivePathSpec,
    ShownDestination,
};
use crate::environment::{OpenSocket, SocketRequest};
use crate::errors::CommandError;
use crate::proxy::ReceiverCommand;
use crate::resource_tasks::{Resolve, ResourceTask};

/// Most destinations of one channel that are shown.
const SHOWN_MAX: usize = 100;

/// One of them.
#[derive(Debug)]
pub(crate) struct ReceiveChannel {
    pub(crate) endpoint: Endpoint,
    paths: ReceivePaths,
    /// What may be relied on of what the channel or the setting asks for. Windows of channels are held against it.
    pub(crate) receive_buffer_length: usize,
    /// What its socket got, which may be more.
    granted_buffer_length: usize,
    /// Group that its status messages and error frames claim.
    pub(crate) group_tag: Option<i64>,
    /// Times that it writes into messages.
    pub(crate) timestamps: ReceiveTimestamps,
    /// Images being made, or not yet at their linger.
    image_count: usize,
    interests: Interests,
    // What a person is shown of the destinations that clients added.
    shown: DestinationCounters,
}

/// A channel to open.
pub(crate) struct ReceiveRequest {
    pub(crate) registration_id: i64,
    pub(crate) channel: UdpChannel,
    /// Window that its images shall have, which must fit the socket's buffer.
    pub(crate) window_length: i32,
    /// Group that the channel names.
    pub(crate) group_tag: Option<i64>,
    /// Times that it wants in messages.
    pub(crate) timestamps: ReceiveTimestamps,
}

impl ReceiveRequest {
    fn socket(&self) -> WantedSocket {
        WantedSocket {
            window_length: self.window_length,
            stamps_arrivals: self.timestamps.media.is_some(),
        }
    }
}

/// What a channel needs of its sockets.
#[derive(Clone, Copy)]
struct WantedSocket {
    window_length: i32,
    /// They tell when datagrams arrive.
    stamps_arrivals: bool,
}

/// A destination to open for a channel.
pub(crate) struct DestinationRequest {
    pub(crate) endpoint: EndpointId,
    /// Of the subscription that it is added to.
    pub(crate) owner_id: i64,
    /// Of the command that adds it.
    pub(crate) registration_id: i64,
    pub(crate) channel: UdpChannel,
    /// As for a channel.
    pub(crate) window_length: i32,
}

/// All of them, and their ports.
pub(crate) struct ReceiveChannels {
    channels: Vec<ReceiveChannel>,
    unresolved: Unresolved,
    ports: Ports,
    next_receiver_id: i64,
}

impl ReceiveChannels {
    /// Channels with ports of `ports` and receiver ids from `first_receiver_id`.
    pub(crate) fn new(ports: Ports, first_receiver_id: i64) -> Self {
        Self {
            channels: Vec::new(),
            unresolved: Unresolved::default(),
            ports,
            next_receiver_id: first_receiver_id,
        }
    }

    /// The open channel that `channel` means, if there is one.
    pub(crate) fn find(&self, channel: &UdpChannel) -> Result<Option<&ReceiveChannel>, CommandError> {
        let endpoints = self.channels.iter().map(|receive| &receive.endpoint);
        let found = find(endpoints, channel, "ReceiveChannelEndpoint", |_| false)?;
        Ok(found.and_then(|endpoint| {
            self.channels
                .iter()
                .find(|receive| receive.endpoint.id == endpoint.id)
        }))
    }

    pub(crate) fn contains(&self, id: EndpointId) -> bool {
        self.channels.iter().any(|receive| receive.endpoint.id == id)
    }

    /// How much of a sender on this host the socket of a channel can hold: nothing else between the two can overflow. None for
    /// a sender elsewhere, and for channels whose other destinations may bring the same stream from elsewhere.
    pub(crate) fn local_room(&self, id: EndpointId, sender: IpAddr) -> Option<usize> {
        let found = self.channels.iter().find(|receive| receive.endpoint.id == id)?;
        let ReceivePaths::Single(binding) = &found.paths else {
            return None;
        };
        let group = found.endpoint.channel.kind.group();
        let is_local = sender.is_loopback()
            || sender == binding.address.ip()
            || group.is_some_and(|group| sender == group.interface_address);
        is_local.then_some(found.granted_buffer_length / BUFFER_PER_LOCAL_WINDOW)
    }

    /// Ports of the sockets that the receiver is about to close.
    pub(crate) fn leaving_ports(&self) -> impl Iterator<Item = u16> {
        self.channels
            .iter()
            .flat_map(|receive| receive.paths.leaving_ports(receive.endpoint.is_closing()))
    }

    fn get(&mut self, id: EndpointId) -> Option<&mut ReceiveChannel> {
        self.channels.iter_mut().find(|receive| receive.endpoint.id == id)
    }

    /// Opens a channel; returns its name. One whose destinations clients add has no socket yet.
    pub(crate) fn open(
        &mut self,
        cx: &mut Context,
        sockets: &mut Sockets,
        request: ReceiveRequest,
    ) -> Result<EndpointId, CommandError> {
        let opened = match request.channel.kind {
            UdpChannelKind::Manual => open_manual(cx, &request)?,
            _ => self.open_single(cx, sockets, &request)?,
        };
        let id = sockets.next_endpoint_id();
        let receiver_id = self.next_receiver_id;
        self.next_receiver_id = receiver_id.wrapping_add(1);
        let group_tag = request.group_tag.or(cx.config.receiver_group_tag);
        let spec = ReceiveEndpointSpec {
            id,
            path: opened.path,
            receiver_id,
            group_tag,
            timestamps: request.timestamps,
        };
        cx.receiver.send(ReceiverCommand::AddEndpoint(Box::new(spec)));
        self.channels.push(ReceiveChannel {
            endpoint: Endpoint::new(&cx.recorder, id, request.channel, opened.status),
            paths: opened.paths,
            receive_buffer_length: opened.receive_buffer_length,
            granted_buffer_length: opened.granted_buffer_length,
            group_tag,
            timestamps: request.timestamps,
            image_count: 0,
            interests: Interests::default(),
            shown: DestinationCounters::of_receives(),
        });
        Ok(id)
    }

    fn open_single(
        &mut self,
        cx: &mut Context,
        sockets: &Sockets,
        request: &ReceiveRequest,
    ) -> Result<Opened, CommandError> {
        let channel = &request.channel;
        let (socket, port) = self.open_socket(cx, sockets, channel, request.socket())?;
        let registration_id = request.registration_id;
        let counters = channel_counters(cx, &RECEIVE, registration_id, channel, &socket, port);
        if counters.is_err() {
            self.ports.release(port);
        }
        let (status, binding) = counters?;
        let asked = socket_options(&cx.config, channel).receive_buffer_length;
        Ok(Opened {
            receive_buffer_length: usable_length(asked, socket.receive_buffer_length),
            granted_buffer_length: socket.receive_buffer_length,
            path: Some(path_spec(channel, socket, &binding, Arc::default())),
            paths: ReceivePaths::Single(binding),
            status,
        })
    }

    /// Opens a socket with room for the window, and takes its port. Sockets of a group share its port with others, so it is
    /// not one of this driver's.
    fn open_socket(
        &mut self,
        cx: &Context,
        sockets: &Sockets,
        channel: &UdpChannel,
        wanted: WantedSocket,
    ) -> Result<(OpenSocket, u16), CommandError> {
        let request = socket_request(&cx.config, channel, wanted);
        let (socket, port) = match channel.kind.group() {
            Some(_) => (sockets.open(channel, &request)?, 0),
            None => sockets.open_with_port(&mut self.ports, channel, request)?,
        };
        let checked = check_socket(cx, channel, wanted, &socket);
        if checked.is_err() {
            self.ports.release(port);
        }
        checked.map(|()| (socket, port))
    }

    /// Opens the socket of a destination that a client adds to a channel.
    pub(crate) fn add_destination(
        &mut self,
        cx: &mut Context,
        sockets: &Sockets,
        request: DestinationRequest,
    ) -> Result<(), CommandError> {
        let DestinationRequest {
            endpoint,
            owner_id,
            registration_id,
            mut channel,
            window_length,
        } = request;
        let Some(receive) = self.get(endpoint) else {
            return Ok(()); // the subscription is there, and so is its channel
        };
        channel.take_buffers_of(&receive.endpoint.channel);
        let status_id = receive.endpoint.status.id();
        let wanted = WantedSocket {
            window_length,
            stamps_arrivals: receive.timestamps.media.is_some(),
        };
        let (socket, port) = self.open_socket(cx, sockets, &channel, wanted)?;
        let owner = BindingOwner {
            registration_id: owner_id,
            status_id,
            channel: &channel,
        };
        let binding = binding(cx, &RECEIVE, owner, &socket, port);
        if binding.is_err() {
            self.ports.release(port);
        }
        let binding = binding?;
        let heard = Arc::<LastHeard>::default();
        let spec = Box::new(path_spec(&channel, socket, &binding, Arc::clone(&heard)));
        if let Some(destinations) = self.get(endpoint).and_then(|receive| receive.paths.added_mut()) {
            let path = destinations.add(Destination::new(registration_id, channel, binding, heard));
            cx.receiver
                .send(ReceiverCommand::AddPath { endpoint, path, spec });
        }
        Ok(())
    }

    /// The path of a destination of a channel that `is_meant`.
    pub(crate) fn find_destination(
        &self,
        endpoint: EndpointId,
        is_meant: impl Fn(&Destination) -> bool,
    ) -> Option<usize> {
        let found = self
            .channels
            .iter()
            .find(|receive| receive.endpoint.id == endpoint);
        found?.paths.added()?.find(is_meant)
    }

    /// Has the socket of a destination closed. [`Self::on_path_closed`] follows.
    pub(crate) fn remove_destination(&mut self, cx: &mut Context, endpoint: EndpointId, path: usize) {
        if let Some(destinations) = self.get(endpoint).and_then(|receive| receive.paths.added_mut()) {
            destinations.close(path);
            cx.receiver.send(ReceiverCommand::RemovePath { endpoint, path });
        }
    }

    /// The receiver closed the socket of a destination.
    pub(crate) fn on_path_closed(&mut self, cx: &mut Context, endpoint: EndpointId, path: usize) {
        let destinations = self.get(endpoint).and_then(|receive| receive.paths.added_mut());
        if let Some(closed) = destinations.and_then(|destinations| destinations.take(path)) {
            self.ports.release(closed.binding.port);
            closed.binding.free(cx);
        }
    }

    /// The channels whose destinations are what clients add.
    pub(crate) fn manual(&self) -> Vec<EndpointId> {
        let manual = self
            .channels
            .iter()
            .filter(|receive| receive.paths.added().is_some());
        manual.map(|receive| receive.endpoint.id).collect()
    }

    /// Shows a person which destinations such a channel has, and which of them bring something: its sockets, and `local`,
    /// what is published on this host.
    pub(crate) fn show_destinations(
        &mut self,
        cx: &mut Context,
        id: EndpointId,
        local: Vec<(ShownDestination, bool)>,
    ) {
        let now_ns = cx.now_ns;
        let Some(receive) = self.get(id) else {
            return;
        };
        let mut all = receive
            .paths
            .added()
            .map_or_else(Vec::new, |added| added.shown(now_ns));
        all.extend(local);
        all.truncate(SHOWN_MAX);
        let destinations: Vec<ShownDestination> = all.iter().map(|(shown, _)| shown.clone()).collect();
        let status_id = receive.endpoint.status.id();
        receive.shown.show(&mut cx.counters, status_id, &destinations);
        receive
            .shown
            .set_live(|shown| all.contains(&(shown.clone(), true)));
    }

    /// True for a channel whose destinations are what clients add.
    pub(crate) fn is_manual(&self, id: EndpointId) -> bool {
        let found = self.channels.iter().find(|receive| receive.endpoint.id == id);
        found.is_some_and(|receive| receive.paths.added().is_some())
    }

    /// Where the sender of a channel listens, if the channel says so.
    pub(crate) fn has_control(&self, id: EndpointId) -> bool {
        let found = self.channels.iter().find(|receive| receive.endpoint.id == id);
        found.is_some_and(|receive| receive.endpoint.channel.control.is_some())
    }

    /// True for a channel in a multicast group.
    pub(crate) fn is_group(&self, id: EndpointId) -> bool {
        let found = self.channels.iter().find(|receive| receive.endpoint.id == id);
        found.is_some_and(|receive| receive.endpoint.channel.kind.group().is_some())
    }

    /// A subscription with this channel joins an open one, which goes by its tag too from now on.
    pub(crate) fn take_tag_of(&mut self, id: EndpointId, joined: &UdpChannel) {
        if let Some(receive) = self.get(id) {
            receive.endpoint.take_tag_of(joined);
        }
    }

    /// A subscription is added to a channel; the receiver learns of the first of its kind. Returns the id of the
    /// channel's status counter.
    pub(crate) fn add_interest(&mut self, cx: &mut Context, id: EndpointId, interest: Interest) -> i32 {
        let Some(receive) = self.get(id) else {
            return headrace_buffers::counters::NULL_COUNTER_ID;
        };
        if receive.interests.add(interest)
            && let Some(session_id) = interest.accepted()
        {
            cx.receiver.send(ReceiverCommand::AddSubscription {
                endpoint: id,
                stream_id: interest.stream_id,
                session_id,
            });
        }
        receive.endpoint.status.id()
    }

    /// A subscription is gone; the receiver learns of the last of its kind.
    pub(crate) fn remove_interest(&mut self, cx: &mut Context, id: EndpointId, interest: Interest) {
        let Some(receive) = self.get(id) else {
            return;
        };
        if receive.interests.remove(interest)
            && let Some(session_id) = interest.accepted()
        {
            cx.receiver.send(ReceiverCommand::RemoveSubscription {
                endpoint: id,
                stream_id: interest.stream_id,
                session_id,
            });
        }
        receive.leave_destinations_if_unwanted(cx);
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

    /// The receiver heard nothing of the sender at a control address: its name is looked up again.
    pub(crate) fn re_resolve(&mut self, cx: &mut Context, endpoint: EndpointId, name: Option<String>) {
        let is_open = self
            .get(endpoint)
            .is_some_and(|receive| !receive.endpoint.is_closing());
        if let Some(name) = name.filter(|_| is_open) {
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
        let found = self
            .channels
            .iter_mut()
            .find(|receive| receive.endpoint.id == endpoint);
        let Some(receive) = found else {
            return;
        };
        match result {
            Ok(address) => {
                self.unresolved.succeeds(endpoint, name);
                for path in receive.move_control(name, address) {
                    cx.receiver.send(ReceiverCommand::MoveControl {
                        endpoint,
                        path,
                        address,
                    });
                }
            }
            Err(reason) => {
                if self.unresolved.fails(endpoint, name, &reason, cx.now_ns) {
                    cx.doubt(&format!("could not re-resolve: control={name}: {reason}"));
                }
            }
        }
    }

    /// The receiver closed the sockets.
    pub(crate) fn on_closed(&mut self, cx: &mut Context, id: EndpointId) {
        self.unresolved.forget(id);
        for receive in self.channels.extract_if(.., |receive| receive.endpoint.id == id) {
            for binding in receive.paths.into_bindings() {
                self.ports.release(binding.port);
                binding.free(cx);
            }
            receive.shown.free(&mut cx.counters);
            receive.endpoint.free(cx);
        }
    }
}

impl ReceiveChannel {
    /// The paths whose sender listens at this name, which has another address now.
    fn move_control(&mut self, name: &str, address: SocketAddr) -> Vec<usize> {
        let is_named = |channel: &UdpChannel| channel.control.as_deref() == Some(name);
        match &mut self.paths {
            ReceivePaths::Single(_) if is_named(&self.endpoint.channel) => {
                self.endpoint.channel.local = address;
                vec![ONLY_PATH]
            }
            ReceivePaths::Single(_) => Vec::new(),
            ReceivePaths::Added(destinations) => destinations.move_control(name, address),
        }
    }

    /// Destinations are of the subscriptions, not of the images that outlive these for a moment: the ports are free at
    /// once, and a subscription that comes meanwhile begins without destinations.
    fn leave_destinations_if_unwanted(&mut self, cx: &mut Context) {
        if !self.interests.is_empty() {
            return;
        }
        let endpoint = self.endpoint.id;
        for path in self
            .paths
            .added_mut()
            .into_iter()
            .flat_map(Destinations::close_all)
        {
            cx.receiver.send(ReceiverCommand::RemovePath { endpoint, path });
        }
    }

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
        name: names_a_host(control).then(|| control.to_owned()),
    })
}

/// What opening a channel made.
struct Opened {
    receive_buffer_length: usize,
    granted_buffer_length: usize,
    status: Counter,
    path: Option<ReceivePathSpec>,
    paths: ReceivePaths,
}

/// A channel without sockets. It is checked as if it had one: those of its destinations are asked for with its lengths.
fn open_manual(cx: &mut Context, request: &ReceiveRequest) -> Result<Opened, CommandError> {
    let channel = &request.channel;
    let asked = socket_options(&cx.config, channel).receive_buffer_length;
    let receive_buffer_length = asked.unwrap_or(cx.system_buffers.default_receive_length);
    channel.check_receiver_window(request.window_length, receive_buffer_length)?;
    let status = status_counter(cx, &RECEIVE, request.registration_id, channel)?;
    status.set_release(ChannelState::Active.status());
    Ok(Opened {
        receive_buffer_length,
        granted_buffer_length: receive_buffer_length,
        status,
        path: None,
        paths: ReceivePaths::Added(Destinations::default()),
    })
}

fn socket_request(config: &DriverConfig, channel: &UdpChannel, wanted: WantedSocket) -> SocketRequest {
    let mut request = match channel.kind.group() {
        Some(group) => group_request(config, channel, &group, Some(channel.remote)),
        None => SocketRequest {
            local: channel.remote,
            remote: None,
            options: socket_options(config, channel),
        },
    };
    request.options.stamps_arrivals = wanted.stamps_arrivals;
    if channel.socket_rcvbuf_length.is_none() {
        let length = config.receive_buffer_length();
        request.options.receive_buffer_length = Some(length).filter(|length| *length != 0);
    }
    request
}

/// Whether an open socket has what was wanted: the window must fit, and without timestamps it is used nevertheless.
fn check_socket(
    cx: &Context,
    channel: &UdpChannel,
    wanted: WantedSocket,
    socket: &OpenSocket,
) -> Result<(), CommandError> {
    if wanted.stamps_arrivals && !socket.stamps_arrivals {
        cx.doubt(&format!(
            "the system does not tell when datagrams arrive: messages have no media receive timestamp, channel={}",
            channel.uri
        ));
    }
    let asked = socket_options(&cx.config, channel).receive_buffer_length;
    let length = usable_length(asked, socket.receive_buffer_length);
    channel.check_receiver_window(wanted.window_length, length)?;
    Ok(())
}

fn path_spec(
    channel: &UdpChannel,
    socket: OpenSocket,
    binding: &Binding,
    heard: Arc<LastHeard>,
) -> ReceivePathSpec {
    ReceivePathSpec {
        transport: socket.transport,
        control: control_address(channel).filter(|_| channel.kind.group().is_none()),
        group: channel.kind.group().map(|group| ReceiveGroup {
            control: group.control,
            ttl: socket.group_ttl,
        }),
        offload_mode: Some(binding.offload.clone()),
        heard,
    }
}
