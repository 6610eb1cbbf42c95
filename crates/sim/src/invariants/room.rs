//! Where frames begin, and whether the room for the next ones is clean.

use headrace_buffers::Memory;
use headrace_buffers::log::LogBuffers;
use headrace_buffers::log::frame::FRAME_ALIGNMENT;

pub(super) fn is_aligned(position: i64) -> bool {
    position & (FRAME_ALIGNMENT as i64 - 1) == 0
}

/// Bytes that are looked at in every check, where the next frame goes.
const HEAD_LENGTH: i64 = 64;
/// Bytes that are looked at now and then, anywhere.
const SAMPLE_LENGTH: i64 = 1024;
/// Checks from one sample of a log to the next.
const SAMPLE_INTERVAL: u64 = 32;

/// True when what lies between two positions is zero, as far as it is looked at; the next sample is elsewhere.
pub(super) fn is_clean(log: &LogBuffers, from: i64, to: i64, looks: u64) -> bool {
    let room = to - from;
    if room < SAMPLE_LENGTH || !is_aligned(from) {
        return true;
    }
    let is_head_clean = is_zero(log, from, HEAD_LENGTH);
    if !is_head_clean || !looks.is_multiple_of(SAMPLE_INTERVAL) {
        return is_head_clean;
    }
    let chosen = from + (looks.wrapping_mul(0x9e37_79b9) >> 5) as i64 % (room - SAMPLE_LENGTH + 1);
    is_zero(log, chosen & !(FRAME_ALIGNMENT as i64 - 1), SAMPLE_LENGTH)
}

/// True when a reader at a position finds no frame there.
pub(super) fn is_empty(log: &LogBuffers, position: i64) -> bool {
    !is_aligned(position) || is_zero(log, position, 8)
}

/// True when the bytes after a position are zero, as far as they are in its term.
fn is_zero(log: &LogBuffers, position: i64, length: i64) -> bool {
    let geometry = log.geometry();
    let term = log.term(geometry.partition(position));
    let begin = geometry.term_offset(position);
    let end = (begin + length as usize).min(geometry.term_length());
    (begin..end).step_by(8).all(|offset| term.get_i64(offset) == 0)
}
