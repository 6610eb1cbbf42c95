//! What a channel gets when it does not say.

use super::flow_control::FlowControlParam;

/// Whether receivers of a stream treat each other as a group when they report loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupConsideration {
    /// As the sender's SETUP and the kind of channel say.
    #[default]
    Infer,
    /// Always.
    ForceTrue,
    /// Never.
    ForceFalse,
}

impl GroupConsideration {
    /// Reads `true` and `infer`; anything else is no.
    pub fn parse(text: &str) -> Self {
        match text {
            "true" => Self::ForceTrue,
            "infer" => Self::Infer,
            _ => Self::ForceFalse,
        }
    }

    /// The answer, for a stream whose channel and SETUP say `inferred`.
    pub fn is_group(self, inferred: bool) -> bool {
        match self {
            Self::Infer => inferred,
            Self::ForceTrue => true,
            Self::ForceFalse => false,
        }
    }
}

/// A driver's settings for what channels leave out. [`Default`] is the protocol's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelDefaults {
    /// `aeron.mtu.length`
    pub mtu_length: usize,
    /// `aeron.ipc.mtu.length`
    pub ipc_mtu_length: usize,
    /// `aeron.term.buffer.length`
    pub term_length: usize,
    /// `aeron.ipc.term.buffer.length`
    pub ipc_term_length: usize,
    /// `aeron.publication.term.window.length`; 0 is half the term.
    pub publication_window_length: usize,
    /// `aeron.ipc.publication.term.window.length`; 0 is half the term.
    pub ipc_publication_window_length: usize,
    /// `aeron.publication.linger.timeout`
    pub linger_timeout_ns: i64,
    /// `aeron.term.buffer.sparse.file`
    pub is_sparse: bool,
    /// `aeron.max.resend`
    pub max_resend: usize,
    /// Flow control of groups: `aeron.multicast.FlowControl.supplier`, `aeron.multicast.flow.control.rrwm` and
    /// `aeron.flow.control.*`
    pub flow_control: FlowControlParam,
    /// `aeron.untethered.window.limit.timeout`
    pub untethered_window_limit_timeout_ns: i64,
    /// `aeron.untethered.linger.timeout`; none follows the window limit timeout.
    pub untethered_linger_timeout_ns: Option<i64>,
    /// `aeron.untethered.resting.timeout`
    pub untethered_resting_timeout_ns: i64,
    /// `aeron.spies.simulate.connection`
    pub spies_simulate_connection: bool,
    /// `aeron.reliable.stream`
    pub is_reliable: bool,
    /// `aeron.tether.subscriptions`
    pub is_tethered: bool,
    /// `aeron.rejoin.stream`
    pub is_rejoin: bool,
    /// `aeron.receiver.group.consideration`
    pub group: GroupConsideration,
    /// `aeron.rcv.initial.window.length`
    pub receiver_window_length: i32,
    /// For senders on the receiver's host, where that is more.
    pub local_window_length: usize,
    /// `aeron.socket.so_sndbuf`; 0 leaves it to the system.
    pub socket_sndbuf_length: usize,
    /// `aeron.socket.so_rcvbuf`; 0 leaves it to the system.
    pub socket_rcvbuf_length: usize,
}

impl Default for ChannelDefaults {
    fn default() -> Self {
        const SECOND_NS: i64 = 1_000_000_000;
        Self {
            mtu_length: 1408,
            ipc_mtu_length: 1408,
            term_length: 16 * 1024 * 1024,
            ipc_term_length: 64 * 1024 * 1024,
            publication_window_length: 0,
            ipc_publication_window_length: 0,
            linger_timeout_ns: 5 * SECOND_NS,
            is_sparse: true,
            max_resend: 16,
            flow_control: FlowControlParam::default(),
            untethered_window_limit_timeout_ns: 5 * SECOND_NS,
            untethered_linger_timeout_ns: None,
            untethered_resting_timeout_ns: 10 * SECOND_NS,
            spies_simulate_connection: false,
            is_reliable: true,
            is_tethered: true,
            is_rejoin: true,
            group: GroupConsideration::Infer,
            receiver_window_length: 128 * 1024,
            local_window_length: 0,
            socket_sndbuf_length: 0,
            socket_rcvbuf_length: 128 * 1024,
        }
    }
}
