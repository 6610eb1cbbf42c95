//! The sender's half of a network publication: what goes out, and what receivers say to it.
//!
//! Where spies simulate a connection and no receiver is alive, nothing is sent: the position follows the spies.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::doorbell::Interests;
use headrace_buffers::log::scan::scan_datagrams;
use headrace_protocol::flow::FlowControl;
use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameError, Nak, RttMeasurement, Setup, StatusMessage, data, rtt, setup,
};
use headrace_protocol::retransmit::RetransmitHandler;

use super::liveness::ReceiverLiveness;
use super::outgoing::Outgoing;
use crate::shared::publication::Exchange;
use crate::shared::{ConnectionState, PublicationShared};

/// How often an unanswered SETUP is repeated.
pub(super) const SETUP_INTERVAL_NS: i64 = 100_000_000;
/// For so long a SETUP may be on its way, and make a receiver begin where the sender was then.
const SETUP_LIFETIME_NS: i64 = 1_000_000_000;
/// Silence after which a heartbeat says where the sender is.
pub(super) const HEARTBEAT_INTERVAL_NS: i64 = 100_000_000;

/// How often a receiver may say on which session the answers come.
const RESPONSE_SETUP_INTERVAL_NS: i64 = 100_000_000;

/// Shortest time for which NAKs for what was sent again are dropped: a receiver's shortest wait for a repair.
const LINGER_MIN_NS: i64 = 100_000;

// Why a publication is connected, or no longer.
const ANSWERED: &str = "a receiver answered";
const LEFT: &str = "the last receiver left";
const NOT_SENT_TO: &str = "the destination of the last receiver was removed";
const REFUSED: &str = "the last receiver refused the stream";
const SILENT: &str = "no receiver answered for the connection time-out";

/// How a stream is repaired.
pub(super) struct Repairs {
    pub(super) retransmit: RetransmitHandler,
    /// Where lingering follows the round trips to the receivers: the longest, and what it is while one is not known.
    pub(super) measured_linger_max_ns: Option<i64>,
}

/// One stream being sent. Data flows once a receiver's status message raised the limit above the position.
pub(super) struct SenderPublication {
    shared: Arc<PublicationShared>,
    flow_control: Box<dyn FlowControl>,
    repairs: Repairs,
    receivers: ReceiverLiveness,
    /// The one that was last told to be the limit, and where it is.
    limiting_receiver: Option<(i64, SocketAddr)>,
    has_initial_connection: bool,
    is_setup_elicited: bool,
    /// The receiver that asked for a stream of answers.
    asker: Option<SocketAddr>,
    /// When a receiver last said on which session the answers come, and on which.
    last_response_setup: Option<(i64, i32)>,
    // Running into the limit is counted once between two successful sends.
    counts_next_limit: bool,
    is_limited: bool,
    last_setup_ns: i64,
    /// The last that left, asked for or not.
    last_told_ns: i64,
    last_data_or_heartbeat_ns: i64,
}

impl Repairs {
    /// The receivers have a repair, and no further NAK for it is on its way, after this time.
    fn follow(&mut self, late_after_ns: Option<i64>) {
        if let Some(max_ns) = self.measured_linger_max_ns {
            let linger_ns = late_after_ns.map_or(max_ns, |late_ns| late_ns.max(LINGER_MIN_NS).min(max_ns));
            self.retransmit.set_linger_ns(linger_ns);
        }
    }
}

impl SenderPublication {
    pub(super) fn new(
        shared: Arc<PublicationShared>,
        flow_control: Box<dyn FlowControl>,
        repairs: Repairs,
        now_ns: i64,
    ) -> Self {
        Self {
            shared,
            flow_control,
            repairs,
            receivers: ReceiverLiveness::default(),
            limiting_receiver: None,
            has_initial_connection: false,
            is_setup_elicited: false,
            asker: None,
            last_response_setup: None,
            counts_next_limit: false,
            is_limited: false,
            last_setup_ns: now_ns - SETUP_INTERVAL_NS - 1, // the first goes out at once
            last_told_ns: now_ns,
            last_data_or_heartbeat_ns: now_ns,
        }
    }

    pub(super) fn shared(&self) -> &PublicationShared {
        &self.shared
    }

    /// Where the stream goes, if it is sent to the receiver alone that asked for it.
    pub(super) fn asker(&self) -> Option<SocketAddr> {
        self.asker
    }

    /// The last that asked for a stream of answers may be a stranger; a receiver that has it says so.
    fn is_unheard(&self) -> bool {
        self.is_answers() && !self.receivers.is_live()
    }

    /// It goes to the one that asks for it.
    pub(super) fn is_answers(&self) -> bool {
        matches!(self.shared.exchange, Exchange::Answers { .. })
    }

    /// New data rings. Repairs have timers, and spies that stand in for receivers move without a sign.
    pub(super) fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.shared.log.doorbells().data);
        if !self.repairs.retransmit.is_idle() || self.shared.spies_simulate_connection {
            interests.may_come_unrung();
        }
    }

    /// One duty cycle. Returns the bytes by which the stream moved, heartbeats included.
    pub(super) fn send(&mut self, now_ns: i64, connection_timeout_ns: i64, out: &mut Outgoing<'_>) -> usize {
        // Answers are announced to the receiver that asks, once for each time that it does: another may have asked in its
        // name.
        if self.is_setup_elicited || (!self.has_initial_connection && !self.is_answers()) {
            self.send_setup(now_ns, out);
        }
        let is_unheard = self.is_unheard();
        let mut bytes = if is_unheard {
            0
        } else {
            self.send_data(now_ns, out)
        };
        if bytes == 0 {
            bytes = self.send_heartbeat(now_ns, out);
            self.update_idle_limit(now_ns);
            self.receivers.expire(now_ns, connection_timeout_ns);
            self.update_connected(SILENT);
        }
        let shared = &self.shared;
        self.repairs.retransmit.on_timers(now_ns, |range| {
            if !is_unheard {
                out.resend(shared, range);
            }
        });
        bytes
    }

    fn send_setup(&mut self, now_ns: i64, out: &mut Outgoing<'_>) {
        if now_ns - self.last_setup_ns <= SETUP_INTERVAL_NS {
            return;
        }
        self.last_setup_ns = now_ns;
        if self.is_setup_elicited {
            self.flow_control.on_setup(now_ns, self.shared.sender_limit.get());
        }
        out.send_frame(&self.setup(out.way.ttl, now_ns));
        if self.receivers.is_live() || self.is_answers() {
            self.is_setup_elicited = false;
        }
    }

    /// What the stream looks like.
    fn setup(&mut self, ttl: u8, now_ns: i64) -> [u8; Setup::LENGTH] {
        self.last_told_ns = now_ns;
        let shared = &self.shared;
        let geometry = shared.log.geometry();
        let position = shared.sender_position.get();
        let mut flags = 0;
        if shared.has_group_semantics {
            flags |= setup::FLAG_GROUP;
            if self.flow_control.receiver_count().is_some() {
                flags |= setup::FLAG_OWN_WINDOWS;
            }
        }
        if matches!(shared.exchange, Exchange::Requests { .. }) {
            flags |= setup::FLAG_RESPONSE;
        }
        let setup = Setup {
            flags,
            term_offset: geometry.term_offset(position) as i32,
            session_id: shared.session_id,
            stream_id: shared.stream_id,
            initial_term_id: geometry.initial_term_id(),
            active_term_id: geometry.term_id(position),
            term_length: geometry.term_length() as i32,
            mtu: shared.mtu_length as i32,
            ttl: ttl.into(),
        };
        let mut frame = [0; Setup::LENGTH];
        setup.encode(&mut frame);
        frame
    }

    fn send_data(&mut self, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        self.is_limited = false;
        let shared = &self.shared;
        let position = shared.sender_position.get();
        let window = shared.sender_limit.get() - position;
        if window <= 0 {
            self.on_limit(out);
            return 0;
        }
        let geometry = shared.log.geometry();
        let term = shared.log.term(geometry.partition(position));
        let mut datagrams = std::mem::take(&mut out.scratch.datagrams);
        datagrams.clear();
        let found = scan_datagrams(
            term,
            geometry.term_offset(position),
            window as usize,
            shared.mtu_length,
            out.limits.burst_length,
            &mut datagrams,
        );
        datagrams.truncate(out.limits.turn);
        let mut advance = 0;
        if !datagrams.is_empty() {
            let sent_count = out.send_datagrams(term, &datagrams);
            advance = datagrams[..sent_count]
                .iter()
                .map(|sent| sent.length + sent.padding)
                .sum();
        }
        out.scratch.datagrams = datagrams;
        if advance > 0 {
            shared.sender_position.set_release(position + advance as i64);
            shared.log.doorbells().position.ring();
            self.last_data_or_heartbeat_ns = now_ns;
            self.counts_next_limit = true;
        } else if found.blocked {
            self.on_limit(out);
        }
        advance
    }

    /// In its last turn the receivers' windows had no room for it.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    fn on_limit(&mut self, out: &Outgoing<'_>) {
        self.is_limited = true;
        if std::mem::take(&mut self.counts_next_limit) {
            self.shared.back_pressure_events.increment_release();
            out.counters.flow_control_limits.increment_release();
        }
    }

    /// Lets flow control move the limit of an idle stream. A stream that only spies read moves with the
    /// fastest of them instead: it has no receiver to send to. They wait for one that is about to be there, which they could
    /// leave too far behind before its first status message comes.
    fn update_idle_limit(&mut self, now_ns: i64) {
        self.let_spies_stand_in();
        let shared = &self.shared;
        let (mut position, limit) = (shared.sender_position.get(), shared.sender_limit.get());
        let mut from_limit = limit;
        if shared.spies_simulate_connection
            && !self.receivers.is_live()
            && !self.flow_control.awaits_first_receiver(now_ns)
        {
            let spy_position = shared.spy_position();
            if spy_position > position {
                position = spy_position;
                shared.sender_position.set_release(position);
            }
            from_limit = if shared.has_spies() {
                position
            } else {
                limit.max(position)
            };
        }
        let new_limit = self.flow_control.on_idle(now_ns, from_limit);
        if new_limit != limit {
            shared.sender_limit.set_release(new_limit);
        }
        self.publish_receiver_count();
    }

    /// Spies that simulate a connection make a group complete: its publisher may write, so those of its receivers that
    /// are there must be sent to.
    fn let_spies_stand_in(&mut self) {
        let shared = &self.shared;
        if shared.spies_simulate_connection {
            self.flow_control.set_stand_in(shared.has_spies());
        }
    }

    fn send_heartbeat(&mut self, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        let is_early = now_ns - self.last_data_or_heartbeat_ns <= HEARTBEAT_INTERVAL_NS;
        if !self.has_initial_connection || self.is_unheard() || is_early {
            return 0;
        }
        self.last_data_or_heartbeat_ns = now_ns;
        let shared = &self.shared;
        let flags = if shared.log.metadata().is_publication_revoked_acquire() {
            data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM | data::FLAG_REVOKED
        } else if shared.signals_end_of_stream && self.is_at_end_of_stream() {
            data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM
        } else {
            data::FLAGS_UNFRAGMENTED
        };
        out.counters.heartbeats_sent.increment_release();
        out.send_frame(&self.heartbeat(flags))
    }

    /// Where the stream is.
    fn heartbeat(&self, flags: u8) -> [u8; DataHeader::LENGTH] {
        let shared = &self.shared;
        let geometry = shared.log.geometry();
        let position = shared.sender_position.get();
        let heartbeat = DataHeader::heartbeat(
            shared.session_id,
            shared.stream_id,
            geometry.term_id(position),
            geometry.term_offset(position) as i32,
            flags,
        );
        let mut frame = [0; DataHeader::LENGTH];
        heartbeat.encode(&mut frame);
        frame
    }

    /// Ended, and sent to its end. A stream also ends when no receiver is left to send the rest to; one that comes back
    /// gets the rest, and must not be told before that it was all.
    fn is_at_end_of_stream(&self) -> bool {
        let shared = &self.shared;
        let end = shared.log.metadata().end_of_stream_position_acquire();
        shared.is_end_of_stream() && shared.sender_position.get() >= end
    }

    /// True for a stream of answers that goes to another receiver, or to none.
    pub(super) fn is_for_others(&self, source: SocketAddr) -> bool {
        match self.shared.exchange {
            Exchange::Prototype => true,
            Exchange::Answers { .. } => self.asker != Some(source) && self.receivers.is_live(),
            Exchange::None | Exchange::Requests { .. } => false,
        }
    }

    /// A receiver asks what the stream looks like. An ended stream has nothing left to join.
    pub(super) fn on_setup_wanted(&mut self, message: &StatusMessage, source: SocketAddr) {
        if self.shared.is_end_of_stream() {
            return;
        }
        if self.is_answers() {
            self.asker = Some(source);
        }
        self.is_setup_elicited = true;
        self.flow_control.on_trigger_setup(message);
    }

    /// One that is not sent to asks what the stream looks like, and is told with a frame for a frame. Where receivers
    /// are held to each other's pace, it is waited for as any newcomer is.
    pub(super) fn introduce(
        &mut self,
        message: &StatusMessage,
        source: SocketAddr,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) {
        if self.shared.is_end_of_stream() {
            return;
        }
        self.flow_control.on_trigger_setup(message);
        self.flow_control.on_setup(now_ns, self.shared.sender_limit.get());
        out.answer(&self.setup(out.way.ttl, now_ns), source);
    }

    /// One that is not sent to asks which streams there are. A heartbeat is shorter than the request, and a receiver that
    /// wants the stream asks what it looks like: until then no stream waits for it.
    pub(super) fn announce(&self, source: SocketAddr, out: &mut Outgoing<'_>) {
        if !self.shared.is_end_of_stream() {
            out.answer(&self.heartbeat(data::FLAGS_UNFRAGMENTED), source);
        }
    }

    /// A receiver says on which session the answers come. Gives the subscription that reads them, none for what it has
    /// just said. Fails where no answers are asked for, and for one session after another.
    pub(super) fn on_response_setup(
        &mut self,
        response_session_id: i32,
        now_ns: i64,
    ) -> Result<Option<i64>, FrameError> {
        let unexpected = FrameError::Field {
            field: "response_session_id",
            value: response_session_id.into(),
        };
        let Exchange::Requests { answers_id } = self.shared.exchange else {
            return Err(unexpected);
        };
        match self.last_response_setup {
            Some((last_ns, session_id)) if now_ns.saturating_sub(last_ns) < RESPONSE_SETUP_INTERVAL_NS => {
                // Where there are several paths, each brings it.
                let is_repeated = session_id == response_session_id;
                if is_repeated { Ok(None) } else { Err(unexpected) }
            }
            _ => {
                self.last_response_setup = Some((now_ns, response_session_id));
                Ok(Some(answers_id))
            }
        }
    }

    /// False when the position is further from the sender's than any receiver can be, there are more receivers than are
    /// told apart, or answers go to a receiver elsewhere.
    pub(super) fn accepts(&self, message: &StatusMessage, source: SocketAddr) -> bool {
        let is_from_receiver = match self.shared.exchange {
            Exchange::Answers { .. } => self.asker == Some(source),
            Exchange::Prototype => false,
            Exchange::None | Exchange::Requests { .. } => true,
        };
        let range = self.shared.lowest_receiver_position()..=self.highest_receiver_position();
        is_from_receiver
            && range.contains(&self.position_of(message))
            && self.receivers.accepts(message.receiver_id)
            && self.flow_control.accepts(message)
    }

    fn highest_receiver_position(&self) -> i64 {
        self.shared.sender_position.get() + self.shared.log.term_length() as i64 / 2
    }

    /// Another publisher of the stream has brought its receiver further than this one can go on from.
    pub(super) fn is_left_behind(&self, message: &StatusMessage) -> bool {
        self.shared.may_have_a_twin && self.position_of(message) > self.highest_receiver_position()
    }

    fn position_of(&self, message: &StatusMessage) -> i64 {
        let geometry = self.shared.log.geometry();
        message.position(geometry.initial_term_id(), geometry.position_bits_to_shift())
    }

    pub(super) fn on_status_message(&mut self, message: &StatusMessage, source: SocketAddr, now_ns: i64) {
        if !self.shared.has_group_semantics {
            // The receiver of a subscription that has left says so, too: one that comes after it may lack the end.
            self.shared
                .set_end_of_stream_confirmed(message.is_end_of_stream());
        }
        if message.is_end_of_stream() {
            self.receivers.remove(message.receiver_id);
        } else {
            self.receivers.on_status_message(message.receiver_id, now_ns);
            self.receivers.note_address(message.receiver_id, source);
            self.note_consumption(self.position_of(message), now_ns);
        }
        let reason = if message.is_end_of_stream() {
            LEFT
        } else {
            ANSWERED
        };
        if !self.has_initial_connection {
            self.has_initial_connection = true;
            // A heartbeat follows at once if no data does: it pays for what the receiver has to say next.
            self.last_data_or_heartbeat_ns = now_ns - HEARTBEAT_INTERVAL_NS - 1;
        }
        self.let_spies_stand_in();
        let shared = &self.shared;
        let limit = shared.sender_limit.get();
        let new_limit =
            self.flow_control
                .on_status_message(message, self.position_of(message), limit, now_ns);
        if new_limit != limit {
            shared.sender_limit.set_release(new_limit);
        }
        let heard = (message.receiver_id, source);
        if self.limiting_receiver != Some(heard)
            && self.flow_control.limiting_receiver() == Some(message.receiver_id)
        {
            self.limiting_receiver = Some(heard);
            shared.set_limiting_receiver(source);
        }
        self.publish_receiver_count();
        self.update_connected(reason);
    }

    /// What a single receiver has read need not be kept for it. Of several, one that joins late may lack it; so may one
    /// that a SETUP on its way still makes, and one that comes from another publisher of the stream.
    fn note_consumption(&self, position: i64, now_ns: i64) {
        let is_settled = now_ns - self.last_told_ns > SETUP_LIFETIME_NS;
        let is_alone = !self.shared.has_group_semantics && !self.shared.may_have_a_twin;
        if is_alone && self.receivers.count() == 1 && is_settled {
            self.shared.advance_consumption_position(position);
        }
    }

    /// Whether to answer NAKs from an address. A repair goes to each receiver and may be thousands of times as long as
    /// the NAK, so a stranger must not ask for one.
    pub(super) fn is_repaired_for(&self, source: SocketAddr) -> bool {
        self.receivers.is_address_of_one(source)
    }

    pub(super) fn on_nak(&mut self, nak: &Nak, now_ns: i64, out: &mut Outgoing<'_>) {
        let shared = &self.shared;
        shared.naks_received.increment_release();
        let length_max = self
            .flow_control
            .retransmit_length_max(shared.log.term_length() as i32);
        let Some(nak) = repairable_part(nak, shared) else {
            return;
        };
        self.repairs.follow(self.receivers.late_after_ns());
        let overflowed = self
            .repairs
            .retransmit
            .on_nak(&nak, length_max, now_ns, |range| out.resend(shared, range));
        if overflowed {
            out.counters.retransmit_overflow.increment_release();
        }
        self.probe_round_trips(now_ns, out);
    }

    /// There is loss: measures how long its repair takes.
    fn probe_round_trips(&mut self, now_ns: i64, out: &mut Outgoing<'_>) {
        if self.repairs.measured_linger_max_ns.is_none() || !self.receivers.begin_probe(now_ns) {
            return;
        }
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: self.shared.session_id,
            stream_id: self.shared.stream_id,
            echo_timestamp_ns: now_ns,
            reception_delta_ns: 0,
            receiver_id: rtt::EVERY_RECEIVER,
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        probe.encode(&mut frame);
        out.send_frame(&frame);
    }

    /// A receiver answers a probe. False for an answer to none.
    pub(super) fn on_rtt_answer(&mut self, answer: &RttMeasurement, now_ns: i64) -> bool {
        self.receivers
            .on_answer(answer.receiver_id, answer.echo_timestamp_ns, now_ns)
    }

    /// True for a receiver that is alive and has not refused the stream.
    /// Whether a receiver that is alive speaks from an address.
    pub(super) fn is_receiver_at(&self, receiver_id: i64, source: SocketAddr) -> bool {
        self.receivers.is_address_of(receiver_id, source)
    }

    /// A receiver refuses the stream.
    pub(super) fn on_error(&mut self, frame: &ErrorFrame) {
        self.flow_control.on_error(frame);
        self.receivers.remove(frame.receiver_id);
        self.update_connected(REFUSED);
    }

    /// The destination of a receiver is removed.
    pub(super) fn on_receiver_gone(&mut self, receiver_id: i64) {
        self.flow_control.on_gone(receiver_id);
        self.receivers.remove(receiver_id);
        self.update_connected(NOT_SENT_TO);
    }

    /// Sends a probe back to where it came from, with the number of receivers.
    pub(super) fn on_rtt_probe(&self, probe: &RttMeasurement, source: SocketAddr, out: &mut Outgoing<'_>) {
        let mut frame = [0; RttMeasurement::LENGTH];
        let echo = probe.echo().with_receiver_count(self.receivers.count());
        echo.encode(&mut frame);
        out.answer(&frame, source);
    }

    fn publish_receiver_count(&self) {
        let count = self.flow_control.receiver_count().unwrap_or_default() as i64;
        if let Some(counter) = &self.shared.flow_control_receivers
            && counter.get() != count
        {
            counter.set_release(count);
        }
    }

    fn update_connected(&self, reason: &str) {
        let has_receivers = self.receivers.is_live() && self.flow_control.has_required_receivers();
        if has_receivers != self.shared.has_receivers() {
            self.shared
                .set_connection(ConnectionState::of(has_receivers), reason);
            // Publishers are told by the conductor, who gives them room.
            self.shared.log.doorbells().position.ring();
        }
    }
}

/// A NAK without the bytes that are not sent again. They were read while it was on its way, and an action on them would
/// hold back requests for what follows.
fn repairable_part(nak: &Nak, shared: &PublicationShared) -> Option<Nak> {
    let geometry = shared.log.geometry();
    let begin = geometry.position(nak.term_id, nak.term_offset as usize);
    let excess = (shared.lowest_repairable_position() - begin).max(0);
    let excess = i32::try_from(excess).ok().filter(|excess| *excess < nak.length)?;
    Some(Nak {
        term_offset: nak.term_offset + excess,
        length: nak.length - excess,
        ..*nak
    })
}
