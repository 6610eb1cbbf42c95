//! The services and the rooms of the conductor. Each room owns its tables, and a function takes only the rooms that it
//! needs; only commands, which connect rooms, take all.

use super::channels::Channels;
use super::clients::Clients;
use super::context::Context;
use super::images::Images;
use super::publications::Publications;
use super::subscriptions::Subscriptions;

/// All of them.
pub(crate) struct Rooms {
    /// The services.
    pub(crate) cx: Context,
    pub(crate) clients: Clients,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) publications: Publications,
    pub(crate) images: Images,
    pub(crate) channels: Channels,
}
