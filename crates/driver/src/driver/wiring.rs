//! Making a driver's agents and the queues between them.

use std::sync::Arc;

use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{Counter, CountersManager, system_counter};
use headrace_buffers::doorbell::{Bell, Doorbells};
use headrace_buffers::liveness::Liveness;
use headrace_buffers::ring::ManyToOneRing;
use headrace_buffers::{AtomicBuffer, align};
use headrace_sys::Clock;
use headrace_sys::file_watch::FileWatch;

use super::names::NameParts;
use super::{DriverError, DriverSupervisor, files};
use crate::agent::{Agent, DutyCycleTracker, Tracked};
use crate::conductor::{Conductor, ConductorParts, ProcessWatch, SystemCounters};
use crate::config::{DriverConfig, ThreadingMode};
use crate::directory::Ownership;
use crate::environment::{BufferLengths, Disk, Lookups, Network};
use crate::errors::ErrorRecorder;
use crate::event_recorder::EventRecorder;
use crate::mailbox::{Inbox, Outbox, inbox_of};
use crate::names::{Following, LookupTracker, NameRequests, NameSource};
use crate::proxy::{ConductorProxy, ConductorReply, ConductorRequest, ReceiverCommand, SenderCommand};
use crate::receiver::{Receiver, ReceiverCounters, ReceiverSettings};
use crate::resource_agent::{ResourceAgent, ResourceCounters, ResourceSettings};
use crate::resource_tasks::{ResourceOutcome, ResourceTask};
use crate::sender::{SendLimits, Sender, SenderCounters, SenderSettings};

/// The queues between the agents of one driver.
pub(super) struct Queues {
    tasks: Inbox<ResourceTask>,
    outcomes: Inbox<ResourceOutcome>,
    sender: Inbox<SenderCommand>,
    receiver: Inbox<ReceiverCommand>,
    replies: Inbox<ConductorReply>,
    requests: Inbox<ConductorRequest>,
}

impl Queues {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            tasks: inbox_of(capacity),
            outcomes: inbox_of(capacity),
            sender: inbox_of(capacity),
            receiver: inbox_of(capacity),
            replies: inbox_of(capacity),
            requests: inbox_of(capacity),
        }
    }
}

/// What the agents are made with.
pub(super) struct Wiring<'a> {
    pub(super) config: &'a Arc<DriverConfig>,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) system: &'a SystemCounters,
    pub(super) errors: &'a ErrorRecorder,
    pub(super) recorder: &'a EventRecorder,
    pub(super) queues: &'a Queues,
    pub(super) doorbells: &'a Doorbells,
    pub(super) network: &'a Arc<dyn Network>,
    pub(super) disk: &'a Arc<dyn Disk>,
    pub(super) system_buffers: BufferLengths,
    pub(super) liveness: Option<Arc<Liveness>>,
    pub(super) ownership: Arc<Ownership>,
}

impl Wiring<'_> {
    fn counter(&self, id: i32) -> Counter {
        self.system.get(id).clone()
    }

    /// To the agent that waits for `bell`.
    fn outbox<T>(&self, queue: &Inbox<T>, bell: Bell, failed_offers_id: i32) -> Outbox<T> {
        Outbox::new(queue.clone(), self.counter(failed_offers_id)).with_doorbell(self.doorbells.bell(bell))
    }

    fn conductor_proxy(&self) -> ConductorProxy {
        ConductorProxy::new(
            self.queues.replies.clone(),
            self.queues.requests.clone(),
            self.counter(system_counter::CONDUCTOR_PROXY_FAILS),
        )
        .with_doorbell(&self.doorbells.bell(Bell::Conductor))
    }

    fn tracked(
        &self,
        agent: impl Agent + 'static,
        max_id: i32,
        exceeded_id: i32,
        threshold_ns: i64,
    ) -> Box<dyn Agent> {
        let tracker = DutyCycleTracker::new(self.counter(max_id), self.counter(exceeded_id), threshold_ns);
        Box::new(Tracked::new(agent, tracker))
    }

    pub(super) fn sender(&self) -> Box<dyn Agent> {
        let config = self.config;
        let sender = Sender::new(
            self.queues.sender.clone(),
            self.conductor_proxy(),
            SenderCounters::new(|id| self.counter(id)),
            SenderSettings {
                send_to_status_poll_ratio: config.send_to_status_poll_ratio,
                status_message_timeout_ns: config.receiver_status_message_timeout_ns,
                publication_connection_timeout_ns: config.publication_connection_timeout_ns,
                retransmit_delay_ns: config.retransmit_unicast_delay_ns,
                retransmit_linger_ns: config.retransmit_unicast_linger_ns,
                adapts_linger: config.adapts_retransmit_linger(),
                following: Following::within(config.reresolution_check_interval_ns),
                newcomer_allowance: config.newcomer_allowance,
                limits: SendLimits {
                    turn: config.max_messages_per_send.unwrap_or(usize::MAX),
                    call: config.sender_io_vector_capacity.unwrap_or(usize::MAX),
                    ..SendLimits::default()
                },
            },
            Arc::clone(self.clock),
            Arc::clone(self.network),
        );
        self.tracked(
            sender,
            system_counter::SENDER_MAX_CYCLE_TIME,
            system_counter::SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.sender_cycle_threshold_ns,
        )
    }

    pub(super) fn receiver(&self) -> Box<dyn Agent> {
        let config = self.config;
        let receiver = Receiver::new(
            self.queues.receiver.clone(),
            self.conductor_proxy(),
            ReceiverCounters::new(|id| self.counter(id)),
            ReceiverSettings {
                status_message_timeout_ns: config.receiver_status_message_timeout_ns,
                image_liveness_timeout_ns: config.image_liveness_timeout_ns,
                stream_session_limit: config.stream_session_limit,
                following: Following::within(config.reresolution_check_interval_ns),
                receive_buffers: config.receiver_io_vector_capacity,
            },
            Arc::clone(self.clock),
        );
        self.tracked(
            receiver,
            system_counter::RECEIVER_MAX_CYCLE_TIME,
            system_counter::RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.receiver_cycle_threshold_ns,
        )
    }

    pub(super) fn resource_agent(&self, source: NameSource, lookups: Box<dyn Lookups>) -> Box<dyn Agent> {
        let config = self.config;
        Box::new(ResourceAgent::new(
            self.queues.tasks.clone(),
            self.outbox(
                &self.queues.outcomes,
                Bell::Conductor,
                system_counter::CONDUCTOR_PROXY_FAILS,
            ),
            ResourceSettings {
                free_limit: config.resource_free_limit,
                performs_storage_checks: config.perform_storage_checks,
                disk: Arc::clone(self.disk),
                low_space_threshold: config.low_file_store_warning_threshold_bytes as u64,
                ownership: Arc::clone(&self.ownership),
                page_size: config.file_page_size_bytes,
            },
            ResourceCounters {
                bytes_mapped: self.counter(system_counter::BYTES_CURRENTLY_MAPPED),
                free_fails: self.counter(system_counter::FREE_FAILS),
            },
            self.name_requests(source, lookups),
            self.errors.clone(),
            Arc::clone(self.clock),
        ))
    }

    /// The source of names, which has counters of its own.
    pub(super) fn names(&self, counters: &mut CountersManager) -> Result<NameSource, DriverError> {
        let parts = NameParts {
            config: self.config,
            network: self.network.as_ref(),
            counters,
            system: self.system,
            errors: self.errors,
            clock: self.clock,
        };
        parts.source()
    }

    fn name_requests(&self, source: NameSource, lookups: Box<dyn Lookups>) -> NameRequests {
        let tracker = LookupTracker {
            max_time: self.counter(system_counter::NAME_RESOLVER_MAX_TIME),
            threshold_exceeded: self.counter(system_counter::NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED),
            threshold_ns: self.config.name_resolver_threshold_ns,
            errors: self.errors.clone(),
            clock: Arc::clone(self.clock),
        };
        NameRequests::new(source, lookups, Arc::clone(self.network), tracker)
    }

    /// Without it the conductor looks for commands of foreign clients every millisecond, as it does anyway while
    /// there are any. An invoked driver looks when the program invokes it.
    fn openings(&self) -> Option<FileWatch> {
        if self.config.threading() == ThreadingMode::Invoker {
            return None;
        }
        FileWatch::of_openings(&self.config.directory.join(cnc::FILE_NAME)).ok()
    }

    pub(super) fn conductor(
        &self,
        cnc: &CncFile,
        ring: ManyToOneRing,
        counters: CountersManager<AtomicBuffer>,
        supervisor: &Arc<DriverSupervisor>,
        random: fastrand::Rng,
    ) -> Result<Box<dyn Agent>, DriverError> {
        let config = self.config;
        let loss_report = files::create_loss_report(config)?;
        // Logs come and go through the resource agent; these two stay for as long as the driver runs.
        let lasting =
            cnc.file_length() + align(config.loss_report_buffer_length, config.file_page_size_bytes);
        self.counter(system_counter::BYTES_CURRENTLY_MAPPED)
            .get_and_add(lasting as i64);
        let conductor = Conductor::new(ConductorParts {
            config: Arc::clone(config),
            clock: Arc::clone(self.clock),
            ring,
            transmitter: Transmitter::new(cnc.to_clients())?,
            counters,
            system: self.system.clone(),
            errors: self.errors.clone(),
            recorder: self.recorder.clone(),
            tasks: self.outbox(
                &self.queues.tasks,
                Bell::ResourceAgent,
                system_counter::NATIVE_RESOURCE_AGENT_PROXY_FAILS,
            ),
            outcomes: self.queues.outcomes.clone(),
            replies: self.queues.replies.clone(),
            requests: self.queues.requests.clone(),
            sender: self.outbox(
                &self.queues.sender,
                Bell::Sender,
                system_counter::SENDER_PROXY_FAILS,
            ),
            receiver: self.outbox(
                &self.queues.receiver,
                Bell::Receiver,
                system_counter::RECEIVER_PROXY_FAILS,
            ),
            network: Arc::clone(self.network),
            processes: ProcessWatch(self.liveness.clone()),
            system_buffers: self.system_buffers,
            loss_report,
            doorbells: self.doorbells.clone(),
            openings: self.openings(),
            termination: Arc::clone(&supervisor.termination),
            ownership: Arc::clone(&self.ownership),
            supervisor: Arc::<DriverSupervisor>::clone(supervisor),
            random,
        });
        Ok(self.tracked(
            conductor,
            system_counter::CONDUCTOR_MAX_CYCLE_TIME,
            system_counter::CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED,
            config.conductor_cycle_threshold_ns,
        ))
    }
}
