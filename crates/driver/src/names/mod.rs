//! Names to addresses: what the driver knows itself, what other drivers told it, and what name servers answer.

mod gossip;
mod lookups;
mod requests;
mod source;
mod table;

pub(crate) use gossip::{Bootstrap, Gossip, GossipCounters, GossipParts, HELD_BACK, Identity, Intervals};
pub use lookups::{LookedUp, Lookups};
pub(crate) use lookups::{LookupThreads, SystemLookup};
pub(crate) use requests::{LookupTracker, NameRequests};
pub(crate) use source::{NameSource, by_itself, host_and_port};
pub(crate) use table::{NameTable, ROWS_MAX, Row, TABLE_ROW};
