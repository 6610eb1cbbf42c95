//! The rooms of the conductor, each with tables of its own. A function that needs one takes that one; only commands,
//! which tie rooms together, take all.

use super::channels::Channels;
use super::clients::Clients;
use super::images::Images;
use super::publications::Publications;
use super::subscriptions::Subscriptions;

/// All of them.
pub(crate) struct Rooms {
    pub(crate) clients: Clients,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) publications: Publications,
    pub(crate) images: Images,
    pub(crate) channels: Channels,
}
