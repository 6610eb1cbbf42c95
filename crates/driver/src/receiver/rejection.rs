//! Tells the publisher of a stream why a program rejects it.

use headrace_protocol::ErrorCode;
use headrace_protocol::frame::ErrorFrame;

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
        text: clipped(reason, length_max).into(),
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

/// As much of a text as has this length. Clients of other makes may give longer ones than a frame holds.
fn clipped(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        assert_eq!(clipped("no room", 1023), "no room");
        assert_eq!(clipped(&"x".repeat(2_000), 1023), "x".repeat(1023));
        let two_bytes_each = "\u{e9}".repeat(1_000);
        assert_eq!(clipped(&two_bytes_each, 1023), "\u{e9}".repeat(511));
        assert_eq!(clipped(&two_bytes_each, 1), "");
    }
}
