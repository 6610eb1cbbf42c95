//! The network as a driver sees it: where sockets are opened, and what they can be bound to.

use std::io;
use std::net::SocketAddr;

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
}

/// A socket that a driver asks for.
#[derive(Clone, Debug)]
pub struct SocketRequest {
    /// What to bind to; port 0 leaves the port to the network.
    pub local: SocketAddr,
    /// The peer that is sent to, for a socket that has just one.
    pub remote: Option<SocketAddr>,
    /// Buffers, modes, and the group it receives from or sends to.
    pub options: SocketOptions,
}

/// A socket ready for its agent, and what the network made of the request.
pub struct OpenSocket {
    /// The socket itself.
    pub transport: Box<dyn Transport>,
    /// Where it is bound.
    pub local: SocketAddr,
    /// Length of its send buffer in bytes.
    pub send_buffer_length: usize,
    /// Length of its receive buffer in bytes.
    pub receive_buffer_length: usize,
    /// Time to live of what it sends to groups, if one was asked for; else 0.
    pub group_ttl: u8,
    /// What it receives comes with the time of arrival.
    pub stamps_arrivals: bool,
}

/// Lengths of socket buffers in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLengths {
    /// To send, without asking.
    pub default_send_length: usize,
    /// To receive, without asking.
    pub default_receive_length: usize,
    /// To send, at most.
    pub max_send_length: usize,
    /// To receive, at most.
    pub max_receive_length: usize,
}

/// The operating system's sockets and interfaces.
pub(crate) struct SystemNetwork;

impl Network for SystemNetwork {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let socket = UdpSocket::bind(request.local, &request.options)?;
        if let Some(remote) = request.remote {
            socket
                .connect(remote)
                .map_err(|error| io::Error::new(error.kind(), format!("no way to {remote}: {error}")))?;
        }
        Ok(OpenSocket {
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
}
