//! The heart of a client, shared by its public handles and its conductor.
//!
//! Two locks, always taken in this order:
//!
//! 1. `service`: one thread at a time services the client, that is, reads events, watches the driver and runs
//!    handlers. The conductor's thread does, and so does any thread that waits for a reply.
//! 2. `state`: the tables of requests and resources; held briefly, never while a handler runs.
//!
//! A handler therefore runs with `service` held and `state` free. Closing or dropping a publication needs only
//! `state`, so it can never wait for a handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use headrace_buffers::cnc::CncFile;
use headrace_buffers::counters::{Counter as CounterValue, CountersReader};
use headrace_buffers::doorbell::{Bell, Doorbell, Doorbells};
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command::Command;

use crate::config::ClientConfig;
use crate::error::ClientError;
use crate::handlers::Handlers;
use crate::lock::{lock, try_lock};
use crate::mappings::LogMappings;
use crate::requests::{Kind, Outcome, Request, channel_of};
use crate::service::Service;
use crate::state::State;
use crate::thread_token;

/// Tries at a full command ring, with the processor yielded between them, before the call fails.
const COMMAND_ATTEMPTS: usize = 10;

pub(crate) struct Core {
    pub(crate) config: ClientConfig,
    pub(crate) client_id: i64,
    pub(crate) service_timeout_ns: i64,
    pub(crate) to_driver: ManyToOneRing,
    counters: CountersReader,
    pub(crate) doorbells: Doorbells,
    // Rung after a command.
    pub(crate) driver_doorbell: Doorbell,
    // True once the client has ended, for loops that should not take a lock to learn it.
    ended: AtomicBool,
    state: Mutex<State>,
    pub(crate) service: Mutex<Service>,
    // Token of the thread that is inside a handler.
    callback_thread: AtomicU64,
    pub(crate) conductor_thread: OnceLock<Thread>,
    pub(crate) random: Mutex<fastrand::Rng>,
}

impl Core {
    pub(crate) fn new(
        mut config: ClientConfig,
        cnc: &CncFile,
        to_driver: ManyToOneRing,
        client_id: i64,
        service: Service,
        doorbells: Doorbells,
    ) -> Self {
        let mappings = LogMappings::new(doorbells.clone());
        let handlers = config.take_handlers(|| to_driver.next_correlation_id());
        let state = State::new(mappings, handlers);
        Self {
            client_id,
            service_timeout_ns: cnc.client_liveness_timeout_ns(),
            to_driver,
            counters: CountersReader::new(cnc.counters_metadata(), cnc.counters_values()),
            driver_doorbell: doorbells.bell(Bell::Conductor),
            doorbells,
            ended: AtomicBool::new(false),
            state: Mutex::new(state),
            service: Mutex::new(service),
            callback_thread: AtomicU64::new(thread_token::NO_THREAD),
            conductor_thread: OnceLock::new(),
            random: Mutex::new(config.random.clone()),
            config,
        }
    }

    pub(crate) fn counters(&self) -> &CountersReader {
        &self.counters
    }

    /// One counter's value, after checking an id that came from the driver.
    pub(crate) fn counter_value(&self, counter_id: i32) -> Result<CounterValue, ClientError> {
        self.counters
            .counter(counter_id)
            .ok_or_else(|| ClientError::InvalidEvent {
                reason: format!("counter_id={counter_id} is outside the counters file"),
            })
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.config.clock.nano_time()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn in_own_callback(&self) -> bool {
        self.callback_thread.load(Ordering::Relaxed) == thread_token::current()
    }

    /// Refuses a call made from inside a handler of this client.
    pub(crate) fn refuse_reentry(&self, operation: &'static str) -> Result<(), ClientError> {
        if self.in_own_callback() {
            return Err(ClientError::Reentrant { operation });
        }
        Ok(())
    }

    /// Writes a command, waiting a little for a full ring.
    pub(crate) fn send(&self, name: &'static str, command: &Command<'_>) -> Result<(), ClientError> {
        let mut bytes = Vec::with_capacity(256);
        let type_id = command.encode(&mut bytes);
        for _ in 0..COMMAND_ATTEMPTS {
            match self.to_driver.try_write(type_id, &bytes) {
                Ok(true) => {
                    self.driver_doorbell.ring();
                    return Ok(());
                }
                Ok(false) => std::thread::yield_now(),
                Err(error) => return Err(ClientError::argument("command", name, error.to_string())),
            }
        }
        Err(ClientError::CommandBufferFull { command: name })
    }

    /// As [`Self::send`] for the end of a resource, where no caller could act on a failure.
    pub(crate) fn send_removal(&self, state: &mut State, name: &'static str, command: &Command<'_>) {
        if state.ended.is_none()
            && let Err(error) = self.send(name, command)
        {
            state.queue_error(error);
        }
    }

    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.to_driver.next_correlation_id()
    }

    /// Sends a request and remembers it under its correlation id, which is returned.
    pub(crate) fn submit<'a>(
        &self,
        operation: &'static str,
        kind: impl FnOnce(i64) -> Kind,
        command: impl FnOnce(i64) -> Command<'a>,
    ) -> Result<i64, ClientError> {
        self.refuse_reentry(operation)?;
        // Before the lock: the clock may be the program's.
        let deadline_ns = self.now_ns().saturating_add(self.config.driver_timeout_ns());
        // The state stays locked until the request is known, so that its reply cannot overtake it.
        let mut state = self.state();
        state.check_open()?;
        let correlation_id = self.next_correlation_id();
        let command = command(correlation_id);
        self.send(operation, &command)?;
        let kind = kind(correlation_id);
        if let Kind::Subscription(shared) = &kind {
            state.subscriptions.insert(correlation_id, Arc::clone(shared));
        }
        let request = Request {
            kind,
            operation,
            channel: channel_of(&command),
            deadline_ns,
            result: None,
        };
        state.requests.insert(correlation_id, request);
        Ok(correlation_id)
    }

    /// Takes the outcome of a request: nothing while it is pending or when the id is unknown.
    pub(crate) fn take(&self, correlation_id: i64) -> Result<Option<Outcome>, ClientError> {
        let mut state = self.state();
        let request = match state.requests.get(&correlation_id) {
            None => return state.check_open().map(|()| None),
            Some(request) if request.is_awaiting() => return Ok(None),
            Some(_) => state.requests.remove(&correlation_id),
        };
        request.and_then(|request| request.result).transpose()
    }

    /// Removes a handler, which goes after the lock is given back: what it holds may close something of this client. False
    /// when it is not known.
    pub(crate) fn remove_handler<H>(&self, remove: impl FnOnce(&mut Handlers) -> Option<H>) -> bool {
        let removed = remove(&mut self.state().handlers);
        removed.is_some()
    }

    /// Runs queued handlers in order. The caller holds `service`, as the argument shows.
    pub(crate) fn run_callbacks(&self, _service: &mut Service) -> usize {
        let mut count = 0;
        loop {
            let Some(callback) = self.state().callbacks.pop_front() else {
                return count;
            };
            count += 1;
            self.callback_thread
                .store(thread_token::current(), Ordering::Relaxed);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(&self.counters))) {
                let reason = panic_text(panic.as_ref());
                let error = ClientError::HandlerPanicked { reason };
                let error_handler = Arc::clone(&self.state().handlers.error);
                // The error handler may be the one that panics: it gets one chance and no second.
                let _ = catch_unwind(AssertUnwindSafe(|| error_handler(&error)));
            }
            self.callback_thread
                .store(thread_token::NO_THREAD, Ordering::Relaxed);
        }
    }

    /// Runs what a close has queued, unless this thread is inside a handler or `service` is taken: then the
    /// thread that has it runs the queue.
    pub(crate) fn run_callbacks_if_free(&self) {
        if !self.in_own_callback()
            && let Some(mut service) = try_lock(&self.service)
        {
            self.run_callbacks(&mut service);
        }
    }

    /// As [`Self::run_callbacks_if_free`], waiting for the thread that has `service`.
    pub(crate) fn run_callbacks_now(&self) {
        if !self.in_own_callback() {
            self.run_callbacks(&mut lock(&self.service));
        }
    }

    /// Closes everything. False when it was closed before.
    pub(crate) fn end(&self, reason: ClientError, report: bool) -> bool {
        let now_ns = self.now_ns();
        let leftovers = {
            let mut state = self.state();
            if state.ended.is_some() {
                return false;
            }
            self.ended.store(true, Ordering::Release);
            state.end(reason, report, now_ns)
        };
        drop(leftovers);
        if let Some(thread) = self.conductor_thread.get() {
            thread.unpark();
        }
        true
    }

    /// As [`Self::end`] without a handler, and lets go of what shows that the client lives.
    pub(crate) fn abandon(&self) {
        self.end(ClientError::Closed { what: "client" }, false);
        lock(&self.service).liveness = None;
        // What the program's handlers hold may lock the state when it goes.
        let unrun = std::mem::take(&mut self.state().callbacks);
        drop(unrun);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}
