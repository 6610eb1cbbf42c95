//! Does work that may block in place of the conductor: creates, maps and deletes logs. Names are looked up for it
//! elsewhere ([`crate::names`]), since that may take longer than a log may wait; gossip with other drivers about names
//! has its turns here.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::{Bell, Interests};
use headrace_buffers::log::descriptor::{TERM_LENGTH_MIN, log_file_length};
use headrace_buffers::log::{LogBuffers, LogError, LogSpec};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::units::format_size;
use headrace_sys::{Clock, disk};

use crate::agent::Agent;
use crate::directory::Ownership;
use crate::disk::Disk;
use crate::errors::{CommandError, ErrorGroup, ErrorRecorder};
use crate::mailbox::{Inbox, Outbox};
use crate::names::NameRequests;
use crate::resource_tasks::{FreeLog, ResourceOutcome, ResourceTask};
use crate::sparse_logs::SparseLogs;

/// How long a log waits that could not be deleted.
const FREE_RETRY_INTERVAL_NS: i64 = 1_000_000_000;

/// Settings of the resource agent.
#[derive(Clone)]
pub(crate) struct ResourceSettings {
    /// Logs deleted in one turn.
    pub(crate) free_limit: usize,
    pub(crate) performs_storage_checks: bool,
    /// Where logs are made.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) low_space_threshold: u64,
    pub(crate) ownership: Arc<Ownership>,
    /// What the lengths of all logs are multiples of. Logs say it too, in memory that clients can write.
    pub(crate) page_size: usize,
}

/// Counters this agent maintains.
pub(crate) struct ResourceCounters {
    pub(crate) bytes_mapped: Counter,
    pub(crate) free_fails: Counter,
}

/// The agent.
pub(crate) struct ResourceAgent {
    tasks: Inbox<ResourceTask>,
    outcomes: Outbox<ResourceOutcome>,
    to_free: VecDeque<FreeLog>,
    /// Logs that could not be deleted, and when each is tried again, in the order of these times.
    to_retry: VecDeque<(i64, FreeLog)>,
    sparse_logs: SparseLogs,
    settings: ResourceSettings,
    counters: ResourceCounters,
    names: NameRequests,
    errors: ErrorRecorder,
    clock: Arc<dyn Clock>,
}

impl ResourceAgent {
    pub(crate) fn new(
        tasks: Inbox<ResourceTask>,
        outcomes: Outbox<ResourceOutcome>,
        settings: ResourceSettings,
        counters: ResourceCounters,
        names: NameRequests,
        errors: ErrorRecorder,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            tasks,
            outcomes,
            to_free: VecDeque::new(),
            to_retry: VecDeque::new(),
            sparse_logs: SparseLogs::default(),
            settings,
            counters,
            names,
            errors,
            clock,
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
                let outcome = self.names.find_addresses(request);
                self.outcomes.send(outcome);
            }
            ResourceTask::Resolve(request) => {
                if let Some(outcome) = self.names.resolve(request) {
                    self.outcomes.send(outcome);
                }
            }
            ResourceTask::EndLog(log) => self.sparse_logs.end(&log.path, log.unread_length),
            ResourceTask::FreeLog(request) => self.to_free.push_back(*request),
        }
    }

    fn create_log(&mut self, path: &Path, spec: &LogSpec) -> Result<LogBuffers, CommandError> {
        if self.settings.ownership.is_lost() {
            return Err(CommandError::generic(
                "another driver has taken the directory over",
            ));
        }
        let length = log_file_length(spec.term_length, spec.page_size);
        let mut spec = spec.clone();
        if self.settings.performs_storage_checks
            && self.check_storage(path, &spec, length as u64)? == Room::Scarce
        {
            // A hole that cannot be filled later ends the process that writes to it; an error here is better.
            spec.sparse = false;
        }
        let log = LogBuffers::create(path, &spec).map_err(|error| self.log_error(&error, path, &spec))?;
        if spec.sparse {
            self.sparse_logs.add(path, length as u64);
        }
        self.counters.bytes_mapped.get_and_add(length as i64);
        Ok(log)
    }

    fn check_storage(&self, path: &Path, spec: &LogSpec, length: u64) -> Result<Room, CommandError> {
        let directory = path.parent().unwrap_or(path);
        let threshold = self.settings.low_space_threshold;
        let usable = self.usable_space(directory)?;
        if usable <= threshold {
            let place = disk::description(directory);
            let text = format!("space is running low: threshold={threshold} usable={usable} in {place}");
            self.errors
                .warn_in(ErrorGroup::Storage, &text, self.clock.epoch_ms());
        }
        let is_ample = |space: Space| space.free() > length.saturating_add(threshold);
        let lower_bound = Space {
            usable,
            promised: self.sparse_logs.total_length(),
        };
        if is_ample(lower_bound) {
            return Ok(Room::Ample);
        }
        let space = self.space(directory)?;
        if space.free() < length {
            return Err(no_room(directory, spec, space));
        }
        Ok(if is_ample(space) {
            Room::Ample
        } else {
            Room::Scarce
        })
    }

    fn space(&self, directory: &Path) -> Result<Space, CommandError> {
        // In this order, what a log takes meanwhile is counted twice and not never.
        let promised = self.sparse_logs.missing_length();
        let usable = self.usable_space(directory)?;
        Ok(Space { usable, promised })
    }

    fn usable_space(&self, directory: &Path) -> Result<u64, CommandError> {
        self.settings.disk.usable_space(directory).map_err(|error| {
            CommandError::generic(format!(
                "cannot tell usable storage in {}: {error}",
                directory.display()
            ))
        })
    }

    fn log_error(&self, error: &LogError, path: &Path, spec: &LogSpec) -> CommandError {
        match error {
            LogError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                let directory = path.parent().unwrap_or(path);
                match self.space(directory) {
                    Ok(space) => no_room(directory, spec, space),
                    Err(error) => error,
                }
            }
            _ => CommandError::generic(error.to_string()),
        }
    }

    /// Returns how many went; those that cannot be deleted are no work, or the agent would never rest.
    fn free_some(&mut self, now_ns: i64) -> usize {
        if self.to_free.is_empty() && self.to_retry.is_empty() {
            return 0;
        }
        let due_count = self
            .to_retry
            .iter()
            .take_while(|(retry_at_ns, _)| *retry_at_ns <= now_ns)
            .count();
        let due = self.to_retry.drain(..due_count).map(|(_, request)| request);
        self.to_free.extend(due);
        let count = self.to_free.len().min(self.settings.free_limit);
        let mut freed_count = 0;
        for request in self.to_free.drain(..count).collect::<Vec<_>>() {
            match self.free(request) {
                None => freed_count += 1,
                Some(request) => {
                    let retry_at_ns = now_ns.saturating_add(FREE_RETRY_INTERVAL_NS);
                    self.to_retry.push_back((retry_at_ns, request));
                }
            }
        }
        freed_count
    }

    /// Deletes the file; the memory goes with its last user. Returns what it could not delete. What has its name in
    /// a directory that another driver has taken over is that driver's.
    fn free(&mut self, request: FreeLog) -> Option<FreeLog> {
        if self.settings.ownership.is_lost() {
            return None;
        }
        match fs::remove_file(&request.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.counters.free_fails.get_and_add(1);
                let text = format!("failed to delete log path={}: {error}", request.path.display());
                self.errors
                    .warn_in(ErrorGroup::Storage, &text, self.clock.epoch_ms());
                Some(request)
            }
            _ => {
                self.sparse_logs.remove(&request.path);
                let length = log_file_length(request.log.term_length(), self.settings.page_size);
                self.counters.bytes_mapped.get_and_add(-(length as i64));
                None
            }
        }
    }
}

impl Agent for ResourceAgent {
    fn role_name(&self) -> &'static str {
        "native-resource-agent"
    }

    fn do_work(&mut self, now_ns: i64) -> usize {
        let mut work_count = self.outcomes.flush();
        // Tasks are taken even while outcomes wait for room: see `mailbox`.
        if let Some(task) = self.tasks.pop() {
            self.run(task);
            work_count += 1;
        }
        let (gossip_count, found) = self.names.gossip(now_ns);
        work_count += gossip_count;
        for outcome in found.into_iter().chain(self.names.take_finished()) {
            self.outcomes.send(outcome);
            work_count += 1;
        }
        work_count + self.free_some(now_ns)
    }

    fn describe(&self, interests: &mut Interests) {
        interests.bell(Bell::ResourceAgent);
        // Lookups end on threads of their own, which ring no doorbell.
        if self.outcomes.is_congested() || self.names.is_waiting() {
            interests.may_come_unrung();
        }
    }

    fn waiting_messages(&self) -> usize {
        self.tasks.len() + self.to_free.len() + self.to_retry.len() + self.outcomes.backlog_length()
    }
}

/// Whether a log may be promised space that it does not take yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Ample,
    /// At or below the threshold of low space once the log is there.
    Scarce,
}

/// The file system's space as new logs find it.
#[derive(Clone, Copy, Debug)]
struct Space {
    usable: u64,
    /// Part of it that sparse logs may still take.
    promised: u64,
}

impl Space {
    fn free(self) -> u64 {
        self.usable.saturating_sub(self.promised)
    }
}

/// The refusal of a log that does not fit, with the term length that does.
fn no_room(directory: &Path, spec: &LogSpec, space: Space) -> CommandError {
    let length = log_file_length(spec.term_length, spec.page_size);
    let fits = |term_length: usize| log_file_length(term_length, spec.page_size) as u64 <= space.free();
    let mut term_length = spec.term_length / 2;
    while term_length >= TERM_LENGTH_MIN && !fits(term_length) {
        term_length /= 2;
    }
    let advice = if term_length < TERM_LENGTH_MIN {
        "not even the shortest terms fit: close publications or subscriptions, or".to_owned()
    } else {
        format!(
            "term-length={} fits (a parameter of the publication's channel; the settings \
             aeron.term.buffer.length and aeron.ipc.term.buffer.length are its defaults), or",
            format_size(term_length as u64)
        )
    };
    let Space { usable, promised } = space;
    let place = disk::description(directory);
    let promised = if promised == 0 {
        String::new()
    } else {
        format!(", of which promised={promised} to the sparse logs in use")
    };
    CommandError::new(
        ErrorCode::StorageSpace,
        format!(
            "insufficient usable storage for new log of length={length} usable={usable} in {place}{promised}; \
             {advice} give the file system more room"
        ),
    )
}
