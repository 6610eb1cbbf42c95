//! Work that may block, kept off the conductor: creating, mapping and deleting logs, looking up names.
//!
//! The conductor sends tasks and gets one outcome for each, except for freeing, which has none.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_buffers::log::descriptor::log_file_length;
use headrace_buffers::log::{LogBuffers, LogError, LogSpec};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelRole, ChannelUri, Interface, ResolveError, Resolver, UdpChannel, UdpEnvironment,
};
use headrace_sys::{Clock, disk};

use crate::agent::Agent;
use crate::errors::{CommandError, ErrorRecorder};
use crate::mailbox::{Inbox, Outbox};
use crate::proxy::EndpointId;

/// A log to create.
#[derive(Debug)]
pub(crate) struct CreateLog {
    /// Comes back in the outcome.
    pub(crate) correlation_id: i64,
    /// File to create.
    pub(crate) path: PathBuf,
    /// What its metadata says.
    pub(crate) spec: LogSpec,
}

/// A log that nobody in the driver uses any more.
#[derive(Debug)]
pub(crate) struct FreeLog {
    pub(crate) log: LogBuffers,
    pub(crate) path: PathBuf,
}

/// A channel whose names are to be looked up.
#[derive(Debug)]
pub(crate) struct FindAddresses {
    /// Comes back in the outcome.
    pub(crate) correlation_id: i64,
    pub(crate) uri: ChannelUri,
    pub(crate) role: ChannelRole,
}

/// A name to look up again for an open channel.
#[derive(Debug)]
pub(crate) struct Resolve {
    pub(crate) endpoint: EndpointId,
    /// `host:port` as the channel has it.
    pub(crate) name: String,
}

/// From the conductor.
#[derive(Debug)]
pub(crate) enum ResourceTask {
    CreateLog(Box<CreateLog>),
    FindAddresses(Box<FindAddresses>),
    Resolve(Box<Resolve>),
    FreeLog(Box<FreeLog>),
}

/// To the conductor.
#[derive(Debug)]
pub(crate) enum ResourceOutcome {
    LogCreated {
        correlation_id: i64,
        result: Result<LogBuffers, CommandError>,
    },
    AddressesFound {
        correlation_id: i64,
        result: Result<Box<UdpChannel>, CommandError>,
    },
    Resolved {
        endpoint: EndpointId,
        result: Result<SocketAddr, String>,
    },
}

/// How storage is watched over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StorageChecks {
    pub(crate) enabled: bool,
    pub(crate) low_space_threshold: u64,
}

/// Counters this agent maintains.
pub(crate) struct ResourceCounters {
    pub(crate) bytes_mapped: Counter,
    pub(crate) free_fails: Counter,
}

/// Looks up names; a seam, so that tests need no network.
pub(crate) trait NameLookup: Send {
    /// The address of a host, with the port.
    fn lookup(&self, host: &str, port: u16) -> io::Result<SocketAddr>;
}

/// The operating system's resolver.
pub(crate) struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        headrace_sys::net::resolve(host, port)
    }
}

/// A lookup whose duration is published.
pub(crate) struct TimedLookup {
    pub(crate) lookup: Box<dyn NameLookup>,
    pub(crate) tracker_max: Counter,
    pub(crate) tracker_exceeded: Counter,
    pub(crate) threshold_ns: i64,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Resolver for TimedLookup {
    fn resolve(&self, host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        let start_ns = self.clock.nano_time();
        let result = self.lookup.lookup(host, port);
        let duration_ns = self.clock.nano_time() - start_ns;
        self.tracker_max.propose_max_release(duration_ns);
        if duration_ns > self.threshold_ns {
            self.tracker_exceeded.increment_release();
        }
        result.map_err(|error| ResolveError {
            reason: error.to_string(),
        })
    }
}

/// The agent.
pub(crate) struct ResourceAgent {
    tasks: Inbox<ResourceTask>,
    outcomes: Outbox<ResourceOutcome>,
    to_free: VecDeque<FreeLog>,
    free_limit: usize,
    storage: StorageChecks,
    counters: ResourceCounters,
    resolver: TimedLookup,
    errors: ErrorRecorder,
    clock: Arc<dyn Clock>,
}

impl ResourceAgent {
    pub(crate) fn new(
        tasks: Inbox<ResourceTask>,
        outcomes: Outbox<ResourceOutcome>,
        free_limit: usize,
        storage: StorageChecks,
        counters: ResourceCounters,
        resolver: TimedLookup,
        errors: ErrorRecorder,
    ) -> Self {
        Self {
            tasks,
            outcomes,
            to_free: VecDeque::new(),
            free_limit,
            storage,
            counters,
            clock: Arc::clone(&resolver.clock),
            resolver,
            errors,
        }
    }

    fn run(&mut self, task: ResourceTask) {
        match task {
            ResourceTask::CreateLog(request) => {
                let result = self.create_log(&request.path, &request.spec);
                self.outcomes.send(ResourceOutcome::LogCreated {
                    correlation_id: request.correlation_id,
                    result,
                });
            }
            ResourceTask::FindAddresses(request) => {
                let result = self.find_addresses(&request).map(Box::new);
                self.outcomes.send(ResourceOutcome::AddressesFound {
                    correlation_id: request.correlation_id,
                    result,
                });
            }
            ResourceTask::Resolve(request) => {
                let result = self.resolve(&request.name);
                self.outcomes.send(ResourceOutcome::Resolved {
                    endpoint: request.endpoint,
                    result,
                });
            }
            ResourceTask::FreeLog(request) => self.to_free.push_back(*request),
        }
    }

    fn find_addresses(&self, request: &FindAddresses) -> Result<UdpChannel, CommandError> {
        let interfaces = local_interfaces().map_err(|error| {
            CommandError::generic(format!(
                "cannot list network interfaces: {error}, channel={}",
                request.uri
            ))
        })?;
        let environment = UdpEnvironment {
            interfaces: &interfaces,
            resolver: &self.resolver,
        };
        // Correlation ids are unique in the driver, which is all that is asked of the last argument.
        Ok(UdpChannel::parse(
            &request.uri,
            request.role,
            &environment,
            request.correlation_id,
        )?)
    }

    fn resolve(&self, name: &str) -> Result<SocketAddr, String> {
        let (host, port) = name
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse().ok()?)))
            .ok_or_else(|| format!("not host:port: {name}"))?;
        self.resolver
            .resolve(host, port, "endpoint")
            .map_err(|error| error.to_string())
    }

    fn create_log(&mut self, path: &Path, spec: &LogSpec) -> Result<LogBuffers, CommandError> {
        let length = log_file_length(spec.term_length, spec.page_size);
        if self.storage.enabled {
            self.check_storage(path, length as u64)?;
        }
        let log = LogBuffers::create(path, spec).map_err(log_error)?;
        self.counters.bytes_mapped.get_and_add(length as i64);
        Ok(log)
    }

    fn check_storage(&self, path: &Path, length: u64) -> Result<(), CommandError> {
        let directory = path.parent().unwrap_or(path);
        let usable = disk::usable_space(directory).map_err(|error| {
            CommandError::generic(format!(
                "cannot tell usable storage in {}: {error}",
                directory.display()
            ))
        })?;
        let place = disk::description(directory);
        if usable < length {
            return Err(CommandError::new(
                ErrorCode::StorageSpace,
                format!(
                    "insufficient usable storage for new log of length={length} usable={usable} in {place}"
                ),
            ));
        }
        let threshold = self.storage.low_space_threshold;
        if usable <= threshold {
            let text = format!("space is running low: threshold={threshold} usable={usable} in {place}");
            self.errors.warn(&text, self.clock.epoch_ms());
        }
        Ok(())
    }

    fn free_some(&mut self) -> usize {
        let count = self.to_free.len().min(self.free_limit);
        for _ in 0..count {
            if let Some(request) = self.to_free.pop_front() {
                self.free(request);
            }
        }
        count
    }

    /// Deletes the file; the memory goes with its last user. A file that cannot be deleted is tried again.
    fn free(&mut self, request: FreeLog) {
        match fs::remove_file(&request.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.counters.free_fails.get_and_add(1);
                let text = format!("failed to delete log path={}: {error}", request.path.display());
                self.errors.warn(&text, self.clock.epoch_ms());
                self.to_free.push_back(request);
            }
            _ => {
                let length = log_file_length(
                    request.log.term_length(),
                    request.log.metadata().page_size() as usize,
                );
                self.counters.bytes_mapped.get_and_add(-(length as i64));
            }
        }
    }
}

impl Agent for ResourceAgent {
    fn role_name(&self) -> &'static str {
        "native-resource-agent"
    }

    fn do_work(&mut self, _now_ns: i64) -> usize {
        let mut work_count = self.outcomes.flush();
        // Tasks are taken even while outcomes wait for room: see `mailbox`.
        if let Some(task) = self.tasks.pop() {
            self.run(task);
            work_count += 1;
        }
        work_count + self.free_some()
    }
}

fn local_interfaces() -> io::Result<Vec<Interface>> {
    let listed = headrace_sys::net::interfaces()?;
    Ok(listed
        .into_iter()
        .map(|interface| Interface {
            name: interface.name,
            address: interface.address,
            prefix_length: interface.prefix_length,
            is_up: interface.is_up,
            is_loopback: interface.is_loopback,
            is_multicast: interface.is_multicast,
        })
        .collect())
}

fn log_error(error: LogError) -> CommandError {
    let is_out_of_space = match &error {
        LogError::Io { source, .. } => source.kind() == io::ErrorKind::StorageFull,
        LogError::Invalid { .. } | LogError::Refused { .. } => false,
    };
    let code = if is_out_of_space {
        ErrorCode::StorageSpace
    } else {
        ErrorCode::GenericError
    };
    CommandError::new(code, error.to_string())
}
