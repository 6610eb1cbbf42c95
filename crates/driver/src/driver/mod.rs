//! Starting and stopping a media driver.

mod error;
mod files;
mod names;
mod probe;
pub(crate) mod supervisor;
mod threads;
mod version;
mod wiring;

use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use headrace_buffers::cnc::CncFile;
use headrace_buffers::counters::{CountersReader, system_counter};
use headrace_buffers::error_log::DistinctErrorLog;
use headrace_buffers::liveness::Liveness;
use headrace_buffers::ring::ManyToOneRing;
use headrace_sys::Clock;
use headrace_sys::idle::Control;

pub use error::DriverError;
pub use version::{AERON_VERSION, VERSION};

use crate::affinity::Affinity;
use crate::conductor::SystemCounters;
use crate::config::DriverConfig;
use crate::directory::{self, Ownership};
use crate::environment::Environment;
use crate::errors::ErrorRecorder;
use crate::event_recorder::EventRecorder;
use crate::interceptors;
use crate::printing;
use crate::processors::ProcessorLimit;
use crate::runner::{AgentRunner, Invoker};
use files::OwnFiles;
use probe::SocketProbe;
use supervisor::{DriverState, DriverSupervisor};
use threads::Agents;
use wiring::{Queues, Wiring};

/// What runs, until it is stopped.
struct Running {
    runners: Vec<AgentRunner>,
    invoker: Option<Invoker>,
    cnc: CncFile,
    ownership: Arc<Ownership>,
    /// Shows that the driver lives; let go of when all else has stopped.
    _liveness: Option<Arc<Liveness>>,
}

/// A media driver in this process.
///
/// Dropping it closes it. All methods may be called from any thread.
pub struct MediaDriver {
    config: Arc<DriverConfig>,
    limit: Option<ProcessorLimit>,
    running: Mutex<Option<Running>>,
    invoker: Option<Invoker>,
    supervisor: Arc<DriverSupervisor>,
}

impl MediaDriver {
    /// Checks the settings, takes the directory and starts the agents. Clients can connect when this returns.
    /// When it fails it leaves no files and no threads.
    pub fn launch(mut config: DriverConfig) -> Result<Self, DriverError> {
        config.mind_debugger(headrace_sys::process::is_traced());
        Self::launch_in(config, Environment::system())
    }

    /// As [`Self::launch`], in an environment of the caller's choice.
    pub fn launch_in(mut config: DriverConfig, mut environment: Environment) -> Result<Self, DriverError> {
        config.validate()?;
        // Of a copy: what is drawn afterwards is the same with loss and without.
        let chance = environment.random.clone().u64(..);
        environment.network = interceptors::around(config.interceptors(chance)?, environment.network);
        config.directory = std::path::absolute(&config.directory).map_err(|source| DriverError::Io {
            action: "find the absolute path of aeron.dir",
            source,
        })?;
        // Without a slash at its end: what is named after the directory lies beside it.
        config.directory = config.directory.components().collect();
        let limit =
            ProcessorLimit::find(environment.machine.as_ref()).filter(|_| config.threading_mode.is_none());
        let mode = limit.map_or_else(|| config.threading(), ProcessorLimit::threading_mode);
        config.threading_mode = Some(mode);
        let affinity = Affinity::find(&config, environment.machine.as_ref())?;
        let config = Arc::new(config);
        let probed = probe::socket_buffers(&config, environment.network.as_ref())?;
        directory::prepare(&config, environment.clock.as_ref())?;
        let own = files::take_directory(&config, environment.clock.as_ref())?;
        // Kept until the directory is deleted: another driver takes it when the lock is free, and is told by its file.
        let (_cnc, _liveness) = (own.cnc.clone(), own.liveness.as_ref().ok().cloned());
        let ownership = Arc::clone(&own.ownership);
        let started = start(&config, environment, own, probed, limit, affinity);
        if started.is_err() {
            // The first error is the one to tell; a directory that cannot be deleted adds nothing to it.
            let _ = directory::delete_own(&config.directory, &ownership);
        }
        let (running, supervisor) = started?;
        Ok(Self {
            invoker: running.invoker.clone(),
            limit,
            config,
            running: Mutex::new(Some(running)),
            supervisor,
        })
    }

    /// The directory of this driver.
    pub fn directory(&self) -> &Path {
        &self.config.directory
    }

    /// The settings this driver runs with.
    pub fn config(&self) -> &DriverConfig {
        &self.config
    }

    /// The threading mode that the driver chose, and for which limit of processors; `None` if a setting or the default
    /// decides.
    pub fn chosen_threading(&self) -> Option<String> {
        self.limit.map(|limit| limit.to_string())
    }

    /// Runs the agents from the caller's thread; only in [`crate::ThreadingMode::Invoker`].
    pub fn invoker(&self) -> Option<Invoker> {
        self.invoker.clone()
    }

    /// The counter that controls idling, for a program that invokes the driver. It keeps the counters mapped.
    pub fn idle_control(&self) -> Control {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .as_ref()
            .map_or_else(Control::default, |running| idle_control(&running.cnc))
    }

    /// Messages between the agents of an invoked driver that wait in a queue, or for room in one. Zero for a driver
    /// that has threads or has ended.
    pub fn waiting_messages(&self) -> usize {
        self.invoker.as_ref().map_or(0, Invoker::waiting_messages)
    }

    /// True when the driver should be closed: an authorised client asked for it, or an agent failed.
    pub fn is_terminated(&self) -> bool {
        self.supervisor.termination.load(Ordering::Acquire)
    }

    /// Why an agent failed, if one did.
    pub fn failure(&self) -> Option<String> {
        self.supervisor.failure()
    }

    /// Ends an invoked driver as a kill would: drops its agents where they are, informs no client, and leaves the
    /// directory as it is. Does nothing and returns false for a driver that has threads or has ended.
    pub fn crash(&self) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(invoker) = running.as_ref().and_then(|running| running.invoker.clone()) else {
            return false;
        };
        *running = None;
        invoker.abandon();
        true
    }

    /// Stops the agents, informs clients and, if a setting says so, deletes the directory. Closing again does nothing.
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
        let reason = if self.is_terminated() {
            "closed after a client asked for it, or a failure"
        } else {
            "closed"
        };
        self.supervisor.enter(DriverState::Closed, reason);
        running.cnc.flush().map_err(|source| DriverError::Io {
            action: "write the CnC file back",
            source,
        })?;
        if self.config.dir_delete_on_shutdown {
            directory::delete_own(&self.config.directory, &running.ownership)?;
        }
        Ok(())
    }
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            printing::to_stderr(format_args!("ERROR: driver close: {error}"));
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

fn warn_of_all<'a>(errors: &ErrorRecorder, warnings: impl Iterator<Item = &'a String>, clock: &dyn Clock) {
    for warning in warnings {
        errors.warn(warning, clock.epoch_ms());
    }
}

fn start(
    config: &Arc<DriverConfig>,
    environment: Environment,
    OwnFiles {
        cnc,
        ownership,
        liveness,
    }: OwnFiles,
    probed: SocketProbe,
    limit: Option<ProcessorLimit>,
    affinity: Affinity,
) -> Result<(Running, Arc<DriverSupervisor>), DriverError> {
    let Environment {
        clock,
        network,
        disk,
        lookups,
        queue_capacity,
        random,
        events,
        machine: _,
    } = environment;
    let mut counters = files::create_counters(config, &cnc);
    let system = SystemCounters::new(&counters);
    let errors = error_recorder(config, &cnc, &system);
    let event_log = files::create_event_log(config, &cnc, &errors, clock.as_ref());
    let recorder = EventRecorder::new(event_log, events, Arc::clone(&clock), errors.clone());
    let supervisor = DriverSupervisor::new(errors.clone(), recorder.clone(), Arc::clone(&clock), limit);
    let warnings = probed.warnings.iter().chain(&affinity.warnings);
    warn_of_all(&errors, warnings.chain(&config.doubts()), clock.as_ref());
    // Before clients can connect: what they see of it then tells them whether to watch it.
    let liveness = files::shared_liveness(liveness, &errors, clock.as_ref());
    let ring = command_ring(&cnc, clock.as_ref())?;
    let doorbells = files::create_doorbells(config, &cnc, &errors, clock.as_ref());
    let queues = Queues::new(queue_capacity);
    let wiring = Wiring {
        config,
        clock: &clock,
        system: &system,
        errors: &errors,
        recorder: &recorder,
        queues: &queues,
        doorbells: &doorbells,
        network: &network,
        disk: &disk,
        system_buffers: probed.buffers,
        liveness: liveness.clone(),
        ownership: Arc::clone(&ownership),
    };
    let agents = Agents {
        sender: wiring.sender(),
        receiver: wiring.receiver(),
        resource_agent: wiring.resource_agent(wiring.names(&mut counters)?, lookups),
        conductor: wiring.conductor(&cnc, ring, counters, &supervisor, random)?,
        affinity,
    };
    let (runners, invoker) = agents.start(config, &clock, &supervisor, &doorbells, &idle_control(&cnc))?;
    cnc.signal_ready().map_err(|source| DriverError::Io {
        action: "write the CnC file",
        source,
    })?;
    let running = Running {
        ownership,
        runners,
        invoker,
        cnc,
        _liveness: liveness,
    };
    Ok((running, supervisor))
}

/// What keeps errors in the log of the CnC file.
fn error_recorder(config: &DriverConfig, cnc: &CncFile, system: &SystemCounters) -> ErrorRecorder {
    let log = DistinctErrorLog::new(cnc.error_log());
    let fallback = config.fallback_logger;
    ErrorRecorder::new(log, system.get(system_counter::ERRORS).clone())
        .with_fallback(move |text| fallback.log(text))
}

/// What the counter says that controls how agents idle.
fn idle_control(cnc: &CncFile) -> Control {
    let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
    let status = counters.counter(system_counter::CONTROLLABLE_IDLE_STRATEGY);
    status.map_or_else(Control::default, |status| Control::new(move || status.get()))
}

/// Where clients send their commands.
fn command_ring(cnc: &CncFile, clock: &dyn headrace_sys::Clock) -> Result<ManyToOneRing, DriverError> {
    let ring = ManyToOneRing::new(cnc.to_driver())?;
    // Zero is never handed out: it is what a client that leaves the field empty sends.
    ring.next_correlation_id();
    ring.put_consumer_heartbeat_ms(clock.epoch_ms());
    Ok(ring)
}

#[cfg(test)]
mod tests;
