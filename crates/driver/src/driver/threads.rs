//! Spreading a driver's agents over threads.

use std::sync::Arc;

use headrace_buffers::doorbell::Doorbells;
use headrace_sys::Clock;
use headrace_sys::idle::{Control, IdleStrategy};

use super::{DriverError, DriverSupervisor};
use crate::affinity::Affinity;
use crate::agent::{Agent, Composite, Unhurried};
use crate::config::{DriverConfig, IdleSetting, ThreadNaming, ThreadingMode};
use crate::runner::{AgentRunner, Invoker, Supervisor, ThreadSettings};

/// The agents of one driver, before they have threads.
pub(super) struct Agents {
    pub(super) sender: Box<dyn Agent>,
    pub(super) receiver: Box<dyn Agent>,
    pub(super) resource_agent: Box<dyn Agent>,
    pub(super) conductor: Box<dyn Agent>,
    /// Where their threads run.
    pub(super) affinity: Affinity,
}

/// A thread to be: its names, classic and new, its processor, its idling and its agent.
struct Placement<'a> {
    names: (&'static str, &'static str),
    cpu: Option<usize>,
    idle: IdleSetting<'a>,
    agent: Box<dyn Agent>,
}

impl Agents {
    pub(super) fn start(
        self,
        config: &DriverConfig,
        clock: &Arc<dyn Clock>,
        supervisor: &Arc<DriverSupervisor>,
        doorbells: &Doorbells,
        idle_control: &Control,
    ) -> Result<(Vec<AgentRunner>, Option<Invoker>), DriverError> {
        if config.threading() == ThreadingMode::Invoker {
            // What has arrived is with the program without another agent's turn.
            let housekeepers = Composite::new(vec![self.conductor, self.resource_agent]);
            let all = vec![
                self.sender,
                Box::new(Unhurried::new(Box::new(housekeepers))),
                self.receiver,
            ];
            let invoker = Invoker::new(Box::new(Composite::new(all)), Arc::clone(clock));
            return Ok((Vec::new(), Some(invoker)));
        }
        let runners: Result<Vec<_>, _> = self
            .placements(config)
            .into_iter()
            .map(|placement| {
                let idle = placement.idle.strategy(idle_control)?;
                placement.start(config.thread_naming, idle, clock, supervisor, doorbells)
            })
            .collect();
        Ok((runners?, None))
    }

    /// In the order in which threads are stopped: the conductor first, since it gives the others their work.
    fn placements(self, config: &DriverConfig) -> Vec<Placement<'_>> {
        let affinity = self.affinity;
        let resource_agent = Placement {
            names: ("aeron-md-nra", "aeron-md-nra"),
            cpu: affinity.resource_agent,
            idle: config.resource_agent_idle(),
            agent: self.resource_agent,
        };
        if config.threading() == ThreadingMode::Shared {
            let shared = Composite::new(vec![self.sender, self.receiver, self.conductor]);
            return vec![
                Placement {
                    names: ("[conductor, sender, receiver]", "aeron-md-shd"),
                    cpu: affinity.conductor,
                    idle: config.shared_idle(),
                    agent: Box::new(shared),
                },
                resource_agent,
            ];
        }
        let mut placements = vec![
            Placement {
                names: ("conductor", "aeron-md-cnd"),
                cpu: affinity.conductor,
                idle: config.conductor_idle(),
                agent: self.conductor,
            },
            resource_agent,
        ];
        if config.threading() == ThreadingMode::SharedNetwork {
            placements.push(Placement {
                names: ("[sender, receiver]", "aeron-md-net"),
                cpu: affinity.sender,
                idle: config.shared_network_idle(),
                agent: Box::new(Composite::new(vec![self.sender, self.receiver])),
            });
        } else {
            placements.push(Placement {
                names: ("sender", "aeron-md-snd"),
                cpu: affinity.sender,
                idle: config.sender_idle(),
                agent: self.sender,
            });
            placements.push(Placement {
                names: ("receiver", "aeron-md-rcv"),
                cpu: affinity.receiver,
                idle: config.receiver_idle(),
                agent: self.receiver,
            });
        }
        placements
    }
}

impl Placement<'_> {
    fn start(
        self,
        naming: ThreadNaming,
        idle: IdleStrategy,
        clock: &Arc<dyn Clock>,
        supervisor: &Arc<DriverSupervisor>,
        doorbells: &Doorbells,
    ) -> Result<AgentRunner, DriverError> {
        let name = match naming {
            ThreadNaming::Classic => self.names.0,
            ThreadNaming::New => self.names.1,
        };
        let settings = ThreadSettings {
            name: name.to_owned(),
            cpu: self.cpu,
            idle,
        };
        let supervisor: Arc<dyn Supervisor> = Arc::clone(supervisor) as _;
        AgentRunner::start(
            settings,
            self.agent,
            Arc::clone(clock),
            supervisor,
            doorbells.clone(),
        )
        .map_err(|source| DriverError::Io {
            action: "start a thread",
            source,
        })
    }
}
