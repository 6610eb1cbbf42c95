//! One send channel: its socket, the publications that share it, and the frames that come back to them.

use std::net::SocketAddr;

use headrace_buffers::doorbell::Interests;
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameError, FrameKind, Nak, ResponseSetup, RttMeasurement, StatusMessage,
    TERM_LENGTH_MAX, classify,
};
use headrace_sys::Clock;
use headrace_sys::net::ReceiveBatch;

use super::counters::SenderCounters;
use super::destinations::{Changed, Destinations, Heard, LEARNT_MAX};
use super::outgoing::{Outgoing, SendBuffers, SendLimits, Way};
use super::publication::SenderPublication;
use crate::budget::Budgets;
use crate::endpoint::{DestinationChange, EndpointId, SendDestinations, SendEndpointSpec};
use crate::names::Following;
use crate::network::Network;
use crate::proxy::{ConductorProxy, ConductorReply, ConductorRequest};
use crate::stream_map::StreamMap;
use crate::transport::{self, SENDS_A_TURN, Transport};

/// Most messages taken from a control socket in one poll: what strangers send must not take the whole turn.
const MESSAGES_A_POLL_MAX: usize = 256;

const SECOND_NS: i64 = 1_000_000_000;

/// A send channel in the sender's hands.
pub(super) struct SendEndpoint {
    spec: SendEndpointSpec,
    destinations: Destinations,
    publications: Vec<SenderPublication>,
    by_stream: StreamMap<usize>,
    first_to_send: usize,
    newcomers: Budgets,
    last_heard_ns: i64,
    last_re_resolution_ns: i64,
}

/// What the agent lends its endpoints during a duty cycle.
pub(super) struct Cycle<'a> {
    pub(super) now_ns: i64,
    pub(super) counters: &'a SenderCounters,
    pub(super) conductor: &'a mut ConductorProxy,
    pub(super) scratch: &'a mut SendBuffers,
    pub(super) limits: SendLimits,
    pub(super) connection_timeout_ns: i64,
    pub(super) clock: &'a dyn Clock,
    pub(super) network: &'a dyn Network,
}

/// What a turn sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) bytes: usize,
    /// Every publication had its turn.
    pub(super) is_all: bool,
    /// A publication waits for a status message to send on.
    pub(super) is_limited: bool,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            bytes: 0,
            is_all: true,
            is_limited: false,
        }
    }
}

impl Cycle<'_> {
    fn outgoing<'b>(&'b mut self, way: Way<'b>) -> Outgoing<'b> {
        Outgoing {
            way,
            counters: self.counters,
            conductor: self.conductor,
            scratch: self.scratch,
            limits: self.limits,
            clock: self.clock,
            network: self.network,
            sends: 0,
        }
    }
}

impl SendEndpoint {
    /// A channel without publications. `now_ns` starts the wait for a first sign of life. Each newcomer of a dynamic
    /// channel may get `newcomer_allowance` bytes a second besides what it earns.
    pub(super) fn new(spec: SendEndpointSpec, newcomer_allowance: usize, now_ns: i64) -> Self {
        let endpoint = Self {
            destinations: Destinations::new(&spec.destinations),
            spec,
            publications: Vec::new(),
            by_stream: StreamMap::default(),
            first_to_send: 0,
            newcomers: Budgets::new(newcomer_allowance, now_ns),
            last_heard_ns: now_ns,
            last_re_resolution_ns: now_ns,
        };
        endpoint.publish_offload_mode();
        endpoint
    }

    /// Names the channel.
    pub(super) fn id(&self) -> EndpointId {
        self.spec.id
    }

    /// A client adds a destination or removes one, or the name of one leads elsewhere. A receiver that is not sent to any more
    /// holds no stream back.
    pub(super) fn change(&mut self, change: DestinationChange, now_ns: i64) -> Changed {
        let Destinations::Manual(manual) = &mut self.destinations else {
            return Changed::NoReceiver;
        };
        let changed = manual.change(change, now_ns);
        if let Changed::Gone(receiver_id) = changed {
            for publication in &mut self.publications {
                publication.receivers.on_gone(&publication.shared, receiver_id);
            }
        }
        changed
    }

    /// Arrivals and new data.
    pub(super) fn describe(&self, interests: &mut Interests) {
        transport::describe(feedback_socket(&self.spec), interests);
        if let Destinations::Manual(manual) = &self.destinations {
            for feedback in manual.feedback_sockets() {
                transport::describe(feedback, interests);
            }
        }
        for publication in &self.publications {
            publication.describe(interests);
        }
    }

    pub(super) fn add(&mut self, publication: SenderPublication) {
        let shared = &publication.shared;
        self.by_stream
            .insert(shared.session_id, shared.stream_id, self.publications.len());
        self.publications.push(publication);
    }

    pub(super) fn remove(&mut self, registration_id: i64) {
        let found = self
            .publications
            .iter()
            .position(|p| p.shared.registration_id == registration_id);
        let Some(index) = found else {
            return;
        };
        let removed = self.publications.swap_remove(index);
        self.by_stream
            .remove(removed.shared.session_id, removed.shared.stream_id);
        if let Some(moved) = self.publications.get(index) {
            self.by_stream
                .insert(moved.shared.session_id, moved.shared.stream_id, index);
        }
    }

    /// A turn of the publications, a different one first each time. It ends early once many of them have sent: the
    /// next turn goes on where it ended.
    pub(super) fn send(&mut self, cycle: &mut Cycle<'_>) -> Sent {
        let count = self.publications.len();
        let mut sent = Sent::default();
        if count == 0 {
            return sent;
        }
        self.destinations.begin_turn(cycle.now_ns);
        self.tell_destinations(cycle);
        let way = Way::of(&self.spec, &self.destinations);
        let first = if self.first_to_send < count {
            self.first_to_send
        } else {
            0
        };
        // As long as all have turns, another begins.
        self.first_to_send = first + 1;
        let mut sends = 0;
        for index in (first..count).chain(0..first) {
            let (now_ns, timeout_ns) = (cycle.now_ns, cycle.connection_timeout_ns);
            let publication = &mut self.publications[index];
            let mut out = cycle.outgoing(way.to_requester(publication.responses.requester));
            sent.bytes += publication.send(now_ns, timeout_ns, &mut out);
            sent.is_limited |= publication.transmission.is_limited;
            sends += out.sends;
            if sends >= SENDS_A_TURN {
                self.first_to_send = index + 1;
                sent.is_all = false;
                break;
            }
        }
        sent
    }

    fn tell_destinations(&mut self, cycle: &Cycle<'_>) {
        let endpoint = self.spec.id;
        self.destinations.tell(cycle.now_ns, |destinations| {
            cycle.conductor.request(ConductorRequest::Destinations {
                endpoint,
                destinations,
            })
        });
    }

    /// Handles what receivers sent; returns the number of datagrams.
    pub(super) fn poll(&mut self, batch: &mut ReceiveBatch, cycle: &mut Cycle<'_>) -> usize {
        let mut count = self.poll_socket(None, batch, cycle);
        let mut from = 0;
        while let Destinations::Manual(manual) = &mut self.destinations
            && let Some((group, feedback)) = manual.lend_feedback(from)
        {
            let through = Through {
                group,
                feedback: feedback.as_ref(),
            };
            count += self.poll_socket(Some(through), batch, cycle);
            if let Destinations::Manual(manual) = &mut self.destinations {
                manual.take_back_feedback(group, feedback);
            }
            from = group + 1;
        }
        self.publish_offload_mode();
        count
    }

    /// Streams of receivers that it hears from, as far as it knows.
    pub(super) fn heard_from(&self) -> usize {
        self.publications.len() * self.destinations.count().max(1)
    }

    /// Handles what came through the sockets of a group, or through that of the channel.
    fn poll_socket(
        &mut self,
        through: Option<Through<'_>>,
        batch: &mut ReceiveBatch,
        cycle: &mut Cycle<'_>,
    ) -> usize {
        let truncated_before = batch.truncated();
        let budget = self.heard_from().min(MESSAGES_A_POLL_MAX);
        let Self {
            spec,
            destinations,
            publications,
            by_stream,
            newcomers,
            last_heard_ns,
            ..
        } = self;
        let spec = &*spec;
        let socket = through.map_or_else(|| feedback_socket(spec), |through| through.feedback);
        let received = transport::receive(socket, batch, budget, &mut |coalesced| {
            let mut control = Control {
                publications: &mut *publications,
                by_stream: &*by_stream,
                destinations: &mut *destinations,
                newcomers: &mut *newcomers,
                spec,
                group: through.map(|through| through.group),
            };
            let source = coalesced.source;
            if coalesced.bytes.is_empty() {
                cycle.counters.invalid_packets.get_and_add(1);
            }
            for datagram in coalesced.bytes.chunks(coalesced.datagram_length) {
                match control.on_datagram(datagram, source, cycle) {
                    Ok(Liveness::Receiver) => *last_heard_ns = cycle.now_ns,
                    Ok(Liveness::Nothing) => {}
                    Err(_) => {
                        cycle.counters.invalid_packets.get_and_add(1);
                    }
                }
            }
        });
        let truncated = batch.truncated() - truncated_before;
        if truncated > 0 {
            cycle.counters.invalid_packets.get_and_add(truncated as i64);
        }
        match received {
            Ok(count) => count,
            Err(error) => {
                let remote = self.spec.remote;
                cycle.conductor.report(format!(
                    "WARN - failed to receive on the channel to {remote}: {error}"
                ));
                0
            }
        }
    }

    /// Asks for a new lookup of at most `allowed` names from which no receiver was heard for a while. Returns how many
    /// lookups are left.
    pub(super) fn check_re_resolution(
        &mut self,
        following: Following,
        mut allowed: usize,
        cycle: &mut Cycle<'_>,
    ) -> usize {
        let (heard_ns, asked_ns) = (self.last_heard_ns, self.last_re_resolution_ns);
        let is_due = self.spec.is_re_resolvable && following.is_due(heard_ns, asked_ns, cycle.now_ns);
        if is_due && allowed > 0 {
            allowed -= 1;
            let asked = cycle.conductor.request(ConductorRequest::ReResolve {
                endpoint: self.spec.id,
                destination: None,
            });
            if asked {
                self.last_re_resolution_ns = cycle.now_ns;
            }
        }
        while allowed > 0
            && let Destinations::Manual(manual) = &mut self.destinations
            && let Some(name) = manual.take_silent_name(following, cycle.now_ns)
        {
            allowed -= 1;
            // One that the conductor has no room for now is asked for again after as long a silence.
            let _ = cycle.conductor.request(ConductorRequest::ReResolve {
                endpoint: self.spec.id,
                destination: Some(name),
            });
        }
        allowed
    }

    /// Connects the socket to a peer to which no way led when it was opened, if one does now.
    pub(super) fn connect_late(&mut self) {
        let is_unreached = matches!(self.spec.destinations, SendDestinations::Unreached(_));
        if is_unreached && self.spec.transport.connect(self.spec.remote).is_ok() {
            self.spec.destinations = SendDestinations::Connected;
            self.destinations = Destinations::Peer(None);
        }
    }

    /// Sends to `remote` from now on.
    pub(super) fn reconnect(&mut self, remote: SocketAddr, cycle: &mut Cycle<'_>) {
        let endpoint = self.spec.id;
        let moved = if remote == self.spec.remote || self.destinations.move_peer(remote) {
            Ok(())
        } else {
            self.spec.transport.connect(remote)
        };
        cycle.conductor.reply(match moved {
            Ok(()) => {
                let is_other = std::mem::replace(&mut self.spec.remote, remote) != remote;
                cycle.counters.resolution_changes.get_and_add(is_other.into());
                ConductorReply::Reconnected(endpoint)
            }
            Err(error) => ConductorReply::ReconnectFailed {
                endpoint,
                reason: format!("failed to connect to {remote}: {error}"),
            },
        });
    }

    fn publish_offload_mode(&self) {
        if let Some(counter) = &self.spec.offload_mode {
            counter.set_release(self.spec.transport.send_mode() as i64);
        }
    }
}

/// Receives feedback: the socket that sends, unless the receivers send theirs to a group.
fn feedback_socket(spec: &SendEndpointSpec) -> &dyn Transport {
    spec.group
        .as_ref()
        .map_or(&spec.transport, |group| &group.feedback)
        .as_ref()
}

/// The socket for the feedback of receivers of a destination that is a group.
#[derive(Clone, Copy)]
struct Through<'a> {
    group: usize,
    feedback: &'a dyn Transport,
}

/// A frame that the publication of its session has no use for.
fn unexpected_session(session_id: i32) -> FrameError {
    FrameError::Field {
        field: "session_id",
        value: session_id.into(),
    }
}

/// Whether a frame shows that the far side is there.
enum Liveness {
    Receiver,
    Nothing,
}

/// Frames from receivers on their way to publications.
struct Control<'a> {
    publications: &'a mut [SenderPublication],
    by_stream: &'a StreamMap<usize>,
    destinations: &'a mut Destinations,
    newcomers: &'a mut Budgets,
    spec: &'a SendEndpointSpec,
    // The destination through whose sockets they came, where that is a group.
    group: Option<usize>,
}

impl Control<'_> {
    /// A publication, and the way its datagrams go.
    fn found(&mut self, session_id: i32, stream_id: i32) -> Option<(&mut SenderPublication, Way<'_>)> {
        let index = *self.by_stream.get(session_id, stream_id)?;
        let way = Way::of(self.spec, self.destinations).heard_through(self.group);
        let publication = self.publications.get_mut(index)?;
        let way = way.to_requester(publication.responses.requester);
        Some((publication, way))
    }

    fn publication(&mut self, session_id: i32, stream_id: i32) -> Option<&mut SenderPublication> {
        let index = *self.by_stream.get(session_id, stream_id)?;
        self.publications.get_mut(index)
    }

    fn on_datagram(
        &mut self,
        datagram: &[u8],
        source: SocketAddr,
        cycle: &mut Cycle<'_>,
    ) -> Result<Liveness, FrameError> {
        match classify(datagram)? {
            FrameKind::StatusMessage => {
                self.on_status_message(&StatusMessage::decode(datagram)?, source, cycle)
            }
            FrameKind::Nak => self.on_nak(&Nak::decode(datagram)?, source, cycle),
            FrameKind::Error => {
                self.on_error(ErrorFrame::decode(datagram)?, source, cycle);
                Ok(Liveness::Nothing)
            }
            FrameKind::RttMeasurement => {
                self.on_rtt_measurement(&RttMeasurement::decode(datagram)?, source, cycle)
            }
            FrameKind::ResponseSetup => self.on_response_setup(&ResponseSetup::decode(datagram)?, cycle),
            // Frames for receivers and resolvers are not wrong, only not for this socket.
            FrameKind::Data | FrameKind::Pad | FrameKind::Setup | FrameKind::Resolution => {
                Ok(Liveness::Nothing)
            }
        }
    }

    fn on_status_message(
        &mut self,
        message: &StatusMessage,
        source: SocketAddr,
        cycle: &mut Cycle<'_>,
    ) -> Result<Liveness, FrameError> {
        let publication = self.publication(message.session_id, message.stream_id);
        let term_length = publication
            .as_ref()
            .map_or(TERM_LENGTH_MAX, |found| found.shared.log.term_length() as i32);
        message.check(term_length)?;
        cycle.counters.status_messages_received.increment_release();
        let (receiver_id, now_ns) = (message.receiver_id, cycle.now_ns);
        let heard = match self.group {
            Some(_) => Heard::Known,
            None => self.destinations.speaker(receiver_id, source, now_ns),
        };
        let asks = message.asks_for_setup();
        let Some(publication) = self.publication(message.session_id, message.stream_id) else {
            if heard == Heard::Newcomer && asks {
                self.announce_streams(message, source, cycle);
            }
            return Ok(Liveness::Nothing);
        };
        if heard == Heard::Stranger || !(asks || publication.accepts(message, source)) {
            cycle.counters.status_messages_rejected.increment_release();
            if heard == Heard::Known && publication.is_left_behind(message) {
                let stream_id = message.stream_id;
                cycle.conductor.report(format!(
                    "WARN - a receiver is more than half a term ahead of a publication with streamId={stream_id}: another \
                     publisher of the same session brought it there, and this one gets no feedback any more"
                ));
            }
            return Ok(Liveness::Nothing);
        }
        if asks && heard == Heard::Newcomer {
            // A SETUP is hardly longer than the request: it needs no budget.
            if let Some((publication, way)) = self.found(message.session_id, message.stream_id) {
                publication.introduce(message, source, now_ns, &mut cycle.outgoing(way));
            }
            return Ok(Liveness::Nothing);
        }
        if asks {
            if !publication.on_setup_wanted(message, source) {
                return Err(unexpected_session(message.session_id));
            }
            return Ok(Liveness::Receiver);
        }
        if heard == Heard::Known {
            self.destinations.on_status_message(receiver_id, source, now_ns);
        } else if message.is_end_of_stream() || !self.admit(receiver_id, source, cycle) {
            return Ok(Liveness::Nothing);
        }
        if let Some(publication) = self.publication(message.session_id, message.stream_id) {
            publication.on_status_message(message, source, cycle.now_ns);
        }
        Ok(Liveness::Receiver)
    }

    /// A receiver that has the stream becomes one that is sent to.
    fn admit(&mut self, receiver_id: i64, source: SocketAddr, cycle: &Cycle<'_>) -> bool {
        let is_admitted = self.destinations.admit(receiver_id, source, cycle.now_ns);
        if !is_admitted {
            cycle.counters.status_messages_rejected.increment_release();
            cycle.conductor.report(format!(
                "WARN - more than {LEARNT_MAX} receivers of one channel: some are not sent to"
            ));
        }
        is_admitted
    }

    /// Tells one that is not sent to which streams there are, of all sessions of the one that it wants or of all: Aeron's
    /// receivers cannot say which they want. Where its budget is not enough for all, it hears of the next ones in the next
    /// second, when it asks again.
    fn announce_streams(&mut self, message: &StatusMessage, source: SocketAddr, cycle: &mut Cycle<'_>) {
        let way = Way::of(self.spec, self.destinations);
        let wanted: Vec<&SenderPublication> = self
            .publications
            .iter()
            .filter(|publication| [0, publication.shared.stream_id].contains(&message.stream_id))
            .filter(|publication| !publication.shared.is_end_of_stream())
            .collect();
        let budget = self.newcomers.earn(source, message.length(), cycle.now_ns);
        let count = wanted.len().min(budget.left() / DataHeader::LENGTH);
        budget.spend(count * DataHeader::LENGTH);
        let second = (cycle.now_ns / SECOND_NS) as usize;
        let first = second.wrapping_mul(count).checked_rem(wanted.len()).unwrap_or(0);
        for publication in wanted.iter().cycle().skip(first).take(count) {
            publication.announce(source, &mut cycle.outgoing(way));
        }
    }

    /// A receiver says which session brings the responses to a stream. It repeats that until a receiver reads them.
    fn on_response_setup(
        &mut self,
        setup: &ResponseSetup,
        cycle: &mut Cycle<'_>,
    ) -> Result<Liveness, FrameError> {
        let session_id = setup.response_session_id;
        let publication = self
            .publication(setup.session_id, setup.stream_id)
            .ok_or(unexpected_session(setup.session_id))?;
        if let Some(subscription_id) = publication.responses.on_setup(session_id, cycle.now_ns)? {
            // One that the conductor has no room for now comes again.
            let _ = cycle.conductor.request(ConductorRequest::ResponsesAnnounced {
                subscription_id,
                session_id,
            });
        }
        Ok(Liveness::Nothing)
    }

    fn on_nak(
        &mut self,
        nak: &Nak,
        source: SocketAddr,
        cycle: &mut Cycle<'_>,
    ) -> Result<Liveness, FrameError> {
        let now_ns = cycle.now_ns;
        if let Some((publication, way)) = self.found(nak.session_id, nak.stream_id) {
            nak.check(publication.shared.log.term_length() as i32)?;
            cycle.counters.naks_received.increment_release();
            if !publication.on_nak(nak, source, now_ns, &mut cycle.outgoing(way)) {
                return Err(unexpected_session(nak.session_id));
            }
            return Ok(Liveness::Nothing);
        }
        self.for_another_publisher(nak.session_id)
    }

    fn on_error(&mut self, frame: ErrorFrame, source: SocketAddr, cycle: &mut Cycle<'_>) {
        cycle.counters.error_frames_received.increment_release();
        let destination = match self.destinations {
            Destinations::Manual(manual) => manual.registration_id_of(frame.receiver_id, source, self.group),
            _ => None,
        };
        let Some(publication) = self.publication(frame.session_id, frame.stream_id) else {
            return;
        };
        // A receiver repeats it when it has long been believed, and a stranger is not.
        if !publication
            .receivers
            .liveness
            .is_address_of(frame.receiver_id, source)
        {
            return;
        }
        let request = || ConductorRequest::PublicationError {
            registration_id: publication.shared.registration_id,
            frame: frame.clone(),
            source,
            destination,
        };
        if !cycle.conductor.request(request()) {
            return; // the receiver repeats the frame
        }
        publication.receivers.on_error(&publication.shared, &frame);
    }

    fn on_rtt_measurement(
        &mut self,
        measurement: &RttMeasurement,
        source: SocketAddr,
        cycle: &mut Cycle<'_>,
    ) -> Result<Liveness, FrameError> {
        let now_ns = cycle.now_ns;
        if let Some((publication, way)) = self.found(measurement.session_id, measurement.stream_id) {
            let (receiver_id, sent_ns) = (measurement.receiver_id, measurement.echo_timestamp_ns);
            let liveness = &mut publication.receivers.liveness;
            if measurement.asks_for_reply() {
                publication.on_rtt_probe(measurement, source, &mut cycle.outgoing(way));
            } else if !liveness.on_answer(receiver_id, sent_ns, now_ns) {
                return Err(FrameError::Field {
                    field: "echo_timestamp_ns",
                    value: sent_ns,
                });
            }
            return Ok(Liveness::Nothing);
        }
        self.for_another_publisher(measurement.session_id)
    }

    /// No publication of the channel has this session. What receivers say to a group all its publishers hear.
    fn for_another_publisher(&self, session_id: i32) -> Result<Liveness, FrameError> {
        if self.spec.group.is_some() || self.group.is_some() {
            Ok(Liveness::Nothing)
        } else {
            Err(unexpected_session(session_id))
        }
    }
}
