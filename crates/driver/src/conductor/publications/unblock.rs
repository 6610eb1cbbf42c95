//! Finding publishers that died between claim and commit.

use headrace_buffers::log::LogBuffers;
use headrace_buffers::log::unblock::Unblock;

/// Watches one concurrent publication for a consumer that cannot go on although there is something to read.
#[derive(Debug)]
pub(crate) struct BlockedCheck {
    last_position: i64,
    since_ns: i64,
}

impl BlockedCheck {
    pub(crate) fn new(position: i64, now_ns: i64) -> Self {
        Self {
            last_position: position,
            since_ns: now_ns,
        }
    }

    /// Repairs the log once `position` has stood still, with more claimed after it, for longer than the
    /// time-out. True when a hole was filled.
    pub(crate) fn check(&mut self, log: &LogBuffers, position: i64, now_ns: i64, timeout_ns: i64) -> bool {
        if position == self.last_position && is_possibly_blocked(log, position) {
            now_ns - self.since_ns > timeout_ns && unblock(log, position)
        } else {
            self.last_position = position;
            self.since_ns = now_ns;
            false
        }
    }
}

fn is_possibly_blocked(log: &LogBuffers, position: i64) -> bool {
    let expected_term_count = (position >> log.position_bits_to_shift()) as i32;
    log.metadata().active_term_count_acquire() != expected_term_count || log.producer_position() > position
}

/// Fills the hole at `position`, if there is one.
pub(crate) fn unblock(log: &LogBuffers, position: i64) -> bool {
    headrace_buffers::log::unblock::unblock(log, position) != Unblock::None
}
