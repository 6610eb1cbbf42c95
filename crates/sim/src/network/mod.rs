//! The network of a world: hosts by address and name, sockets by port, and a link for each pair of hosts.
//!
//! It runs on the time of the world, draws from a generator of its own, and walks only ordered tables.

mod addresses;
mod bound;
mod groups;
mod host;
mod host_network;
mod link;
mod names;
mod socket;
mod tap;
#[cfg(test)]
mod tests;
mod wire;

pub use link::LinkSettings;
pub use tap::{Datagram, Tap};
pub use wire::Network;

pub(crate) use addresses::HostId;
pub(crate) use host_network::HostNetwork;
