//! The services that every room of the conductor may use: settings, time, chance, counters, events, errors, and the
//! queues to the other agents. It has no tables of streams or clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_buffers::counters::{Counter, CountersManager, system_counter};
use headrace_buffers::doorbell::Doorbells;
use headrace_buffers::log::LogBuffers;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::ChannelDefaults;

use super::counters::Counters;
use super::events::EventProxy;
use crate::config::DriverConfig;
use crate::environment::BufferLengths;
use crate::errors::{CommandError, ErrorGroup, ErrorRecorder};
use crate::event_recorder::EventRecorder;
use crate::mailbox::Outbox;
use crate::network::Network;
use crate::proxy::{ReceiverCommand, SenderCommand};
use crate::resource_tasks::{EndLog, FreeLog, ResourceTask};

/// The counters whose id is their meaning. Clones share them.
#[derive(Clone)]
pub(crate) struct SystemCounters {
    counters: Arc<[Counter]>,
}

impl SystemCounters {
    /// All system counters of a manager that has allocated them, and only them, in order.
    pub(crate) fn new(manager: &CountersManager) -> Self {
        let counters = (0..system_counter::COUNT as i32).map(|id| manager.counter(id));
        Self {
            counters: counters.collect(),
        }
    }

    /// The counter of a `system_counter` id.
    pub(crate) fn get(&self, id: i32) -> &Counter {
        &self.counters[id as usize]
    }
}

/// Shared by all rooms of the conductor, which run on one thread.
pub(crate) struct Context {
    pub(crate) config: Arc<DriverConfig>,
    /// What channels get when they do not say.
    pub(crate) defaults: ChannelDefaults,
    pub(crate) system_buffers: BufferLengths,
    /// Monotonic time of this duty cycle.
    pub(crate) now_ns: i64,
    /// Epoch time, at most a millisecond old.
    pub(crate) now_ms: i64,
    /// Source of session ids, initial term ids and receiver ids, and of the delays before a loss is reported.
    pub(crate) random: fastrand::Rng,
    pub(crate) counters: Counters,
    pub(crate) system: SystemCounters,
    pub(crate) events: EventProxy,
    pub(crate) errors: ErrorRecorder,
    /// Told of every change of state.
    pub(crate) recorder: EventRecorder,
    pub(crate) doorbells: Doorbells,
    pub(crate) tasks: Outbox<ResourceTask>,
    pub(crate) sender: Outbox<SenderCommand>,
    pub(crate) receiver: Outbox<ReceiverCommand>,
    pub(crate) network: Arc<dyn Network>,
    /// Set when a client may and does stop the driver.
    pub(crate) termination: Arc<AtomicBool>,
}

impl Context {
    /// Sets the epoch time of all services.
    pub(crate) fn set_time(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        self.counters.set_time(now_ms);
        self.events.set_time(now_ms);
    }

    /// Passes on what other agents had no room for; returns how many messages went.
    pub(crate) fn flush(&mut self) -> usize {
        self.tasks.flush() + self.sender.flush() + self.receiver.flush()
    }

    /// True while another agent has yet to take earlier messages: begin no new work. See [`crate::mailbox`].
    pub(crate) fn is_congested(&self) -> bool {
        self.tasks.is_congested() || self.sender.is_congested() || self.receiver.is_congested()
    }

    /// How many messages wait for room in the queues to other agents.
    pub(crate) fn backlog_length(&self) -> usize {
        self.tasks.backlog_length() + self.sender.backlog_length() + self.receiver.backlog_length()
    }

    /// Counts one more of what the system counter stands for.
    pub(crate) fn count(&self, system_counter_id: i32) {
        self.system.get(system_counter_id).increment_release();
    }

    /// Notes a failure that no client gets as an answer.
    pub(crate) fn record(&self, error: &CommandError) {
        self.errors
            .record(error.code.value(), &error.to_string(), self.now_ms);
    }

    /// The same for an image, which strangers cause.
    pub(crate) fn record_image_error(&self, error: &CommandError) {
        self.errors.record_in(
            ErrorGroup::Images,
            error.code.value(),
            &error.to_string(),
            self.now_ms,
        );
    }

    /// Notes what looks wrong in a client's channel.
    pub(crate) fn doubt(&self, text: &str) {
        self.errors.warn_in(ErrorGroup::Doubts, text, self.now_ms);
    }

    /// Notes something worth knowing that is not a failure.
    pub(crate) fn warn(&self, text: &str) {
        self.errors.warn(text, self.now_ms);
    }

    /// Answers a command with an error and keeps it, unless the client is only asked to try again.
    pub(crate) fn refuse(&mut self, correlation_id: i64, error: &CommandError) {
        self.events.error(correlation_id, error.code, &error.to_string());
        if error.code != ErrorCode::ResourceTemporarilyUnavailable {
            self.errors.record_in(
                ErrorGroup::Refusals,
                error.code.value(),
                &error.to_string(),
                self.now_ms,
            );
        }
    }

    /// Has the driver stop.
    pub(crate) fn terminate(&self) {
        self.termination.store(true, Ordering::Release);
    }

    /// Has the space given back that a log will not take: no publisher writes to it any more.
    pub(crate) fn end_log(&mut self, path: impl Into<PathBuf>, unread_length: u64) {
        let path = path.into();
        self.tasks
            .send(ResourceTask::EndLog(Box::new(EndLog { path, unread_length })));
    }

    /// Has a log deleted that is no longer used.
    pub(crate) fn free_log(&mut self, log: LogBuffers, path: impl Into<PathBuf>) {
        let path = path.into();
        self.tasks
            .send(ResourceTask::FreeLog(Box::new(FreeLog { log, path })));
    }

    /// Remembers that a log may be written to by a client that wakes no waiter.
    pub(crate) fn note_publisher(&self, client_id: i64, log: &LogBuffers) {
        if !self.doorbells.is_registered(client_id) {
            log.doorbells().data.mark_foreign();
        }
    }
}
