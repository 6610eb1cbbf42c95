//! Turns of the client conductor: housekeeping when it is due, at most one event, then the handlers. The conductor's
//! thread makes them, and so does any thread that waits for a reply; whichever has the lock of the [`DutyCycle`].

use std::sync::Arc;

use headrace_buffers::broadcast::{LappedError, Receiver};
use headrace_protocol::event::{Event, EventError};

use super::liveness::Liveness;
use super::registry::Registry;
use crate::error::ClientError;

/// What only the thread touches that services the client. Who may change it may make turns and call handlers.
pub(crate) struct DutyCycle {
    receiver: Receiver,
    scratch: Vec<u8>,
    last_ns: i64,
    // The longest time between two turns.
    timeout_ns: i64,
    liveness: Liveness,
}

impl DutyCycle {
    pub(crate) fn new(receiver: Receiver, liveness: Liveness, timeout_ns: i64, now_ns: i64) -> Self {
        Self {
            receiver,
            scratch: Vec::with_capacity(4096),
            last_ns: now_ns,
            timeout_ns,
            liveness,
        }
    }

    /// One turn. Returns how much was done.
    pub(crate) fn turn(&mut self, registry: &Registry) -> usize {
        // A handler that calls back would find the lock taken by its own thread; public calls refuse before.
        let mut work_count = 0;
        if !registry.has_ended()
            && let Err(reason) = self.service(registry, &mut work_count)
        {
            registry.end(reason, true);
            work_count += 1;
        }
        work_count + self.run_handlers(registry)
    }

    /// Makes the calls of handlers that are queued, in order.
    pub(crate) fn run_handlers(&mut self, registry: &Registry) -> usize {
        let counters = &registry.services.counters;
        let mut count = 0;
        loop {
            let mut rooms = registry.rooms();
            let Some(callback) = rooms.callbacks.next() else {
                return count;
            };
            let callback = callback.unlock(rooms);
            count += 1;
            let report = |reason| {
                let error_handler = Arc::clone(&registry.rooms().callbacks.handlers.error);
                error_handler(&ClientError::HandlerPanicked { reason });
            };
            registry.handler_thread.call(|| callback(counters), report);
        }
    }

    /// The part of a turn that keeps the driver from taking this client for dead.
    pub(crate) fn keep_alive(&mut self, registry: &Registry) {
        let now_ns = registry.services.now_ns();
        if registry.has_ended() || now_ns - self.last_ns > self.timeout_ns {
            return;
        }
        self.last_ns = now_ns;
        // A driver that is gone the next turn finds.
        let _ = self.liveness.keep_alive(&registry.services, now_ns);
    }

    /// Lets go of what shows that the client lives.
    pub(crate) fn let_go(&mut self) {
        self.liveness.let_go();
    }

    fn service(&mut self, registry: &Registry, work_count: &mut usize) -> Result<(), ClientError> {
        let services = &registry.services;
        let now_ns = services.now_ns();
        let interval_ns = now_ns - self.last_ns;
        if interval_ns > services.config.idle_sleep_ns {
            if interval_ns > self.timeout_ns {
                let timeout_ns = self.timeout_ns;
                return Err(ClientError::ServiceInterval {
                    interval_ns,
                    timeout_ns,
                });
            }
            self.last_ns = now_ns;
            self.liveness.check_driver(services)?;
            *work_count += usize::from(self.liveness.keep_alive(services, now_ns)?);
            registry.expire_requests(None);
            *work_count += registry.unmap_expired(now_ns);
        }
        *work_count += self.receive_event(registry, now_ns)?;
        Ok(())
    }

    fn receive_event(&mut self, registry: &Registry, now_ns: i64) -> Result<usize, ClientError> {
        let type_id = match self.receiver.receive(&mut self.scratch) {
            Ok(None) => return Ok(0),
            Ok(Some(type_id)) => type_id,
            // Events are lost, and with them the state of images and their positions.
            Err(LappedError) => return Err(ClientError::Lapped),
        };
        match Event::decode(type_id, &self.scratch) {
            Ok(event) => registry.on_event(&registry.services.context_at(now_ns), &event)?,
            // It concerns one resource at most, so the client goes on.
            Err(error @ EventError::Malformed { .. }) => {
                let reason = error.to_string();
                let error = ClientError::InvalidEvent { reason };
                registry.rooms().callbacks.queue_error(error);
            }
            // Newer drivers may say things this client does not know.
            Err(_) => {}
        }
        Ok(1)
    }
}
