//! How a command that takes several steps goes on.
//!
//! A step returns what it must wait for together with the step that follows, so that the two always fit.
//! [`super::progress`] waits.

use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::{ChannelRole, ChannelUri, UdpChannel};

use crate::conductor::origin::Origin;
use crate::conductor::rooms::Rooms;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::resource_tasks::CreateLog;

/// What a command that waits for a name would add, for the command that takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adds {
    Publication,
    Subscription,
    Destination,
}

/// A channel whose names must be known.
pub(crate) struct AddressesWanted {
    pub(crate) uri: ChannelUri,
    pub(crate) role: ChannelRole,
    pub(crate) adds: Adds,
}

/// What comes after a step that did not fail.
pub(crate) enum Next {
    /// Nothing: the command was answered.
    Done,
    /// The names of a channel are looked up.
    Addresses(AddressesWanted, Box<dyn Step<UdpChannel>>),
    /// A log is created.
    Log(CreateLog, Box<dyn Step<LogBuffers>>),
    /// The receiver closes a socket; then the command is answered.
    PathClosed { endpoint: EndpointId, path: usize },
}

/// A step of a command that waited for an `Awaited`.
pub(crate) trait Step<Awaited>: Send {
    /// Goes on. An error answers the command; a log that was awaited is freed then.
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        awaited: Awaited,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError>;
}
