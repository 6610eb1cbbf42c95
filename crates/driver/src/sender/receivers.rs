//! The receivers of a stream: which of them are alive, and how far flow control lets the sender go.

use std::net::SocketAddr;

use headrace_protocol::flow::FlowControl;
use headrace_protocol::frame::{ErrorFrame, StatusMessage};

use super::liveness::ReceiverLiveness;
use crate::shared::{ConnectionState, PublicationShared};

// Why a publication is connected, or no longer.
const HEARD: &str = "a receiver was heard";
const LEFT: &str = "the last receiver left";
const NOT_SENT_TO: &str = "the destination of the last receiver was removed";
const REFUSED: &str = "the last receiver refused the stream";
const SILENT: &str = "no receiver was heard for the connection time-out";

/// All receivers of one stream.
pub(super) struct Receivers {
    pub(super) flow_control: Box<dyn FlowControl>,
    pub(super) liveness: ReceiverLiveness,
    /// One was there, and may have gone.
    pub(super) has_feedback: bool,
    /// The receiver last shown as the limiting one, and its address.
    limiting: Option<(i64, SocketAddr)>,
}

impl Receivers {
    /// None yet.
    pub(super) fn new(flow_control: Box<dyn FlowControl>) -> Self {
        Self {
            flow_control,
            liveness: ReceiverLiveness::default(),
            has_feedback: false,
            limiting: None,
        }
    }

    /// False if the position is further from the sender's than any receiver can be, or if the stream has more receivers
    /// than the sender tells apart.
    pub(super) fn accepts(&self, shared: &PublicationShared, message: &StatusMessage) -> bool {
        let range = shared.lowest_receiver_position()..=shared.highest_receiver_position();
        range.contains(&shared.position_of(message))
            && self.liveness.accepts(message.receiver_id)
            && self.flow_control.accepts(message)
    }

    /// One speaks, or says that it is going.
    pub(super) fn hear(&mut self, message: &StatusMessage, source: SocketAddr, now_ns: i64) {
        self.has_feedback = true;
        if message.is_end_of_stream() {
            self.liveness.remove(message.receiver_id);
        } else {
            self.liveness.on_status_message(message.receiver_id, now_ns);
            self.liveness.note_address(message.receiver_id, source);
        }
    }

    /// Lets flow control move the limit after one was heard.
    pub(super) fn move_limit(
        &mut self,
        shared: &PublicationShared,
        message: &StatusMessage,
        source: SocketAddr,
        now_ns: i64,
    ) {
        self.let_spies_stand_in(shared);
        let limit = shared.sender_limit.get();
        let position = shared.position_of(message);
        let new_limit = self
            .flow_control
            .on_status_message(message, position, limit, now_ns);
        if new_limit != limit {
            shared.sender_limit.set_release(new_limit);
        }
        let heard = (message.receiver_id, source);
        if self.limiting != Some(heard) && self.flow_control.limiting_receiver() == Some(message.receiver_id)
        {
            self.limiting = Some(heard);
            shared.set_limiting_receiver(source);
        }
        self.publish_count(shared);
        let reason = if message.is_end_of_stream() { LEFT } else { HEARD };
        self.update_connected(shared, reason);
    }

    /// Nothing was sent: lets flow control move the limit, and forgets silent receivers. A stream that only spies read moves
    /// with the fastest of them instead: it has no receiver to send to. They wait for one that is about to be there, which
    /// they could leave too far behind before its first status message comes.
    #[inline]
    pub(super) fn on_idle(&mut self, shared: &PublicationShared, now_ns: i64, connection_timeout_ns: i64) {
        self.let_spies_stand_in(shared);
        let (mut position, limit) = (shared.sender_position.get(), shared.sender_limit.get());
        let mut from_limit = limit;
        if shared.spies_simulate_connection
            && !self.liveness.is_live()
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
        self.publish_count(shared);
        self.liveness.expire(now_ns, connection_timeout_ns);
        self.update_connected(shared, SILENT);
    }

    /// One refuses the stream.
    pub(super) fn on_error(&mut self, shared: &PublicationShared, frame: &ErrorFrame) {
        self.flow_control.on_error(frame);
        self.liveness.remove(frame.receiver_id);
        self.update_connected(shared, REFUSED);
    }

    /// The destination of one is removed.
    pub(super) fn on_gone(&mut self, shared: &PublicationShared, receiver_id: i64) {
        self.flow_control.on_gone(receiver_id);
        self.liveness.remove(receiver_id);
        self.update_connected(shared, NOT_SENT_TO);
    }

    /// Spies that simulate a connection make a group complete: its publisher may write, so those of its receivers that
    /// are there must be sent to.
    fn let_spies_stand_in(&mut self, shared: &PublicationShared) {
        if shared.spies_simulate_connection {
            self.flow_control.set_stand_in(shared.has_spies());
        }
    }

    fn publish_count(&self, shared: &PublicationShared) {
        let count = self.flow_control.receiver_count().unwrap_or_default() as i64;
        if let Some(counter) = &shared.flow_control_receivers
            && counter.get() != count
        {
            counter.set_release(count);
        }
    }

    fn update_connected(&self, shared: &PublicationShared, reason: &str) {
        let has_receivers = self.liveness.is_live() && self.flow_control.has_required_receivers();
        if has_receivers != shared.has_receivers() {
            shared.set_connection(ConnectionState::of(has_receivers), reason);
            // Publishers are told by the conductor, who gives them room.
            shared.log.doorbells().position.ring();
        }
    }
}
