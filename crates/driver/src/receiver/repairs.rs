//! What is missing of a stream: asked for, or covered where it is not repaired.

use headrace_buffers::log::rebuild;
use headrace_protocol::frame::Nak;

use super::connections::Connections;
use super::outgoing::Outgoing;
use crate::shared::{ImageShared, LossRange};

pub(super) fn send_nak(
    shared: &ImageShared,
    connections: &Connections,
    loss: LossRange,
    now_ns: i64,
    out: &mut Outgoing<'_>,
) {
    let nak = Nak {
        flags: 0,
        session_id: shared.session_id,
        stream_id: shared.stream_id,
        term_id: loss.term_id,
        term_offset: loss.term_offset,
        length: loss.length,
    };
    let mut frame = [0; Nak::LENGTH];
    nak.encode(&mut frame);
    for connection in connections.feedback_targets(now_ns) {
        out.send_frame(&frame, connection);
    }
    out.counters.naks_sent.increment_release();
    shared.naks_sent.increment_release();
}

pub(super) fn fill_gap(shared: &ImageShared, loss: LossRange, out: &Outgoing<'_>) {
    let geometry = shared.log.geometry();
    let (Ok(offset), Ok(length)) = (usize::try_from(loss.term_offset), usize::try_from(loss.length)) else {
        return;
    };
    let position = geometry.position(loss.term_id, offset);
    let term = shared.log.term(geometry.partition(position));
    if rebuild::fill_gap(term, shared.log.identity(loss.term_id), offset, length) {
        out.counters.loss_gap_fills.increment_release();
        shared.log.doorbells().data.ring();
    }
}
