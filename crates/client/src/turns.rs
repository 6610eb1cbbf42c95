//! Turns of the client conductor: housekeeping when it is due, at most one event, then the handlers. The conductor's
//! thread makes them, and so does any thread that waits for a reply.

use std::sync::Arc;

use headrace_buffers::broadcast::LappedError;
use headrace_buffers::doorbell::BlockingIdle;
use headrace_protocol::event::Event;

use crate::blocking::{Answers, PARK_MAX};
use crate::core::Core;
use crate::error::ClientError;
use crate::lock::{lock, try_lock};
use crate::requests::Outcome;
use crate::service::Service;

impl Core {
    /// Services the client until the request is answered or its deadline has passed.
    pub(crate) fn wait(self: &Arc<Self>, correlation_id: i64) -> Result<Outcome, ClientError> {
        let mut idle = BlockingIdle::new(self.config.awaiting_idle.clone(), PARK_MAX);
        loop {
            let work_count = self.step();
            if let Some(outcome) = self.take(correlation_id)? {
                return Ok(outcome);
            }
            if self.expire_requests(Some(correlation_id)) {
                // The next look takes the timeout that was just recorded.
                continue;
            }
            idle.idle(work_count, &Answers(self));
        }
    }

    /// What a thread that waits for a reply does between two looks.
    pub(crate) fn step(self: &Arc<Self>) -> usize {
        if let Some(driver_invoker) = &self.config.driver_invoker {
            driver_invoker();
        }
        self.try_turn()
    }

    /// One turn of the conductor, waiting for the thread that is servicing the client now.
    pub(crate) fn turn(self: &Arc<Self>) -> usize {
        self.service_turn(&mut lock(&self.service))
    }

    /// One turn of the conductor unless another thread is at it.
    pub(crate) fn try_turn(self: &Arc<Self>) -> usize {
        try_lock(&self.service).map_or(0, |mut service| self.service_turn(&mut service))
    }

    /// The turn itself; `service` is the locked one of this core. Returns how much was done.
    pub(crate) fn service_turn(self: &Arc<Self>, service: &mut Service) -> usize {
        // A handler that calls back would find the lock taken by its own thread; public calls refuse before.
        let mut work_count = 0;
        if !self.has_ended()
            && let Err(reason) = self.serve(service, &mut work_count)
        {
            self.end(reason, true);
            work_count += 1;
        }
        work_count + self.run_callbacks(service)
    }

    fn serve(self: &Arc<Self>, service: &mut Service, work_count: &mut usize) -> Result<(), ClientError> {
        let now_ns = self.now_ns();
        let interval_ns = now_ns - service.last_service_ns;
        if interval_ns > self.config.idle_sleep_ns {
            if interval_ns > self.service_timeout_ns {
                let timeout_ns = self.service_timeout_ns;
                return Err(ClientError::ServiceInterval {
                    interval_ns,
                    timeout_ns,
                });
            }
            service.last_service_ns = now_ns;
            self.check_driver(service)?;
            *work_count += usize::from(self.check_liveness(service, now_ns)?);
            self.expire_requests(None);
            let expired = self.state().mappings.expire(now_ns);
            *work_count += expired.len();
        }
        *work_count += self.receive_event(service)?;
        Ok(())
    }

    fn receive_event(self: &Arc<Self>, service: &mut Service) -> Result<usize, ClientError> {
        let type_id = match service.receiver.receive(&mut service.scratch) {
            Ok(None) => return Ok(0),
            Ok(Some(type_id)) => type_id,
            // Events are lost, and with them the state of images and their positions.
            Err(LappedError) => return Err(ClientError::Lapped),
        };
        match Event::decode(type_id, &service.scratch) {
            Ok(event) => self.on_event(&event)?,
            // Newer drivers may say things this client does not know. A damaged event is reported; it concerns
            // one resource at most, so the client goes on.
            Err(error) => self.on_undecodable_event(&error),
        }
        Ok(1)
    }
}
