//! The end of a channel.

/// Which end of a channel is being set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelRole {
    /// Sends data.
    Publication,
    /// Receives data.
    Subscription,
    /// Is one of several that a publication sends to.
    SendDestination,
    /// Is one of several that a subscription receives through.
    ReceiveDestination,
}
