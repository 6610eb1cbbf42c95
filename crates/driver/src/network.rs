//! A driver's view of the network: opens sockets, and knows what they can be bound to.

use std::io;
use std::net::SocketAddr;

use headrace_buffers::log::frame::FRAME_ALIGNMENT;
use headrace_protocol::channel::Interface;
use headrace_sys::net::{SocketOptions, UdpSocket};

use crate::transport::Transport;

/// Opens sockets and knows what they can be bound to.
pub trait Network: Send + Sync {
    /// A socket as the request says.
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket>;

    /// What sockets get without asking and at most.
    fn buffer_lengths(&self) -> io::Result<BufferLengths>;

    /// Every address of every interface.
    fn interfaces(&self) -> io::Result<Vec<Interface>>;

    /// How long packets to an address may be, headers included, if the network knows.
    fn path_mtu(&self, _to: SocketAddr) -> Option<usize> {
        None
    }
}

/// Which mtu a channel should have, where the network knows that it takes none of this length to an address.
pub(crate) fn advise_mtu(network: &dyn Network, to: SocketAddr, mtu: usize) -> Option<String> {
    let headers = if to.is_ipv4() { 28 } else { 48 }; // of IP and UDP
    let path_mtu = network.path_mtu(to)?;
    let fits = path_mtu.saturating_sub(headers) & !(FRAME_ALIGNMENT - 1);
    (fits < mtu).then(|| {
        format!(
            "the kernel's path MTU to {} is {path_mtu} bytes: use mtu={fits}",
            to.ip()
        )
    })
}

/// A socket that a driver asks for.
#[derive(Clone, Debug)]
pub struct SocketRequest {
    /// What to bind to; port 0 leaves the port to the network.
    pub local: SocketAddr,
    /// The only peer of a socket, if there is one. The socket is connected to it, if there is a route by now.
    pub remote: Option<SocketAddr>,
    /// Buffers, modes, and the group it receives from or sends to.
    pub options: SocketOptions,
}

/// A socket ready for its agent, and its actual properties.
pub struct OpenSocket {
    /// The socket itself.
    pub transport: Box<dyn Transport>,
    /// Where it is bound.
    pub local: SocketAddr,
    /// It has a peer.
    pub is_connected: bool,
    /// Length of its send buffer in bytes.
    pub send_buffer_length: usize,
    /// Length of its receive buffer in bytes.
    pub receive_buffer_length: usize,
    /// Time to live of what it sends to groups, if one was asked for; else 0.
    pub group_ttl: u8,
    /// Received datagrams have their time of arrival.
    pub stamps_arrivals: bool,
}

/// Lengths of socket buffers in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLengths {
    /// Default length to send.
    pub default_send_length: usize,
    /// Default length to receive.
    pub default_receive_length: usize,
    /// Greatest length to send.
    pub max_send_length: usize,
    /// Greatest length to receive.
    pub max_receive_length: usize,
}

/// The operating system's sockets and interfaces.
pub(crate) struct SystemNetwork;

impl Network for SystemNetwork {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let socket = UdpSocket::bind(request.local, &request.options)?;
        let is_connected = request
            .remote
            .map_or(Ok(false), |remote| connect(&socket, remote))?;
        Ok(OpenSocket {
            is_connected,
            local: socket.local_addr()?,
            send_buffer_length: socket.send_buffer_length()?,
            receive_buffer_length: socket.receive_buffer_length()?,
            group_ttl: socket.group_ttl(),
            stamps_arrivals: socket.stamps_arrivals(),
            transport: Box::new(socket),
        })
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        let (default_send_length, default_receive_length) = headrace_sys::net::os_default_buffer_lengths()?;
        let (max_send_length, max_receive_length) = headrace_sys::net::os_max_buffer_lengths()?;
        Ok(BufferLengths {
            default_send_length,
            default_receive_length,
            max_send_length,
            max_receive_length,
        })
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        let listed = headrace_sys::net::interfaces()?;
        Ok(listed
            .into_iter()
            .map(|interface| Interface {
                index: interface.index,
                name: interface.name,
                address: interface.address,
                prefix_length: interface.prefix_length,
                is_up: interface.is_up,
                is_loopback: interface.is_loopback,
                is_multicast: interface.is_multicast,
            })
            .collect())
    }

    fn path_mtu(&self, to: SocketAddr) -> Option<usize> {
        headrace_sys::net::path_mtu(to).ok()
    }
}

/// False while no way leads to the peer: a machine's network may come up after its programs.
fn connect(socket: &UdpSocket, remote: SocketAddr) -> io::Result<bool> {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkDown, NetworkUnreachable};
    let Err(error) = socket.connect(remote) else {
        return Ok(true);
    };
    match error.kind() {
        // The third: there is a way, and no address of this host of the peer's family yet.
        NetworkUnreachable | HostUnreachable | AddrNotAvailable | NetworkDown => Ok(false),
        kind => Err(io::Error::new(kind, format!("no way to {remote}: {error}"))),
    }
}
