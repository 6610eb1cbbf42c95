//! One receive channel: its sockets, the subscriptions of each stream, and the images that arrive through it.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::doorbell::Interests;
use headrace_protocol::channel::ReceiveTimestamps;
use headrace_protocol::frame::{
    DataHeader, FrameError, FrameKind, RttMeasurement, Setup, StatusMessage, classify, data, timestamp,
};
use headrace_sys::Clock;
use headrace_sys::net::{Coalesced, ReceiveBatch};

use super::connections::{Connections, Source};
use super::counters::ReceiverCounters;
use super::dispatcher::{COOL_DOWN_MAX, Dispatcher, OnData, OnSetup};
use super::elicitor::Elicitor;
use super::image::{ImageTimeouts, ReceiverImage};
use super::outgoing::Outgoing;
use super::paths::{Path, Paths};
use super::pending_setups::PendingSetups;
use crate::endpoint::{EndpointId, ONLY_PATH, ReceiveEndpointSpec, ReceivePathSpec};
use crate::event_recorder::Reason;
use crate::names::Following;
use crate::proxy::{ConductorProxy, ConductorRequest, ResponsesCommand, SessionName};
use crate::shared::{ImageShared, ImageState};
use crate::transport;

/// Most messages taken from a socket in one poll, each of which may hold many datagrams.
const MESSAGES_A_POLL_MAX: usize = 64;

/// Images of one channel that send in one turn: fewer than `SENDS_A_TURN`, since a sender that has much to send looks every
/// few turns for what comes back.
const FEEDBACK_A_TURN: usize = 16;

/// A receive channel in the receiver's hands.
pub(super) struct ReceiveEndpoint {
    id: EndpointId,
    speaker: Speaker,
    timestamps: ReceiveTimestamps,
    paths: Paths,
    /// Clients add and remove its paths.
    is_manual: bool,
    dispatcher: Dispatcher,
    // Slots keep their numbers, which the dispatcher holds.
    images: Vec<Option<ReceiverImage>>,
    first_to_service: usize,
    pending_setups: PendingSetups,
}

/// How the channel names itself to senders.
#[derive(Clone, Copy)]
struct Speaker {
    receiver_id: i64,
    group_tag: Option<i64>,
}

/// What the agent lends its endpoints during a duty cycle.
pub(super) struct Cycle<'a> {
    pub(super) now_ns: i64,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) conductor: &'a mut ConductorProxy,
    pub(super) timeouts: ImageTimeouts,
    pub(super) stream_session_limit: usize,
    pub(super) following: Option<Following>,
    pub(super) clock: &'a dyn Clock,
}

impl Cycle<'_> {
    fn outgoing<'b>(&'b mut self, paths: &'b Paths, speaker: Speaker) -> Outgoing<'b> {
        Outgoing {
            paths,
            counters: self.counters,
            conductor: self.conductor,
            receiver_id: speaker.receiver_id,
            group_tag: speaker.group_tag,
        }
    }
}

/// Aeron's senders know of no other request without a session.
const ANY_STREAM: i32 = 0;

// Why an image takes no more packets.
const NO_SUBSCRIPTION: &str = "no subscription is left";
const REMOVED: &str = "removed by the conductor";

impl ReceiveEndpoint {
    /// A channel without subscriptions.
    pub(super) fn new(spec: ReceiveEndpointSpec, now_ns: i64) -> Self {
        let mut paths = Paths::default();
        let is_manual = spec.path.is_none();
        if let Some(path) = spec.path {
            paths.add(ONLY_PATH, Path::new(path, now_ns));
        }
        Self {
            id: spec.id,
            speaker: Speaker {
                receiver_id: spec.receiver_id,
                group_tag: spec.group_tag,
            },
            timestamps: spec.timestamps,
            paths,
            is_manual,
            dispatcher: Dispatcher::default(),
            images: Vec::new(),
            first_to_service: 0,
            pending_setups: PendingSetups::default(),
        }
    }

    /// Names the channel.
    pub(super) fn id(&self) -> EndpointId {
        self.id
    }

    /// A client added a destination.
    pub(super) fn add_path(&mut self, path: usize, spec: ReceivePathSpec, now_ns: i64) {
        let added = Path::new(spec, now_ns);
        for image in self.images.iter_mut().flatten() {
            image.connections.add(path, added.group_control(), now_ns);
        }
        self.paths.add(path, added);
    }

    /// A client removed one. Images live on while another path brings them something.
    pub(super) fn remove_path(&mut self, path: usize, cycle: &mut Cycle<'_>) {
        let (now_ns, timeouts) = (cycle.now_ns, cycle.timeouts);
        for image in self.images.iter_mut().flatten() {
            let mut out = cycle.outgoing(&self.paths, self.speaker);
            image.remove_path(path, now_ns, timeouts, &mut out);
        }
        self.paths.remove(path);
    }

    /// The sender listens somewhere else, or still there.
    pub(super) fn move_control(&mut self, path: usize, address: SocketAddr, cycle: &Cycle<'_>) {
        let found = self.paths.get_mut(path);
        let elicitor = found.and_then(|path| path.elicitor.as_mut());
        if elicitor.is_some_and(|elicitor| elicitor.move_to(address)) {
            cycle.counters.resolution_changes.get_and_add(1);
        }
    }

    /// Arrivals. What images owe their senders is the conductor's to say, which rings.
    pub(super) fn describe(&self, interests: &mut Interests) {
        self.paths.describe(interests);
    }

    pub(super) fn add_subscription(&mut self, stream_id: i32, session_id: Option<i32>) {
        self.dispatcher.add_subscription(stream_id, session_id);
    }

    /// Images that no longer have a subscription tell their senders so.
    pub(super) fn remove_subscription(&mut self, stream_id: i32, session_id: Option<i32>) {
        for slot in self.dispatcher.remove_subscription(stream_id, session_id) {
            if let Some(image) = &mut self.images[slot] {
                image.deactivate(NO_SUBSCRIPTION);
            }
        }
    }

    pub(super) fn add_image(&mut self, shared: Arc<ImageShared>, now_ns: i64) {
        let (session_id, stream_id) = (shared.session_id, shared.stream_id);
        for older in self.images.iter_mut().flatten() {
            if older.shared.session_id == session_id && older.shared.stream_id == stream_id {
                older.silence_if_not_active();
            }
        }
        let slot = self.images.iter().position(Option::is_none).unwrap_or_else(|| {
            self.images.push(None);
            self.images.len() - 1
        });
        shared.advance_to(ImageState::Active, "taken over by the receiver");
        let connections = self.connections(shared.source, now_ns);
        let is_named = self
            .paths
            .sends_feedback_as_named(shared.source_path, shared.source);
        let mut image = ReceiverImage::new(shared, connections, is_named, now_ns);
        if !self.dispatcher.add_image(session_id, stream_id, slot) {
            image.deactivate(NO_SUBSCRIPTION); // it went while the image was being made
        }
        self.images[slot] = Some(image);
    }

    /// The connections over which a new image sends feedback, if its SETUP came from `source`.
    fn connections(&self, source: SocketAddr, now_ns: i64) -> Connections {
        if !self.is_manual {
            let group_control = self.paths.get(ONLY_PATH).and_then(Path::group_control);
            return Connections::single(source, group_control, now_ns);
        }
        let mut connections = Connections::several();
        for (path, found) in self.paths.iter() {
            connections.add(path, found.group_control(), now_ns);
        }
        connections
    }

    /// Lets go of an image that the conductor is done with, after the last word it owes its sender.
    pub(super) fn remove_image(&mut self, correlation_id: i64, cycle: &mut Cycle<'_>) {
        let Some(slot) = self.slot_of(correlation_id) else {
            return;
        };
        let (now_ns, timeouts) = (cycle.now_ns, cycle.timeouts);
        if let Some(image) = &mut self.images[slot]
            && image.liveness.is_connected(now_ns, timeouts.liveness_ns)
        {
            image.deactivate(REMOVED);
            image.send_status(now_ns, timeouts, &mut cycle.outgoing(&self.paths, self.speaker));
        }
        self.drop_image(slot, REMOVED, cycle);
    }

    pub(super) fn reject_image(&mut self, correlation_id: i64, reason: String) {
        let slot = self.slot_of(correlation_id);
        if let Some(image) = slot.and_then(|slot| self.images[slot].as_mut()) {
            image.reject(reason);
        }
    }

    /// The conductor knows more about a stream of responses.
    pub(super) fn on_responses(&mut self, command: ResponsesCommand, cycle: &mut Cycle<'_>) {
        match command {
            ResponsesCommand::Ask {
                stream_id,
                session_id,
            } => self.ask_at_control(stream_id, session_id, cycle),
            ResponsesCommand::Announce {
                correlation_id,
                responses,
            } => {
                let slot = self.slot_of(correlation_id);
                if let Some(image) = slot.and_then(|slot| self.images[slot].as_mut()) {
                    image.announcement.add(responses);
                }
            }
        }
    }

    /// Asks the sender at the control address for the SETUP of a session.
    fn ask_at_control(&mut self, stream_id: i32, session_id: i32, cycle: &mut Cycle<'_>) {
        let path = ONLY_PATH;
        let elicitor = self.paths.get(path).and_then(|path| path.elicitor.as_ref());
        if let Some(address) = elicitor.map(Elicitor::control) {
            let out = &mut cycle.outgoing(&self.paths, self.speaker);
            ask_for_setup(session_id, stream_id, Source { path, address }, out);
        }
    }

    pub(super) fn forget_arrival(&mut self, name: &SessionName) {
        self.dispatcher.forget_arrival(name.session_id, name.stream_id);
    }

    pub(super) fn end_cool_down(&mut self, name: &SessionName) {
        self.dispatcher.end_cool_down(name.session_id, name.stream_id);
    }

    fn slot_of(&self, correlation_id: i64) -> Option<usize> {
        self.images.iter().position(|image| {
            image
                .as_ref()
                .is_some_and(|image| image.shared.correlation_id == correlation_id)
        })
    }

    fn drop_image(&mut self, slot: usize, reason: impl Into<Reason<'static>>, cycle: &Cycle<'_>) {
        let Some(mut image) = self.images[slot].take() else {
            return;
        };
        image.deactivate(reason);
        let shared = &image.shared;
        let (session_id, stream_id) = (shared.session_id, shared.stream_id);
        let is_removed = self.dispatcher.remove_image(session_id, stream_id, slot);
        if is_removed && !shared.is_end_of_stream() && self.dispatcher.cool_down(session_id, stream_id) {
            cycle.conductor.report(format!(
                "WARN - more than {COOL_DOWN_MAX} sessions that may not be joined again, streamId={stream_id}: the \
                 oldest is forgotten, and joined again if it comes back"
            ));
        }
    }

    /// Handles what senders sent; returns the number of datagrams.
    pub(super) fn poll(&mut self, batch: &mut ReceiveBatch, cycle: &mut Cycle<'_>) -> usize {
        (0..self.paths.len())
            .map(|path| self.poll_path(path, batch, cycle))
            .sum()
    }

    fn poll_path(&mut self, path: usize, batch: &mut ReceiveBatch, cycle: &mut Cycle<'_>) -> usize {
        let (truncated_before, withheld_before) = (batch.truncated(), batch.withheld());
        let budget = self.images.len().min(MESSAGES_A_POLL_MAX);
        let Some(polled) = self.paths.get(path) else {
            return 0;
        };
        let mut arrivals = Arrivals {
            endpoint: self.id,
            speaker: self.speaker,
            paths: &self.paths,
            path,
            dispatcher: &mut self.dispatcher,
            images: &mut self.images,
            pending_setups: &mut self.pending_setups,
            last: None,
        };
        let timestamps = self.timestamps;
        let received = transport::receive(
            polled.spec.transport.as_ref(),
            batch,
            budget,
            &mut |mut coalesced| {
                cycle.counters.bytes_received.add(coalesced.bytes.len() as i64);
                if coalesced.bytes.is_empty() {
                    cycle.counters.invalid_packets.get_and_add(1);
                }
                if timestamps != ReceiveTimestamps::default() {
                    write_timestamps(timestamps, &mut coalesced, cycle.clock);
                }
                for datagram in coalesced.bytes.chunks(coalesced.datagram_length) {
                    if arrivals.on_datagram(datagram, coalesced.source, cycle).is_err() {
                        cycle.counters.invalid_packets.get_and_add(1);
                    }
                }
            },
        );
        // As in Aeron's drivers: what an interceptor drops has arrived.
        let withheld = batch.withheld() - withheld_before;
        cycle.counters.bytes_received.add(withheld as i64);
        let truncated = batch.truncated() - truncated_before;
        if truncated > 0 {
            cycle.counters.invalid_packets.get_and_add(truncated as i64);
        }
        match received {
            Ok(count) => {
                if let Some(polled) = self.paths.get_mut(path).filter(|_| count > 0) {
                    polled.on_heard(cycle.now_ns);
                }
                count
            }
            Err(error) => {
                polled.publish_offload_mode();
                cycle
                    .conductor
                    .report(format!("WARN - failed to receive: {error}"));
                0
            }
        }
    }

    /// Sends what images owe their senders and lets go of those that fell silent; returns the work done. It ends early
    /// once many of them have sent: the next turn goes on where it ended.
    pub(super) fn service_images(&mut self, cycle: &mut Cycle<'_>) -> usize {
        let mut work_count = 0;
        let count = self.images.len();
        let first = self.first_to_service.min(count);
        for slot in (first..count).chain(0..first) {
            let Some(image) = &mut self.images[slot] else {
                continue;
            };
            let (now_ns, timeouts) = (cycle.now_ns, cycle.timeouts);
            let mut out = cycle.outgoing(&self.paths, self.speaker);
            work_count += image.service(now_ns, timeouts, &mut out);
            if work_count >= FEEDBACK_A_TURN {
                self.first_to_service = slot + 1;
                break;
            }
        }
        while let Some((stream_id, session_id)) = self.pending_setups.expire(cycle.now_ns) {
            self.dispatcher.setup_expired(session_id, stream_id);
            work_count += 1;
        }
        let elicited: usize = (0..self.paths.len()).map(|path| self.elicit(path, cycle)).sum();
        work_count + elicited
    }

    /// Ends images that have heard nothing for too long, and streams that have ended; returns the work done. After
    /// [`Self::poll`]: while this thread had no turn, what they wait for may have come.
    pub(super) fn judge_images(&mut self, cycle: &Cycle<'_>) -> usize {
        let mut work_count = 0;
        for slot in 0..self.images.len() {
            let Some(image) = &mut self.images[slot] else {
                continue;
            };
            if image
                .liveness
                .is_connected(cycle.now_ns, cycle.timeouts.liveness_ns)
            {
                image.check_end_of_stream(cycle.now_ns, cycle.counters);
            } else {
                let reason = image.loss();
                self.drop_image(slot, reason, cycle);
                work_count += 1;
            }
        }
        work_count
    }

    /// Tells the sender at the control address of a path that this receiver is there; returns the work done.
    fn elicit(&mut self, path: usize, cycle: &mut Cycle<'_>) -> usize {
        let Some(Path {
            spec,
            elicitor: Some(elicitor),
        }) = self.paths.get_mut(path)
        else {
            return 0;
        };
        if elicitor.take_silence(cycle.following, cycle.now_ns) {
            // One that the conductor has no room for now is asked for again after as long a silence.
            let _ = cycle.conductor.request(ConductorRequest::ReResolve {
                endpoint: self.id,
                destination: spec.control.as_ref().and_then(|control| control.name.clone()),
            });
        }
        let Some(address) = elicitor.take_due(cycle.now_ns, self.dispatcher.has_subscriptions()) else {
            return 0;
        };
        // Where other paths bring a stream it may not have been heard of on this one.
        let named = elicitor.take_turn(self.dispatcher.wanted(self.is_manual).collect());
        let to = Source { path, address };
        let mut out = cycle.outgoing(&self.paths, self.speaker);
        for stream_id in [ANY_STREAM].iter().chain(&named) {
            ask_for_setup(0, *stream_id, to, &mut out);
        }
        1 + named.len()
    }
}

/// Writes into messages when they came, before anything is made of them.
fn write_timestamps(timestamps: ReceiveTimestamps, arrived: &mut Coalesced<'_>, clock: &dyn Clock) {
    for datagram in arrived.bytes.chunks_mut(arrived.datagram_length) {
        if let (Some(at), Some(time_ns)) = (timestamps.media, arrived.arrived_ns) {
            timestamp::stamp(datagram, at.in_frame(), time_ns);
        }
        if let Some(at) = timestamps.channel {
            timestamp::stamp(datagram, at.in_frame(), clock.epoch_ns());
        }
    }
}

fn ask_for_setup(session_id: i32, stream_id: i32, to: Source, out: &mut Outgoing<'_>) {
    let message = StatusMessage::eliciting_setup(session_id, stream_id, out.receiver_id, out.group_tag);
    let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
    let length = message.encode(&mut frame);
    out.send_frame(&frame[..length], to);
}

/// Frames from senders on their way to images.
struct Arrivals<'a> {
    endpoint: EndpointId,
    speaker: Speaker,
    paths: &'a Paths,
    /// The one they came on.
    path: usize,
    dispatcher: &'a mut Dispatcher,
    images: &'a mut [Option<ReceiverImage>],
    pending_setups: &'a mut PendingSetups,
    // Packets come in trains: the last image is most often the next.
    last: Option<(i32, i32, usize)>,
}

impl Arrivals<'_> {
    #[inline]
    fn on_datagram(
        &mut self,
        datagram: &[u8],
        source: SocketAddr,
        cycle: &mut Cycle<'_>,
    ) -> Result<(), FrameError> {
        let source = Source {
            path: self.path,
            address: source,
        };
        match classify(datagram)? {
            FrameKind::Data | FrameKind::Pad => self.on_data(datagram, source, cycle),
            FrameKind::Setup => self.on_setup(Setup::decode(datagram)?, source, cycle),
            FrameKind::RttMeasurement => self.on_rtt_measurement(&RttMeasurement::decode(datagram)?, cycle),
            // Frames for senders and resolvers are not wrong, only not for this socket.
            FrameKind::StatusMessage
            | FrameKind::Nak
            | FrameKind::Error
            | FrameKind::Resolution
            | FrameKind::ResponseSetup => Ok(()),
        }
    }

    #[inline]
    fn on_data(&mut self, datagram: &[u8], source: Source, cycle: &mut Cycle<'_>) -> Result<(), FrameError> {
        let header = DataHeader::decode(datagram)?;
        let (session_id, stream_id) = (header.session_id, header.stream_id);
        let slot = match self.last {
            Some((session, stream, slot)) if session == session_id && stream == stream_id => slot,
            _ => match self.dispatcher.on_data(
                session_id,
                stream_id,
                header.flags & data::FLAG_END_OF_STREAM != 0,
            ) {
                OnData::Image(slot) => {
                    self.last = Some((session_id, stream_id, slot));
                    slot
                }
                OnData::Ask => {
                    self.ask_for_first_setup(&header, source, cycle);
                    return Ok(());
                }
                OnData::Ignore => return Ok(()),
            },
        };
        let Some(image) = &mut self.images[slot] else {
            return Ok(());
        };
        image.on_data(datagram, source, cycle.now_ns, cycle.counters)?;
        if image.take_question(source.path, cycle.now_ns) {
            self.ask_for_setup(&header, source, cycle);
        }
        Ok(())
    }

    /// For a session that is not known yet.
    fn ask_for_first_setup(&mut self, header: &DataHeader, source: Source, cycle: &mut Cycle<'_>) {
        self.ask_for_setup(header, source, cycle);
        if let Some((stream_id, session_id)) = self.pending_setups.make_room() {
            self.dispatcher.setup_expired(session_id, stream_id);
            cycle.conductor.report(format!(
                "WARN - too many sessions at once wait for their SETUP; the oldest are asked again, streamId={stream_id}"
            ));
        }
        let (session_id, stream_id) = (header.session_id, header.stream_id);
        self.dispatcher.setup_asked(session_id, stream_id);
        self.pending_setups.add(stream_id, session_id, cycle.now_ns);
    }

    /// Asks the sender of a datagram what its stream looks like.
    fn ask_for_setup(&mut self, header: &DataHeader, source: Source, cycle: &mut Cycle<'_>) {
        let group_control = self.paths.get(source.path).and_then(Path::group_control);
        let to = Source {
            address: group_control.unwrap_or(source.address),
            ..source
        };
        let out = &mut cycle.outgoing(self.paths, self.speaker);
        ask_for_setup(header.session_id, header.stream_id, to, out);
    }

    fn on_setup(&mut self, setup: Setup, source: Source, cycle: &mut Cycle<'_>) -> Result<(), FrameError> {
        setup.check()?;
        let (session_id, stream_id) = (setup.session_id, setup.stream_id);
        // Also where the limit of sessions has it ignored: the image's first feedback may be lost.
        let slot = self.dispatcher.image(session_id, stream_id);
        if let Some(image) = slot.and_then(|slot| self.images[slot].as_mut()) {
            image.liveness.on_setup();
        }
        match self
            .dispatcher
            .on_setup(session_id, stream_id, cycle.stream_session_limit)
        {
            OnSetup::Image(slot) => {
                if let Some(image) = &mut self.images[slot]
                    && !image.on_setup(&setup, source, cycle.now_ns)
                {
                    cycle.conductor.report(format!(
                        "WARN - another publication has the same session as an image and cannot be joined with it: its \
                         SETUP has another initial term id or term length, streamId={stream_id} source={}",
                        source.address
                    ));
                }
            }
            OnSetup::Create => {
                let asked = cycle.conductor.request(ConductorRequest::CreateImage {
                    endpoint: self.endpoint,
                    path: source.path,
                    setup,
                    source: source.address,
                });
                if asked {
                    self.compare_ttl(setup.ttl, cycle.counters);
                    self.dispatcher.image_asked(session_id, stream_id);
                }
            }
            OnSetup::Ignore => {}
            OnSetup::LimitExceeded => {
                let limit = cycle.stream_session_limit;
                // No session: a flood of them makes one entry of the error log, which counts.
                cycle.conductor.report(format!(
                    "WARN - exceeded session limit, streamId={stream_id} limit={limit}"
                ));
            }
        }
        Ok(())
    }

    /// Counts a stream whose sender reaches further than this receiver: its feedback may not arrive.
    fn compare_ttl(&self, senders: i32, counters: &ReceiverCounters) {
        let group = self.paths.get(self.path).and_then(|path| path.spec.group);
        if group.is_some_and(|group| i32::from(group.ttl) < senders) {
            counters.possible_ttl_asymmetries.increment_release();
        }
    }

    /// Echoes go to every receiver of a group: only those of our own probes say something here.
    fn on_rtt_measurement(
        &mut self,
        measurement: &RttMeasurement,
        cycle: &mut Cycle<'_>,
    ) -> Result<(), FrameError> {
        let is_ours = measurement.receiver_id == self.speaker.receiver_id;
        let slot = self
            .dispatcher
            .image(measurement.session_id, measurement.stream_id);
        let Some(image) = slot.and_then(|slot| self.images[slot].as_mut()) else {
            return Ok(());
        };
        if measurement.asks_for_reply() {
            if is_ours || measurement.receiver_id == 0 {
                let out = &mut cycle.outgoing(self.paths, self.speaker);
                image.on_rtt_probe(measurement, self.path, out);
            }
        } else if is_ours
            && !image
                .round_trips
                .on_echo(&image.shared, measurement, cycle.now_ns)
        {
            return Err(FrameError::Field {
                field: "echo_timestamp_ns",
                value: measurement.echo_timestamp_ns,
            });
        }
        Ok(())
    }
}
