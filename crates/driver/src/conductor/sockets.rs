//! How the conductor opens sockets: a seam, so that tests need no network.

use std::io;
use std::net::SocketAddr;

use headrace_sys::net::{SocketOptions, UdpSocket};

use crate::transport::Transport;

/// A socket ready for its agent, and what the system made of the request.
pub(crate) struct OpenSocket {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) local: SocketAddr,
    pub(crate) send_buffer_length: usize,
    pub(crate) receive_buffer_length: usize,
}

/// Opens sockets.
pub(crate) trait SocketFactory: Send {
    /// A socket bound to `local` and, for sending, connected to `remote`.
    fn open(
        &self,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        options: &SocketOptions,
    ) -> io::Result<OpenSocket>;
}

/// The operating system's sockets.
pub(crate) struct SystemSockets;

impl SocketFactory for SystemSockets {
    fn open(
        &self,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        options: &SocketOptions,
    ) -> io::Result<OpenSocket> {
        let socket = UdpSocket::bind(local, options)?;
        if let Some(remote) = remote {
            socket.connect(remote)?;
        }
        Ok(OpenSocket {
            local: socket.local_addr()?,
            send_buffer_length: socket.send_buffer_length()?,
            receive_buffer_length: socket.receive_buffer_length()?,
            transport: Box::new(socket),
        })
    }
}

/// What the operating system gives a socket by default and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemBuffers {
    pub(crate) default_send_length: usize,
    pub(crate) default_receive_length: usize,
    pub(crate) max_send_length: usize,
    pub(crate) max_receive_length: usize,
}

impl SystemBuffers {
    /// Asks the system.
    pub(crate) fn probe() -> io::Result<Self> {
        let (default_send_length, default_receive_length) = headrace_sys::net::os_default_buffer_lengths()?;
        let (max_send_length, max_receive_length) = headrace_sys::net::os_max_buffer_lengths()?;
        Ok(Self {
            default_send_length,
            default_receive_length,
            max_send_length,
            max_receive_length,
        })
    }
}
