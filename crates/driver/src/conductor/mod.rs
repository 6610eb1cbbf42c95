//! The agent that clients talk to: commands, resources, timers and limits.
//!
//! One duty cycle reads at most one command. A command that needs the resource agent (a log to create) stays
//! pending, and holds back the commands after it, until the outcome is in; so clients see their commands answered in
//! the order they were sent. Only a command that waits for a name server steps aside: those after it go on, and are
//! answered before it.

mod clients;
mod commands;
mod context;
mod counter_commands;
mod counters;
mod endpoints;
mod events;
mod image;
mod image_budget;
mod images;
mod ipc;
mod ipc_publication;
mod links;
mod network;
mod network_events;
mod network_publication;
mod network_subscriptions;
mod open_channels;
mod pending;
mod ports;
mod processes;
mod publications;
mod quiet;
mod session_ids;
mod spies;
mod subscriptions;
mod unblock;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headrace_buffers::BufferError;
use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::counters::{CountersManager, system_counter};
use headrace_buffers::doorbell::{Bell, Doorbell, Doorbells, Interests};
use headrace_buffers::loss_report::LossReport;
use headrace_buffers::ring::{ManyToOneRing, ReadAction};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::ChannelDefaults;
use headrace_sys::Clock;
use headrace_sys::open_watch::OpenWatch;

pub(crate) use context::SystemCounters;
pub(crate) use processes::ProcessWatch;

use crate::agent::Agent;
use crate::config::DriverConfig;
use crate::environment::{BufferLengths, Network};
use crate::errors::{CommandError, ErrorRecorder};
use crate::mailbox::{Inbox, Outbox};
use crate::proxy::{ConductorReply, ConductorRequest, ReceiverCommand, SenderCommand};
use crate::resource_agent::{ResourceOutcome, ResourceTask};
use clients::Clients;
use context::Context;
use counters::Counters;
use endpoints::{ReceiveChannel, SendChannel};
use events::EventProxy;
use image::{Image, Rebuild};
use image_budget::ImageBudget;
use images::PendingImage;
use ipc_publication::IpcPublication;
use network_publication::NetworkPublication;
use pending::{Lookup, Pending};
use ports::Ports;
use processes::WatchRound;
use quiet::Quiet;
use session_ids::SessionIds;
use subscriptions::Subscription;

/// How old the cached wall clock may get.
const EPOCH_CLOCK_REFRESH_NS: i64 = 1_000_000;

/// What the conductor works with.
pub(crate) struct ConductorParts {
    pub(crate) config: Arc<DriverConfig>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ring: ManyToOneRing,
    pub(crate) transmitter: Transmitter,
    pub(crate) counters: CountersManager,
    pub(crate) system: SystemCounters,
    pub(crate) errors: ErrorRecorder,
    pub(crate) tasks: Outbox<ResourceTask>,
    pub(crate) outcomes: Inbox<ResourceOutcome>,
    pub(crate) replies: Inbox<ConductorReply>,
    pub(crate) requests: Inbox<ConductorRequest>,
    pub(crate) sender: Outbox<SenderCommand>,
    pub(crate) receiver: Outbox<ReceiverCommand>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) processes: Box<dyn ProcessWatch>,
    pub(crate) system_buffers: BufferLengths,
    pub(crate) loss_report: LossReport,
    pub(crate) doorbells: Doorbells,
    /// Tells of programs that open the CnC file.
    pub(crate) openings: Option<OpenWatch>,
    /// Set when a client may and does stop the driver.
    pub(crate) termination: Arc<AtomicBool>,
    /// Source of session ids and initial term ids.
    pub(crate) random: fastrand::Rng,
}

/// The conductor agent.
pub(crate) struct Conductor {
    cx: Context,
    clock: Arc<dyn Clock>,
    ring: ManyToOneRing,
    is_ring_broken: bool,
    message: Vec<u8>,
    outcomes: Inbox<ResourceOutcome>,
    replies: Inbox<ConductorReply>,
    requests: Inbox<ConductorRequest>,
    sender: Outbox<SenderCommand>,
    receiver: Outbox<ReceiverCommand>,
    network: Arc<dyn Network>,
    processes: Box<dyn ProcessWatch>,
    watch_round: WatchRound,
    system_buffers: BufferLengths,
    loss_report: LossReport,
    doorbells: Doorbells,
    quiet: Quiet,
    receiver_doorbell: Doorbell,
    pending: Option<Pending>,
    lookups: Vec<Lookup>,
    pending_images: Vec<PendingImage>,
    clients: Clients,
    subscriptions: Vec<Subscription>,
    ipc_publications: Vec<IpcPublication>,
    network_publications: Vec<NetworkPublication>,
    images: Vec<Image>,
    image_budget: ImageBudget,
    send_channels: Vec<SendChannel>,
    receive_channels: Vec<ReceiveChannel>,
    send_ports: Ports,
    receive_ports: Ports,
    last_endpoint_id: i64,
    next_receiver_id: i64,
    session_ids: SessionIds,
    random: fastrand::Rng,
    /// What channels get when they do not say.
    defaults: ChannelDefaults,
    termination: Arc<AtomicBool>,
    next_tick_ns: i64,
    epoch_refreshed_ns: i64,
    last_command_position: i64,
    command_position_since_ns: i64,
}

impl Conductor {
    pub(crate) fn new(mut parts: ConductorParts) -> Self {
        let now_ns = parts.clock.nano_time();
        let config = Arc::clone(&parts.config);
        let mut cx = Context {
            now_ns,
            now_ms: 0,
            counters: Counters::new(parts.counters),
            system: parts.system,
            events: EventProxy::new(
                parts.transmitter,
                parts.errors.clone(),
                parts.doorbells.bell(Bell::Events),
            ),
            errors: parts.errors,
            tasks: parts.tasks,
            config: parts.config,
        };
        cx.set_time(parts.clock.epoch_ms());
        Self {
            cx,
            next_tick_ns: now_ns.saturating_add(config.timer_interval_ns),
            epoch_refreshed_ns: now_ns,
            last_command_position: parts.ring.consumer_position(),
            command_position_since_ns: now_ns,
            clock: parts.clock,
            ring: parts.ring,
            is_ring_broken: false,
            message: Vec::with_capacity(4096),
            outcomes: parts.outcomes,
            replies: parts.replies,
            requests: parts.requests,
            sender: parts.sender,
            receiver: parts.receiver,
            network: parts.network,
            processes: parts.processes,
            watch_round: WatchRound::default(),
            system_buffers: parts.system_buffers,
            loss_report: parts.loss_report,
            receiver_doorbell: parts.doorbells.bell(Bell::Receiver),
            doorbells: parts.doorbells,
            quiet: Quiet::new(parts.openings),
            pending: None,
            lookups: Vec::new(),
            pending_images: Vec::new(),
            clients: Clients::default(),
            subscriptions: Vec::new(),
            ipc_publications: Vec::new(),
            network_publications: Vec::new(),
            images: Vec::new(),
            image_budget: ImageBudget::new(config.image_limits()),
            send_channels: Vec::new(),
            receive_channels: Vec::new(),
            send_ports: Ports::new(config.sender_wildcard_port_range),
            receive_ports: Ports::new(config.receiver_wildcard_port_range),
            last_endpoint_id: 0,
            next_receiver_id: parts.random.i64(..),
            session_ids: SessionIds::new(
                parts.random.i32(..),
                config.publication_reserved_session_id_low,
                config.publication_reserved_session_id_high,
            ),
            random: parts.random,
            defaults: config.channel_defaults(),
            termination: parts.termination,
        }
    }

    fn set_time(&mut self, now_ns: i64) {
        self.cx.now_ns = now_ns;
        if now_ns - self.epoch_refreshed_ns >= EPOCH_CLOCK_REFRESH_NS {
            self.epoch_refreshed_ns = now_ns;
            self.cx.set_time(self.clock.epoch_ms());
            self.quiet.check_openings(now_ns);
        }
    }

    fn on_tick(&mut self) {
        self.ring.put_consumer_heartbeat_ms(self.cx.now_ms);
        self.check_clients();
        self.tick_network_publications();
        self.tick_images();
        self.receiver_doorbell.ring();
        self.tick_ipc_publications();
        self.check_blocked_command();
        self.tell_refused_waiters();
    }

    /// Reads and runs one command, unless there is one in progress or no room to pass its consequences on.
    fn read_command(&mut self) -> usize {
        if self.pending.is_some() || self.is_congested() || self.is_ring_broken {
            return 0;
        }
        let mut message = std::mem::take(&mut self.message);
        let mut type_id = 0;
        let read = self.ring.read(1, |id, bytes| {
            type_id = id;
            message.clear();
            message.extend_from_slice(bytes);
            ReadAction::Continue
        });
        let work_count = match read {
            Ok(0) => 0,
            Ok(count) => {
                self.on_command(type_id, &message);
                count
            }
            Err(error) => {
                self.on_ring_error(&error);
                1
            }
        };
        self.message = message;
        work_count
    }

    /// True while another agent has yet to take earlier messages: begin no new work. See [`crate::mailbox`].
    fn is_congested(&self) -> bool {
        self.cx.tasks.is_congested() || self.sender.is_congested() || self.receiver.is_congested()
    }

    /// Moves limits and looks at what has arrived, for every stream.
    fn track_streams(&mut self) -> usize {
        let mut work_count = 0;
        let mut turn = Rebuild {
            now_ns: self.cx.now_ns,
            now_ms: self.cx.now_ms,
            random: &mut self.random,
            loss_report: &mut self.loss_report,
        };
        for image in &mut self.images {
            work_count += image.rebuild(&mut turn);
        }
        if work_count > 0 {
            self.receiver_doorbell.ring();
        }
        for publication in &mut self.network_publications {
            work_count += publication.update_limit();
        }
        for publication in &mut self.ipc_publications {
            work_count += publication.update_limit();
        }
        work_count
    }

    fn on_ring_error(&mut self, error: &BufferError) {
        self.is_ring_broken = matches!(error, BufferError::CorruptPositions { .. });
        self.cx.record(&CommandError::generic(error.to_string()));
    }

    /// Frees the commands after one whose client died while writing it.
    fn check_blocked_command(&mut self) {
        let position = self.ring.consumer_position();
        if position == self.last_command_position && self.ring.producer_position() > position {
            let stood_still_ns = self.cx.now_ns - self.command_position_since_ns;
            if stood_still_ns > self.cx.config.client_liveness_timeout_ns && self.ring.unblock() {
                self.cx
                    .system
                    .get(system_counter::UNBLOCKED_COMMANDS)
                    .increment_release();
            }
        } else {
            self.command_position_since_ns = self.cx.now_ns;
            self.last_command_position = position;
        }
    }

    /// Answers a command with an error and keeps it, unless the client is only asked to try again.
    fn refuse(&mut self, correlation_id: i64, error: &CommandError) {
        let text = error.to_string();
        self.cx.events.error(correlation_id, error.code, &text);
        if error.code != ErrorCode::ResourceTemporarilyUnavailable {
            self.cx.record(error);
        }
    }
}

impl Agent for Conductor {
    fn role_name(&self) -> &'static str {
        "driver-conductor"
    }

    fn do_work(&mut self, now_ns: i64) -> usize {
        self.set_time(now_ns);
        let mut work_count = self.cx.tasks.flush() + self.sender.flush() + self.receiver.flush();
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns.saturating_add(self.cx.config.timer_interval_ns);
            self.on_tick();
            work_count += 1;
        }
        work_count += self.check_processes();
        work_count += self.process_outcome();
        work_count += self.process_reply();
        work_count += self.resume_lookup();
        work_count += self.read_command();
        work_count += self.process_request();
        work_count += self.track_streams();
        if work_count > 0 {
            self.quiet.on_work(now_ns);
        }
        work_count
    }

    fn describe(&self, interests: &mut Interests) {
        self.describe_work(interests);
    }

    fn waiting_messages(&self) -> usize {
        let outboxes =
            self.cx.tasks.backlog_length() + self.sender.backlog_length() + self.receiver.backlog_length();
        outboxes + self.outcomes.len() + self.replies.len() + self.requests.len()
    }

    fn on_close(&mut self) {
        // Tells clients and the next driver that this one has stopped.
        self.ring.put_consumer_heartbeat_ms(-1);
    }
}

#[cfg(test)]
mod tests;
