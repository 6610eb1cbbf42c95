//! Starting and stopping a media driver.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::cnc::{CncError, CncFile, CncIdentity, CncLengths};
use headrace_buffers::counters::system_counter::{self, LabelFacts};
use headrace_buffers::counters::{Counter, CountersManager, NULL_COUNTER_ID, type_ids};
use headrace_buffers::error_log::DistinctErrorLog;
use headrace_buffers::loss_report::LossReport;
use headrace_buffers::ring::ManyToOneRing;
use headrace_buffers::{AtomicBuffer, BufferError};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::units::format_duration;
use headrace_sys::{Clock, SystemClock, disk};
use thiserror::Error;

use crate::agent::{Agent, Composite, DutyCycleTracker, Tracked};
use crate::conductor::{Conductor, ConductorParts, SystemBuffers, SystemCounters, SystemSockets};
use crate::config::{ConfigError, DriverConfig, IdleSetting, ThreadNaming, ThreadingMode};
use crate::directory::{self, DirectoryError};
use crate::errors::ErrorRecorder;
use crate::mailbox::{Inbox, Outbox, inbox};
use crate::proxy::{ConductorCommand, ReceiverCommand, SenderCommand};
use crate::receiver::{Receiver, ReceiverCounters, ReceiverSettings};
use crate::resource_agent::{
    ResourceAgent, ResourceCounters, ResourceOutcome, ResourceTask, StorageChecks, SystemLookup, TimedLookup,
};
use crate::runner::{AgentRunner, Invoker, Supervisor, ThreadSettings};
use crate::sender::{Sender, SenderCounters, SenderSettings};

/// Version of this driver, as text.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Commit this driver was built from.
pub const COMMIT: &str = match option_env!("HEADRACE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Why a driver did not start or stop.
#[derive(Debug, Error)]
pub enum DriverError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The command-and-control file cannot be made.
    #[error("cannot create the CnC file: {0}")]
    Cnc(#[from] CncError),
    /// A buffer has a length that cannot be used.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// There is no room for the driver's files.
    #[error("insufficient usable storage for the driver's files: length={length} usable={usable} in {place}")]
    Storage {
        /// Bytes needed.
        length: u64,
        /// Bytes there are.
        usable: u64,
        /// Where.
        place: String,
    },
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// Records what threads report, and remembers the first failure.
struct Watch {
    errors: ErrorRecorder,
    clock: Arc<dyn Clock>,
    failure: Mutex<Option<String>>,
    termination: Arc<AtomicBool>,
}

impl Supervisor for Watch {
    fn on_pin_failure(&self, role_name: &str, cpu: i32, error: &io::Error) {
        let text = format!("cannot keep {role_name} on cpu={cpu}: {error}");
        self.errors.warn(&text, self.clock.epoch_ms());
    }

    fn on_panic(&self, role_name: &str, message: &str) {
        let text = ErrorCode::GenericError.describe(format_args!("agent {role_name} stopped: {message}"));
        self.errors
            .record(ErrorCode::GenericError.value(), &text, self.clock.epoch_ms());
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(text);
        self.termination.store(true, Ordering::Release);
    }
}

/// What runs, until it is stopped.
struct Running {
    runners: Vec<AgentRunner>,
    invoker: Option<Invoker>,
    cnc: CncFile,
}

/// A media driver in this process.
///
/// Dropping it closes it. All methods may be called from any thread.
pub struct MediaDriver {
    config: Arc<DriverConfig>,
    running: Mutex<Option<Running>>,
    invoker: Option<Invoker>,
    watch: Arc<Watch>,
}

impl MediaDriver {
    /// Checks the settings, takes the directory and starts the agents. Clients can connect when this returns.
    /// When it fails nothing is left behind.
    pub fn launch(config: DriverConfig) -> Result<Self, DriverError> {
        Self::launch_with_clock(config, Arc::new(SystemClock::new()))
    }

    /// As [`Self::launch`], with a source of time for every agent.
    pub fn launch_with_clock(mut config: DriverConfig, clock: Arc<dyn Clock>) -> Result<Self, DriverError> {
        config.validate()?;
        config.directory = std::path::absolute(&config.directory).map_err(|source| DriverError::Io {
            action: "find the absolute path of aeron.dir",
            source,
        })?;
        let config = Arc::new(config);
        directory::prepare(&config, clock.as_ref())?;
        let started = start(&config, clock);
        if started.is_err() {
            // The first error is the one to tell; a directory that cannot be deleted adds nothing to it.
            let _ = directory::delete(&config.directory);
        }
        let (running, watch) = started?;
        Ok(Self {
            invoker: running.invoker.clone(),
            config,
            running: Mutex::new(Some(running)),
            watch,
        })
    }

    /// Where clients find this driver.
    pub fn directory(&self) -> &Path {
        &self.config.directory
    }

    /// The settings this driver runs with.
    pub fn config(&self) -> &DriverConfig {
        &self.config
    }

    /// Runs the agents from the caller's thread; only in [`ThreadingMode::Invoker`].
    pub fn invoker(&self) -> Option<Invoker> {
        self.invoker.clone()
    }

    /// True when the driver should be closed: a client asked and may, or an agent failed.
    pub fn is_terminated(&self) -> bool {
        self.watch.termination.load(Ordering::Acquire)
    }

    /// Why an agent stopped by itself, if one did.
    pub fn failure(&self) -> Option<String> {
        self.watch
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Stops the agents, tells clients and, if so set, deletes the directory. Does nothing the second time.
    pub fn close(&self) -> Result<(), DriverError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut running) = running else {
            return Ok(());
        };
        for runner in &mut running.runners {
            runner.stop();
        }
        if let Some(invoker) = &running.invoker {
            invoker.close();
        }
        running.cnc.flush().map_err(|source| DriverError::Io {
            action: "write the CnC file back",
            source,
        })?;
        if self.config.dir_delete_on_shutdown {
            directory::delete(&self.config.directory)?;
        }
        Ok(())
    }
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            eprintln!("ERROR: driver close: {error}");
        }
    }
}

impl fmt::Debug for MediaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaDriver")
            .field("directory", &self.config.directory)
            .finish_non_exhaustive()
    }
}

fn start(config: &Arc<DriverConfig>, clock: Arc<dyn Clock>) -> Result<(Running, Arc<Watch>), DriverError> {
    let cnc = create_cnc(config, clock.as_ref())?;
    let counters = create_counters(config, &cnc);
    let system = SystemCounters::new(&counters);
    let errors = ErrorRecorder::new(
        DistinctErrorLog::new(cnc.error_log()),
        system.get(system_counter::ERRORS).clone(),
    );
    let watch = Arc::new(Watch {
        errors: errors.clone(),
        clock: Arc::clone(&clock),
        failure: Mutex::new(None),
        termination: Arc::new(AtomicBool::new(false)),
    });
    let ring = ManyToOneRing::new(cnc.to_driver())?;
    // Zero is never handed out: it is what a client that leaves the field empty sends.
    ring.next_correlation_id();
    ring.put_consumer_heartbeat_ms(clock.epoch_ms());

    let queues = Queues::new();
    let wiring = Wiring {
        config,
        clock: &clock,
        system: &system,
        errors: &errors,
        queues: &queues,
    };
    let agents = Agents {
        sender: wiring.sender(),
        receiver: wiring.receiver(),
        resource_agent: wiring.resource_agent(),
        conductor: wiring.conductor(&cnc, ring, counters, &watch)?,
    };
    let (runners, invoker) = agents.start(config, &clock, &watch)?;
    cnc.signal_ready().map_err(|source| DriverError::Io {
        action: "write the CnC file",
        source,
    })?;
    let running = Running {
        runners,
        invoker,
        cnc,
    };
    Ok((running, watch))
}

/// The queues between the agents of one driver.
struct Queues {
    tasks: Inbox<ResourceTask>,
    outcomes: Inbox<ResourceOutcome>,
    sender: Inbox<SenderCommand>,
    receiver: Inbox<ReceiverCommand>,
    conductor: Inbox<ConductorCommand>,
}

impl Queues {
    fn new() -> Self {
        Self {
            tasks: inbox(),
            outcomes: inbox(),
            sender: inbox(),
            receiver: inbox(),
            conductor: inbox(),
        }
    }
}

/// What the agents are made with.
struct Wiring<'a> {
    config: &'a Arc<DriverConfig>,
    clock: &'a Arc<dyn Clock>,
    system: &'a SystemCounters,
    errors: &'a ErrorRecorder,
    queues: &'a Queues,
}

impl Wiring<'_> {
    fn counter(&self, id: i32) -> Counter {
        self.system.get(id).clone()
    }

    fn outbox<T>(&self, queue: &Inbox<T>, failed_offers_id: i32) -> Outbox<T> {
        Outbox::new(Arc::clone(queue), self.counter(failed_offers_id))
    }

    fn tracked(
        &self,
        agent: impl Agent + 'static,
        max_id: i32,
        exceeded_id: i32,
        threshold_ns: i64,
    ) -> Box<dyn Agent> {
        let tracker = DutyCycleTracker::new(self.counter(max_id), self.counter(exceeded_id), threshold_ns);
        Box::new(Tracked::new(agent, tracker))
    }

    fn sender(&self) -> Box<dyn Agent> {
        let config = self.config;
        let sender = Sender::new(
            Arc::clone(&self.queues.sender),
            self.outbox(&self.queues.conductor, system_counter::CONDUCTOR_PROXY_FAILS),
            SenderCounters::new(|id| self.counter(id)),
            SenderSettings {
                send_to_status_poll_ratio: config.send_to_status_poll_ratio,
                status_message_timeout_ns: config.status_message_timeout_ns,
                publication_connection_timeout_ns: config.publication_connection_timeout_ns,
                retransmit_delay_ns: config.retransmit_unicast_delay_ns,
                retransmit_linger_ns: config.retransmit_unicast_linger_ns,
                re_resolution_check_interval_ns: config.reresolution_check_interval_ns,
                ..SenderSettings::default()
            },
        );
        self.tracked(
            sender,
            system_counter::SENDER_MAX_CYCLE_TIME,
            system_counter::SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.sender_cycle_threshold_ns,
        )
    }

    fn receiver(&self) -> Box<dyn Agent> {
        let config = self.config;
        let receiver = Receiver::new(
            Arc::clone(&self.queues.receiver),
            self.outbox(&self.queues.conductor, system_counter::CONDUCTOR_PROXY_FAILS),
            ReceiverCounters::new(|id| self.counter(id)),
            ReceiverSettings {
                status_message_timeout_ns: config.status_message_timeout_ns,
                image_liveness_timeout_ns: config.image_liveness_timeout_ns,
                stream_session_limit: config.stream_session_limit,
                receive_buffers: config.receiver_io_vector_capacity,
            },
        );
        self.tracked(
            receiver,
            system_counter::RECEIVER_MAX_CYCLE_TIME,
            system_counter::RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.receiver_cycle_threshold_ns,
        )
    }

    fn resource_agent(&self) -> Box<dyn Agent> {
        let config = self.config;
        Box::new(ResourceAgent::new(
            Arc::clone(&self.queues.tasks),
            self.outbox(&self.queues.outcomes, system_counter::CONDUCTOR_PROXY_FAILS),
            config.resource_free_limit,
            StorageChecks {
                enabled: config.perform_storage_checks,
                low_space_threshold: config.low_storage_warning_threshold as u64,
            },
            ResourceCounters {
                bytes_mapped: self.counter(system_counter::BYTES_CURRENTLY_MAPPED),
                free_fails: self.counter(system_counter::FREE_FAILS),
            },
            TimedLookup {
                lookup: Box::new(SystemLookup),
                tracker_max: self.counter(system_counter::NAME_RESOLVER_MAX_TIME),
                tracker_exceeded: self.counter(system_counter::NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED),
                threshold_ns: config.name_resolver_threshold_ns,
                clock: Arc::clone(self.clock),
            },
            self.errors.clone(),
        ))
    }

    fn conductor(
        &self,
        cnc: &CncFile,
        ring: ManyToOneRing,
        counters: CountersManager<AtomicBuffer>,
        watch: &Watch,
    ) -> Result<Box<dyn Agent>, DriverError> {
        let config = self.config;
        let loss_report = LossReport::create(
            &config.directory,
            config.loss_report_buffer_length,
            config.file_page_size,
        )
        .map_err(|source| DriverError::Io {
            action: "create the loss report",
            source,
        })?;
        let system_buffers = SystemBuffers::probe().map_err(|source| DriverError::Io {
            action: "probe the socket buffers of the system",
            source,
        })?;
        let conductor = Conductor::new(ConductorParts {
            config: Arc::clone(config),
            clock: Arc::clone(self.clock),
            ring,
            transmitter: Transmitter::new(cnc.to_clients())?,
            counters,
            system: self.system.clone(),
            errors: self.errors.clone(),
            tasks: self.outbox(
                &self.queues.tasks,
                system_counter::NATIVE_RESOURCE_AGENT_PROXY_FAILS,
            ),
            outcomes: Arc::clone(&self.queues.outcomes),
            inbox: Arc::clone(&self.queues.conductor),
            sender: self.outbox(&self.queues.sender, system_counter::SENDER_PROXY_FAILS),
            receiver: self.outbox(&self.queues.receiver, system_counter::RECEIVER_PROXY_FAILS),
            sockets: Box::new(SystemSockets),
            system_buffers,
            loss_report,
            termination: Arc::clone(&watch.termination),
            random: fastrand::Rng::new(),
        });
        Ok(self.tracked(
            conductor,
            system_counter::CONDUCTOR_MAX_CYCLE_TIME,
            system_counter::CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.conductor_cycle_threshold_ns,
        ))
    }
}

fn create_cnc(config: &DriverConfig, clock: &dyn Clock) -> Result<CncFile, DriverError> {
    let lengths = CncLengths {
        to_driver: config.conductor_buffer_length,
        to_clients: config.clients_buffer_length,
        counters_values: config.counters_buffer_length,
        error_log: config.error_buffer_length,
    };
    let identity = CncIdentity {
        client_liveness_timeout_ns: config.client_liveness_timeout_ns,
        start_timestamp_ms: clock.epoch_ms(),
        pid: i64::from(std::process::id()),
        page_size: config.file_page_size as i32,
    };
    if config.perform_storage_checks {
        // The file is sparse: without room, writing to it later would end the process.
        let length = (lengths.to_driver
            + lengths.to_clients
            + lengths.counters_metadata()
            + lengths.counters_values
            + lengths.error_log) as u64;
        let usable = disk::usable_space(&config.directory).map_err(|source| DriverError::Io {
            action: "tell the usable storage of aeron.dir",
            source,
        })?;
        if usable < length {
            let place = disk::description(&config.directory);
            return Err(DriverError::Storage {
                length,
                usable,
                place,
            });
        }
    }
    Ok(CncFile::create(&config.directory, &lengths, &identity, false)?)
}

fn create_counters(config: &DriverConfig, cnc: &CncFile) -> CountersManager<AtomicBuffer> {
    let reuse_timeout_ns = config.counter_free_to_reuse_timeout_ns;
    let reuse_timeout_ms = if reuse_timeout_ns > 0 {
        (reuse_timeout_ns / 1_000_000).max(1)
    } else {
        0
    };
    let mut counters = CountersManager::new(cnc.counters_metadata(), cnc.counters_values(), reuse_timeout_ms);
    let facts = LabelFacts {
        version: VERSION,
        commit: COMMIT,
        threading_mode: config.threading_mode.name(),
        driver_name: "",
        conductor_threshold: &format_duration(config.conductor_cycle_threshold_ns),
        sender_threshold: &format_duration(config.sender_cycle_threshold_ns),
        receiver_threshold: &format_duration(config.receiver_cycle_threshold_ns),
        name_resolver_threshold: &format_duration(config.name_resolver_threshold_ns),
    };
    for (id, label) in system_counter::labels(&facts) {
        let allocated = counters
            .allocate(type_ids::SYSTEM_COUNTER, &id.to_le_bytes(), &label, 0)
            .unwrap_or(NULL_COUNTER_ID);
        // The smallest section that the settings allow holds thousands of counters, handed out in order.
        assert_eq!(allocated, id, "system counters come first");
        counters.set_registration_id(id, i64::from(id));
        counters.set_owner_id(id, -1);
    }
    counters.set_value(system_counter::AERON_VERSION, packed_version(VERSION));
    counters.set_value(
        system_counter::CONTROL_PROTOCOL_VERSION,
        system_counter::CONTROL_PROTOCOL_SEMANTIC_VERSION,
    );
    counters
}

fn packed_version(version: &str) -> i64 {
    version.split('.').take(3).fold(0, |packed, part| {
        packed << 8 | part.parse::<u8>().map_or(0, i64::from)
    })
}

/// The agents of one driver, before they have threads.
struct Agents {
    sender: Box<dyn Agent>,
    receiver: Box<dyn Agent>,
    resource_agent: Box<dyn Agent>,
    conductor: Box<dyn Agent>,
}

/// A thread to be: its names, classic and new, its processor, its idling and its agent.
struct Placement<'a> {
    names: (&'static str, &'static str),
    cpu: i32,
    idle: &'a IdleSetting,
    agent: Box<dyn Agent>,
}

impl Agents {
    fn start(
        self,
        config: &DriverConfig,
        clock: &Arc<dyn Clock>,
        watch: &Arc<Watch>,
    ) -> Result<(Vec<AgentRunner>, Option<Invoker>), DriverError> {
        if config.threading_mode == ThreadingMode::Invoker {
            let invoker = Invoker::new(Box::new(self.composite()), Arc::clone(clock));
            return Ok((Vec::new(), Some(invoker)));
        }
        let runners: Result<Vec<_>, _> = self
            .placements(config)
            .into_iter()
            .map(|placement| placement.start(config.thread_naming, clock, watch))
            .collect();
        Ok((runners?, None))
    }

    /// In the order in which threads are stopped: the conductor first, since it gives the others their work.
    fn placements(self, config: &DriverConfig) -> Vec<Placement<'_>> {
        if config.threading_mode == ThreadingMode::Shared {
            return vec![Placement {
                names: ("[conductor, sender, receiver]", "aeron-md-shd"),
                cpu: config.conductor_cpu_affinity,
                idle: &config.shared_idle,
                agent: Box::new(self.composite()),
            }];
        }
        let mut placements = vec![
            Placement {
                names: ("conductor", "aeron-md-cnd"),
                cpu: config.conductor_cpu_affinity,
                idle: &config.conductor_idle,
                agent: self.conductor,
            },
            Placement {
                names: ("aeron-md-nra", "aeron-md-nra"),
                cpu: config.resource_agent_cpu_affinity,
                idle: &config.resource_agent_idle,
                agent: self.resource_agent,
            },
        ];
        if config.threading_mode == ThreadingMode::SharedNetwork {
            placements.push(Placement {
                names: ("[sender, receiver]", "aeron-md-net"),
                cpu: config.sender_cpu_affinity,
                idle: &config.shared_network_idle,
                agent: Box::new(Composite::new(vec![self.sender, self.receiver])),
            });
        } else {
            placements.push(Placement {
                names: ("sender", "aeron-md-snd"),
                cpu: config.sender_cpu_affinity,
                idle: &config.sender_idle,
                agent: self.sender,
            });
            placements.push(Placement {
                names: ("receiver", "aeron-md-rcv"),
                cpu: config.receiver_cpu_affinity,
                idle: &config.receiver_idle,
                agent: self.receiver,
            });
        }
        placements
    }

    fn composite(self) -> Composite {
        Composite::new(vec![
            self.sender,
            self.receiver,
            self.resource_agent,
            self.conductor,
        ])
    }
}

impl Placement<'_> {
    fn start(
        self,
        naming: ThreadNaming,
        clock: &Arc<dyn Clock>,
        watch: &Arc<Watch>,
    ) -> Result<AgentRunner, DriverError> {
        let name = match naming {
            ThreadNaming::Classic => self.names.0,
            ThreadNaming::New => self.names.1,
        };
        let idle = self
            .idle
            .strategy()
            .map_err(|rule| ConfigError::new(name, &self.idle.name, rule))?;
        let settings = ThreadSettings {
            name: name.to_owned(),
            cpu: self.cpu,
            idle,
        };
        let supervisor: Arc<dyn Supervisor> = Arc::clone(watch) as _;
        AgentRunner::start(settings, self.agent, Arc::clone(clock), supervisor).map_err(|source| {
            DriverError::Io {
                action: "start a thread",
                source,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_packs_its_three_numbers() {
        assert_eq!(packed_version("1.53.2"), 0x01_35_02);
    }
}
