//! Opening the socket of a channel that none of the open ones serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_protocol::channel::{MulticastGroup, UdpChannel};
use headrace_sys::net::{GroupInterface, GroupOptions, SocketOptions};

use super::endpoint::{ChannelState, EndpointCounters};
use crate::conductor::context::Context;
use crate::conductor::counters::{Counters, OFFLOAD_MODE};
use crate::config::DriverConfig;
use crate::endpoint::EndpointId;
use crate::environment::{Network, OpenSocket, SocketRequest};
use crate::errors::CommandError;

/// Names of a channel's counters.
pub(crate) struct Labels {
    status_type_id: i32,
    status: &'static str,
    local_address: &'static str,
    offload: &'static str,
}

/// Of a send channel.
pub(crate) const SEND: Labels = Labels {
    status_type_id: type_ids::SEND_CHANNEL_STATUS,
    status: "snd-channel",
    local_address: "snd-local-sockaddr",
    offload: "snd-offload (0 segmentation, 1 vectored, 2 single)",
};

/// Of a receive channel.
pub(crate) const RECEIVE: Labels = Labels {
    status_type_id: type_ids::RECEIVE_CHANNEL_STATUS,
    status: "rcv-channel",
    local_address: "rcv-local-sockaddr",
    offload: "rcv-offload (0 segmentation, 1 vectored, 2 single)",
};

/// Opens sockets, and numbers the channels they are for.
pub(crate) struct Sockets {
    network: Arc<dyn Network>,
    last_endpoint_id: i64,
}

impl Sockets {
    pub(crate) fn new(network: Arc<dyn Network>) -> Self {
        Self {
            network,
            last_endpoint_id: 0,
        }
    }

    pub(crate) fn next_endpoint_id(&mut self) -> EndpointId {
        self.last_endpoint_id += 1;
        EndpointId(self.last_endpoint_id)
    }

    /// A socket of the channel.
    pub(crate) fn open(
        &self,
        channel: &UdpChannel,
        request: &SocketRequest,
    ) -> Result<OpenSocket, CommandError> {
        self.network.open(request).map_err(|error| {
            let local = request.local;
            open_error(&format!("failed to bind to address {local}: {error}"), channel)
        })
    }
}

/// A socket of a multicast channel: joined to `joins` if that is given, else one that only sends.
pub(crate) fn group_request(
    config: &DriverConfig,
    channel: &UdpChannel,
    group: &MulticastGroup,
    joins: Option<SocketAddr>,
) -> SocketRequest {
    let options = SocketOptions {
        group: Some(GroupOptions {
            interface: GroupInterface {
                address: group.interface_address,
                index: group.interface_index,
            },
            joins: joins.map(|joined| joined.ip()),
            ttl: group
                .ttl
                .or(Some(config.socket_multicast_ttl).filter(|ttl| *ttl != 0)),
        }),
        ..socket_options(config, channel)
    };
    SocketRequest {
        local: SocketAddr::new(any_address(group), joins.map_or(0, |joined| joined.port())),
        remote: None,
        options,
    }
}

fn any_address(group: &MulticastGroup) -> IpAddr {
    match group.control {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// What the channel asks of its socket, or the settings do.
pub(crate) fn socket_options(config: &DriverConfig, channel: &UdpChannel) -> SocketOptions {
    SocketOptions {
        send_buffer_length: given(channel.socket_sndbuf_length, config.socket_send_buffer_length),
        receive_buffer_length: given(channel.socket_rcvbuf_length, config.socket_receive_buffer_length),
        ..SocketOptions::default()
    }
}

/// The channel's own length if it gives one, else the setting's; none leaves it to the system.
fn given(channel: Option<usize>, setting: usize) -> Option<usize> {
    Some(channel.filter(|length| *length != 0).unwrap_or(setting)).filter(|length| *length != 0)
}

/// True for `host:port` where the host is a name whose address may change.
pub(crate) fn names_a_host(address: &str) -> bool {
    address.parse::<SocketAddr>().is_err()
}

/// What may be relied on of a socket buffer: Linux grants twice what is asked for, for its own book-keeping, and
/// less when the system's limit is lower.
pub(crate) fn usable_length(asked: Option<usize>, granted: usize) -> usize {
    asked.map_or(granted, |asked| asked.min(granted))
}

pub(crate) fn open_error(fault: &str, channel: &UdpChannel) -> CommandError {
    CommandError::generic(format!("channel error - {fault}: {}", channel.uri))
}

/// The counters of a channel whose socket is open, all or none.
pub(crate) fn channel_counters(
    cx: &mut Context,
    labels: &Labels,
    registration_id: i64,
    channel: &UdpChannel,
    socket: &OpenSocket,
) -> Result<EndpointCounters, CommandError> {
    let address = socket.local.to_string();
    let mut allocated = Vec::new();
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
        local_address.set_release(ChannelState::Active.status());
        status.set_release(ChannelState::Active.status());
        Ok(EndpointCounters {
            status,
            local_address,
            offload,
        })
    };
    let made = made(&mut cx.counters, &mut allocated);
    if made.is_err() {
        cx.counters.free_all(&allocated);
    }
    made
}
