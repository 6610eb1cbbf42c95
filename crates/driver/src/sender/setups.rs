//! SETUP frames: they go out until a receiver is heard, and to receivers that ask.

use headrace_protocol::frame::{Setup, setup};

use super::outgoing::Outgoing;
use super::receivers::Receivers;
use crate::shared::PublicationShared;
use crate::shared::publication::Exchange;

/// How often a SETUP is repeated until a receiver is heard: after this time first, each time after twice as long, up to
/// the last. A receiver that subscribes a moment after the publisher began would wait for the whole of the last. What a
/// receiver asks for, which may be a stranger, it gets no sooner than that.
const FIRST_INTERVAL_NS: i64 = 5_000_000;
const LAST_INTERVAL_NS: i64 = 100_000_000;

/// For so long a SETUP may be on its way, and make a receiver begin where the sender was then.
const LIFETIME_NS: i64 = 1_000_000_000;

/// The SETUPs of one stream.
pub(super) struct Setups {
    /// A receiver waits for one.
    pub(super) is_elicited: bool,
    last_repeated_ns: i64,
    interval_ns: i64,
    /// The last that left, to all receivers or to one.
    last_sent_ns: i64,
}

impl Setups {
    /// The first goes out at once.
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            is_elicited: false,
            last_repeated_ns: now_ns - 1,
            interval_ns: 0,
            last_sent_ns: now_ns,
        }
    }

    /// Sends one if it is time.
    #[inline]
    pub(super) fn send(
        &mut self,
        shared: &PublicationShared,
        receivers: &mut Receivers,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) {
        // Responses are announced to the receiver that asks, once for each time that it does: another may have asked in
        // its name.
        let is_responses = shared.exchange.is_responses();
        let is_wanted = self.is_elicited || !(receivers.has_feedback || is_responses);
        if !is_wanted || now_ns - self.last_repeated_ns <= self.interval_ns {
            return;
        }
        self.interval_ns = if self.is_elicited {
            LAST_INTERVAL_NS
        } else {
            (2 * self.interval_ns).clamp(FIRST_INTERVAL_NS, LAST_INTERVAL_NS)
        };
        self.last_repeated_ns = now_ns;
        if self.is_elicited {
            receivers.flow_control.on_setup(now_ns, shared.sender_limit.get());
        }
        out.send_frame(&self.frame(shared, receivers, out.way.ttl, now_ns));
        if receivers.liveness.is_live() || is_responses {
            self.is_elicited = false;
        }
    }

    /// The frame, which is about to leave.
    pub(super) fn frame(
        &mut self,
        shared: &PublicationShared,
        receivers: &Receivers,
        ttl: u8,
        now_ns: i64,
    ) -> [u8; Setup::LENGTH] {
        self.last_sent_ns = now_ns;
        let geometry = shared.log.geometry();
        let position = shared.sender_position.get();
        let mut flags = 0;
        if shared.has_group_semantics {
            flags |= setup::FLAG_GROUP;
            if receivers.flow_control.receiver_count().is_some() {
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

    /// No SETUP is on its way any more.
    pub(super) fn are_settled(&self, now_ns: i64) -> bool {
        now_ns - self.last_sent_ns > LIFETIME_NS
    }
}
