//! Channels: the text that says where a stream goes, and everything read out of it.
//!
//! A [`ChannelUri`] is the text taken apart. [`PublicationParams`] and [`SubscriptionParams`] are its typed
//! parameters with the driver's defaults filled in, and [`UdpChannel`] its addresses. What this version does
//! not do is refused by name; nothing is ignored that would change what a user gets.

pub mod builder;
pub mod destination;
pub mod doubts;
pub mod keys;
pub mod params;
pub mod udp;
pub mod units;
mod unsupported;
pub mod uri;

pub use builder::ChannelUriBuilder;
pub use doubts::doubts;
pub use params::defaults::{ChannelDefaults, GroupConsideration};
pub use params::flow_control::{FlowControlParam, FlowControlStrategy};
pub use params::publication::{PublicationParams, SessionIdParam};
pub use params::response::ResponseCorrelation;
pub use params::sharing::ExistingPublication;
pub use params::subscription::{CongestionControlKind, SubscriptionParams};
pub use params::timestamps::{ReceiveTimestamps, TimestampOffset, check_send_timestamp};
pub use params::{InitialPosition, Tags};
pub use udp::environment::{Interface, ResolveError, Resolver, UdpEnvironment};
pub use udp::group::MulticastGroup;
pub use udp::role::ChannelRole;
pub use udp::{UdpChannel, UdpChannelKind, local_address};
pub use uri::{ChannelUri, Media};

use crate::ErrorCode;

/// Longest channel text, in bytes.
pub const CHANNEL_LENGTH_MAX: usize = 4095;

/// A channel that cannot be used: the code and the text of the driver's reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .code.describe(.message))]
pub struct ChannelError {
    /// Code of the reply.
    pub code: ErrorCode,
    /// What is wrong, with names and values, without the code's standard text.
    pub message: String,
}

impl ChannelError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The error with the channel it is about, unless its text has that already.
    pub(crate) fn in_channel(mut self, uri: &ChannelUri) -> Self {
        let channel = uri.to_string();
        if !self.message.contains(&channel) {
            self.message = format!("{}, channel={channel}", self.message);
        }
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidChannel, message)
    }

    pub(crate) fn generic(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::GenericError, message)
    }
}
