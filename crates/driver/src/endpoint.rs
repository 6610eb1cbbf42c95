//! What the conductor says of a channel whose socket it has opened. The sender or the receiver builds its endpoint
//! from this, so that neither side knows how the other keeps a channel.

use std::net::SocketAddr;

use headrace_buffers::counters::Counter;

use crate::transport::Transport;

/// Names a send or receive endpoint within one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub i64);

/// A channel to send through.
pub struct SendEndpointSpec {
    /// Names the channel.
    pub id: EndpointId,
    /// The open socket, connected to `remote`.
    pub transport: Box<dyn Transport>,
    /// Where data goes; for error texts.
    pub remote: SocketAddr,
    /// The channel names a host that may move to another address.
    pub is_re_resolvable: bool,
    /// Publishes how datagrams leave, an [`OffloadMode`](headrace_sys::net::OffloadMode) as a number.
    pub offload_mode: Option<Counter>,
}

/// A channel to receive through.
pub struct ReceiveEndpointSpec {
    /// Names the channel.
    pub id: EndpointId,
    /// The open, bound socket.
    pub transport: Box<dyn Transport>,
    /// Names this receiver to senders.
    pub receiver_id: i64,
    /// Group that status messages and error frames claim.
    pub group_tag: Option<i64>,
    /// Publishes how datagrams arrive, an [`OffloadMode`](headrace_sys::net::OffloadMode) as a number.
    pub offload_mode: Option<Counter>,
}
