//! The agent that clients talk to: commands, resources, timers and limits.
//!
//! One duty cycle reads at most one command. A command that needs the resource agent (a log to create) stays pending,
//! and holds back the commands after it, until the outcome is in; so clients get the answers in the order of their
//! commands. Only a command that waits for a name server steps aside: those after it continue, and are answered before
//! it.

mod channels;
mod clients;
mod commands;
mod context;
mod counters;
mod events;
mod held_back;
mod images;
mod inboxes;
mod log_files;
mod marks;
mod origin;
mod publications;
mod quiet;
mod responses;
mod rooms;
mod shown_paths;
mod strategies;
mod subscriptions;
mod unrepaired;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::counters::{CountersManager, system_counter};
use headrace_buffers::doorbell::{Bell, Doorbells, Interests};
use headrace_buffers::loss_report::LossReport;
use headrace_buffers::ring::ManyToOneRing;
use headrace_sys::Clock;
use headrace_sys::file_watch::FileWatch;

pub(crate) use channels::ChannelState;
pub(crate) use clients::{ClientState, ProcessWatch};
pub(crate) use context::SystemCounters;
pub(crate) use images::IntakeState;
pub(crate) use publications::PublicationState;
pub(crate) use subscriptions::SubscriptionState;
pub(crate) use subscriptions::links::LinkState;

use crate::agent::Agent;
use crate::config::DriverConfig;
use crate::directory::Ownership;
use crate::environment::{BufferLengths, Network};
use crate::errors::ErrorRecorder;
use crate::event_recorder::EventRecorder;
use crate::mailbox::{Inbox, Outbox};
use crate::proxy::{ConductorReply, ConductorRequest, ReceiverCommand, SenderCommand};
use crate::resource_tasks::{ResourceOutcome, ResourceTask};
use crate::runner::Supervisor;
use channels::Channels;
use clients::Clients;
use commands::{CommandRing, Progress, Read};
use context::Context;
use counters::Counters;
use events::EventProxy;
use images::Images;
use inboxes::Inboxes;
use publications::{Publications, SessionIds};
use quiet::Quiet;
use rooms::Rooms;
use subscriptions::Subscriptions;

/// Longest time between two heartbeats, however rare the timers are: to clients, and to the next driver, one that shows none
/// for some seconds is dead.
const HEARTBEAT_INTERVAL_MAX_NS: i64 = 1_000_000_000;

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
    pub(crate) recorder: EventRecorder,
    pub(crate) tasks: Outbox<ResourceTask>,
    pub(crate) outcomes: Inbox<ResourceOutcome>,
    pub(crate) replies: Inbox<ConductorReply>,
    pub(crate) requests: Inbox<ConductorRequest>,
    pub(crate) sender: Outbox<SenderCommand>,
    pub(crate) receiver: Outbox<ReceiverCommand>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) processes: ProcessWatch,
    pub(crate) system_buffers: BufferLengths,
    pub(crate) loss_report: LossReport,
    pub(crate) doorbells: Doorbells,
    /// Tells of programs that open the CnC file.
    pub(crate) openings: Option<FileWatch>,
    /// Set when a client may and does stop the driver.
    pub(crate) termination: Arc<AtomicBool>,
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) supervisor: Arc<dyn Supervisor>,
    /// Source of session ids and initial term ids.
    pub(crate) random: fastrand::Rng,
}

/// The conductor agent: the rooms, and the duty cycle that goes through them.
pub(crate) struct Conductor {
    rooms: Rooms,
    ring: CommandRing,
    progress: Progress,
    inboxes: Inboxes,
    quiet: Quiet,
    clock: Arc<dyn Clock>,
    next_tick_ns: i64,
    next_heartbeat_ns: i64,
    epoch_refreshed_ns: i64,
    ownership: Arc<Ownership>,
    supervisor: Arc<dyn Supervisor>,
    /// The last look at the directory found it without this driver's file.
    is_deleted: bool,
    /// The directory is another driver's, or gone: this one has no say any more.
    is_dispossessed: bool,
}

impl Conductor {
    pub(crate) fn new(mut parts: ConductorParts) -> Self {
        let now_ns = parts.clock.nano_time();
        let config = parts.config;
        let first_receiver_id = parts.random.i64(..);
        let session_ids = SessionIds::new(
            parts.random.i32(..),
            config.publication_reserved_session_id_low,
            config.publication_reserved_session_id_high,
        );
        let receiver_doorbell = parts.doorbells.bell(Bell::Receiver);
        let mut cx = Context {
            now_ns,
            now_ms: 0,
            defaults: config.channel_defaults(),
            system_buffers: parts.system_buffers,
            random: parts.random,
            counters: Counters::new(parts.counters),
            system: parts.system,
            events: EventProxy::new(
                parts.transmitter,
                parts.errors.clone(),
                parts.doorbells.bell(Bell::Events),
            ),
            errors: parts.errors,
            recorder: parts.recorder,
            doorbells: parts.doorbells,
            tasks: parts.tasks,
            sender: parts.sender,
            receiver: parts.receiver,
            network: Arc::clone(&parts.network),
            termination: parts.termination,
            config: Arc::clone(&config),
        };
        cx.set_time(parts.clock.epoch_ms());
        let rooms = Rooms {
            cx,
            clients: Clients::new(parts.processes),
            subscriptions: Subscriptions::default(),
            publications: Publications::new(session_ids),
            images: Images::new(config.image_limits(), parts.loss_report, receiver_doorbell),
            channels: Channels::new(&config, parts.network, first_receiver_id),
        };
        Self {
            next_tick_ns: now_ns.saturating_add(config.timer_interval_ns),
            next_heartbeat_ns: now_ns.saturating_add(heartbeat_interval_ns(&config)),
            epoch_refreshed_ns: now_ns,
            ring: CommandRing::new(parts.ring, now_ns),
            progress: Progress::default(),
            inboxes: Inboxes {
                outcomes: parts.outcomes,
                replies: parts.replies,
                requests: parts.requests,
            },
            quiet: Quiet::new(parts.openings),
            clock: parts.clock,
            ownership: parts.ownership,
            supervisor: parts.supervisor,
            is_deleted: false,
            is_dispossessed: false,
            rooms,
        }
    }

    /// Whether another driver has taken the directory over, or it was deleted. To be asked before anything times out that
    /// its clients hold. One that is gone at a single look may be on its way to another driver.
    fn loses_directory(&mut self) -> bool {
        let was_deleted = std::mem::replace(&mut self.is_deleted, self.ownership.is_deleted());
        let directory = self.rooms.cx.config.directory.display();
        let reason = if self.ownership.is_lost() {
            format!(
                "another driver has taken over aeron.dir={directory}: it was started to delete the directory, or this one did \
                 not run for longer than aeron.driver.timeout. This one does nothing any more: close it"
            )
        } else if was_deleted && self.is_deleted {
            format!(
                "the files of aeron.dir={directory} were deleted while this driver ran, so that no client finds it: by a \
                 program, or by systemd, which with RemoveIPC=yes deletes a user's files in /dev/shm when the user's last \
                 session ends. This one does nothing any more: close it and start another, as a system user or with \
                 RemoveIPC=no"
            )
        } else {
            return false;
        };
        self.is_dispossessed = true;
        self.supervisor.on_dispossessed(&reason);
        true
    }

    fn set_time(&mut self, now_ns: i64) {
        self.rooms.cx.now_ns = now_ns;
        if now_ns - self.epoch_refreshed_ns >= EPOCH_CLOCK_REFRESH_NS {
            self.epoch_refreshed_ns = now_ns;
            self.rooms.cx.set_time(self.clock.epoch_ms());
            self.quiet.check_openings(now_ns);
        }
    }

    /// Shows that this driver lives, when it is time to.
    fn beat(&mut self) {
        let cx = &self.rooms.cx;
        if cx.now_ns >= self.next_heartbeat_ns {
            self.next_heartbeat_ns = cx.now_ns.saturating_add(heartbeat_interval_ns(&cx.config));
            self.ring.put_heartbeat_ms(cx.now_ms);
        }
    }

    /// The timers of all rooms.
    fn on_tick(&mut self) {
        self.free_gone_clients();
        let Rooms {
            cx,
            subscriptions,
            publications,
            images,
            channels,
            ..
        } = &mut self.rooms;
        publications.tick_network(cx, subscriptions, channels);
        images.tick(cx, &mut channels.receive);
        publications.tick_ipc(cx, subscriptions);
        shown_paths::show(&mut self.rooms);
        let cx = &self.rooms.cx;
        let timeout_ns = cx.config.client_liveness_timeout_ns;
        let is_held_back = self.progress.is_waiting() || cx.is_congested();
        if self.ring.check_blocked(cx.now_ns, timeout_ns, is_held_back) {
            cx.count(system_counter::UNBLOCKED_COMMANDS);
        }
        self.quiet.tell_refused_waiters(&self.rooms.cx);
    }

    fn free_gone_clients(&mut self) {
        commands::free_gone(&mut self.rooms, &mut self.progress, self.ring.consumed());
    }

    /// Looks for clients that have ended, when it is time to, and frees what they held.
    fn check_processes(&mut self) -> usize {
        let (written, read) = (self.ring.written(), self.ring.consumed());
        let has_ended = self.rooms.clients.check_processes(&self.rooms.cx, written, read);
        if has_ended {
            self.free_gone_clients();
        }
        usize::from(has_ended)
    }

    /// Reads and runs one command, unless there is one in progress or no room to pass its consequences on.
    fn read_command(&mut self) -> usize {
        if self.progress.is_waiting() || self.rooms.cx.is_congested() {
            return 0;
        }
        match self.ring.read(&self.rooms.cx) {
            Read::Nothing => 0,
            Read::Command(type_id) => {
                let message = self.ring.message();
                commands::on_message(type_id, message, &mut self.rooms, &mut self.progress);
                1
            }
            Read::Fault => 1,
        }
    }
}

fn heartbeat_interval_ns(config: &DriverConfig) -> i64 {
    config.timer_interval_ns.min(HEARTBEAT_INTERVAL_MAX_NS)
}

impl Agent for Conductor {
    fn role_name(&self) -> &'static str {
        "driver-conductor"
    }

    fn do_work(&mut self, now_ns: i64) -> usize {
        self.set_time(now_ns);
        let is_tick_due = now_ns >= self.next_tick_ns;
        if self.is_dispossessed || (is_tick_due && self.loses_directory()) {
            return 0;
        }
        self.beat();
        let mut work_count = self.rooms.cx.flush();
        if is_tick_due {
            self.next_tick_ns = now_ns.saturating_add(self.rooms.cx.config.timer_interval_ns);
            self.on_tick();
            work_count += 1;
        }
        work_count += self.check_processes();
        let Self {
            rooms,
            progress,
            inboxes,
            ..
        } = self;
        work_count += inboxes.take_outcome(rooms, progress);
        work_count += inboxes.take_reply(rooms, progress);
        work_count += progress.resume(rooms);
        work_count += self.read_command();
        work_count += self.inboxes.take_request(&mut self.rooms, &self.ring);
        work_count += self.rooms.images.rebuild(&mut self.rooms.cx);
        work_count += self.rooms.publications.update_limits();
        if work_count > 0 {
            self.quiet.on_work(now_ns);
        }
        work_count
    }

    fn describe(&self, interests: &mut Interests) {
        self.quiet.describe(&self.rooms, interests);
    }

    fn waiting_messages(&self) -> usize {
        self.rooms.cx.backlog_length() + self.inboxes.len()
    }

    fn on_close(&mut self) {
        // Tells clients and the next driver that this one has stopped.
        self.ring.put_heartbeat_ms(-1);
    }
}
