//! A driver of a world, and clients of it that write commands and read events as bytes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::broadcast::Receiver;
use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::counters::{Counter, CountersReader, system_counter, type_ids};
use headrace_buffers::event_log::{self, EventReader};
use headrace_buffers::liveness::Liveness;
use headrace_buffers::log::{Append, ConcurrentAppender, LogBuffers};
use headrace_buffers::loss_report::{self, LossRecord};
use headrace_buffers::ring::ManyToOneRing;
use headrace_driver::DriverConfig;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::{Event, PublicationReady};
use headrace_sim::Node;
use headrace_sys::Access;

use crate::common::peer::Peer;
use crate::common::{self, SECOND, World};
use crate::peers::{FarReceiver, TakesTurns};

pub(crate) const MS: i64 = 1_000_000;
/// The client that tests speak for; they may speak for others as well.
pub(crate) const CLIENT: i64 = 1_000_001;

/// The smallest log, so that tests can fill one.
pub(crate) const IPC: &str = "aeron:ipc?term-length=64k";

/// Steps of the world that are enough for anything a command sets off. Together they take a few milliseconds.
const STEPS_OF_A_COMMAND: usize = 12;

/// One event as it came out of the broadcast.
struct BroadcastEvent {
    type_id: i32,
    message: Vec<u8>,
}

impl BroadcastEvent {
    fn event(&self) -> Event<'_> {
        Event::decode(self.type_id, &self.message).unwrap()
    }
}

/// What a ready or available event told about a log.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) original_registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) limit_counter_id: i32,
    pub(crate) status_counter_id: i32,
    pub(crate) log_file_name: String,
}

/// An image as its subscriber knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageSeen {
    pub(crate) image_correlation_id: i64,
    pub(crate) subscription_id: i64,
    pub(crate) position_counter_id: i32,
    pub(crate) log_file_name: String,
}

/// A driver on the node `near`, and clients of it that are no code of ours.
pub(crate) struct Driver {
    pub(crate) world: World,
    pub(crate) node: Node,
    pub(crate) counters: CountersReader,
    pub(crate) ring: ManyToOneRing,
    cnc: CncFile,
    receiver: Receiver,
    events: Vec<BroadcastEvent>,
    peers: Vec<Rc<RefCell<dyn TakesTurns>>>,
}

impl Driver {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut DriverConfig)) -> Self {
        Self::within(World::new(7), adjust)
    }

    /// A driver in a world that the test has made, for one whose rules do not hold because a test breaks them.
    pub(crate) fn within(world: World, adjust: impl FnOnce(&mut DriverConfig)) -> Self {
        let node = world.add_node_with("near", |config| {
            adjust(config);
            Ok(())
        });
        let node = node.unwrap();
        let cnc = CncFile::map(&node.directory().join(cnc::FILE_NAME), Access::ReadWrite).unwrap();
        Self {
            counters: CountersReader::new(cnc.counters_metadata(), cnc.counters_values()),
            ring: ManyToOneRing::new(cnc.to_driver()).unwrap(),
            receiver: Receiver::new(cnc.to_clients()).unwrap(),
            cnc,
            world,
            node,
            events: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// One step of the world, not beyond a time.
    fn step_until(&mut self, end_ns: i64) {
        self.world.step_until(end_ns);
        for peer in &self.peers {
            peer.borrow_mut().turn(self.world.now_ns());
        }
        let mut message = Vec::new();
        while let Some(type_id) = self.receiver.receive(&mut message).unwrap() {
            let message = message.clone();
            self.events.push(BroadcastEvent { type_id, message });
        }
    }

    /// One step of the world.
    pub(crate) fn step(&mut self) {
        self.step_until(i64::MAX);
    }

    /// Gives a peer its turn after each step.
    pub(crate) fn add_peer<P: TakesTurns + 'static>(&mut self, peer: P) -> Rc<RefCell<P>> {
        let peer = Rc::new(RefCell::new(peer));
        self.peers.push(peer.clone());
        peer
    }

    /// A receiver that channels may call `far`.
    pub(crate) fn add_receiver(&mut self) -> Rc<RefCell<FarReceiver>> {
        let peer = Peer::new(&self.world);
        self.world.network().set_name("far", Some(peer.address.ip()));
        self.add_peer(FarReceiver::new(peer))
    }

    /// Enough steps for anything a command sets off.
    pub(crate) fn finish_commands(&mut self) {
        for _ in 0..STEPS_OF_A_COMMAND {
            self.step();
        }
    }

    /// Time passes, and no client says anything.
    pub(crate) fn pass(&mut self, duration_ns: i64) {
        let end_ns = self.world.now_ns() + duration_ns;
        while self.world.now_ns() < end_ns {
            self.step_until(end_ns);
        }
    }

    /// As [`Self::pass`], with the client keeping itself alive.
    pub(crate) fn pass_alive(&mut self, duration_ns: i64) {
        self.alive(duration_ns, |driver| {
            driver.write(&Command::ClientKeepalive {
                client_id: CLIENT,
                correlation_id: 0,
            });
        });
    }

    /// As [`Self::pass_alive`], by the heartbeat counter alone, as clients of this version do it.
    pub(crate) fn pass_alive_directly(&mut self, duration_ns: i64) {
        let id = self.counters.find(type_ids::CLIENT_HEARTBEAT, CLIENT).unwrap();
        self.alive(duration_ns, |driver| {
            driver.counter(id).set_release(driver.node.clock().epoch_ms());
        });
    }

    fn alive(&mut self, duration_ns: i64, mut beat: impl FnMut(&mut Self)) {
        let end_ns = self.world.now_ns() + duration_ns;
        while self.world.now_ns() < end_ns {
            beat(self);
            self.pass(SECOND.min(end_ns - self.world.now_ns()));
        }
    }

    /// The memory of the commands' ring.
    pub(crate) fn ring_memory(&self) -> AtomicBuffer {
        self.cnc.to_driver()
    }

    /// The process of a client starts, and shows that it lives until this is dropped.
    pub(crate) fn start_process(&self, client_id: i64) -> Liveness {
        let process = Liveness::open(self.node.directory()).unwrap().unwrap();
        assert!(process.hold_client(client_id).unwrap());
        process
    }

    /// Leaves a command in the ring.
    pub(crate) fn write(&mut self, command: &Command<'_>) {
        let mut message = Vec::new();
        let type_id = command.encode(&mut message);
        assert!(self.ring.try_write(type_id, &message).unwrap());
    }

    /// Sends a command and gives it time.
    pub(crate) fn command(&mut self, command: &Command<'_>) {
        self.write(command);
        self.finish_commands();
    }

    pub(crate) fn raw_command(&mut self, type_id: i32, message: &[u8]) {
        assert!(self.ring.try_write(type_id, message).unwrap());
        self.finish_commands();
    }

    pub(crate) fn next_id(&self) -> i64 {
        self.ring.next_correlation_id()
    }

    /// Forgets what clients were told so far.
    pub(crate) fn forget(&mut self) {
        self.events.clear();
    }

    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        self.events.iter().map(BroadcastEvent::event).collect()
    }

    /// Names of the events, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| {
                let text = format!("{event:?}");
                text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
            })
            .collect()
    }

    pub(crate) fn add_publication(&mut self, channel: &str, stream_id: i32) -> i64 {
        self.add_publication_of(CLIENT, channel, stream_id)
    }

    pub(crate) fn add_publication_of(&mut self, client_id: i64, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddPublication {
            client_id,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(crate) fn add_exclusive(&mut self, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddExclusivePublication {
            client_id: CLIENT,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(crate) fn add_subscription(&mut self, channel: &str, stream_id: i32) -> i64 {
        self.add_subscription_of(CLIENT, channel, stream_id)
    }

    pub(crate) fn add_subscription_of(&mut self, client_id: i64, channel: &str, stream_id: i32) -> i64 {
        let correlation_id = self.next_id();
        self.command(&Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel: channel.into(),
        });
        correlation_id
    }

    pub(crate) fn remove_publication(&mut self, registration_id: i64, revoke: bool) {
        let correlation_id = self.next_id();
        self.command(&Command::RemovePublication {
            client_id: CLIENT,
            correlation_id,
            registration_id,
            revoke,
        });
    }

    pub(crate) fn remove_subscription(&mut self, registration_id: i64) {
        let correlation_id = self.next_id();
        self.command(&Command::RemoveSubscription {
            client_id: CLIENT,
            correlation_id,
            registration_id,
        });
    }

    pub(crate) fn reject(&mut self, image_correlation_id: i64, reason: &str) {
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
    pub(crate) fn ready(&self, correlation_id: i64) -> Ready {
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

    pub(crate) fn log(&self, correlation_id: i64) -> LogBuffers {
        LogBuffers::map(&PathBuf::from(self.ready(correlation_id).log_file_name)).unwrap()
    }

    /// Images announced so far, in order.
    pub(crate) fn images(&self) -> Vec<ImageSeen> {
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
    pub(crate) fn unavailable(&self) -> Vec<(i64, i64)> {
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
    pub(crate) fn refusals(&self) -> Vec<(ErrorCode, String)> {
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
    pub(crate) fn changes(&self, kind: &str) -> Vec<String> {
        let (_, mut reader) = EventReader::open(&self.node.directory().join(event_log::FILE_NAME)).unwrap();
        let (events, lost_count) = reader.drain().unwrap();
        assert_eq!(lost_count, 0, "the driver keeps too few events for this test");
        events
            .into_iter()
            .filter(|(_, event)| event.kind == kind)
            .map(|(_, event)| format!("{} -> {}: {}", event.old, event.new, event.reason))
            .collect()
    }

    pub(crate) fn recorded_errors(&self) -> Vec<String> {
        common::errors_of(&self.node)
    }

    pub(crate) fn losses(&self) -> Vec<LossRecord> {
        loss_report::read(&loss_report::map(self.node.directory()).unwrap())
    }

    pub(crate) fn system(&self, id: i32) -> i64 {
        self.counters.value(id).unwrap()
    }

    pub(crate) fn counter(&self, id: i32) -> Counter {
        self.counters.counter(id).unwrap()
    }

    /// The live counters that are not the driver's own.
    pub(crate) fn live_counters(&self) -> Vec<String> {
        let mut labels = Vec::new();
        self.counters.for_each(|record| {
            if record.type_id != type_ids::SYSTEM_COUNTER {
                labels.push(record.label.clone());
            }
        });
        labels
    }

    pub(crate) fn subscriber_positions(&self) -> Vec<i32> {
        let mut ids = Vec::new();
        self.counters.for_each(|record| {
            if record.type_id == type_ids::SUBSCRIBER_POSITION {
                ids.push(record.id);
            }
        });
        ids
    }

    pub(crate) fn publication_path(&self, registration_id: i64) -> PathBuf {
        let logs = self.node.directory().join("publications");
        logs.join(format!("{registration_id}.logbuffer"))
    }

    pub(crate) fn log_files(&self) -> usize {
        self.files("publications")
    }

    pub(crate) fn image_files(&self) -> usize {
        self.files("images")
    }

    fn files(&self, sub_directory: &str) -> usize {
        std::fs::read_dir(self.node.directory().join(sub_directory)).map_or(0, Iterator::count)
    }

    /// How often the driver asked name servers for a name, or opened a socket, or whatever else the trace tells.
    pub(crate) fn count_in_trace(&self, text: &str) -> usize {
        self.world.trace(usize::MAX).matches(text).count()
    }

    /// True when clients were given up for their silence, or because their process ended.
    pub(crate) fn client_timeouts(&self) -> i64 {
        self.system(system_counter::CLIENT_TIMEOUTS)
    }
}

/// Appends messages of 128 bytes with their headers; a term's end takes one more try.
pub(crate) fn fill(log: &LogBuffers, count: usize) {
    let appender = ConcurrentAppender::new(log);
    let mut appended = 0;
    while appended < count {
        match appender.offer(&[&[7; 96]], i64::MAX).unwrap() {
            Append::Position(_) => appended += 1,
            Append::AdminAction => {}
            other => panic!("{other:?}"),
        }
    }
}
