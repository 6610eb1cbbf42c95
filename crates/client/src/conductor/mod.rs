//! The conductor of a client, which its public handles share.
//!
//! ```text
//!   ClientConductor          what the client's handles and its resources call
//!     DutyCycle      lock 1  one thread at a time: reads events, watches the driver, calls handlers
//!       Liveness
//!     Registry
//!       Services             settings, clock, the ring to the driver, counters: no lock
//!       Rooms        lock 2  the tables, held briefly and never while a handler runs
//!         Requests | Publications | Subscriptions | Counters | LogMappings | Callbacks
//! ```
//!
//! The locks are taken in this order. A handler runs with the first held and the second free. Closing or dropping a
//! publication needs only the second, so it never waits for a handler.
//!
//! The types show it: a handler's call comes out of [`callbacks::Callbacks`] as a [`leaving::Leaving`], which is opened by
//! giving back the second lock, and is made by the `DutyCycle`, which is had with the first. Rooms get a [`context::Context`],
//! which has no lock, no clock and no handler.

mod callbacks;
mod context;
mod counters;
mod driver_proxy;
mod duty_cycle;
mod events;
mod handler_thread;
mod leaving;
mod liveness;
mod log_mappings;
mod publications;
mod registry;
mod replies;
mod requests;
mod rooms;
mod subscriptions;
mod thread;
mod thread_token;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use headrace_buffers::broadcast::Receiver;
use headrace_buffers::cnc::CncFile;
use headrace_buffers::counters::CountersReader;
use headrace_buffers::doorbell::{Bell, BlockingIdle, Doorbells};
use headrace_buffers::liveness::Liveness as LivenessFile;
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::command::Command;

pub(crate) use context::Services;
pub(crate) use registry::Registry;
pub use replies::{PARK_MAX, Replies};
pub(crate) use requests::{Kind, Outcome};
pub(crate) use thread::ConductorThread;

use crate::conductor_proxy::ConductorProxy;
use crate::config::ClientConfig;
use crate::error::ClientError;
use crate::lock::{lock, try_lock};
use driver_proxy::DriverProxy;
use duty_cycle::DutyCycle;
use liveness::Liveness;
use log_mappings::LogMappings;
use rooms::Rooms;

/// What a client works with.
pub(crate) struct ConductorParts {
    pub(crate) config: ClientConfig,
    pub(crate) client_id: i64,
    pub(crate) cnc: CncFile,
    pub(crate) to_driver: ManyToOneRing,
    pub(crate) receiver: Receiver,
    pub(crate) liveness_file: Option<LivenessFile>,
    pub(crate) doorbells: Doorbells,
}

pub(crate) struct ClientConductor {
    pub(crate) registry: Registry,
    duty_cycle: Mutex<DutyCycle>,
}

impl ClientConductor {
    pub(crate) fn new(parts: ConductorParts) -> Arc<Self> {
        let ConductorParts {
            mut config,
            client_id,
            cnc,
            to_driver,
            receiver,
            liveness_file,
            doorbells,
        } = parts;
        let now_ns = config.clock.nano_time();
        let liveness = Liveness::new(liveness_file, to_driver.consumer_heartbeat_ms(), now_ns);
        let duty_cycle = DutyCycle::new(receiver, liveness, cnc.client_liveness_timeout_ns(), now_ns);
        let handlers = config.take_handlers(|| to_driver.next_correlation_id());
        let rooms = Rooms::new(LogMappings::new(doorbells.clone()), handlers);
        Arc::new_cyclic(|conductor: &Weak<Self>| {
            let services = Services {
                config,
                driver: DriverProxy::new(client_id, to_driver, doorbells.bell(Bell::Conductor)),
                counters: CountersReader::new(cnc.counters_metadata(), cnc.counters_values()),
                doorbells,
                proxy: conductor.clone(),
            };
            Self {
                registry: Registry::new(services, rooms),
                duty_cycle: Mutex::new(duty_cycle),
            }
        })
    }

    /// Services the client until the request is answered or its deadline has passed.
    pub(crate) fn wait(&self, correlation_id: i64) -> Result<Outcome, ClientError> {
        let services = &self.registry.services;
        let mut idle = BlockingIdle::new(services.config.awaiting_idle.clone(), PARK_MAX);
        loop {
            let work_count = self.step();
            if let Some(outcome) = self.registry.take(correlation_id)? {
                return Ok(outcome);
            }
            if self.registry.expire_requests(Some(correlation_id)) {
                // The next look takes the timeout that was just recorded.
                continue;
            }
            idle.idle(work_count, &Replies(services));
        }
    }

    /// What a thread that waits for a reply does between two looks.
    pub(crate) fn step(&self) -> usize {
        if let Some(driver_invoker) = &self.registry.services.config.driver_invoker {
            driver_invoker();
        }
        try_lock(&self.duty_cycle).map_or(0, |mut duty_cycle| duty_cycle.turn(&self.registry))
    }

    /// One turn of the conductor, waiting for the thread that is servicing the client now.
    pub(crate) fn turn(&self) -> usize {
        lock(&self.duty_cycle).turn(&self.registry)
    }

    /// Shows the driver that the client lives, unless a turn is under way, which does.
    pub(crate) fn keep_alive(&self) {
        if let Some(mut duty_cycle) = try_lock(&self.duty_cycle) {
            duty_cycle.keep_alive(&self.registry);
        }
    }

    /// Closes the client for the program: everything that it has, with the handlers that follow from it, and at the driver.
    pub(crate) fn close(&self) {
        let Services { config, driver, .. } = &self.registry.services;
        let error_handler = Arc::clone(&self.registry.rooms().callbacks.handlers.error);
        if self.registry.end(ClientError::Closed { what: "client" }, false) {
            self.run_handlers_now();
            let linger_ns = u64::try_from(config.close_linger_ns).unwrap_or(0);
            if linger_ns > 0 {
                config.clock.sleep(Duration::from_nanos(linger_ns));
            }
            if let Err(error) = driver.close_client() {
                error_handler(&error);
            }
        }
    }

    /// Ends the client without a handler, and lets go of what shows that it lives.
    pub(crate) fn abandon(&self) {
        self.registry.end(ClientError::Closed { what: "client" }, false);
        lock(&self.duty_cycle).let_go();
        self.registry.drop_callbacks();
    }
}

impl ConductorProxy for ClientConductor {
    fn counters(&self) -> &CountersReader {
        &self.registry.services.counters
    }

    fn doorbells(&self) -> Doorbells {
        self.registry.services.doorbells.clone()
    }

    fn ended_by(&self) -> Option<ClientError> {
        self.registry.ended_by()
    }

    fn request<'a>(
        &self,
        operation: &'static str,
        command: &dyn Fn(i64, i64) -> Command<'a>,
    ) -> Result<i64, ClientError> {
        let client_id = self.registry.services.driver.client_id();
        let kind = |correlation_id| Kind::of_operation(&command(client_id, correlation_id));
        self.registry.submit(operation, kind, command)
    }

    fn wait_for(&self, correlation_id: i64) -> Result<(), ClientError> {
        self.wait(correlation_id).map(|_| ())
    }

    fn forget_publication(&self, registration_id: i64, log_id: i64, revoke: bool) {
        self.registry.forget_publication(registration_id, log_id, revoke);
    }

    fn forget_subscription(&self, registration_id: i64) -> bool {
        self.registry.forget_subscription(registration_id)
    }

    fn forget_counter(&self, registration_id: i64) {
        self.registry.forget_counter(registration_id);
    }

    fn run_handlers_now(&self) {
        if !self.registry.handler_thread.is_this() {
            lock(&self.duty_cycle).run_handlers(&self.registry);
        }
    }

    fn run_handlers_if_free(&self) {
        if !self.registry.handler_thread.is_this()
            && let Some(mut duty_cycle) = try_lock(&self.duty_cycle)
        {
            duty_cycle.run_handlers(&self.registry);
        }
    }
}
