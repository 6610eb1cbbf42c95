//! The sender's half of a network publication: its datagrams, and the frames of its receivers.
//!
//! If spies simulate a connection and no receiver is alive, nothing is sent: the position follows the spies.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::doorbell::Interests;
use headrace_protocol::flow::FlowControl;
use headrace_protocol::frame::{Nak, RttMeasurement, StatusMessage, data};

use super::outgoing::Outgoing;
use super::receivers::Receivers;
use super::repairs::{Repairs, repairable_part};
use super::responses::Responses;
use super::setups::Setups;
use super::transmission::{Transmission, heartbeat};
use crate::shared::PublicationShared;

/// One stream being sent. Data flows once a receiver's status message raised the limit above the position.
pub(super) struct SenderPublication {
    pub(super) shared: Arc<PublicationShared>,
    setups: Setups,
    pub(super) transmission: Transmission,
    pub(super) receivers: Receivers,
    repairs: Repairs,
    pub(super) responses: Responses,
}

impl SenderPublication {
    pub(super) fn new(
        shared: Arc<PublicationShared>,
        flow_control: Box<dyn FlowControl>,
        repairs: Repairs,
        now_ns: i64,
    ) -> Self {
        Self {
            setups: Setups::new(now_ns),
            transmission: Transmission::new(now_ns),
            receivers: Receivers::new(flow_control),
            repairs,
            responses: Responses::new(shared.exchange),
            shared,
        }
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
        let shared = &*self.shared;
        self.setups.send(shared, &mut self.receivers, now_ns, out);
        // The last that asked for a stream of responses may be a stranger; a receiver that has it says so.
        let is_heard = !shared.exchange.is_responses() || self.receivers.liveness.is_live();
        let mut bytes = 0;
        if is_heard {
            bytes = self.transmission.send(shared, now_ns, out);
        }
        if bytes == 0 {
            if is_heard && self.receivers.has_feedback {
                bytes = self.transmission.send_heartbeat(shared, now_ns, out);
            }
            self.receivers.on_idle(shared, now_ns, connection_timeout_ns);
        }
        self.repairs.retransmit.on_timers(now_ns, |range| {
            if is_heard {
                out.resend(shared, range);
            }
        });
        bytes
    }

    /// A receiver asks what the stream looks like. An ended stream has nothing left to join. False for a stream of
    /// responses that goes to another receiver, or to none.
    pub(super) fn on_setup_wanted(&mut self, message: &StatusMessage, source: SocketAddr) -> bool {
        let has_receiver = self.receivers.liveness.is_live();
        if !self.responses.may_go_to(source, has_receiver) {
            return false;
        }
        if !self.shared.is_end_of_stream() {
            if self.shared.exchange.is_responses() {
                self.responses.requester = Some(source);
            }
            self.setups.is_elicited = true;
            self.receivers.flow_control.on_trigger_setup(message);
        }
        true
    }

    /// Sends the SETUP to a receiver that asks for it and is not a destination yet. If flow control holds receivers to
    /// a common pace, the sender waits for it as for any newcomer.
    pub(super) fn introduce(
        &mut self,
        message: &StatusMessage,
        source: SocketAddr,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) {
        let shared = &*self.shared;
        if shared.is_end_of_stream() {
            return;
        }
        let flow_control = &mut self.receivers.flow_control;
        flow_control.on_trigger_setup(message);
        flow_control.on_setup(now_ns, shared.sender_limit.get());
        let setup = self.setups.frame(shared, &self.receivers, out.way.ttl, now_ns);
        out.answer(&setup, source);
    }

    /// One that is not sent to asks which streams there are. A heartbeat is shorter than the request, and a receiver that
    /// wants the stream asks what it looks like: until then no stream waits for it.
    pub(super) fn announce(&self, source: SocketAddr, out: &mut Outgoing<'_>) {
        if !self.shared.is_end_of_stream() {
            out.answer(&heartbeat(&self.shared, data::FLAGS_UNFRAGMENTED), source);
        }
    }

    /// False for what no receiver of the stream can say, or not from there.
    pub(super) fn accepts(&self, message: &StatusMessage, source: SocketAddr) -> bool {
        self.responses.goes_to(source) && self.receivers.accepts(&self.shared, message)
    }

    /// Another publisher of the stream has brought its receiver further than this one can go on from.
    pub(super) fn is_left_behind(&self, message: &StatusMessage) -> bool {
        let shared = &self.shared;
        shared.may_have_a_twin && shared.position_of(message) > shared.highest_receiver_position()
    }

    pub(super) fn on_status_message(&mut self, message: &StatusMessage, source: SocketAddr, now_ns: i64) {
        let shared = &*self.shared;
        if !shared.has_group_semantics {
            // The receiver of a subscription that has left says so, too: one that comes after it may lack the end.
            shared.set_end_of_stream_confirmed(message.is_end_of_stream());
        }
        self.receivers.hear(message, source, now_ns);
        // What a single receiver has read need not be kept for it. Of several, one that joins late may lack it; so may one
        // that a SETUP on its way still makes, and one that comes from another publisher of the stream.
        let is_alone = !shared.has_group_semantics && !shared.may_have_a_twin;
        if !message.is_end_of_stream()
            && is_alone
            && self.receivers.liveness.count() == 1
            && self.setups.are_settled(now_ns)
        {
            shared.advance_consumption_position(shared.position_of(message));
        }
        self.receivers.move_limit(shared, message, source, now_ns);
    }

    /// A receiver lacks bytes. False for a stranger, who must not ask for a repair: it goes to each receiver, and may be
    /// thousands of times as long as the NAK.
    pub(super) fn on_nak(
        &mut self,
        nak: &Nak,
        source: SocketAddr,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) -> bool {
        if !self.receivers.liveness.is_address_of_one(source) {
            return false;
        }
        let shared = &*self.shared;
        shared.naks_received.increment_release();
        if let Some(nak) = repairable_part(nak, shared) {
            let geometry = shared.log.geometry();
            let position = geometry.position(nak.term_id, nak.term_offset as usize);
            shared.repair_requests.note_from(position, source);
            self.repairs
                .on_nak(shared, &mut self.receivers, &nak, now_ns, out);
        }
        true
    }

    /// Sends a probe back to where it came from, with the number of receivers.
    pub(super) fn on_rtt_probe(&self, probe: &RttMeasurement, source: SocketAddr, out: &mut Outgoing<'_>) {
        let mut frame = [0; RttMeasurement::LENGTH];
        let echo = probe.echo().with_receiver_count(self.receivers.liveness.count());
        echo.encode(&mut frame);
        out.answer(&frame, source);
    }
}
