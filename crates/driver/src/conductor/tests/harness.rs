//! A conductor and its resource agent over memory of this process, with a client's end of the queues.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;
use headrace_buffers::AtomicBuffer;
use headrace_buffers::broadcast::{Receiver, Transmitter};
use headrace_buffers::counters::system_counter::{self, LabelFacts};
use headrace_buffers::counters::{Counter, CountersManager, CountersReader, type_ids};
use headrace_buffers::error_log::{self, DistinctErrorLog};
use headrace_buffers::event_log::{EventLog, EventReader};
use headrace_buffers::log::LogBuffers;
use headrace_buffers::loss_report::{self, LossReport};
use headrace_buffers::ring::ManyToOneRing;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::{Event, PublicationReady};
use headrace_sys::Clock;
use headrace_sys::clock::ManualClock;

use super::world::{Hosts, Processes, Sockets};
use crate::agent::Agent;
use crate::conductor::{Conductor, ConductorParts, SystemCounters};
use crate::config::DriverConfig;
use crate::directory;
use crate::disk::SystemDisk;
use crate::environment::Network;
use crate::errors::ErrorRecorder;
use crate::event_recorder::EventRecorder;
use crate::mailbox::{Inbox, Outbox, QUEUE_CAPACITY, inbox};
use crate::name_lookups::{LookupTracker, NameRequests};
use crate::proxy::{ConductorProxy, ConductorReply, ConductorRequest, ReceiverCommand, SenderCommand};
use crate::resource_agent::{ResourceAgent, ResourceCounters, ResourceSettings};
use crate::resource_tasks::{ResourceOutcome, ResourceTask};

pub(super) const MS: i64 = 1_000_000;
pub(super) const SECOND: i64 = 1_000 * MS;
pub(super) const CLIENT: i64 = 1_000_001;
const START_MS: i64 = 1_700_000_000_000;

/// The smallest log, so that tests can fill one.
pub(super) const IPC: &str = "aeron:ipc?term-length=64k";

/// One event as it came out of the broadcast.
pub(super) struct BroadcastEvent {
    type_id: i32,
    message: Vec<u8>,
}

impl BroadcastEvent {
    pub(super) fn event(&self) -> Event<'_> {
        Event::decode(self.type_id, &self.message).unwrap()
    }
}

/// What a ready or available event told about a log.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) original_registration_id: i64,
    pub(super) session_id: i32,
    pub(super) limit_counter_id: i32,
    pub(super) status_counter_id: i32,
    pub(super) log_file_name: String,
}

/// An image as its subscriber knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageSeen {
    pub(super) image_correlation_id: i64,
    pub(super) subscription_id: i64,
    pub(super) position_counter_id: i32,
    pub(super) log_file_name: String,
}

fn config_of(directory: PathBuf, adjust: impl FnOnce(&mut DriverConfig)) -> Arc<DriverConfig> {
    let mut config = DriverConfig {
        directory,
        ..DriverConfig::default()
    };
    adjust(&mut config);
    config.validate().unwrap();
    Arc::new(config)
}

fn error_recorder(error_log: &AtomicBuffer, system: &SystemCounters) -> ErrorRecorder {
    ErrorRecorder::new(
        DistinctErrorLog::new(error_log.clone()),
        system.get(system_counter::ERRORS).clone(),
    )
}

fn memory(length_bits: i32) -> AtomicBuffer {
    AtomicBuffer::allocate(1 << length_bits)
}

/// The ring of commands, from which 0 was taken, as a driver does at the start.
fn begun_ring(to_driver: &AtomicBuffer) -> ManyToOneRing {
    let ring = ManyToOneRing::new(to_driver.clone()).unwrap();
    ring.next_correlation_id();
    ring
}

fn event_recorder(
    event_log: &AtomicBuffer,
    clock: &Arc<ManualClock>,
    errors: &ErrorRecorder,
) -> EventRecorder {
    EventRecorder::new(EventLog::over(event_log.clone()), clock.clone(), errors.clone())
}

fn resource_agent(
    (tasks, outcomes): (&Inbox<ResourceTask>, &Inbox<ResourceOutcome>),
    names: NameRequests,
    config: &DriverConfig,
    system: &SystemCounters,
    errors: &ErrorRecorder,
    clock: &Arc<ManualClock>,
) -> ResourceAgent {
    let failed_offers = system.get(system_counter::CONDUCTOR_PROXY_FAILS).clone();
    ResourceAgent::new(
        Arc::clone(tasks),
        Outbox::new(Arc::clone(outcomes), failed_offers),
        ResourceSettings {
            free_limit: config.resource_free_limit,
            performs_storage_checks: config.perform_storage_checks,
            disk: Arc::new(SystemDisk),
            low_space_threshold: 0,
        },
        resource_counters(system),
        names,
        errors.clone(),
        clock.clone(),
    )
}

fn queue<T>(capacity: usize) -> Inbox<T> {
    Arc::new(ArrayQueue::new(capacity))
}

pub(super) struct Harness {
    pub(super) clock: Arc<ManualClock>,
    conductor: Conductor,
    resource_agent: ResourceAgent,
    pub(super) ring: ManyToOneRing,
    receiver: Receiver,
    pub(super) counters: CountersReader,
    error_log: AtomicBuffer,
    event_log: AtomicBuffer,
    loss_report: AtomicBuffer,
    to_driver: AtomicBuffer,
    replies: Inbox<ConductorReply>,
    requests: Inbox<ConductorRequest>,
    /// What the conductor tells the sender.
    pub(super) to_sender: Inbox<SenderCommand>,
    /// What the conductor tells the receiver.
    pub(super) to_receiver: Inbox<ReceiverCommand>,
    pub(super) sockets: Sockets,
    pub(super) processes: Processes,
    pub(super) hosts: Hosts,
    pub(super) termination: Arc<AtomicBool>,
    pub(super) directory: tempfile::TempDir,
    pub(super) events: Vec<BroadcastEvent>,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(adjust: impl FnOnce(&mut DriverConfig)) -> Self {
        Self::with_queues(QUEUE_CAPACITY, adjust)
    }

    /// A driver whose queues to and from the sender and the receiver are this long.
    pub(super) fn with_queues(capacity: usize, adjust: impl FnOnce(&mut DriverConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = config_of(directory.path().join("driver"), adjust);
        let clock = Arc::new(ManualClock::new(SECOND, START_MS * MS));
        directory::prepare(&config, clock.as_ref()).unwrap();
        let [to_driver, to_clients] = [64 * 1024 + 768, 256 * 1024 + 128].map(AtomicBuffer::allocate);
        let [metadata, values, error_log, event_log, loss_report] = [20, 18, 16, 16, 12].map(memory);
        let counters = counters(&metadata, &values);
        let system = SystemCounters::new(&counters);
        let fails = |id| system.get(id).clone();
        let errors = error_recorder(&error_log, &system);
        let (hosts, sockets, processes) = (Hosts::default(), Sockets::default(), Processes::default());
        let names = name_requests(&hosts, &sockets, &system, &errors, &clock);
        let (tasks, outcomes) = (inbox(), inbox());
        let resource_agent = resource_agent((&tasks, &outcomes), names, &config, &system, &errors, &clock);
        let (replies, requests) = (queue(capacity), queue(capacity));
        let (to_sender, to_receiver) = (queue(capacity), queue(capacity));
        let sender = Outbox::new(Arc::clone(&to_sender), fails(system_counter::SENDER_PROXY_FAILS));
        let receiver_fails = fails(system_counter::RECEIVER_PROXY_FAILS);
        let receiver = Outbox::new(Arc::clone(&to_receiver), receiver_fails);
        let tasks = Outbox::new(tasks, fails(system_counter::NATIVE_RESOURCE_AGENT_PROXY_FAILS));
        let termination = Arc::default();
        let ring = begun_ring(&to_driver);
        let conductor = Conductor::new(ConductorParts {
            doorbells: headrace_buffers::doorbell::Doorbells::none(),
            openings: None,
            config,
            clock: clock.clone(),
            ring: ManyToOneRing::new(to_driver.clone()).unwrap(),
            transmitter: Transmitter::new(to_clients.clone()).unwrap(),
            counters,
            system,
            recorder: event_recorder(&event_log, &clock, &errors),
            errors,
            tasks,
            outcomes,
            replies: Arc::clone(&replies),
            requests: Arc::clone(&requests),
            sender,
            receiver,
            network: Arc::new(sockets.clone()),
            processes: Box::new(processes.clone()),
            system_buffers: sockets.buffer_lengths().unwrap(),
            loss_report: LossReport::new(loss_report.clone()),
            termination: Arc::clone(&termination),
            random: fastrand::Rng::with_seed(7),
        });
        Self {
            clock,
            conductor,
            resource_agent,
            ring,
            receiver: Receiver::new(to_clients).unwrap(),
            counters: CountersReader::new(metadata, values),
            error_log,
            event_log,
            loss_report,
            to_driver,
            replies,
            requests,
            to_sender,
            to_receiver,
            sockets,
            processes,
            hosts,
            termination,
            directory,
            events: Vec::new(),
        }
    }

    /// One duty cycle of everything.
    pub(super) fn turn(&mut self) {
        let now_ns = self.clock.nano_time();
        self.resource_agent.do_work(now_ns);
        self.conductor.do_work(now_ns);
        let mut message = Vec::new();
        while let Some(type_id) = self.receiver.receive(&mut message).unwrap() {
            self.events.push(BroadcastEvent {
                type_id,
                message: message.clone(),
            });
        }
    }

    /// Enough duty cycles for anything a command sets off.
    pub(super) fn run_cycles(&mut self) {
        for _ in 0..6 {
            self.turn();
        }
    }

    /// Time passes in steps of the timer, so that no tick is missed.
    pub(super) fn pass(&mut self, duration_ns: i64) {
        let mut left_ns = duration_ns;
        while left_ns > 0 {
            let step_ns = left_ns.min(SECOND);
            self.clock.advance_ns(step_ns);
            left_ns -= step_ns;
            self.run_cycles();
        }
    }

    /// As [`Self::pass`], with the client keeping itself alive.
    pub(super) fn pass_alive(&mut self, duration_ns: i64) {
        let mut left_ns = duration_ns;
        while left_ns > 0 {
            let step_ns = left_ns.min(SECOND);
            self.command(&Command::ClientKeepalive {
                client_id: CLIENT,
                correlation_id: 0,
            });
            self.pass(step_ns);
            left_ns -= step_ns;
        }
    }

    /// As [`Self::pass_alive`], by the heartbeat counter alone, as clients of this version do it.
    pub(super) fn pass_alive_directly(&mut self, duration_ns: i64) {
        let id = self.counters.find(type_ids::CLIENT_HEARTBEAT, CLIENT).unwrap();
        let mut left_ns = duration_ns;
        while left_ns > 0 {
            let step_ns = left_ns.min(SECOND);
            self.pass(step_ns);
            self.counter(id).set_release(self.clock.epoch_ms());
            left_ns -= step_ns;
        }
    }

    pub(super) fn ring_memory(&self) -> AtomicBuffer {
        self.to_driver.clone()
    }

    pub(super) fn command(&mut self, command: &Command<'_>) {
        let mut message = Vec::new();
        let type_id = command.encode(&mut message);
        self.raw_command(type_id, &message);
    }

    pub(super) fn raw_command(&mut self, type_id: i32, message: &[u8]) {
        assert!(self.ring.try_write(type_id, message).unwrap());
        self.run_cycles();
    }

    pub(super) fn next_id(&self) -> i64 {
        self.ring.next_correlation_id()
    }

    /// Forgets what clients, sender and receiver were told so far.
    pub(super) fn forget(&mut self) {
        self.forget_events();
        while self.to_sender.pop().is_some() {}
        while self.to_receiver.pop().is_some() {}
    }

    pub(super) fn forget_events(&mut self) {
        self.events.clear();
    }

    /// The way of a real sender or receiver to the conductor.
    pub(super) fn conductor_proxy(&self) -> ConductorProxy {
        let failed_offers = self.counter(system_counter::CONDUCTOR_PROXY_FAILS);
        ConductorProxy::new(
            Arc::clone(&self.replies),
            Arc::clone(&self.requests),
            failed_offers,
        )
    }

    /// The sender or the receiver answers the conductor.
    pub(super) fn reply(&mut self, reply: ConductorReply) {
        assert!(self.replies.push(reply).is_ok());
        self.run_cycles();
    }

    /// The sender or the receiver asks the conductor for something.
    pub(super) fn request(&mut self, request: ConductorRequest) {
        assert!(self.requests.push(request).is_ok());
        self.run_cycles();
    }

    pub(super) fn sender_commands(&self) -> Vec<SenderCommand> {
        std::iter::from_fn(|| self.to_sender.pop()).collect()
    }

    pub(super) fn receiver_commands(&self) -> Vec<ReceiverCommand> {
        std::iter::from_fn(|| self.to_receiver.pop()).collect()
    }

    pub(super) fn events(&self) -> Vec<Event<'_>> {
        self.events.iter().map(BroadcastEvent::event).collect()
    }

    /// Names of the events, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| {
                let text = format!("{event:?}");
                text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
            })
            .collect()
    }

    pub(super) fn add_publication(&mut self, channel: &str, stream_id: i32) -> i64 {
        self.add_publication_of(CLIENT, channel, stream_id)
    }

    pub(super) fn add_publication_of(&mut self, client_id: i64, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddPublication {
            client_id,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(super) fn add_exclusive(&mut self, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddExclusivePublication {
            client_id: CLIENT,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(super) fn add_subscription(&mut self, channel: &str, stream_id: i32) -> i64 {
        self.add_subscription_of(CLIENT, channel, stream_id)
    }

    pub(super) fn add_subscription_of(&mut self, client_id: i64, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(super) fn remove_publication(&mut self, registration_id: i64, revoke: bool) {
        let correlation_id = self.next_id();
        self.command(&Command::RemovePublication {
            client_id: CLIENT,
            correlation_id,
            registration_id,
            revoke,
        });
    }

    pub(super) fn remove_subscription(&mut self, registration_id: i64) {
        let correlation_id = self.next_id();
        self.command(&Command::RemoveSubscription {
            client_id: CLIENT,
            correlation_id,
            registration_id,
        });
    }

    pub(super) fn reject(&mut self, image_correlation_id: i64, reason: &str) {
        let correlation_id = self.next_id();
        self.command(&Command::RejectImage {
            client_id: CLIENT,
            correlation_id,
            image_correlation_id,
            position: 0,
            reason: reason.into(),
        });
    }

    /// The reply that made a publication.
    pub(super) fn ready(&self, correlation_id: i64) -> Ready {
        let ready = |ready: &PublicationReady<'_>| {
            (ready.correlation_id == correlation_id).then(|| Ready {
                original_registration_id: ready.original_registration_id,
                session_id: ready.session_id,
                limit_counter_id: ready.publisher_limit_counter_id,
                status_counter_id: ready.channel_status_counter_id,
                log_file_name: ready.log_file_name.to_string(),
            })
        };
        self.events()
            .iter()
            .find_map(|event| match event {
                Event::PublicationReady(event) | Event::ExclusivePublicationReady(event) => ready(event),
                _ => None,
            })
            .unwrap_or_else(|| panic!("no publication ready for {correlation_id} in {:?}", self.events()))
    }

    pub(super) fn log(&self, correlation_id: i64) -> LogBuffers {
        LogBuffers::map(&PathBuf::from(self.ready(correlation_id).log_file_name)).unwrap()
    }

    /// Images announced so far, in order.
    pub(super) fn images(&self) -> Vec<ImageSeen> {
        self.events()
            .iter()
            .filter_map(|event| match event {
                Event::AvailableImage {
                    image_correlation_id,
                    subscription_registration_id,
                    subscriber_position_counter_id,
                    log_file_name,
                    ..
                } => Some(ImageSeen {
                    image_correlation_id: *image_correlation_id,
                    subscription_id: *subscription_registration_id,
                    position_counter_id: *subscriber_position_counter_id,
                    log_file_name: log_file_name.to_string(),
                }),
                _ => None,
            })
            .collect()
    }

    /// The image and subscription ids of unavailable-image events, in order.
    pub(super) fn unavailable(&self) -> Vec<(i64, i64)> {
        self.events()
            .iter()
            .filter_map(|event| match event {
                Event::UnavailableImage {
                    image_correlation_id,
                    subscription_registration_id,
                    ..
                } => Some((*image_correlation_id, *subscription_registration_id)),
                _ => None,
            })
            .collect()
    }

    /// Code and text of the error replies, in order.
    pub(super) fn refusals(&self) -> Vec<(ErrorCode, String)> {
        self.events()
            .iter()
            .filter_map(|event| match event {
                Event::Error {
                    error_code, message, ..
                } => Some((*error_code, message.to_string())),
                _ => None,
            })
            .collect()
    }

    /// Every change of state of one kind of thing, as `old -> new: reason`.
    pub(super) fn changes(&self, kind: &str) -> Vec<String> {
        let (events, lost_count) = EventReader::over(self.event_log.clone()).unwrap().drain();
        assert_eq!(lost_count, 0, "the harness keeps too few events for this test");
        events
            .into_iter()
            .filter(|(_, event)| event.kind == kind)
            .map(|(_, event)| format!("{} -> {}: {}", event.old, event.new, event.reason))
            .collect()
    }

    pub(super) fn recorded_errors(&self) -> Vec<String> {
        error_log::read(&self.error_log, 0)
            .into_iter()
            .map(|entry| entry.text)
            .collect()
    }

    pub(super) fn losses(&self) -> Vec<loss_report::LossRecord> {
        loss_report::read(&self.loss_report)
    }

    pub(super) fn system(&self, id: i32) -> i64 {
        self.counters.value(id).unwrap()
    }

    pub(super) fn counter(&self, id: i32) -> Counter {
        self.counters.counter(id).unwrap()
    }

    /// The live counters that are not the driver's own.
    pub(super) fn live_counters(&self) -> Vec<String> {
        let mut labels = Vec::new();
        self.counters.for_each(|record| {
            if record.type_id != type_ids::SYSTEM_COUNTER {
                labels.push(record.label.clone());
            }
        });
        labels
    }

    pub(super) fn subscriber_positions(&self) -> Vec<i32> {
        let mut ids = Vec::new();
        self.counters.for_each(|record| {
            if record.type_id == type_ids::SUBSCRIBER_POSITION {
                ids.push(record.id);
            }
        });
        ids
    }

    pub(super) fn publication_path(&self, registration_id: i64) -> PathBuf {
        let directory = self.directory.path().join("driver").join(directory::PUBLICATIONS);
        directory.join(format!("{registration_id}.logbuffer"))
    }

    pub(super) fn log_files(&self) -> usize {
        self.files(directory::PUBLICATIONS)
    }

    pub(super) fn image_files(&self) -> usize {
        self.files(directory::IMAGES)
    }

    fn files(&self, sub_directory: &str) -> usize {
        let path = self.directory.path().join("driver").join(sub_directory);
        std::fs::read_dir(path).unwrap().count()
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.termination.load(Ordering::Acquire)
    }
}

fn resource_counters(system: &SystemCounters) -> ResourceCounters {
    ResourceCounters {
        bytes_mapped: system.get(system_counter::BYTES_CURRENTLY_MAPPED).clone(),
        free_fails: system.get(system_counter::FREE_FAILS).clone(),
    }
}

fn name_requests(
    hosts: &Hosts,
    sockets: &Sockets,
    system: &SystemCounters,
    errors: &ErrorRecorder,
    clock: &Arc<ManualClock>,
) -> NameRequests {
    let tracker = LookupTracker {
        max_time: system.get(system_counter::NAME_RESOLVER_MAX_TIME).clone(),
        threshold_exceeded: system
            .get(system_counter::NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED)
            .clone(),
        threshold_ns: SECOND,
    };
    NameRequests::new(
        Box::new(hosts.clone()),
        Arc::new(sockets.clone()),
        tracker,
        errors.clone(),
        clock.clone(),
    )
}

fn counters(metadata: &AtomicBuffer, values: &AtomicBuffer) -> CountersManager {
    let mut counters = CountersManager::new(metadata.clone(), values.clone(), 1_000);
    let facts = LabelFacts {
        version: "0",
        commit: "0",
        threading_mode: "INVOKER",
        driver_name: "",
        conductor_threshold: "",
        sender_threshold: "",
        receiver_threshold: "",
        name_resolver_threshold: "",
    };
    for (id, label) in system_counter::labels(&facts) {
        assert_eq!(
            counters.allocate(type_ids::SYSTEM_COUNTER, &[], &label, 0),
            Ok(id)
        );
    }
    counters
}
