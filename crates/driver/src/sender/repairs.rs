//! Repairs that receivers ask for, and probes of how long a repair takes.

use headrace_protocol::frame::{Nak, RttMeasurement, rtt};
use headrace_protocol::retransmit::RetransmitHandler;

use super::outgoing::Outgoing;
use super::receivers::Receivers;
use crate::shared::PublicationShared;

/// Shortest time for which NAKs for what was sent again are dropped: a receiver's shortest wait for a repair.
const LINGER_MIN_NS: i64 = 100_000;

/// How a stream is repaired.
pub(super) struct Repairs {
    pub(super) retransmit: RetransmitHandler,
    /// Where lingering follows the round trips to the receivers: the longest, and what it is while one is not known.
    pub(super) measured_linger_max_ns: Option<i64>,
}

impl Repairs {
    /// A receiver lacks bytes that can be sent again.
    pub(super) fn on_nak(
        &mut self,
        shared: &PublicationShared,
        receivers: &mut Receivers,
        nak: &Nak,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) {
        if let Some(max_ns) = self.measured_linger_max_ns {
            // By then the receivers have a repair, and no further NAK for it is on its way.
            let late_after_ns = receivers.liveness.late_after_ns();
            let linger_ns = late_after_ns.map_or(max_ns, |late_ns| late_ns.max(LINGER_MIN_NS).min(max_ns));
            self.retransmit.set_linger_ns(linger_ns);
        }
        let term_length = shared.log.term_length() as i32;
        let length_max = receivers.flow_control.retransmit_length_max(term_length);
        let overflowed = self
            .retransmit
            .on_nak(nak, length_max, now_ns, |range| out.resend(shared, range));
        if overflowed {
            out.counters.retransmit_overflow.increment_release();
        }
        if self.measured_linger_max_ns.is_some() && receivers.liveness.begin_probe(now_ns) {
            probe_round_trips(shared, now_ns, out);
        }
    }
}

/// Asks all receivers to answer at once.
fn probe_round_trips(shared: &PublicationShared, now_ns: i64, out: &mut Outgoing<'_>) {
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: shared.session_id,
        stream_id: shared.stream_id,
        echo_timestamp_ns: now_ns,
        reception_delta_ns: 0,
        receiver_id: rtt::EVERY_RECEIVER,
    };
    let mut frame = [0; RttMeasurement::LENGTH];
    probe.encode(&mut frame);
    out.send_frame(&frame);
}

/// A NAK without the bytes that are not sent again. They were read while it was on its way, and an action on them would
/// hold back requests for what follows.
pub(super) fn repairable_part(nak: &Nak, shared: &PublicationShared) -> Option<Nak> {
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
