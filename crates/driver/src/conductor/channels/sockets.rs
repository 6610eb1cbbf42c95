//! Opens the socket of a channel that cannot share an open one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{MulticastGroup, UdpChannel};
use headrace_sys::net::{GroupInterface, GroupOptions, SocketOptions};

use super::endpoint::{Binding, ChannelState};
use super::ports::Ports;
use crate::conductor::context::Context;
use crate::conductor::counters::OFFLOAD_MODE;
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
    /// Ports of sockets that sender or receiver are about to close.
    leaving_ports: Vec<u16>,
}

impl Sockets {
    pub(crate) fn new(network: Arc<dyn Network>) -> Self {
        Self {
            network,
            last_endpoint_id: 0,
            leaving_ports: Vec::new(),
        }
    }

    /// Notes which ports this driver holds for no longer than its agents take to let go of them.
    pub(crate) fn note_leaving(&mut self, ports: impl Iterator<Item = u16>) {
        self.leaving_ports.clear();
        self.leaving_ports.extend(ports);
    }

    pub(crate) fn next_endpoint_id(&mut self) -> EndpointId {
        self.last_endpoint_id += 1;
        EndpointId(self.last_endpoint_id)
    }

    /// A socket of the channel. A client is asked to try again if its port is about to be free.
    pub(crate) fn open(
        &self,
        channel: &UdpChannel,
        request: &SocketRequest,
    ) -> Result<OpenSocket, CommandError> {
        let opened = self.network.open(request);
        opened.map_err(|error| self.refusal(channel, request, &error))
    }

    /// A socket of the channel, and the port that was taken for it. A request without a port gets one of the range; other
    /// programs may have some of them.
    pub(crate) fn open_with_port(
        &self,
        ports: &mut Ports,
        channel: &UdpChannel,
        mut request: SocketRequest,
    ) -> Result<(OpenSocket, u16), CommandError> {
        let asked = request.local.port();
        let mut tries = ports.choices(asked);
        loop {
            let port = ports.take(asked).map_err(|fault| open_error(&fault, channel))?;
            request.local.set_port(port);
            let error = match self.network.open(&request) {
                Ok(socket) => return Ok((socket, port)),
                Err(error) => error,
            };
            ports.release(port);
            if error.kind() != io::ErrorKind::AddrInUse || port == asked {
                return Err(self.refusal(channel, &request, &error));
            }
            tries -= 1;
            if tries == 0 {
                let fault = format!(
                    "{}: other programs hold those that this driver does not",
                    ports.none_left()
                );
                return Err(open_error(&fault, channel));
            }
        }
    }

    fn refusal(&self, channel: &UdpChannel, request: &SocketRequest, error: &io::Error) -> CommandError {
        let local = request.local;
        let refusal = open_error(&format!("failed to bind to address {local}: {error}"), channel);
        let is_leaving = self.leaving_ports.contains(&local.port());
        if error.kind() == io::ErrorKind::AddrInUse && is_leaving {
            CommandError::new(
                ErrorCode::ResourceTemporarilyUnavailable,
                format!(
                    "a channel with this port is in CLOSING state, please retry, {}",
                    refusal.detail
                ),
            )
        } else {
            refusal
        }
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

/// The channel's own length if it names one, else the setting's; none leaves it to the system.
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

/// The status of a channel. The channel is active once its sockets have their counters.
pub(crate) fn status_counter(
    cx: &mut Context,
    labels: &Labels,
    registration_id: i64,
    channel: &UdpChannel,
) -> Result<Counter, CommandError> {
    cx.counters.channel_status(
        labels.status_type_id,
        labels.status,
        registration_id,
        &channel.uri,
    )
}

/// The counters of an open socket, all or none. `port` is the one that was taken for it.
pub(crate) fn binding(
    cx: &mut Context,
    labels: &Labels,
    owner: BindingOwner<'_>,
    socket: &OpenSocket,
    port: u16,
) -> Result<Binding, CommandError> {
    let counters = &mut cx.counters;
    let (id, address) = (owner.registration_id, socket.local.to_string());
    let local_address = counters.local_address(labels.local_address, owner.status_id, id, &address)?;
    let offload = match counters.channel_status(OFFLOAD_MODE, labels.offload, id, &owner.channel.uri) {
        Ok(offload) => offload,
        Err(error) => {
            counters.free(local_address.id());
            return Err(error);
        }
    };
    local_address.set_release(ChannelState::Active.status());
    Ok(Binding {
        address: socket.local,
        port,
        local_address,
        offload,
    })
}

/// What the counters of a socket name.
#[derive(Clone, Copy)]
pub(crate) struct BindingOwner<'a> {
    pub(crate) registration_id: i64,
    /// Of the status of the channel that it is a socket of.
    pub(crate) status_id: i32,
    /// The channel that the socket was opened for: this one, or a destination of it.
    pub(crate) channel: &'a UdpChannel,
}

/// The counters of a channel with one socket, which is open: its status, which names the address, and those of the
/// socket. All or none.
pub(crate) fn channel_counters(
    cx: &mut Context,
    labels: &Labels,
    registration_id: i64,
    channel: &UdpChannel,
    socket: &OpenSocket,
    port: u16,
) -> Result<(Counter, Binding), CommandError> {
    let status = status_counter(cx, labels, registration_id, channel)?;
    cx.counters
        .append_to_label(status.id(), &format!(" {}", socket.local));
    let owner = BindingOwner {
        registration_id,
        status_id: status.id(),
        channel,
    };
    match binding(cx, labels, owner, socket, port) {
        Ok(binding) => {
            status.set_release(ChannelState::Active.status());
            Ok((status, binding))
        }
        Err(error) => {
            cx.counters.free(status.id());
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use headrace_protocol::channel::{
        ChannelRole, ChannelUri, Interface, ResolveError, Resolver, UdpEnvironment,
    };

    use super::*;
    use crate::config::PortRange;
    use crate::environment::BufferLengths;

    /// Other programs have all ports but one, which this program may not have either.
    struct Full {
        forbidden_port: u16,
    }

    impl Network for Full {
        fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
            if request.local.port() == self.forbidden_port {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            Err(io::ErrorKind::AddrInUse.into())
        }

        fn buffer_lengths(&self) -> io::Result<BufferLengths> {
            unreachable!("only asked for sockets")
        }

        fn interfaces(&self) -> io::Result<Vec<Interface>> {
            unreachable!("only asked for sockets")
        }
    }

    /// Every name is this host.
    struct ThisHost;

    impl Resolver for ThisHost {
        fn resolve(&self, _host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
            Ok((Ipv4Addr::LOCALHOST, port).into())
        }
    }

    fn channel_at(port: u16) -> (UdpChannel, SocketRequest) {
        let environment = UdpEnvironment {
            interfaces: &[],
            resolver: &ThisHost,
        };
        let uri = ChannelUri::parse(&format!("aeron:udp?endpoint=localhost:{port}")).unwrap();
        let channel = UdpChannel::parse(&uri, ChannelRole::Subscription, &environment, 1).unwrap();
        let request = SocketRequest {
            local: channel.remote,
            remote: None,
            options: SocketOptions::default(),
        };
        (channel, request)
    }

    #[test]
    fn a_port_of_the_range_that_another_program_has_is_passed_over() {
        let refusal = |port: u16, forbidden_port: u16| {
            let mut ports = Ports::new(PortRange { low: 10, high: 12 });
            assert_eq!(ports.take(11), Ok(11), "this driver has it");
            let sockets = Sockets::new(Arc::new(Full { forbidden_port }));
            let (channel, request) = channel_at(port);
            let opened = sockets.open_with_port(&mut ports, &channel, request);
            let refusal = opened.map(|_| ()).unwrap_err().detail;
            let free = std::iter::from_fn(|| ports.take(0).ok()).count();
            assert_eq!(free, 2, "none of the refused ones is kept");
            refusal
        };
        assert!(refusal(0, 12).contains("127.0.0.1:12: permission denied"));
        let none_left =
            "no available ports in range 10 12: other programs hold those that this driver does not";
        assert!(refusal(0, 99).contains(none_left));
        assert!(
            refusal(10, 12).contains("127.0.0.1:10: "),
            "one that was asked for"
        );
    }

    #[test]
    fn a_port_that_is_about_to_be_free_is_to_be_tried_again() {
        let (channel, request) = channel_at(24_325);
        let mut sockets = Sockets::new(Arc::new(Full { forbidden_port: 0 }));
        let mut refusal = |leaving: &[u16]| {
            sockets.note_leaving(leaving.iter().copied());
            sockets.open(&channel, &request).map(|_| ()).unwrap_err()
        };
        let again = refusal(&[7, 24_325]);
        assert_eq!(again.code, ErrorCode::ResourceTemporarilyUnavailable);
        assert!(again.detail.contains("CLOSING state, please retry"), "{again}");
        assert!(again.detail.contains("127.0.0.1:24325"), "{again}");
        for leaving in [&[][..], &[7]] {
            assert_eq!(refusal(leaving).code, ErrorCode::GenericError);
        }
    }
}
