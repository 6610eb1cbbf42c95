//! Whole nodes under one seed: real drivers and clients on a simulated network, in virtual time, on one thread.
//!
//! [`World`] makes [`Node`]s. Each has a real driver with real files, and clients. [`World::step`] moves time and
//! gives every node a turn; everything that chance decides, the seed decides.
//!
//! ```no_run
//! use headrace_sim::World;
//!
//! let world = World::new(42, std::path::Path::new("/tmp/world"));
//! let (left, right) = (world.add_node("left")?, world.add_node("right")?);
//! let publication = left.connect()?.add_publication("aeron:udp?endpoint=right:40123", 10)?;
//! let _subscription = right.connect()?.add_subscription("aeron:udp?endpoint=right:40123", 10, Default::default())?;
//! world.run_until(5_000_000_000, "a connection", || publication.is_connected())?;
//! # Ok::<(), headrace_sim::WorldError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod disk;
mod error;
mod grounds;
mod invariants;
mod lock;
mod machine;
mod network;
mod node;
mod random;
mod time;
mod trace;
mod world;

pub use error::WorldError;
pub use invariants::Holdings;
pub use network::{Datagram, LinkSettings, Network, Tap};
pub use node::Node;
pub use time::NodeClock;
pub use world::World;
