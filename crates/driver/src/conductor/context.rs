//! What every part of the conductor needs: settings, time, counters, events, errors, the resource agent.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_buffers::counters::{Counter, CountersManager, system_counter};
use headrace_buffers::log::LogBuffers;

use super::counters::Counters;
use super::events::{EventProxy, StreamDescription};
use super::links::{Links, UntetheredAction};
use super::subscriptions::Subscription;
use crate::config::DriverConfig;
use crate::errors::{CommandError, ErrorGroup, ErrorRecorder};
use crate::mailbox::Outbox;
use crate::resource_agent::{FreeLog, ResourceTask};

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

/// Shared by all parts of the conductor, which run on one thread.
pub(crate) struct Context {
    pub(crate) config: Arc<DriverConfig>,
    /// Monotonic time of this duty cycle.
    pub(crate) now_ns: i64,
    /// Epoch time, at most a millisecond old.
    pub(crate) now_ms: i64,
    pub(crate) counters: Counters,
    pub(crate) system: SystemCounters,
    pub(crate) events: EventProxy,
    pub(crate) errors: ErrorRecorder,
    pub(crate) tasks: Outbox<ResourceTask>,
}

impl Context {
    /// Sets the time of all parts.
    pub(crate) fn set_time(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        self.counters.set_time(now_ms);
        self.events.set_time(now_ms);
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

    /// Has a log deleted that is no longer used.
    pub(crate) fn free_log(&mut self, log: LogBuffers, path: String) {
        let path = PathBuf::from(path);
        self.tasks
            .send(ResourceTask::FreeLog(Box::new(FreeLog { log, path })));
    }

    /// Tells the readers of a stream that it is gone for them.
    pub(crate) fn announce_end(&mut self, image_correlation_id: i64, links: &Links) {
        for link in links.iter().filter(|link| link.is_available()) {
            self.events.unavailable_image(image_correlation_id, link);
        }
    }

    /// Does what the state machine of untethered links asks for.
    pub(crate) fn announce_untethered(
        &mut self,
        actions: &[UntetheredAction],
        stream: StreamDescription<'_>,
    ) {
        for action in actions {
            match action {
                UntetheredAction::Unavailable(link) => {
                    self.events.unavailable_image(stream.image_correlation_id, link);
                }
                UntetheredAction::Available(link) => self.events.available_image(stream, link),
                UntetheredAction::Removed(link) => self.counters.free(link.position.id()),
            }
        }
    }

    /// The position counter of a new link. A failure is recorded: the command that led here was answered.
    pub(crate) fn join(
        &mut self,
        subscription: &Subscription,
        stream: StreamDescription<'_>,
        join_position: i64,
    ) -> Option<Counter> {
        let key = subscription.key(stream.session_id);
        match self
            .counters
            .subscriber_position(key, stream.image_correlation_id, join_position)
        {
            Ok(position) => Some(position),
            Err(error) => {
                self.record_image_error(&error);
                None
            }
        }
    }
}
