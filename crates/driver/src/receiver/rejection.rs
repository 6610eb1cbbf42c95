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

/// A text that is no longer than this is not cut.
const TEXT_LENGTH_LEAST: usize = 128;

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
        paid.clamp(TEXT_LENGTH_LEAST, ErrorFrame::TEXT_LENGTH_MAX)
    };
    let text = truncated(reason, length_max);
    if !connections.can_answer(ErrorFrame::LENGTH_MIN + text.len(), now_ns) {
        return false;
    }
    let frame = ErrorFrame {
        session_id: shared.session_id,
        stream_id: shared.stream_id,
        receiver_id: out.receiver_id,
        group_tag: out.group_tag,
        error_code: ErrorCode::ImageRejected.value(),
        text: text.into(),
    };
    let mut bytes = [0; ErrorFrame::LENGTH_MAX];
    let length = frame.encode(&mut bytes);
    for connection in connections.answered(length, now_ns) {
        out.send_frame(&bytes[..length], connection);
        out.counters.error_frames_sent.increment_release();
    }
    true
}
