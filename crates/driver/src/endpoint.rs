//! The conductor's description of a channel whose socket it has opened. The sender or the receiver builds its endpoint
//! from this, so that neither side knows how the other stores a channel.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headrace_buffers::counters::Counter;
use headrace_protocol::channel::{ReceiveTimestamps, TimestampOffset};

use crate::transport::Transport;

/// How long a path counts as live that brings nothing.
const LIVE_NS: i64 = 5_000_000_000;

/// Names a send or receive endpoint within one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EndpointId(pub i64);

/// Where a send channel sends to. The counters show how many destinations there are.
#[derive(Clone, Debug)]
pub(crate) enum SendDestinations {
    /// To one peer, which the socket is connected to.
    Connected,
    /// To one peer, whose address goes with each send.
    Peer(SocketAddr),
    /// The same, until a way leads there and the socket can be connected.
    Unreached(SocketAddr),
    /// To receivers, who say where they are.
    Dynamic(Counter),
    /// To what clients add.
    Manual(Counter),
    /// Each stream to the receiver that asked for it.
    Response,
}

/// A destination that a client adds to a send channel.
pub(crate) struct AddedDestination {
    /// Id of the command that adds it.
    pub registration_id: i64,
    /// `host:port` as the client wrote it.
    pub name: String,
    /// None while the name has no address.
    pub address: Option<SocketAddr>,
    /// The sockets of a multicast group; other destinations are sent to through the channel's own.
    pub group: Option<GroupSockets>,
}

/// The sockets of a multicast group that is one of several destinations: interface and time to live belong to a socket.
pub(crate) struct GroupSockets {
    /// The open socket that sends to the group.
    pub transport: Box<dyn Transport>,
    /// The open socket that receives feedback. Nothing is sent through it.
    pub feedback: Box<dyn Transport>,
    /// An address of the interface that the group is reached through.
    pub interface: IpAddr,
}

/// A destination of a channel as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownDestination {
    /// Of the command that added it; none for a receiver that said where it is.
    pub registration_id: Option<i64>,
    /// Of a send channel `host:port` as the client wrote it, empty for a receiver that said where it is; of a receive
    /// channel the destination's channel.
    pub name: String,
    /// None while the name has no address, and for what is published on this host.
    pub address: Option<SocketAddr>,
}

/// What becomes of the destinations that clients added to a channel.
pub(crate) enum DestinationChange {
    /// There is one more.
    Add(AddedDestination),
    /// One that was added with this name goes, or else one that has this address.
    Remove {
        /// `host:port` as the client wrote it.
        name: String,
        /// Where the name leads now.
        address: SocketAddr,
        /// Of a group, the interface that the client names; none for any.
        interface: Option<IpAddr>,
    },
    /// The one goes that the command with this id added.
    RemoveById(i64),
    /// Those with this name are at another address.
    Move {
        /// `host:port` as the client wrote it.
        name: String,
        /// Where to send from now on.
        address: SocketAddr,
    },
}

/// A channel to send through.
pub(crate) struct SendEndpointSpec {
    /// Identifies the channel.
    pub id: EndpointId,
    /// The open socket, connected to `remote` if [`Self::destinations`] says so.
    pub transport: Box<dyn Transport>,
    /// Where it sends to.
    pub destinations: SendDestinations,
    /// Where data goes; for error texts.
    pub remote: SocketAddr,
    /// A multicast group needs a second socket, which receives the feedback of its receivers.
    pub group: Option<SendGroup>,
    /// The channel names a host that may move to another address.
    pub is_re_resolvable: bool,
    /// Where the time of sending is written into messages.
    pub timestamp: Option<TimestampOffset>,
    /// Publishes how datagrams leave, an [`OffloadMode`](headrace_sys::net::OffloadMode) as a number.
    pub offload_mode: Option<Counter>,
}

/// What a channel has that sends to a multicast group.
pub(crate) struct SendGroup {
    /// The open socket that receives feedback. Nothing is sent through it.
    pub feedback: Box<dyn Transport>,
    /// Time to live of the data, for receivers to compare with theirs; 0 if none was asked for.
    pub ttl: u8,
}

/// Where the sender of a channel listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlAddress {
    /// Its address.
    pub address: SocketAddr,
    /// `host:port` as in the channel, if the host is a name that may move to another address.
    pub name: Option<String>,
}

/// A channel to receive through.
pub(crate) struct ReceiveEndpointSpec {
    /// Identifies the channel.
    pub id: EndpointId,
    /// Its only path; none for a channel whose paths clients add and remove.
    pub path: Option<ReceivePathSpec>,
    /// Identifies this receiver to senders.
    pub receiver_id: i64,
    /// Group that status messages and error frames claim.
    pub group_tag: Option<i64>,
    /// Where the times of receiving are written into messages.
    pub timestamps: ReceiveTimestamps,
}

/// One of the sockets that a channel receives through. Its number among them is its path.
pub(crate) struct ReceivePathSpec {
    /// The open, bound socket.
    pub transport: Box<dyn Transport>,
    /// The address to which this receiver reports.
    pub control: Option<ControlAddress>,
    /// The address for feedback, if the socket is in a multicast group; without it, feedback goes to the source of a
    /// stream.
    pub group: Option<ReceiveGroup>,
    /// Publishes how datagrams arrive, an [`OffloadMode`](headrace_sys::net::OffloadMode) as a number.
    pub offload_mode: Option<Counter>,
    /// When something last arrived. The receiver writes it, for the conductor to show.
    pub heard: Arc<LastHeard>,
}

/// When a path was last heard. One agent writes and another looks now and then: nothing else hangs on it.
#[derive(Debug)]
pub(crate) struct LastHeard(AtomicI64);

impl Default for LastHeard {
    /// Not yet.
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl LastHeard {
    /// Something arrived.
    pub(crate) fn set(&self, now_ns: i64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// True if that was in the last 5 s, as a path is live for an image.
    pub(crate) fn is_live(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.0.load(Ordering::Relaxed)) <= LIVE_NS
    }
}

/// The path of a channel that has just one.
pub(crate) const ONLY_PATH: usize = 0;

/// What a channel has that receives from a multicast group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveGroup {
    /// Where status messages, NAKs and error frames go.
    pub control: SocketAddr,
    /// Time to live of those; 0 if none was asked for.
    pub ttl: u8,
}
