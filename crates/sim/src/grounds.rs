//! What all nodes of a world stand on.

use std::sync::atomic::AtomicUsize;

use crate::network::Network;
use crate::time::WorldTime;

/// What the world shares with its nodes.
pub(crate) struct Grounds {
    pub(crate) seed: u64,
    pub(crate) time: WorldTime,
    pub(crate) network: Network,
    /// Messages that fit in each queue between the agents of a driver that starts.
    pub(crate) queue_capacity: AtomicUsize,
}
