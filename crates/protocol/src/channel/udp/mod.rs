//! The addresses of a UDP channel.

mod checks;
pub mod environment;
pub mod group;
mod host_port;
mod interface;
pub mod role;

use std::net::SocketAddr;

use environment::UdpEnvironment;
use group::MulticastGroup;
use host_port::{HostPort, Port};
use role::ChannelRole;

use super::params::{Tags, size_i32};
use super::{ChannelError, ChannelUri, Media, keys};
use crate::ErrorCode;

/// How a channel reaches the far side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UdpChannelKind {
    /// One address sends to one address.
    Unicast,
    /// As unicast, from an explicit control address.
    Control,
    /// One address sends to a group, whose members send feedback to another.
    Multicast(MulticastGroup),
    /// A publication sends to each receiver whose status messages come to its control address.
    Dynamic,
    /// A publication sends to what its clients add, and a subscription receives through it.
    Manual,
    /// A publication of responses sends each stream to the one that asked for it, and a subscription asks at the
    /// control address.
    Response,
}

impl UdpChannelKind {
    /// Several receivers may take one stream of such a channel.
    pub fn has_group_semantics(self) -> bool {
        matches!(self, Self::Multicast(_)) || self.has_destinations()
    }

    /// Such a channel has a list of destinations.
    pub fn has_destinations(self) -> bool {
        matches!(self, Self::Dynamic | Self::Manual)
    }

    /// Such a channel is to one address that it names, of a peer or of a group.
    pub fn has_peer(self) -> bool {
        matches!(self, Self::Unicast | Self::Control | Self::Multicast(_))
    }

    /// What `control-mode` says. Receivers of a dynamic publication may repeat it, and destinations what they are
    /// added to: there it means nothing.
    fn by_control_mode(uri: &ChannelUri, role: ChannelRole) -> Option<Self> {
        match (role, uri.get(keys::CONTROL_MODE)) {
            (ChannelRole::Publication, Some("dynamic")) => Some(Self::Dynamic),
            (ChannelRole::Publication | ChannelRole::Subscription, Some("manual")) => Some(Self::Manual),
            (ChannelRole::Publication | ChannelRole::Subscription, Some("response")) => Some(Self::Response),
            _ => None,
        }
    }

    /// The group, if there is one.
    pub fn group(self) -> Option<MulticastGroup> {
        match self {
            Self::Multicast(group) => Some(group),
            Self::Unicast | Self::Control | Self::Dynamic | Self::Manual | Self::Response => None,
        }
    }
}

/// A channel's addresses and the key its endpoint is shared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpChannel {
    /// The channel as text.
    pub uri: String,
    /// Channels with the same canonical form share an endpoint.
    pub canonical_form: String,
    /// How the far side is reached.
    pub kind: UdpChannelKind,
    /// What a publication binds to; of a multicast channel, the interface that the group is reached through.
    pub local: SocketAddr,
    /// What a publication sends to and a subscription binds to or joins; the wildcard address if there is no endpoint.
    pub remote: SocketAddr,
    /// The endpoint as written.
    pub endpoint: Option<String>,
    /// The control address as written.
    pub control: Option<String>,
    /// Lets channels share an endpoint by name.
    pub channel_tag: Option<i64>,
    /// Send buffer length the channel gives; 0 leaves it to the system.
    pub socket_sndbuf_length: Option<usize>,
    /// Receive buffer length the channel gives; 0 leaves it to the system.
    pub socket_rcvbuf_length: Option<usize>,
}

/// The local address that `text` means: `address[:port][/prefix]` or `{name}[:port]`, as in the parameter `interface`. But an
/// address without a prefix means itself, whether or not an interface has it.
pub fn local_address(text: &str, environment: &UdpEnvironment<'_>) -> Result<SocketAddr, ChannelError> {
    interface::of_text(text, environment)
}

impl UdpChannel {
    /// Finds the addresses of a channel.
    ///
    /// `unique_id` must differ from call to call in one driver: it keeps channels apart whose addresses do
    /// not, such as those with a port for the system to choose. A correlation id will do.
    pub fn parse(
        uri: &ChannelUri,
        role: ChannelRole,
        environment: &UdpEnvironment<'_>,
        unique_id: i64,
    ) -> Result<Self, ChannelError> {
        if uri.media() != Media::Udp {
            return Err(ChannelError::invalid(format!(
                "UdpChannel only supports UDP media: {uri}"
            )));
        }
        let channel_tag = Tags::from_uri(uri)?.channel;
        let (endpoint, control) = (uri.get(keys::ENDPOINT), uri.get(keys::CONTROL));
        check_combination(uri, role)?;
        group::ttl(uri)?;
        let remote = match endpoint {
            Some(text) => endpoint_address(uri, role, text, environment)?,
            None => SocketAddr::new(interface::wildcard(is_control_ipv6(uri)), 0),
        };
        let (kind, local) = kind_and_local(uri, role, remote, environment)?;
        let mut channel = Self {
            uri: uri.to_string(),
            canonical_form: String::new(),
            kind,
            local,
            remote,
            endpoint: endpoint.map(str::to_owned),
            control: control.map(str::to_owned),
            channel_tag,
            socket_sndbuf_length: size_i32(uri, keys::SOCKET_SNDBUF)?.map(|length| length as usize),
            socket_rcvbuf_length: size_i32(uri, keys::SOCKET_RCVBUF)?.map(|length| length as usize),
        };
        channel.canonical_form = channel.form_canonical(role, unique_id);
        Ok(channel)
    }

    /// Addresses given by the channel stay as written, so that two names of one host are two channels.
    ///
    /// A destination has a socket of its own, so equal ones need not be told apart. A subscription that receives through
    /// destinations has no address by which it could be shared.
    fn form_canonical(&self, role: ChannelRole, unique_id: i64) -> String {
        if self.kind.group().is_some() {
            return format!("UDP-{}-{}", self.local, self.remote);
        }
        let local = self.control.clone().unwrap_or_else(|| self.local.to_string());
        let remote = self.endpoint.clone().unwrap_or_else(|| self.remote.to_string());
        let has_wildcard_port = (self.endpoint.is_some() && self.remote.port() == 0)
            || (self.control.is_some() && self.local.port() == 0);
        let has_addresses = match role {
            ChannelRole::SendDestination | ChannelRole::ReceiveDestination => true,
            ChannelRole::Subscription if self.kind == UdpChannelKind::Manual => false,
            ChannelRole::Publication | ChannelRole::Subscription => !self.is_wildcard() && !has_wildcard_port,
        };
        let suffix = match self.channel_tag {
            _ if has_addresses => String::new(),
            Some(tag) => format!("#{tag}"),
            None => format!("-{unique_id}"),
        };
        format!("UDP-{local}-{remote}{suffix}")
    }

    /// Takes over what a socket of the channel needs that `parent` says and a destination may not.
    pub fn take_buffers_of(&mut self, parent: &Self) {
        self.socket_sndbuf_length = parent.socket_sndbuf_length;
        self.socket_rcvbuf_length = parent.socket_rcvbuf_length;
    }

    /// True if neither address is given, so that only a tag says what the channel means.
    pub fn is_wildcard(&self) -> bool {
        self.endpoint.is_none() && self.control.is_none()
    }
}

/// Fails if the channel does not say where to send to or to listen on.
fn check_combination(uri: &ChannelUri, role: ChannelRole) -> Result<(), ChannelError> {
    let mode = UdpChannelKind::by_control_mode(uri, role);
    match (uri.contains(keys::ENDPOINT), uri.contains(keys::CONTROL)) {
        (_, false) if mode == Some(UdpChannelKind::Dynamic) => Err(ChannelError::invalid(format!(
            "explicit control expected with dynamic control mode: {uri}"
        ))),
        (false, false) if role == ChannelRole::ReceiveDestination => Err(ChannelError::invalid(format!(
            "a destination of a subscription must specify endpoint or control: {uri}"
        ))),
        (false, false) if !uri.contains(keys::TAGS) && mode.is_none() => Err(ChannelError::invalid(format!(
            "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response: {uri}"
        ))),
        (false, true) if role == ChannelRole::Publication && mode.is_none() => {
            Err(ChannelError::generic(format!(
                "'control' parameter requires that either 'endpoint' or 'control-mode' is specified, channel={uri}"
            )))
        }
        _ => Ok(()),
    }
}

/// The shape of a channel, and its address on this host. A group has no use for a control address of the channel: its
/// own follows from its data address.
fn kind_and_local(
    uri: &ChannelUri,
    role: ChannelRole,
    remote: SocketAddr,
    environment: &UdpEnvironment<'_>,
) -> Result<(UdpChannelKind, SocketAddr), ChannelError> {
    let mode = UdpChannelKind::by_control_mode(uri, role);
    if remote.ip().is_multicast() && mode.is_none() {
        let (group, local) = group::parse(uri, remote, environment)?;
        return Ok((UdpChannelKind::Multicast(group), local));
    }
    if remote.ip().is_multicast() && mode == Some(UdpChannelKind::Response) {
        return Err(ChannelError::invalid(format!(
            "a stream of responses has one receiver, so with control-mode=response the endpoint must not be a \
             multicast group: {uri}"
        )));
    }
    let interface_address = interface::select(uri, remote.ip(), environment)?;
    let Some(control) = uri.get(keys::CONTROL) else {
        return Ok((mode.unwrap_or(UdpChannelKind::Unicast), interface_address));
    };
    let control_address = address(uri, keys::CONTROL, control, environment)?;
    let is_receiver = matches!(role, ChannelRole::Subscription | ChannelRole::ReceiveDestination);
    if is_receiver && control_address.port() == 0 {
        return Err(ChannelError::generic(format!(
            "control has port=0 for subscription: {uri}"
        )));
    }
    Ok((mode.unwrap_or(UdpChannelKind::Control), control_address))
}

/// Which family an address has that the channel leaves open.
fn is_control_ipv6(uri: &ChannelUri) -> bool {
    uri.get(keys::CONTROL)
        .is_some_and(|control| control.starts_with('['))
}

fn endpoint_address(
    uri: &ChannelUri,
    role: ChannelRole,
    text: &str,
    environment: &UdpEnvironment<'_>,
) -> Result<SocketAddr, ChannelError> {
    let remote = match address(uri, keys::ENDPOINT, text, environment) {
        // It is sent to once its name has an address.
        Err(error) if role == ChannelRole::SendDestination && error.code == ErrorCode::UnknownHost => {
            SocketAddr::new(interface::wildcard(false), 0)
        }
        found => found?,
    };
    let is_sent_to = role == ChannelRole::Publication && UdpChannelKind::by_control_mode(uri, role).is_none();
    if is_sent_to && remote.port() == 0 {
        return Err(ChannelError::generic(format!(
            "endpoint has port=0 for publication: {uri}"
        )));
    }
    Ok(remote)
}

/// Looks up the address a parameter gives, `host:port`. Also used to look a name up again later.
pub fn address(
    uri: &ChannelUri,
    key: &str,
    text: &str,
    environment: &UdpEnvironment<'_>,
) -> Result<SocketAddr, ChannelError> {
    let host_port = HostPort::parse(text, Port::Required).map_err(|fault| {
        let advice = if text.contains('?') {
            "only the first parameter follows a '?', each other one a '|'"
        } else {
            "an address is a host and the number of a port, such as localhost:40123 or [::1]:40123"
        };
        ChannelError::invalid(format!("{fault}: {key}={text}, channel={uri}; {advice}"))
    })?;
    host_port.resolve(key, text, environment.resolver)
}
