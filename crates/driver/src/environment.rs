//! What lies outside a driver and decides what it does: time, the network, names and chance.
//!
//! A driver asks for these here and nowhere else, so that a test can give it a world of its own making.

use std::sync::Arc;

use headrace_sys::{Clock, SystemClock};

pub use crate::disk::Disk;
use crate::disk::SystemDisk;
pub use crate::event_recorder::EventListener;
use crate::mailbox::QUEUE_CAPACITY;
pub use crate::names::{LookedUp, Lookups};
use crate::names::{LookupThreads, SystemLookup};
use crate::network::SystemNetwork;
pub use crate::network::{BufferLengths, Network, OpenSocket, SocketRequest};
pub use crate::processors::Machine;
use crate::processors::SystemMachine;

/// What a driver is launched in.
pub struct Environment {
    /// Time of all agents.
    pub clock: Arc<dyn Clock>,
    /// Where sockets are opened.
    pub network: Arc<dyn Network>,
    /// What tells how much room there is for files.
    pub disk: Arc<dyn Disk>,
    /// What tells how many processors there are.
    pub machine: Arc<dyn Machine>,
    /// Who looks up the names of hosts.
    pub lookups: Box<dyn Lookups>,
    /// Messages that fit in each queue between the agents.
    pub queue_capacity: usize,
    /// Source of session ids, initial term ids and receiver ids, and of the delays before a loss is reported.
    pub random: fastrand::Rng,
    /// Hears of each change of state besides the event log, if it is to be heard.
    pub events: Option<Arc<dyn EventListener>>,
}

impl Environment {
    /// The machine: its clocks, its sockets, its resolver, and numbers that no one can foretell.
    pub fn system() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Self {
            lookups: Box::new(LookupThreads::new(Arc::new(SystemLookup), Arc::clone(&clock))),
            clock,
            network: Arc::new(SystemNetwork),
            disk: Arc::new(SystemDisk),
            machine: Arc::new(SystemMachine),
            queue_capacity: QUEUE_CAPACITY,
            random: fastrand::Rng::new(),
            events: None,
        }
    }
}
