//! Resolves names to addresses: from the driver's knowledge, from other drivers, and from name servers.

mod following;
mod gossip;
mod known;
mod lookups;
mod requests;
mod source;
mod table;

pub(crate) use following::Following;
pub(crate) use gossip::{Bootstrap, Gossip, GossipCounters, GossipParts, HELD_BACK, Identity, Intervals};
pub(crate) use known::by_itself;
pub use lookups::{LookedUp, Lookups};
pub(crate) use lookups::{LookupThreads, SystemLookup};
pub(crate) use requests::{LookupTracker, NameRequests};
pub(crate) use source::NameSource;
pub(crate) use table::{NameTable, ROWS_MAX, Row, TABLE_ROW};
