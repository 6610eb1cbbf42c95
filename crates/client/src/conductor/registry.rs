//! The rooms behind their lock, and what the client does with them.
//!
//! This is the inner of the client's two locks ([note 4](../../../../docs/design/0004-client-locks.md)): nothing here knows
//! the outer one, that of [`super::duty_cycle`], so nothing waits for a handler while it has this one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use super::context::{Context, Services};
use super::driver_proxy::Removal;
use super::events;
use super::handler_thread::HandlerThread;
use super::requests::{Found, Kind, Outcome, Request};
use super::rooms::{EXPLICIT_CLOSE_LINGER_NS, Rooms};
use crate::error::ClientError;
use crate::handlers::Handler;
use crate::lock::lock;

pub(crate) struct Registry {
    pub(crate) services: Services,
    pub(crate) handler_thread: HandlerThread,
    rooms: Mutex<Rooms>,
    // True once the client has ended, for loops that should not take a lock to learn it.
    ended: AtomicBool,
    /// The thread of the conductor, if it has one.
    pub(crate) thread: OnceLock<Thread>,
}

impl Registry {
    pub(crate) fn new(services: Services, rooms: Rooms) -> Self {
        Self {
            services,
            handler_thread: HandlerThread::new(),
            rooms: Mutex::new(rooms),
            ended: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }

    pub(crate) fn rooms(&self) -> MutexGuard<'_, Rooms> {
        lock(&self.rooms)
    }

    /// The rooms of a client that has not ended.
    pub(crate) fn open(&self) -> Result<MutexGuard<'_, Rooms>, ClientError> {
        let rooms = self.rooms();
        rooms.check_open()?;
        Ok(rooms)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Why the client ended, once it has.
    pub(crate) fn ended_by(&self) -> Option<ClientError> {
        self.rooms().ended_by().cloned()
    }

    /// Closes everything. False when it was closed before.
    pub(crate) fn end(&self, reason: ClientError, report: bool) -> bool {
        let now_ns = self.services.now_ns();
        let mut rooms = self.rooms();
        if rooms.ended_by().is_some() {
            return false;
        }
        self.ended.store(true, Ordering::Release);
        let leftovers = rooms.end(reason, report, now_ns);
        let (requests, mappings) = leftovers.unlock(rooms);
        for mapping in mappings {
            // A log that is being polled goes with its images.
            mapping.unmap();
        }
        drop(requests);
        self.services.doorbells.close();
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        true
    }

    /// Sends a request and remembers it under its correlation id, which is returned.
    pub(crate) fn submit<'a>(
        &self,
        operation: &'static str,
        kind: impl FnOnce(i64) -> Kind,
        command: impl FnOnce(i64, i64) -> Command<'a>,
    ) -> Result<i64, ClientError> {
        self.handler_thread.refuse_reentry(operation)?;
        let Services { config, driver, .. } = &self.services;
        let deadline_ns = self.services.now_ns().saturating_add(config.driver_timeout_ns());
        // The rooms stay locked until the request is known, so that its reply cannot overtake it.
        let mut rooms = self.open()?;
        let correlation_id = driver.next_correlation_id();
        let command = command(driver.client_id(), correlation_id);
        driver.send(operation, &command)?;
        let kind = kind(correlation_id);
        if let Kind::Subscription(shared) = &kind {
            rooms.subscriptions.add(Arc::clone(shared));
        }
        let request = Request::new(kind, operation, &command, deadline_ns);
        rooms.requests.add(correlation_id, request);
        Ok(correlation_id)
    }

    /// Takes the outcome of a request: nothing while it is pending or when the id is unknown.
    pub(crate) fn take(&self, correlation_id: i64) -> Result<Option<Outcome>, ClientError> {
        let mut rooms = self.rooms();
        match rooms.requests.take(correlation_id) {
            Found::Unknown => rooms.check_open().map(|()| None),
            Found::Awaiting => Ok(None),
            Found::Answered(request) => request.unlock(rooms).into_result().transpose(),
        }
    }

    /// Fails the requests whose deadline has passed. True if `watched` is among them.
    pub(crate) fn expire_requests(&self, watched: Option<i64>) -> bool {
        let cx = self.services.context();
        let mut rooms = self.rooms();
        let overdue = rooms.requests.overdue(cx.now_ns);
        for correlation_id in &overdue {
            rooms.undo_request(&cx, *correlation_id);
            rooms.requests.time_out(*correlation_id, cx.driver_timeout_ms);
        }
        watched.is_some_and(|watched| overdue.contains(&watched))
    }

    /// Forgets a request, and asks the driver to remove its result. The driver works through commands in order, so the
    /// removal finds the resource even if it has not been made yet; a result that has arrived closes itself. False if
    /// the id is unknown. A client that has ended knows no id: its resources went with it.
    pub(crate) fn cancel(&self, correlation_id: i64) -> Result<bool, ClientError> {
        self.handler_thread.refuse_reentry("cancel")?;
        let cx = self.services.context();
        let mut rooms = self.rooms();
        rooms.undo_request(&cx, correlation_id);
        let request = rooms.requests.remove(correlation_id).unlock(rooms);
        Ok(request.is_some())
    }

    /// Forgets a handle of the publication with this log, and tells the driver.
    pub(crate) fn forget_publication(&self, registration_id: i64, log_id: i64, revoke: bool) {
        let cx = self.services.context();
        let mut rooms = self.rooms();
        if rooms.publications.remove(registration_id) {
            rooms
                .mappings
                .release(log_id, cx.now_ns, EXPLICIT_CLOSE_LINGER_NS);
            rooms.remove_at_driver(&cx, registration_id, Removal::Publication { revoke });
        }
    }

    /// Forgets a subscription, closes it with its images, and tells the driver. False when it is not there.
    pub(crate) fn forget_subscription(&self, registration_id: i64) -> bool {
        let cx = self.services.context();
        let mut rooms = self.rooms();
        let is_known = rooms.close_subscription(registration_id, cx.now_ns);
        if is_known {
            rooms.remove_at_driver(&cx, registration_id, Removal::Subscription);
        }
        is_known
    }

    /// Forgets a counter, and tells the driver.
    pub(crate) fn forget_counter(&self, registration_id: i64) {
        let cx = self.services.context();
        let mut rooms = self.rooms();
        rooms.counters.remove(registration_id);
        rooms.remove_at_driver(&cx, registration_id, Removal::Counter);
    }

    /// Adds a handler and returns its id.
    pub(crate) fn add_handler(&self, handler: Handler) -> Result<i64, ClientError> {
        self.handler_thread.refuse_reentry(handler.operation())?;
        let mut rooms = self.open()?;
        let id = self.services.driver.next_correlation_id();
        rooms.callbacks.handlers.add(id, handler);
        Ok(id)
    }

    /// Removes a handler, which may hold what closes something of this client. False when it is not known.
    pub(crate) fn remove_handler(&self, id: i64) -> bool {
        let mut rooms = self.rooms();
        let handler = rooms.callbacks.remove(id).unlock(rooms);
        handler.is_some()
    }

    /// Applies an event of the driver. An error ends the client.
    pub(crate) fn on_event(&self, cx: &Context<'_>, event: &Event<'_>) -> Result<(), ClientError> {
        let mut rooms = self.rooms();
        if rooms.ended_by().is_some() {
            return Ok(());
        }
        events::apply(event, &mut rooms, cx)
    }

    /// Unmaps the logs whose time is over, which takes a while where there are gigabytes. Returns how many.
    pub(crate) fn unmap_expired(&self, now_ns: i64) -> usize {
        let mut rooms = self.rooms();
        let expired = rooms.mappings.take_expired(now_ns).unlock(rooms);
        let mut count = 0;
        for (id, mapping) in expired {
            if mapping.unmap() {
                count += 1;
            } else {
                self.rooms().mappings.put_back(id, mapping);
            }
        }
        count
    }

    /// Drops the calls of handlers that were not made.
    pub(crate) fn drop_callbacks(&self) {
        let mut rooms = self.rooms();
        let callbacks = rooms.callbacks.take_unmade().unlock(rooms);
        drop(callbacks);
    }
}
