//! The receiver's half of an image: packets in, status messages and NAKs out.

use std::sync::Arc;

use headrace_buffers::log::rebuild;
use headrace_protocol::frame::{
    FrameError, ResponseSetup, RttMeasurement, Setup, StatusMessage, data, validate_data,
};

use super::announcement::Announcement;
use super::connections::{Connections, Source};
use super::counters::ReceiverCounters;
use super::end_of_stream::EndOfStream;
use super::liveness::ImageLiveness;
use super::outgoing::Outgoing;
use super::rebuilder::Rebuilder;
use super::rejection::send_rejection;
use super::repairs::{fill_gap, send_nak};
use super::round_trips::RoundTripProbes;
use super::status_messages::StatusMessages;
use super::window::Window;
use crate::event_recorder::Reason;
use crate::shared::drops::Outside;
use crate::shared::{ImageShared, ImageState};

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

/// What the sender of a stream hears from its receiver.
enum Feedback {
    /// How far the subscribers are, and what is missing.
    StatusMessages,
    /// Why the stream was rejected.
    Rejection(String),
    /// Nothing: a newer image of the same session speaks for both.
    Nothing,
}

/// One publisher's stream as it arrives.
pub(super) struct ReceiverImage {
    pub(super) shared: Arc<ImageShared>,
    pub(super) connections: Connections,
    pub(super) liveness: ImageLiveness,
    window: Window,
    rebuilder: Rebuilder,
    end_of_stream: EndOfStream,
    feedback: Feedback,
    status_messages: StatusMessages,
    loss_change: i64,
    pub(super) round_trips: RoundTripProbes,
    /// Of the publications that respond to the requests of the image.
    pub(super) announcement: Announcement,
}

impl ReceiverImage {
    /// An image that sends feedback over these connections. `is_named`: the subscriber names their addresses.
    pub(super) fn new(
        shared: Arc<ImageShared>,
        mut connections: Connections,
        is_named: bool,
        now_ns: i64,
    ) -> Self {
        let source = Source {
            path: shared.source_path,
            address: shared.source,
        };
        connections.on_frame(source, now_ns);
        Self {
            connections,
            liveness: ImageLiveness::new(is_named, now_ns),
            window: Window::new(&shared),
            rebuilder: Rebuilder::new(shared.join_position),
            end_of_stream: EndOfStream::default(),
            feedback: Feedback::StatusMessages,
            status_messages: StatusMessages::new(&shared, now_ns),
            loss_change: 0,
            round_trips: RoundTripProbes(shared.round_trips),
            announcement: Announcement::default(),
            shared,
        }
    }

    /// Why it goes when nothing is taken for the liveness time-out.
    pub(super) fn loss(&self) -> Reason<'static> {
        match self.feedback {
            Feedback::Rejection(_) => REJECTED,
            _ if self.connections.is_empty() => LEFT.into(),
            _ if self.liveness.is_overrun() => TOO_FAR_BEHIND,
            _ => SILENT,
        }
    }

    /// From now on its only feedback is error frames.
    pub(super) fn reject(&mut self, reason: String) {
        self.feedback = Feedback::Rejection(reason);
    }

    /// A newer image of the same session speaks for both.
    pub(super) fn silence_if_not_active(&mut self) {
        let is_rejected = matches!(self.feedback, Feedback::Rejection(_));
        if self.shared.state() != ImageState::Active && !is_rejected {
            self.feedback = Feedback::Nothing;
        }
    }

    /// Stops taking packets, and informs the sender at once, unless bytes that it sent are still missing.
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

    /// A path is gone: what it brought stays, and the others go on.
    pub(super) fn remove_path(
        &mut self,
        path: usize,
        now_ns: i64,
        timeouts: ImageTimeouts,
        out: &mut Outgoing<'_>,
    ) {
        if self.status_messages.owe_goodbye(&self.shared) {
            self.send_status(now_ns, timeouts, out);
        }
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
            if let Some(outside) = self.window.side_of(position) {
                self.shared.drops.note(source.address, outside);
            }
        }
        is_ours || self.connections.is_single()
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
        if matches!(self.feedback, Feedback::Rejection(_)) {
            return Ok(());
        }
        let geometry = self.shared.log.geometry();
        let packet = validate_data(datagram, geometry.term_length() as i32)?;
        let position = geometry.position(packet.term_id, packet.term_offset as usize);
        let mut end = position + i64::from(packet.span);
        let mut frames = datagram;
        // Of padding only the header travels and is written. So padding that begins inside the window is taken,
        // although it ends outside: senders send it so, since nothing of it needs room.
        let written_end = end.min(position + datagram.len() as i64);
        if written_end > self.window.end && !self.window.can_be_asked_for(&packet, position) {
            counters.flow_control_over_runs.increment_release();
            self.liveness.last_overrun_ns = Some(now_ns);
            self.shared.drops.note(source.address, Outside::Ahead);
            let Some(inside) = self.window.frames_inside(datagram, position) else {
                if position < self.window.end {
                    self.liveness.is_asking = false; // a repair, for which there is no room yet
                }
                return Ok(());
            };
            (frames, end) = (inside, position + inside.len() as i64);
        }
        if packet.is_heartbeat {
            self.on_heartbeat(position, packet.flags, source, now_ns, counters);
        } else if position >= self.window.begin {
            self.take(frames, position, end, source, now_ns);
        } else if end > self.window.begin
            && let Some(rest) = rebuild::frames_from(frames, (self.window.begin - position) as usize)
        {
            // Another publisher of the stream, or a repair, cuts it elsewhere. What is read is not written again.
            self.take(rest, self.window.begin, end, source, now_ns);
        } else {
            counters.flow_control_under_runs.increment_release();
            match self.window.side_of(position) {
                None => self.hear(source, now_ns), // a late duplicate keeps the path alive
                Some(outside) => self.shared.drops.note(source.address, outside),
            }
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self, frames: &[u8], position: i64, end: i64, source: Source, now_ns: i64) {
        self.liveness.on_data(now_ns);
        self.hear(source, now_ns);
        self.rebuilder.insert(&self.shared, frames, position, end);
    }

    /// A publisher on another path hears at once where this receiver is, before it goes on without it.
    #[inline]
    fn hear(&mut self, source: Source, now_ns: i64) {
        if self.connections.on_frame(source, now_ns) {
            self.status_messages.is_owed = true;
        }
    }

    fn on_heartbeat(
        &mut self,
        position: i64,
        flags: u8,
        source: Source,
        now_ns: i64,
        counters: &ReceiverCounters,
    ) {
        let oldest = self.window.begin - self.shared.log.term_length() as i64;
        if position < oldest.max(0) {
            counters.flow_control_under_runs.increment_release();
            self.shared.drops.note(source.address, Outside::Old);
            return;
        }
        self.liveness.on_heartbeat(position > self.window.end, now_ns);
        self.hear(source, now_ns);
        if flags & data::FLAG_END_OF_STREAM != 0 {
            self.connections.on_end_of_stream(source.path, position);
            self.end_of_stream.on_path(flags);
        }
        self.rebuilder.empty_to(&self.shared, position);
        counters.heartbeats_received.increment_release();
    }

    /// An image whose stream ended and arrived completely starts to drain. To be asked when all paths were looked at: what
    /// one has to say may still lie in its socket.
    pub(super) fn check_end_of_stream(&mut self, now_ns: i64, counters: &ReceiverCounters) {
        self.end_of_stream
            .check(&self.shared, &self.connections, now_ns, counters);
        if self.shared.is_end_of_stream()
            && self.shared.state() == ImageState::Active
            && self.has_everything()
            && self.shared.advance_to(ImageState::Draining, END_OF_STREAM)
        {
            self.shared.set_sends_end_of_stream_status();
            self.shared.request_status_message();
        }
    }

    /// Sends what it owes its senders. Returns the work done.
    pub(super) fn service(&mut self, now_ns: i64, timeouts: ImageTimeouts, out: &mut Outgoing<'_>) -> usize {
        let mut work_count = self.send_announcement(now_ns, timeouts, out)
            + self.send_status(now_ns, timeouts, out)
            + self.repair_loss(now_ns, out);
        if matches!(self.feedback, Feedback::StatusMessages) && !self.liveness.is_announced_only() {
            work_count += self
                .round_trips
                .send(&self.shared, &self.connections, now_ns, out);
        }
        if std::mem::take(&mut self.rebuilder.has_new_gap) {
            out.conductor.wake(); // it decides when to ask
        }
        work_count
    }

    /// Sends the status message that is due, or the error frame of a rejected image. Returns the work done.
    pub(super) fn send_status(
        &mut self,
        now_ns: i64,
        timeouts: ImageTimeouts,
        out: &mut Outgoing<'_>,
    ) -> usize {
        let (shared, messages) = (&*self.shared, &mut self.status_messages);
        let interval_ns = timeouts.status_message_ns;
        if let Feedback::Rejection(reason) = &self.feedback {
            if !messages.is_late(now_ns, interval_ns) {
                return 0;
            }
            send_rejection(reason, shared, &self.connections, now_ns, out);
            messages.on_sent(now_ns);
            return 1;
        }
        let is_owed = messages.update(shared, now_ns, interval_ns);
        if !is_owed || matches!(self.feedback, Feedback::Nothing) || !speaks(shared) {
            return 0;
        }
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = messages.message(shared, out).encode(&mut frame);
        if messages.owe_goodbye(shared) {
            messages.said_goodbye = true;
        } else if !self.liveness.may_send(length) {
            return 0;
        }
        messages.on_sent(now_ns);
        for connection in self.connections.feedback_targets(now_ns) {
            out.send_frame(&frame[..length], connection);
            out.counters.status_messages_sent.increment_release();
        }
        self.window.move_to(messages.due.position);
        self.publish_active_count(now_ns, timeouts);
        1
    }

    /// Tells the publisher of requests on which session the responses come, if it is time. Returns the work done.
    fn send_announcement(&mut self, now_ns: i64, timeouts: ImageTimeouts, out: &mut Outgoing<'_>) -> usize {
        if !matches!(self.feedback, Feedback::StatusMessages) || !speaks(&self.shared) {
            return 0;
        }
        let interval_ns = timeouts.status_message_ns;
        let Some(setup) = self.announcement.take_due(&self.shared, now_ns, interval_ns) else {
            return 0;
        };
        if !self.liveness.may_send(ResponseSetup::LENGTH) {
            return 0; // it is due again soon
        }
        let mut frame = [0; ResponseSetup::LENGTH];
        setup.encode(&mut frame);
        for connection in self.connections.feedback_targets(now_ns) {
            out.send_frame(&frame, connection);
        }
        1
    }

    /// Asks for, or covers, the gap that the conductor found. Returns the work done.
    fn repair_loss(&mut self, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        let shared = &*self.shared;
        let Some((change, loss)) = shared.loss_after(self.loss_change) else {
            return 0;
        };
        self.loss_change = change;
        if self.end_of_stream.is_revoked || !matches!(self.feedback, Feedback::StatusMessages) {
            return 0;
        }
        if shared.is_reliable {
            // What has no room yet is asked for again with the next report of the gap.
            let Some(loss) = self.window.part_with_room(loss, shared.position_of(loss)) else {
                return 0;
            };
            send_nak(shared, &self.connections, loss, now_ns, out);
            self.liveness.is_asking = true;
            shared.note_request(loss, self.liveness.last_packet_ns);
        } else {
            fill_gap(shared, loss, out);
        }
        1
    }

    /// True once in a while when what came on a path leaves open who its sender is.
    #[inline]
    pub(super) fn take_question(&mut self, path: usize, now_ns: i64) -> bool {
        !self.connections.is_single() && self.connections.take_question(path, now_ns)
    }

    /// Answers a sender's probe, where it came from. The probe may be for all receivers: the answer says whose it is.
    pub(super) fn on_rtt_probe(&mut self, probe: &RttMeasurement, path: usize, out: &mut Outgoing<'_>) {
        let answer = RttMeasurement {
            receiver_id: out.receiver_id,
            ..probe.echo()
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        answer.encode(&mut frame);
        if let Some(connection) = self.connections.on_path(path) {
            out.send_frame(&frame, connection);
        }
    }
}

fn speaks(shared: &ImageShared) -> bool {
    (ImageState::Active..=ImageState::Linger).contains(&shared.state())
}
