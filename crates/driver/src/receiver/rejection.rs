//! Tells the publisher of a stream why a program rejects it.

use headrace_protocol::ErrorCode;
use headrace_protocol::frame::ErrorFrame;
use headrace_protocol::text::truncated;

use super::connections::Connections;
use super::outgoing::Outgoing;
use crate::shared::ImageShared;

/// How long the text waits until all of it is paid for. After that it is cut short: a sender forgets a receiver of which it
/// hears nothing, and then believes no rejection of it.
const PATIENCE_NS: i64 = 1_000_000_000;

/// True once it is sent to a sender that has been told nothing for `silent_ns`.
pub(super) fn send_rejection(
    reason: &str,
    shared: &ImageShared,
    connections: &mut Connections,
    silent_ns: i64,
    now_ns: i64,
    out: &mut Outgoing<'_>,
) -> bool {
    let paid = connections.credit().saturating_sub(ErrorFrame::LENGTH_MIN);
    // Clients of other makes may give a longer text than a frame holds.
    let length_max = if silent_ns < PATIENCE_NS {
        ErrorFrame::TEXT_LENGTH_MAX
    } else {
        paid.min(ErrorFrame::TEXT_LENGTH_MAX)
    };
    let frame = ErrorFrame {
        session_id: shared.session_id,
        stream_id: shared.stream_id,
        receiver_id: out.receiver_id,
        group_tag: out.group_tag,
        error_code: ErrorCode::ImageRejected.value(),
        text: truncated(reason, length_max).into(),
    };
    let mut bytes = [0; ErrorFrame::LENGTH_MAX];
    let length = frame.encode(&mut bytes);
    let is_paid = connections.can_answer(length, now_ns);
    for connection in connections.answered(length, now_ns) {
        out.send_frame(&bytes[..length], connection);
        out.counters.error_frames_sent.increment_release();
    }
    is_paid
}
