//! A sender, a receiver, the network between them, and a conductor small enough to read.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::counters::{Counter, CountersManager, system_counter};
use headrace_buffers::log::LogBuffers;
use headrace_buffers::log::append::{Append, ExclusiveAppender};
use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END};
use headrace_buffers::log::gap::scan_for_gap;
use headrace_buffers::log::read;
use headrace_buffers::log::spec::{LogSpec, LogType};
use headrace_driver::EventRecorder;
use headrace_driver::agent::Agent;
use headrace_driver::endpoint::{EndpointId, ReceiveEndpointSpec, SendEndpointSpec};
use headrace_driver::proxy::{
    ConductorProxy, ConductorReply, ConductorRequest, Inbox, ReceiverCommand, SenderCommand, inbox,
};
use headrace_driver::receiver::{Receiver, ReceiverCounters, ReceiverSettings};
use headrace_driver::sender::{Sender, SenderCounters, SenderSettings};
use headrace_driver::shared::image::{ImageCounters, ImageIdentity};
use headrace_driver::shared::publication::{PublicationCounters, PublicationIdentity};
use headrace_driver::shared::{ImageShared, ImageState, LossRange, PublicationShared, StatusMessageDue};
use headrace_driver::transport::Transport;
use headrace_protocol::congestion::RoundTrips;
use headrace_protocol::flow::{FlowControl, Group, MaxFlowControl, MinFlowControl};
use headrace_protocol::frame::Setup;

use crate::simulated::Network;

pub(crate) const STREAM_ID: i32 = 1001;
pub(crate) const SESSION_ID: i32 = -77;
pub(crate) const TERM_LENGTH: usize = 64 * 1024;
/// A padding frame may take the sender past its limit by what it spans; a window of half a term would then be
/// overrun now and then even by a clean network.
pub(crate) const WINDOW: i32 = 16 * 1024;
pub(crate) const RECEIVER_ID: i64 = 0x1122_3344_5566_7788;
/// Time between two duty cycles.
pub(crate) const STEP_NS: i64 = 100_000;
/// How long a gap is left alone before it is asked for again.
const NAK_RETRY_NS: i64 = 10 * STEP_NS;

pub(crate) const MILLISECOND: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MILLISECOND;

pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// Where data goes.
pub(crate) fn receiver_address() -> SocketAddr {
    address(40_123)
}

/// Where status messages go.
pub(crate) fn sender_address() -> SocketAddr {
    address(50_001)
}

pub(crate) const GROUP_MAX_RESEND: usize = 2;

const ENDPOINT: EndpointId = EndpointId(1);

/// How a stream is laid out and where it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) mtu: usize,
    pub(crate) initial_term_id: i32,
    pub(crate) reliable: bool,
    pub(crate) spies_simulate_connection: bool,
    /// Receivers form a group whose slowest decides, with [`GROUP_MAX_RESEND`] repairs under way at once.
    pub(crate) group: Option<Group>,
    /// The round trip that images assume before they measure one; none if they do not measure.
    pub(crate) initial_rtt_ns: Option<i64>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            mtu: 1408,
            initial_term_id: i32::MAX,
            reliable: true,
            spies_simulate_connection: false,
            group: None,
            initial_rtt_ns: None,
        }
    }
}

/// The conductor's half of an image, and its one subscriber.
pub(crate) struct ImageHalf {
    pub(crate) shared: Arc<ImageShared>,
    pub(crate) position: i64,
    clean_position: i64,
    next_status_position: i64,
    gap: Option<(LossRange, i64)>,
    assembly: Vec<u8>,
    pub(crate) messages: Vec<Vec<u8>>,
}

/// The sockets of a channel.
pub(crate) struct Ends {
    /// The sender's, connected.
    pub(crate) to_receivers: Box<dyn Transport>,
    /// The receiver's.
    pub(crate) to_senders: Box<dyn Transport>,
    /// Where the receiver's is bound.
    pub(crate) remote: SocketAddr,
}

/// Everything between a publisher and a subscriber, on one thread and one hand-set clock.
pub(crate) struct World {
    pub(crate) now_ns: i64,
    pub(crate) network: Network,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) to_sender: Inbox<SenderCommand>,
    pub(crate) to_receiver: Inbox<ReceiverCommand>,
    to_conductor: (Inbox<ConductorReply>, Inbox<ConductorRequest>),
    counters: CountersManager<AtomicBuffer>,
    stream: Stream,
    pub(crate) publication: Arc<PublicationShared>,
    pub(crate) appender: ExclusiveAppender,
    publisher_clean_position: i64,
    pub(crate) image: Option<ImageHalf>,
    /// Answers `CreateImage`; without it SETUPs go unanswered.
    pub(crate) creates_images: bool,
    pub(crate) replies: Vec<ConductorReply>,
    /// Requests that the small conductor does not deal with itself.
    pub(crate) requests: Vec<ConductorRequest>,
}

impl World {
    /// Both ends on a simulated network.
    pub(crate) fn new(stream: Stream, network: Network) -> Self {
        let ends = Ends {
            to_receivers: network.socket(sender_address(), Some(receiver_address())),
            to_senders: network.socket(receiver_address(), None),
            remote: receiver_address(),
        };
        Self::over(stream, network, ends)
    }

    /// Both ends on sockets of the caller's choice.
    pub(crate) fn over(stream: Stream, network: Network, ends: Ends) -> Self {
        let mut counters = CountersManager::new(
            AtomicBuffer::allocate(512 * 256),
            AtomicBuffer::allocate(128 * 256),
            0,
        );
        for _ in 0..system_counter::COUNT {
            counters.allocate(0, &[], "", 0).unwrap();
        }
        let (to_sender, to_receiver) = (inbox(), inbox());
        let to_conductor = (inbox(), inbox());
        let failed = counters.counter(system_counter::CONDUCTOR_PROXY_FAILS);
        let sender = Sender::new(
            Arc::clone(&to_sender),
            ConductorProxy::new(
                Arc::clone(&to_conductor.0),
                Arc::clone(&to_conductor.1),
                failed.clone(),
            ),
            SenderCounters::new(|id| counters.counter(id)),
            SenderSettings::default(),
        );
        let receiver = Receiver::new(
            Arc::clone(&to_receiver),
            ConductorProxy::new(Arc::clone(&to_conductor.0), Arc::clone(&to_conductor.1), failed),
            ReceiverCounters::new(|id| counters.counter(id)),
            ReceiverSettings {
                stream_session_limit: 2,
                ..ReceiverSettings::default()
            },
        );
        let publication = publication(stream, &mut counters);
        let world = Self {
            now_ns: SECOND,
            network,
            sender,
            receiver,
            to_sender,
            to_receiver,
            to_conductor,
            counters,
            stream,
            appender: ExclusiveAppender::new(&publication.log).unwrap(),
            publication,
            publisher_clean_position: 0,
            image: None,
            creates_images: true,
            replies: Vec::new(),
            requests: Vec::new(),
        };
        world.open(ends);
        world
    }

    /// Opens both ends of the channel and adds the publication and a subscription to every session.
    fn open(&self, ends: Ends) {
        let receive = ReceiveEndpointSpec {
            id: ENDPOINT,
            transport: ends.to_senders,
            receiver_id: RECEIVER_ID,
            group: None,
            group_tag: None,
            offload_mode: None,
        };
        self.tell_receiver(ReceiverCommand::AddEndpoint(Box::new(receive)));
        let send = SendEndpointSpec {
            id: ENDPOINT,
            transport: ends.to_receivers,
            remote: ends.remote,
            group: None,
            is_re_resolvable: true,
            offload_mode: None,
        };
        self.tell_sender(SenderCommand::AddEndpoint(Box::new(send)));
        self.tell_sender(SenderCommand::AddPublication {
            endpoint: ENDPOINT,
            publication: Arc::clone(&self.publication),
            flow_control: self.flow_control(),
            max_resend: self.stream.group.map_or(1, |_| GROUP_MAX_RESEND),
        });
    }

    fn flow_control(&self) -> Box<dyn FlowControl> {
        match self.stream.group {
            Some(group) => Box::new(MinFlowControl::new(group, 4)),
            None => Box::new(MaxFlowControl::new(16)),
        }
    }

    pub(crate) fn subscribe(&self, session_id: Option<i32>) {
        self.tell_receiver(ReceiverCommand::AddSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM_ID,
            session_id,
        });
    }

    pub(crate) fn unsubscribe(&self, session_id: Option<i32>) {
        self.tell_receiver(ReceiverCommand::RemoveSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM_ID,
            session_id,
        });
    }

    pub(crate) fn remove_image(&self) {
        let correlation_id = self.image().shared.correlation_id;
        self.tell_receiver(ReceiverCommand::RemoveImage {
            endpoint: ENDPOINT,
            correlation_id,
        });
    }

    pub(crate) fn clear_session(&self) {
        self.tell_receiver(ReceiverCommand::ClearSession {
            endpoint: ENDPOINT,
            stream_id: STREAM_ID,
            session_id: SESSION_ID,
        });
    }

    pub(crate) fn reject_image(&self, reason: &str) {
        let correlation_id = self.image().shared.correlation_id;
        let reason = reason.to_owned();
        self.tell_receiver(ReceiverCommand::RejectImage {
            endpoint: ENDPOINT,
            correlation_id,
            reason,
        });
    }

    pub(crate) fn remove_publication(&self) {
        self.tell_sender(SenderCommand::RemovePublication {
            endpoint: ENDPOINT,
            registration_id: 11,
        });
    }

    pub(crate) fn reconnect(&self, remote: SocketAddr) {
        self.tell_sender(SenderCommand::Reconnect {
            endpoint: ENDPOINT,
            remote,
        });
    }

    fn tell_receiver(&self, command: ReceiverCommand) {
        assert!(self.to_receiver.push(command).is_ok());
    }

    fn tell_sender(&self, command: SenderCommand) {
        assert!(self.to_sender.push(command).is_ok());
    }

    pub(crate) fn image(&self) -> &ImageHalf {
        self.image.as_ref().expect("an image was made")
    }

    /// A system counter's value.
    pub(crate) fn counter(&self, id: i32) -> i64 {
        self.counters.counter(id).get()
    }

    /// Appends a message if the publisher limit allows.
    pub(crate) fn offer(&mut self, message: &[u8]) -> bool {
        let limit = self.publication.sender_position.get() + TERM_LENGTH as i64 / 2;
        for _ in 0..2 {
            match self.appender.offer(&[message], limit).unwrap() {
                Append::Position(_) => return true,
                Append::AdminAction => {}
                Append::BackPressured | Append::NotConnected => return false,
                other => panic!("offer ended as {other:?}"),
            }
        }
        false
    }

    /// One duty cycle of everybody, `STEP_NS` after the last.
    pub(crate) fn step(&mut self) {
        self.now_ns += STEP_NS;
        self.network.step();
        self.conduct();
        self.sender.do_work(self.now_ns);
        self.receiver.do_work(self.now_ns);
    }

    pub(crate) fn run_for(&mut self, duration_ns: i64) {
        let end = self.now_ns + duration_ns;
        while self.now_ns < end {
            self.step();
        }
    }

    /// Steps until `done`, which must come within `timeout_ns` of simulated time.
    pub(crate) fn run_until(&mut self, timeout_ns: i64, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now_ns + timeout_ns;
        while !done(self) {
            assert!(self.now_ns < end, "{what} did not happen within {timeout_ns} ns");
            self.step();
        }
    }

    fn conduct(&mut self) {
        let term_length = TERM_LENGTH as i64;
        let clean_to = self.publication.sender_position.get_acquire() - term_length;
        self.publication
            .log
            .clean(&mut self.publisher_clean_position, clean_to);
        self.replies
            .extend(std::iter::from_fn(|| self.to_conductor.0.pop()));
        while let Some(request) = self.to_conductor.1.pop() {
            match request {
                ConductorRequest::CreateImage { setup, source, .. } if self.creates_images => {
                    self.create_image(&setup, source);
                }
                other => self.requests.push(other),
            }
        }
        let now_ns = self.now_ns;
        if let Some(image) = &mut self.image {
            image.conduct(now_ns);
        }
    }

    fn create_image(&mut self, setup: &Setup, source: SocketAddr) {
        let log = LogBuffers::heap(&LogSpec {
            log_type: LogType::Image,
            term_length: setup.term_length as usize,
            mtu: setup.mtu as usize,
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            initial_term_id: setup.initial_term_id,
            ..LogSpec::default()
        })
        .unwrap();
        let join_position = log
            .geometry()
            .position(setup.active_term_id, setup.term_offset as usize);
        let mut counter = || new_counter(&mut self.counters);
        let counters = ImageCounters {
            high_water_mark: counter(),
            rebuild_position: counter(),
            naks_sent: counter(),
        };
        counters.high_water_mark.set(join_position);
        counters.rebuild_position.set(join_position);
        let identity = ImageIdentity {
            correlation_id: 100 + self.now_ns,
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            source,
            is_reliable: self.stream.reliable,
            join_position,
            initial_window_length: WINDOW,
            window_length_max: WINDOW,
            round_trips: self.stream.initial_rtt_ns.map(RoundTrips::new),
        };
        let shared = Arc::new(ImageShared::new(
            identity,
            log,
            counters,
            &EventRecorder::default(),
        ));
        self.tell_receiver(ReceiverCommand::AddImage {
            endpoint: ENDPOINT,
            image: Arc::clone(&shared),
        });
        self.image = Some(ImageHalf {
            shared,
            position: join_position,
            clean_position: join_position,
            next_status_position: join_position,
            gap: None,
            assembly: Vec::new(),
            messages: Vec::new(),
        });
    }
}

/// A publication at the start of its stream.
fn publication(stream: Stream, counters: &mut CountersManager<AtomicBuffer>) -> Arc<PublicationShared> {
    let log = LogBuffers::heap(&LogSpec {
        log_type: LogType::ExclusivePublication,
        term_length: TERM_LENGTH,
        mtu: stream.mtu,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        initial_term_id: stream.initial_term_id,
        ..LogSpec::default()
    })
    .unwrap();
    let mut counter = || new_counter(counters);
    Arc::new(PublicationShared::new(
        PublicationIdentity {
            registration_id: 11,
            session_id: SESSION_ID,
            stream_id: STREAM_ID,
            mtu_length: stream.mtu,
            has_group_semantics: stream.group.is_some(),
            signals_end_of_stream: true,
            spies_simulate_connection: stream.spies_simulate_connection,
        },
        log,
        PublicationCounters {
            sender_position: counter(),
            sender_limit: counter(),
            back_pressure_events: counter(),
            naks_received: counter(),
            flow_control_receivers: stream.group.map(|_| counter()),
        },
        &EventRecorder::default(),
        SECOND,
    ))
}

fn new_counter(counters: &mut CountersManager<AtomicBuffer>) -> Counter {
    let id = counters.allocate(0, &[], "", 0).unwrap();
    counters.counter(id)
}

impl ImageHalf {
    fn conduct(&mut self, now_ns: i64) {
        if self.shared.state() == ImageState::Active {
            self.rebuild(now_ns);
        }
        self.read();
        if self.position > self.next_status_position + i64::from(WINDOW) / 4 {
            let clean_to = self.position - TERM_LENGTH as i64;
            while self.shared.log.clean(&mut self.clean_position, clean_to) > 0 {}
            self.next_status_position = self.position;
            let due = StatusMessageDue {
                position: self.position,
                window_length: WINDOW,
            };
            self.shared.schedule_status_message(due);
        }
    }

    fn rebuild(&mut self, now_ns: i64) {
        let geometry = self.shared.log.geometry();
        let rebuild_position = self.shared.rebuild_position.get().max(self.position);
        let high_water_mark = self.shared.high_water_mark.get_acquire();
        if rebuild_position >= high_water_mark {
            return;
        }
        let term_id = geometry.term_id(rebuild_position);
        let limit = if geometry.term_id(high_water_mark) == term_id {
            geometry.term_offset(high_water_mark)
        } else {
            TERM_LENGTH
        };
        let offset = geometry.term_offset(rebuild_position);
        let term = self.shared.log.term(geometry.partition(rebuild_position));
        let scan = scan_for_gap(term, term_id, offset, limit);
        let rebuilt = rebuild_position + (scan.rebuild_offset - offset) as i64;
        self.shared.rebuild_position.propose_max_release(rebuilt);
        let gap = scan.gap.map(|gap| LossRange {
            term_id: gap.term_id,
            term_offset: gap.offset as i32,
            length: gap.length as i32,
        });
        match (gap, self.gap) {
            (Some(gap), Some((active, deadline_ns))) if gap == active => {
                if now_ns >= deadline_ns {
                    self.shared.report_loss(gap);
                    self.gap = Some((gap, now_ns + NAK_RETRY_NS));
                }
            }
            (Some(gap), _) => self.gap = Some((gap, now_ns + STEP_NS)),
            (None, _) => self.gap = None,
        }
    }

    fn read(&mut self) {
        let geometry = self.shared.log.geometry();
        let term = self.shared.log.term(geometry.partition(self.position));
        let start = geometry.term_offset(self.position);
        let mut offset = start;
        let (assembly, messages) = (&mut self.assembly, &mut self.messages);
        read::read(
            term,
            geometry,
            &mut offset,
            TERM_LENGTH,
            usize::MAX,
            |payload, header| {
                if header.flags() & FLAG_BEGIN != 0 {
                    assembly.clear();
                }
                assembly.extend_from_slice(payload);
                if header.flags() & FLAG_END != 0 {
                    messages.push(std::mem::take(assembly));
                }
            },
        );
        self.position += (offset - start) as i64;
    }
}
