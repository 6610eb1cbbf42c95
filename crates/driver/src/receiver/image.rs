//! The receiver's half of an image: packets in, status messages and NAKs out.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use headrace_buffers::log::rebuild;
use headrace_protocol::frame::{
    FrameError, Nak, Packet, ResponseSetup, RttMeasurement, Setup, StatusMessage, data, rtt, status_message,
    validate_data,
};
use headrace_protocol::loss::MeasuredRoundTrip;
use headrace_protocol::round_trips::RoundTrips;

use super::announcement::Announcement;
use super::connections::{Connections, Source};
use super::counters::ReceiverCounters;
use super::frontier::Frontier;
use super::outgoing::Outgoing;
use super::rejection::send_rejection;
use crate::event_recorder::Reason;
use crate::shared::drops::{Dropped, Outside};
use crate::shared::{ImageShared, ImageState, LossRange, PublicationShared, StatusMessageDue};

/// Why an image drains whose publisher has closed.
const END_OF_STREAM: &str = "end of stream reached";
const SILENT: Reason<'static> = Reason::fault("nothing received for the image liveness time-out");
const TOO_FAR_BEHIND: Reason<'static> = Reason::fault(
    "too far behind the sender: all that came in the image liveness time-out was more than half a term ahead of what is read",
);
const LEFT: &str = "every destination that brought it was removed";
const REJECTED: Reason<'static> = Reason::fault("a subscriber rejected it");

/// Time-outs of images, from the driver's configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageTimeouts {
    pub(super) status_message_ns: i64,
    pub(super) liveness_ns: i64,
}

/// What the sender of a stream is answered.
enum Answers {
    /// How far the subscribers are, and what is missing.
    StatusMessages,
    /// Why the stream was rejected.
    Rejection(String),
    /// Nothing: a newer image of the same session speaks for both.
    Nothing,
}

/// One publisher's stream as it arrives.
pub(super) struct ReceiverImage {
    shared: Arc<ImageShared>,
    connections: Connections,
    frontier: Frontier,
    /// Up to here datagrams came one after the other.
    in_order_position: i64,
    /// Some path has said that the stream ends there.
    ends_somewhere: bool,
    last_packet_ns: i64,
    /// When something came that is too far ahead to be taken.
    last_overrun_ns: Option<i64>,
    // The status message repeated by the timer: the last one the conductor scheduled.
    due: StatusMessageDue,
    status_change: i64,
    loss_change: i64,
    round_trips: Option<RoundTrips>,
    last_status_position: i64,
    overrun_threshold: i64,
    last_status_sent_ns: i64,
    /// A status message is due, and waits until the sender says something.
    owes_status: bool,
    /// The sender was told that this receiver goes away.
    said_goodbye: bool,
    is_revoked: bool,
    /// A path says so.
    is_revoked_somewhere: bool,
    /// Something came after bytes that are missing, and the conductor has not been woken since.
    has_new_gap: bool,
    /// Paths bring something after a silence.
    has_new_paths: bool,
    answers: Answers,
    announcement: Option<Announcement>,
}

impl ReceiverImage {
    /// An image that answers over these connections.
    pub(super) fn new(shared: Arc<ImageShared>, mut connections: Connections, now_ns: i64) -> Self {
        let join_position = shared.join_position;
        let source = Source {
            path: shared.source_path,
            address: shared.source,
        };
        if !connections.is_single() {
            connections.on_paid(source.path, Setup::LENGTH);
        }
        if shared.asks_for_answers {
            // What its SETUP has more than a status message pays for the first answers: see the sender's newcomers.
            connections.take_back(source.path, Setup::LENGTH - StatusMessage::LENGTH);
        }
        let has_new_paths = connections.on_frame(source, now_ns);
        Self {
            connections,
            frontier: Frontier::new(join_position),
            in_order_position: join_position,
            ends_somewhere: false,
            last_packet_ns: now_ns,
            last_overrun_ns: None,
            due: StatusMessageDue {
                position: join_position,
                window_length: shared.initial_window_length,
            },
            status_change: 0,
            loss_change: 0,
            round_trips: shared.round_trips,
            last_status_position: join_position,
            overrun_threshold: join_position + shared.log.term_length() as i64 / 2,
            last_status_sent_ns: now_ns,
            owes_status: false,
            said_goodbye: false,
            is_revoked: false,
            is_revoked_somewhere: false,
            has_new_gap: false,
            has_new_paths,
            answers: Answers::StatusMessages,
            announcement: None,
            shared,
        }
    }

    pub(super) fn shared(&self) -> &ImageShared {
        &self.shared
    }

    /// Something arrived for the image within the liveness time-out.
    pub(super) fn is_connected(&self, now_ns: i64, timeouts: ImageTimeouts) -> bool {
        now_ns - self.last_packet_ns <= timeouts.liveness_ns
    }

    /// Why it goes when nothing is taken for the liveness time-out.
    pub(super) fn loss(&self) -> Reason<'static> {
        match self.answers {
            Answers::Rejection(_) => REJECTED,
            Answers::StatusMessages | Answers::Nothing if self.connections.is_empty() => LEFT.into(),
            Answers::StatusMessages | Answers::Nothing
                if self.last_overrun_ns > Some(self.last_packet_ns) =>
            {
                TOO_FAR_BEHIND
            }
            Answers::StatusMessages | Answers::Nothing => SILENT,
        }
    }

    /// From now on answers with error frames only.
    pub(super) fn reject(&mut self, reason: String) {
        self.answers = Answers::Rejection(reason);
    }

    /// A newer image of the same session speaks for both.
    pub(super) fn silence_if_not_active(&mut self) {
        let is_rejected = matches!(self.answers, Answers::Rejection(_));
        if self.shared.state() != ImageState::Active && !is_rejected {
            self.answers = Answers::Nothing;
        }
    }

    /// No packets will be taken any more: the sender is told at once, unless bytes it sent are still missing.
    pub(super) fn deactivate<'a>(&mut self, reason: impl Into<Reason<'a>>) {
        self.shared.log.metadata().put_active_transport_count_release(0);
        if self.shared.state() == ImageState::Active && self.shared.advance_to(ImageState::Draining, reason) {
            if !self.shared.is_end_of_stream() || self.has_everything() {
                self.shared.set_sends_end_of_stream_status();
            }
            self.shared.request_status_message();
        }
    }

    fn has_everything(&self) -> bool {
        self.shared.rebuild_position.get_acquire() >= self.shared.high_water_mark.get()
    }

    /// There is one more path that may bring the stream.
    pub(super) fn add_path(&mut self, path: usize, group_control: Option<SocketAddr>, now_ns: i64) {
        self.connections.add(path, group_control, now_ns);
    }

    /// A path is gone: what it brought stays, and the others go on.
    pub(super) fn remove_path(&mut self, path: usize, now_ns: i64, timeouts: ImageTimeouts) {
        self.connections.remove(path);
        self.publish_active_count(now_ns, timeouts);
    }

    fn publish_active_count(&self, now_ns: i64, timeouts: ImageTimeouts) {
        let count = self.connections.active_count(now_ns, timeouts.liveness_ns);
        let metadata = self.shared.log.metadata();
        if metadata.active_transport_count_acquire() != count {
            metadata.put_active_transport_count_release(count);
        }
    }

    /// A SETUP came for a stream that has its image: the path is alive. False when it is of another publication with the
    /// same session, which could bring nothing to this image on its path; where there is one path alone, it has taken the
    /// place of the first, and waits until the image is gone.
    pub(super) fn on_setup(&mut self, setup: &Setup, source: Source, now_ns: i64) -> bool {
        let log = &self.shared.log;
        let is_ours =
            setup.initial_term_id == log.initial_term_id() && setup.term_length == log.term_length() as i32;
        if is_ours {
            let geometry = log.geometry();
            let position = geometry.position(setup.active_term_id, setup.term_offset as usize);
            self.hear(source, now_ns);
            self.compare(position, source);
        }
        is_ours || self.connections.is_single()
    }

    /// A frame of the stream came on a path: it pays for answers.
    #[inline]
    pub(super) fn on_paid(&mut self, path: usize, length: usize) {
        self.connections.on_paid(path, length);
    }

    /// Takes a data datagram.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        datagram: &[u8],
        source: Source,
        now_ns: i64,
        counters: &ReceiverCounters,
    ) -> Result<(), FrameError> {
        self.on_paid(source.path, datagram.len());
        if matches!(self.answers, Answers::Rejection(_)) {
            return Ok(());
        }
        let geometry = self.shared.log.geometry();
        let packet = validate_data(datagram, geometry.term_length() as i32)?;
        let position = geometry.position(packet.term_id, packet.term_offset as usize);
        let end = position + i64::from(packet.span);
        // Of padding only the header travels and is written. So padding that begins inside the window is taken,
        // although it ends outside: senders send it so, since nothing of it needs room.
        let written_end = end.min(position + datagram.len() as i64);
        if written_end > self.overrun_threshold && !self.can_be_asked_for(&packet, position) {
            counters.flow_control_over_runs.increment_release();
            self.last_overrun_ns = Some(now_ns);
            self.note_drop(source, Outside::Ahead);
        } else if packet.is_heartbeat {
            self.on_heartbeat(position, packet.flags, source, now_ns, counters);
        } else if position >= self.last_status_position {
            self.take(datagram, position, end, source, now_ns);
        } else if end > self.last_status_position
            && let Some(rest) =
                rebuild::frames_from(datagram, (self.last_status_position - position) as usize)
        {
            // Another publisher of the stream, or a repair, cuts it elsewhere. What is read is not written again.
            self.take(rest, self.last_status_position, end, source, now_ns);
        } else {
            counters.flow_control_under_runs.increment_release();
            if position >= self.last_status_position - i64::from(self.shared.window_length_max) {
                self.hear(source, now_ns); // a late duplicate keeps the path alive
            } else {
                self.note_drop(source, Outside::Old);
            }
        }
        Ok(())
    }

    /// A publisher says where it is. One that is elsewhere is not answered as it would need, and sends nothing else.
    fn compare(&mut self, position: i64, source: Source) {
        if position > self.overrun_threshold {
            self.note_drop(source, Outside::Ahead);
        } else if position < self.last_status_position - i64::from(self.shared.window_length_max) {
            self.note_drop(source, Outside::Old);
        }
    }

    #[cold]
    fn note_drop(&mut self, source: Source, outside: Outside) {
        let dropped = Dropped {
            source: source.address,
            outside,
        };
        self.shared.drops.note(dropped);
    }

    /// Puts frames into the log that lie in the window.
    #[inline]
    fn take(&mut self, frames: &[u8], position: i64, end: i64, source: Source, now_ns: i64) {
        self.touch(source, now_ns);
        self.frontier.advance(&self.shared.log, position, end);
        let geometry = self.shared.log.geometry();
        let term = self.shared.log.term(geometry.partition(position));
        let inserted = rebuild::insert(term, geometry.term_offset(position), frames);
        self.has_new_gap |= position > self.shared.high_water_mark.get();
        self.shared.high_water_mark.propose_max_release(end);
        // What was there already may end earlier: repairs are cut into datagrams in another way.
        if inserted == rebuild::Insert::Inserted {
            self.track_order(position, end);
        }
        self.shared.log.doorbells().data.ring();
    }

    /// A heartbeat may come from further ahead: of a sender that has gone on with a faster receiver, or whose last frame was
    /// padding. Without it an image that lacks all before it would have nothing to ask for, and end. The sender still has what
    /// lies less than a term below it.
    #[cold]
    fn can_be_asked_for(&self, packet: &Packet, position: i64) -> bool {
        packet.is_heartbeat && position - self.overrun_threshold < self.shared.log.term_length() as i64 / 2
    }

    /// Spares the conductor the walk over frames that came in order. After a gap, order begins again where the conductor
    /// has found that all has arrived.
    #[inline]
    fn track_order(&mut self, position: i64, end: i64) {
        if position > self.in_order_position {
            let rebuilt = self.shared.rebuild_position.get_acquire();
            self.in_order_position = self.in_order_position.max(rebuilt);
        }
        if position == self.in_order_position {
            self.in_order_position = end;
            self.shared.set_in_order_position(end);
        }
    }

    #[inline]
    fn touch(&mut self, source: Source, now_ns: i64) {
        self.last_packet_ns = now_ns;
        self.hear(source, now_ns);
    }

    /// A publisher on another path hears where this receiver is as soon as its frames have paid for it, before it goes on
    /// without it.
    #[inline]
    fn hear(&mut self, source: Source, now_ns: i64) {
        if self.connections.on_frame(source, now_ns) {
            self.owes_status = true;
            self.has_new_paths = true;
        }
    }

    /// A path that brings something after a silence, once, and where it is answered.
    pub(super) fn take_new_path(&mut self) -> Option<(usize, SocketAddr)> {
        let new = self.has_new_paths.then(|| self.connections.take_new()).flatten();
        self.has_new_paths = new.is_some();
        new
    }

    /// The sender there is the one that the subscriber named.
    pub(super) fn greet(&mut self, path: usize) {
        self.connections.greet(path);
    }

    /// That sender was asked which streams it has.
    pub(super) fn greet_once(&mut self, path: usize, named: SocketAddr) {
        self.connections.greet_once(path, named);
    }

    /// The last datagram has paid on the account of its channel.
    pub(super) fn take_back(&mut self, path: usize, length: usize) {
        self.connections.take_back(path, length);
    }

    fn on_heartbeat(
        &mut self,
        position: i64,
        flags: u8,
        source: Source,
        now_ns: i64,
        counters: &ReceiverCounters,
    ) {
        let oldest = self.last_status_position - self.shared.log.term_length() as i64;
        if position < oldest.max(0) {
            counters.flow_control_under_runs.increment_release();
            self.note_drop(source, Outside::Old);
            return;
        }
        self.touch(source, now_ns);
        if flags & data::FLAG_END_OF_STREAM != 0 {
            self.ends_somewhere = true;
            self.connections.on_end_of_stream(source.path, position);
            self.is_revoked_somewhere |= flags & data::FLAG_REVOKED != 0;
        }
        self.frontier.empty_to(&self.shared.log, position);
        self.has_new_gap |= position > self.shared.high_water_mark.get();
        self.shared.high_water_mark.propose_max_release(position);
        counters.heartbeats_received.increment_release();
    }

    /// The stream is over once each path that lives has said so.
    fn check_paths_ended(&mut self, now_ns: i64, counters: &ReceiverCounters) {
        let Some(position) = self.connections.end_of_stream(now_ns) else {
            return;
        };
        let metadata = self.shared.log.metadata();
        if self.is_revoked_somewhere && !self.is_revoked {
            self.is_revoked = true;
            metadata.put_is_publication_revoked_release();
            counters.publication_images_revoked.increment_release();
        }
        if !self.shared.is_end_of_stream() {
            metadata.put_end_of_stream_position_release(position);
            self.shared.set_end_of_stream();
        }
    }

    /// An image whose stream ended and arrived completely starts to drain. To be asked when all paths were looked at: what
    /// one has to say may still lie in its socket.
    pub(super) fn check_end_of_stream(&mut self, now_ns: i64, counters: &ReceiverCounters) {
        let may_end = !self.shared.is_end_of_stream() || (self.is_revoked_somewhere && !self.is_revoked);
        if self.ends_somewhere && may_end {
            self.check_paths_ended(now_ns, counters);
        }
        if self.shared.is_end_of_stream()
            && self.shared.state() == ImageState::Active
            && self.has_everything()
            && self.shared.advance_to(ImageState::Draining, END_OF_STREAM)
        {
            self.shared.set_sends_end_of_stream_status();
            self.shared.request_status_message();
        }
    }

    /// Sends the status message that is due, or the error frame of a rejected image. Returns the work done.
    pub(super) fn send_status(
        &mut self,
        now_ns: i64,
        timeouts: ImageTimeouts,
        out: &mut Outgoing<'_>,
    ) -> usize {
        let timer_fired = now_ns - self.last_status_sent_ns > timeouts.status_message_ns;
        if let Answers::Rejection(reason) = &self.answers {
            if !timer_fired {
                return 0;
            }
            let silent_ns = now_ns - self.last_status_sent_ns;
            let is_sent = send_rejection(
                reason,
                &self.shared,
                &mut self.connections,
                silent_ns,
                now_ns,
                out,
            );
            if is_sent {
                self.last_status_sent_ns = now_ns;
            }
            return usize::from(is_sent);
        }
        let scheduled = self.shared.status_message_after(self.status_change);
        if let Some((change, due)) = scheduled {
            self.status_change = change;
            self.due = due;
        }
        let requested = self.shared.take_status_message_request();
        self.owes_status |= scheduled.is_some() || requested || timer_fired;
        if !self.owes_status || matches!(self.answers, Answers::Nothing) || !self.speaks() {
            return 0;
        }
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = self.status_message(out).encode(&mut frame);
        if self.owes_goodbye() {
            self.said_goodbye = true;
            self.connections.grant(length);
        }
        if !self.connections.can_tell(length, now_ns) {
            return 0;
        }
        self.owes_status = false;
        self.last_status_sent_ns = now_ns;
        self.send_status_message(&frame[..length], now_ns, out);
        self.publish_active_count(now_ns, timeouts);
        1
    }

    /// It ends, and has not told its senders yet.
    pub(super) fn owes_goodbye(&self) -> bool {
        self.shared.sends_end_of_stream_status() && !self.said_goodbye
    }

    /// A publication answers what the image brings: its publisher is told from now on, or when those before it have ended.
    pub(super) fn announce(&mut self, answers: Weak<PublicationShared>) {
        self.announcement.get_or_insert_default().add(answers);
    }

    /// Tells the publisher of requests on which session the answers come, if it is time. Returns the work done.
    pub(super) fn send_announcement(
        &mut self,
        now_ns: i64,
        timeouts: ImageTimeouts,
        out: &mut Outgoing<'_>,
    ) -> usize {
        let can_speak = matches!(self.answers, Answers::StatusMessages) && self.speaks();
        if !can_speak || !self.connections.can_answer(ResponseSetup::LENGTH, now_ns) {
            return 0;
        }
        let Some(announcement) = &mut self.announcement else {
            return 0;
        };
        let Some(setup) = announcement.take_due(&self.shared, now_ns, timeouts.status_message_ns) else {
            return 0;
        };
        let mut frame = [0; ResponseSetup::LENGTH];
        setup.encode(&mut frame);
        for connection in self.connections.answered(frame.len(), now_ns) {
            out.send_frame(&frame, connection);
        }
        1
    }

    fn speaks(&self) -> bool {
        matches!(
            self.shared.state(),
            ImageState::Active | ImageState::Draining | ImageState::Linger
        )
    }

    fn status_message(&self, out: &Outgoing<'_>) -> StatusMessage {
        let shared = &self.shared;
        let geometry = shared.log.geometry();
        let position = self.due.position;
        let ends = shared.sends_end_of_stream_status();
        StatusMessage {
            flags: if ends {
                status_message::FLAG_END_OF_STREAM
            } else {
                0
            },
            session_id: shared.session_id,
            stream_id: shared.stream_id,
            consumption_term_id: geometry.term_id(position),
            consumption_term_offset: geometry.term_offset(position) as i32,
            receiver_window_length: self.due.window_length,
            receiver_id: out.receiver_id,
            group_tag: out.group_tag,
        }
    }

    fn send_status_message(&mut self, frame: &[u8], now_ns: i64, out: &mut Outgoing<'_>) {
        for connection in self.connections.told(frame.len(), now_ns) {
            out.send_frame(frame, connection);
            out.counters.status_messages_sent.increment_release();
        }
        let position = self.due.position;
        self.last_status_position = position;
        self.overrun_threshold = position + self.shared.log.term_length() as i64 / 2;
    }

    /// True once in a while when what came on a path leaves open who its sender is.
    #[inline]
    pub(super) fn take_question(&mut self, path: usize, now_ns: i64) -> bool {
        !self.connections.is_single() && self.connections.take_question(path, now_ns)
    }

    /// That question could not be put.
    pub(super) fn put_back_question(&mut self, path: usize) {
        self.connections.put_back_question(path);
    }

    /// True once after something came after bytes that are missing.
    pub(super) fn take_new_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_new_gap)
    }

    /// Asks for, or covers, the gap that the conductor found. Returns the work done.
    pub(super) fn repair_loss(&mut self, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        let Some((change, loss)) = self.shared.loss_after(self.loss_change) else {
            return 0;
        };
        self.loss_change = change;
        if self.is_revoked || !matches!(self.answers, Answers::StatusMessages) {
            return 0;
        }
        if self.shared.is_reliable {
            // What is not paid for is asked for again with the next report of the gap.
            if self.owes_status || !self.connections.can_answer(Nak::LENGTH, now_ns) {
                return 0;
            }
            self.send_nak(loss, now_ns, out);
        } else if fill_gap(&self.shared, loss) {
            out.counters.loss_gap_fills.increment_release();
            self.shared.log.doorbells().data.ring();
        }
        1
    }

    fn send_nak(&mut self, loss: LossRange, now_ns: i64, out: &mut Outgoing<'_>) {
        let nak = Nak {
            flags: 0,
            session_id: self.shared.session_id,
            stream_id: self.shared.stream_id,
            term_id: loss.term_id,
            term_offset: loss.term_offset,
            length: loss.length,
        };
        let mut frame = [0; Nak::LENGTH];
        nak.encode(&mut frame);
        for connection in self.connections.answered(frame.len(), now_ns) {
            out.send_frame(&frame, connection);
        }
        out.counters.naks_sent.increment_release();
        self.shared.naks_sent.increment_release();
    }

    /// Sends the probe of a round trip that is due. Returns the work done.
    pub(super) fn probe_round_trip(&mut self, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        let Some(round_trips) = &mut self.round_trips else {
            return 0;
        };
        // It leaves enough for a status message.
        let to_spare = StatusMessage::LENGTH_WITH_GROUP_TAG;
        let is_due = round_trips.is_probe_due(now_ns)
            && !self.owes_status
            && self
                .connections
                .can_answer(RttMeasurement::LENGTH + to_spare, now_ns);
        if !matches!(self.answers, Answers::StatusMessages) || !is_due {
            return 0;
        }
        round_trips.on_probe_sent(now_ns);
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: self.shared.session_id,
            stream_id: self.shared.stream_id,
            echo_timestamp_ns: now_ns,
            reception_delta_ns: 0,
            receiver_id: out.receiver_id,
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        probe.encode(&mut frame);
        for connection in self.connections.probed(frame.len(), to_spare, now_ns) {
            out.send_frame(&frame, connection);
        }
        1
    }

    /// A probe came back. False for an echo that answers none. The network, or another path, may bring one again.
    pub(super) fn on_rtt_echo(&mut self, echo: &RttMeasurement, now_ns: i64) -> bool {
        let Some(round_trips) = &mut self.round_trips else {
            return false;
        };
        let rtt_ns = round_trips.on_echo(echo, now_ns);
        if let (Some(rtt_ns), Some(estimate)) = (rtt_ns, round_trips.estimate()) {
            self.shared.report_round_trip(MeasuredRoundTrip {
                rtt_ns,
                estimate,
                receiver_count: echo.receiver_count(),
            });
        }
        round_trips.is_repeated(echo)
    }

    /// Answers a sender's probe, where it came from. The probe may be for all receivers: the answer says whose it is.
    pub(super) fn on_rtt_probe(&mut self, probe: &RttMeasurement, path: usize, out: &mut Outgoing<'_>) {
        let answer = RttMeasurement {
            receiver_id: out.receiver_id,
            ..probe.echo()
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        answer.encode(&mut frame);
        if let Some(connection) = self.connections.on_path(path, frame.len()) {
            out.send_frame(&frame, connection);
        }
    }
}

fn fill_gap(shared: &ImageShared, loss: LossRange) -> bool {
    let geometry = shared.log.geometry();
    let (Ok(offset), Ok(length)) = (usize::try_from(loss.term_offset), usize::try_from(loss.length)) else {
        return false;
    };
    let position = geometry.position(loss.term_id, offset);
    let term = shared.log.term(geometry.partition(position));
    rebuild::fill_gap(term, shared.log.identity(loss.term_id), offset, length)
}
