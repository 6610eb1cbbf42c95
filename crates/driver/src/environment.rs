//! The outside world of a driver: time, the network, names and chance.
//!
//! A driver accesses these only here, so that a test can supply a simulated world.

// The environment of a real driver asks the machine for time and chance: a simulated one hands in others.
#![allow(clippy::disallowed_methods)]

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

/// The environment of a driver.
pub struct Environment {
    /// Time of all agents.
    pub clock: Arc<dyn Clock>,
    /// Where sockets are opened.
    pub network: Arc<dyn Network>,
    /// Knows the free space for files.
    pub disk: Arc<dyn Disk>,
    /// Knows the number of processors.
    pub machine: Arc<dyn Machine>,
    /// Looks up the names of hosts.
    pub lookups: Box<dyn Lookups>,
    /// Messages that fit in each queue between the agents.
    pub queue_capacity: usize,
    /// Source of session ids, initial term ids and receiver ids, and of the delays before a loss is reported.
    pub random: fastrand::Rng,
    /// Called with each change of state, besides the event log.
    pub events: Option<Arc<dyn EventListener>>,
}

impl Environment {
    /// The real machine: its clocks, its sockets, its resolver, and unpredictable random numbers.
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
