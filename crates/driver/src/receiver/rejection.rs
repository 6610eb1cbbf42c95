//! Tells the publisher of a stream why a program rejects it.

use headrace_protocol::ErrorCode;
use headrace_protocol::frame::ErrorFrame;
use headrace_protocol::text::truncated;

use super::connections::Connections;
use super::outgoing::Outgoing;
use crate::shared::ImageShared;

pub(super) fn send_rejection(
    reason: &str,
    shared: &ImageShared,
    connections: &Connections,
    now_ns: i64,
    out: &mut Outgoing<'_>,
) {
    let frame = ErrorFrame {
        session_id: shared.session_id,
        stream_id: shared.stream_id,
        receiver_id: out.receiver_id,
        group_tag: out.group_tag,
        error_code: ErrorCode::ImageRejected.value(),
        // Clients of other makes may give a longer text than a frame holds.
        text: truncated(reason, ErrorFrame::TEXT_LENGTH_MAX).into(),
    };
    let mut bytes = [0; ErrorFrame::LENGTH_MAX];
    let length = frame.encode(&mut bytes);
    for connection in connections.feedback_targets(now_ns) {
        out.send_frame(&bytes[..length], connection);
        out.counters.error_frames_sent.increment_release();
    }
}
