//! Opening the socket of a channel that none of the open ones serves.

use std::net::SocketAddr;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_protocol::channel::{UdpChannel, UdpChannelKind};
use headrace_sys::net::SocketOptions;

use super::Conductor;
use super::counters::{Counters, OFFLOAD_MODE};
use super::endpoints::{Endpoint, EndpointCounters, ReceiveChannel, SendChannel, status};
use crate::endpoint::{EndpointId, ReceiveEndpointSpec, SendEndpointSpec};
use crate::environment::OpenSocket;
use crate::errors::CommandError;
use crate::proxy::{ReceiverCommand, SenderCommand};

/// Names of a channel's counters.
struct Labels {
    status_type_id: i32,
    status: &'static str,
    local_address: &'static str,
    offload: &'static str,
}

const SEND: Labels = Labels {
    status_type_id: type_ids::SEND_CHANNEL_STATUS,
    status: "snd-channel",
    local_address: "snd-local-sockaddr",
    offload: "snd-offload (0 segmentation, 1 vectored, 2 single)",
};

const RECEIVE: Labels = Labels {
    status_type_id: type_ids::RECEIVE_CHANNEL_STATUS,
    status: "rcv-channel",
    local_address: "rcv-local-sockaddr",
    offload: "rcv-offload (0 segmentation, 1 vectored, 2 single)",
};

impl Conductor {
    /// The length of a send buffer that a channel asks for, or gets from the settings or the system.
    pub(crate) fn wanted_send_buffer_length(&self, channel: &UdpChannel) -> usize {
        given(
            channel.socket_sndbuf_length,
            self.cx.config.socket_send_buffer_length,
        )
        .unwrap_or(self.system_buffers.default_send_length)
    }

    fn socket_options(&self, channel: &UdpChannel) -> SocketOptions {
        SocketOptions {
            send_buffer_length: given(
                channel.socket_sndbuf_length,
                self.cx.config.socket_send_buffer_length,
            ),
            receive_buffer_length: given(
                channel.socket_rcvbuf_length,
                self.cx.config.socket_receive_buffer_length,
            ),
            ..SocketOptions::default()
        }
    }

    pub(crate) fn open_send_channel(
        &mut self,
        registration_id: i64,
        channel: UdpChannel,
    ) -> Result<EndpointId, CommandError> {
        let options = self.socket_options(&channel);
        // Plain publications keep the system's ephemeral ports; a control address draws from the range.
        let is_managed = channel.kind == UdpChannelKind::Control || channel.local.port() != 0;
        let port = if is_managed {
            self.send_ports
                .take(channel.local.port())
                .map_err(|fault| open_error(&fault, &channel))?
        } else {
            0
        };
        let local = SocketAddr::new(channel.local.ip(), port);
        let opened = self
            .network
            .open(local, Some(channel.remote), &options)
            .map_err(|error| open_error(&format!("failed to bind to address {local}: {error}"), &channel))
            .and_then(|socket| {
                let counters =
                    channel_counters(&mut self.cx.counters, &SEND, registration_id, &channel, &socket)?;
                Ok((socket, counters))
            });
        let (socket, counters) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.send_ports.release(port);
                return Err(error);
            }
        };
        let id = self.next_endpoint_id();
        let spec = SendEndpointSpec {
            id,
            transport: socket.transport,
            remote: channel.remote,
            is_re_resolvable: names_a_host(&channel),
            offload_mode: Some(counters.offload.clone()),
        };
        self.sender.send(SenderCommand::AddEndpoint(Box::new(spec)));
        self.send_channels.push(SendChannel {
            endpoint: Endpoint::new(id, channel, counters, port),
            send_buffer_length: usable_length(options.send_buffer_length, socket.send_buffer_length),
            publication_count: 0,
        });
        Ok(id)
    }

    pub(crate) fn open_receive_channel(
        &mut self,
        registration_id: i64,
        channel: UdpChannel,
        window_length: i32,
        group_tag: Option<i64>,
    ) -> Result<EndpointId, CommandError> {
        let options = self.socket_options(&channel);
        let port = self
            .receive_ports
            .take(channel.remote.port())
            .map_err(|fault| open_error(&fault, &channel))?;
        let local = SocketAddr::new(channel.remote.ip(), port);
        let opened = self
            .network
            .open(local, None, &options)
            .map_err(|error| open_error(&format!("failed to bind to address {local}: {error}"), &channel))
            .and_then(|socket| {
                let length = usable_length(options.receive_buffer_length, socket.receive_buffer_length);
                channel.check_receiver_window(window_length, length)?;
                let counters = channel_counters(
                    &mut self.cx.counters,
                    &RECEIVE,
                    registration_id,
                    &channel,
                    &socket,
                )?;
                Ok((socket, counters))
            });
        let (socket, counters) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.receive_ports.release(port);
                return Err(error);
            }
        };
        let id = self.next_endpoint_id();
        let receiver_id = self.next_receiver_id;
        self.next_receiver_id = receiver_id.wrapping_add(1);
        let spec = ReceiveEndpointSpec {
            id,
            transport: socket.transport,
            receiver_id,
            group_tag,
            offload_mode: Some(counters.offload.clone()),
        };
        self.receiver.send(ReceiverCommand::AddEndpoint(Box::new(spec)));
        let endpoint = Endpoint::new(id, channel, counters, port);
        let receive_buffer_length =
            usable_length(options.receive_buffer_length, socket.receive_buffer_length);
        self.receive_channels
            .push(ReceiveChannel::new(endpoint, receive_buffer_length));
        Ok(id)
    }

    fn next_endpoint_id(&mut self) -> EndpointId {
        self.last_endpoint_id += 1;
        EndpointId(self.last_endpoint_id)
    }
}

/// The channel's own length if it gives one, else the setting's; none leaves it to the system.
fn given(channel: Option<usize>, setting: usize) -> Option<usize> {
    Some(channel.filter(|length| *length != 0).unwrap_or(setting)).filter(|length| *length != 0)
}

/// True when the endpoint is a name whose address may change.
fn names_a_host(channel: &UdpChannel) -> bool {
    channel
        .endpoint
        .as_deref()
        .is_some_and(|endpoint| endpoint.parse::<SocketAddr>().is_err())
}

fn open_error(fault: &str, channel: &UdpChannel) -> CommandError {
    CommandError::generic(format!("channel error - {fault}: {}", channel.uri))
}

fn channel_counters(
    counters: &mut Counters,
    labels: &Labels,
    registration_id: i64,
    channel: &UdpChannel,
    socket: &OpenSocket,
) -> Result<EndpointCounters, CommandError> {
    let address = socket.local.to_string();
    let made = |counters: &mut Counters, allocated: &mut Vec<Counter>| {
        let status = counters.channel_status(
            labels.status_type_id,
            labels.status,
            registration_id,
            &channel.uri,
        )?;
        allocated.push(status.clone());
        counters.append_to_label(status.id(), &format!(" {address}"));
        let local_address =
            counters.local_address(labels.local_address, status.id(), registration_id, &address)?;
        allocated.push(local_address.clone());
        let offload = counters.channel_status(OFFLOAD_MODE, labels.offload, registration_id, &channel.uri)?;
        allocated.push(offload.clone());
        local_address.set_release(status::ACTIVE);
        status.set_release(status::ACTIVE);
        Ok(EndpointCounters {
            status,
            local_address,
            offload,
        })
    };
    let mut allocated = Vec::new();
    let made = made(counters, &mut allocated);
    if made.is_err() {
        counters.free_all(&allocated);
    }
    made
}

/// What may be relied on of a socket buffer: Linux grants twice what is asked for, for its own book-keeping, and
/// less when the system's limit is lower.
fn usable_length(asked: Option<usize>, granted: usize) -> usize {
    asked.map_or(granted, |asked| asked.min(granted))
}
