//! One turn of the client conductor: housekeeping when it is due, at most one event, then the handlers.

use std::sync::Arc;

use headrace_buffers::broadcast::{LappedError, Receiver};
use headrace_buffers::liveness::Liveness;
use headrace_buffers::pulse::Pulse;
use headrace_protocol::event::Event;

use crate::core::Core;
use crate::error::ClientError;
use crate::heartbeat::Heartbeat;

/// What only the servicing thread touches.
pub(crate) struct Service {
    receiver: Receiver,
    scratch: Vec<u8>,
    last_service_ns: i64,
    pub(crate) last_keepalive_ns: i64,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Whether the driver goes on.
    pub(crate) driver_pulse: Pulse,
    /// Shows that this client lives, and whether the driver does; none with a driver that does not.
    pub(crate) liveness: Option<Liveness>,
}

impl Service {
    pub(crate) fn new(
        receiver: Receiver,
        liveness: Option<Liveness>,
        driver_pulse: Pulse,
        now_ns: i64,
    ) -> Self {
        Self {
            receiver,
            scratch: Vec::with_capacity(4096),
            last_service_ns: now_ns,
            last_keepalive_ns: now_ns,
            heartbeat: None,
            driver_pulse,
            liveness,
        }
    }
}

impl Core {
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
