//! Repairing a log whose publisher died between claiming space and publishing it.
//!
//! The hole is covered with padding. The driver does this only after the stream has stood still for the unblock
//! timeout, because a publisher that is alive after all cannot be stopped. If it had written the length of its
//! frame, frame and padding span the same slot and the reader gets one or the other. If it had written nothing
//! and wakes up during the repair, the slot still keeps its span, but may hold a frame longer than its message.

use crate::Memory;

use super::buffers::LogBuffers;
use super::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH, TermIdentity};
use super::position::index_by_term_count;
use super::raw_tail;
use super::rotation::rotate;

/// What an unblock did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unblock {
    /// Nothing: there is no hole at the position, or not one whose end is known.
    None,
    /// A hole was covered.
    Unblocked,
    /// A hole up to the end of the term was covered, or had been, and the stream moved on to the next term.
    UnblockedToEnd,
}

/// Covers the hole that starts at `position`, where every consumer waits.
pub fn unblock<M: Memory>(log: &LogBuffers<M>, position: i64) -> Unblock {
    let geometry = log.geometry();
    let metadata = log.metadata();
    let offset = geometry.term_offset(position);
    if !(0..geometry.max_possible_position()).contains(&position) || !offset.is_multiple_of(FRAME_ALIGNMENT) {
        return Unblock::None;
    }
    let term_count = geometry.term_count(geometry.term_id(position));
    let active_term_count = metadata.active_term_count_acquire();
    if active_term_count == term_count.wrapping_sub(1) && offset == 0 {
        // The term before was padded out, but the publisher that did so died before rotating.
        let raw = metadata.raw_tail_acquire(index_by_term_count(active_term_count));
        rotate(metadata, active_term_count, raw_tail::term_id(raw));
        return Unblock::UnblockedToEnd;
    }
    let partition = index_by_term_count(term_count);
    let raw = metadata.raw_tail_acquire(partition);
    let term_id = raw_tail::term_id(raw);
    if geometry.term_count(term_id) != term_count {
        return Unblock::None;
    }
    let tail = raw_tail::term_offset(raw, log.term_length());
    let outcome = cover(log.term(partition), log.identity(term_id), offset, tail);
    if outcome == Unblock::UnblockedToEnd {
        rotate(metadata, term_count, term_id);
    }
    outcome
}

/// Covers the hole at `offset` in a term whose publishers have claimed up to `tail`.
fn cover<M: Memory>(term: &M, identity: TermIdentity, offset: usize, tail: usize) -> Unblock {
    if offset >= tail {
        return Unblock::None;
    }
    let length = frame::frame_length_acquire(term, offset);
    if length < 0 {
        let claimed = length.unsigned_abs() as usize;
        if claimed < HEADER_LENGTH || claimed > term.capacity() - offset {
            return Unblock::None; // no publisher claimed that
        }
        overwrite(term, identity, offset, claimed);
        return Unblock::Unblocked;
    }
    if length > 0 {
        return Unblock::None;
    }
    let is_empty = |at: usize| frame::frame_length_acquire(term, at) == 0;
    let mut at = offset + FRAME_ALIGNMENT;
    while at < tail && is_empty(at) {
        at += FRAME_ALIGNMENT;
    }
    if at < tail {
        // A frame follows. A publisher may have begun, while we looked ahead, to fill the slots passed over;
        // looking back over all of them finds it.
        let still_empty = (offset..at).step_by(FRAME_ALIGNMENT).rev().all(is_empty);
        if still_empty {
            overwrite(term, identity, offset, at - offset);
            return Unblock::Unblocked;
        }
    } else if at >= term.capacity() && is_empty(offset) {
        overwrite(term, identity, offset, term.capacity() - offset);
        return Unblock::UnblockedToEnd;
    }
    Unblock::None
}

/// Makes the slot a padding frame, without first marking it as claimed: that would undo the commit of a
/// publisher that is alive after all.
fn overwrite<M: Memory>(term: &M, identity: TermIdentity, offset: usize, length: usize) {
    frame::put_padding_header(term, offset, identity);
    frame::commit(term, offset, length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;
    use crate::log::append::{Append, ClaimResult, ConcurrentAppender};
    use crate::log::frame::{FrameHeader, TYPE_PAD};
    use crate::log::read::read;
    use crate::log::spec::{LogSpec, StartPosition};

    const TERM: usize = 65_536;

    /// A log whose next frame goes `left` bytes before the end of its second term.
    fn log_near_end(left: usize) -> (LogBuffers, ConcurrentAppender, i64) {
        let start = StartPosition {
            term_id: i32::MIN,
            term_offset: TERM - left,
        };
        let log = LogBuffers::heap(&LogSpec {
            initial_term_id: i32::MAX,
            start: Some(start),
            session_id: 4,
            ..LogSpec::default()
        })
        .unwrap();
        let appender = ConcurrentAppender::new(&log);
        (log, appender, (2 * TERM - left) as i64)
    }

    /// Claims space the way a publisher does that dies before it writes anything.
    fn claim_and_die(log: &LogBuffers, length: usize) {
        let partition = index_by_term_count(log.metadata().active_term_count_acquire());
        log.metadata().get_and_add_raw_tail(partition, length);
    }

    fn pad_at(log: &LogBuffers, partition: usize, offset: usize) -> usize {
        let pad = FrameHeader::read(log.term(partition), offset);
        assert_eq!(
            (pad.frame_type, pad.session_id, pad.term_id),
            (TYPE_PAD, 4, i32::MIN)
        );
        assert_eq!(pad.term_offset, offset as i32);
        pad.frame_length as usize
    }

    #[test]
    fn a_claimed_frame_is_covered_to_its_length() {
        let (log, appender, position) = log_near_end(1024);
        let ClaimResult::Claimed(claim) = appender.try_claim(70, i64::MAX).unwrap() else {
            panic!("refused");
        };
        std::mem::forget(claim); // as when the process is killed
        assert_eq!(unblock(&log, position), Unblock::Unblocked);
        assert_eq!(pad_at(&log, 1, TERM - 1024), 102);
        appender.offer_one(b"next", i64::MAX).unwrap();
        let (mut offset, mut seen) = (TERM - 1024, Vec::new());
        read(log.term(1), log.geometry(), &mut offset, TERM, 9, |payload, _| {
            seen.push(payload.to_vec())
        });
        assert_eq!(seen, [b"next"]);
        assert_eq!(
            unblock(&log, position),
            Unblock::None,
            "nothing is blocked there any more"
        );
    }

    #[test]
    fn a_hole_without_header_is_covered_up_to_the_next_frame() {
        let (log, appender, position) = log_near_end(1024);
        claim_and_die(&log, 160);
        assert_eq!(unblock(&log, position), Unblock::None, "its end is not known yet");
        appender.offer_one(b"next", i64::MAX).unwrap();
        assert_eq!(unblock(&log, position), Unblock::Unblocked);
        assert_eq!(pad_at(&log, 1, TERM - 1024), 160);
    }

    #[test]
    fn a_hole_to_the_end_of_the_term_is_covered_and_the_log_rotated() {
        let (log, _, position) = log_near_end(256);
        claim_and_die(&log, 512);
        assert_eq!(unblock(&log, position), Unblock::UnblockedToEnd);
        assert_eq!(pad_at(&log, 1, TERM - 256), 256);
        assert_eq!(log.metadata().active_term_count_acquire(), 2);
        assert_eq!(log.producer_position(), 2 * TERM as i64);
    }

    #[test]
    fn a_rotation_left_undone_is_done() {
        let (log, appender, _) = log_near_end(64);
        assert_eq!(
            appender.offer_one(&[0; 32], i64::MAX),
            Ok(Append::Position(2 * TERM as i64))
        );
        let raw = log.metadata().get_and_add_raw_tail(1, 64);
        assert_eq!(raw_tail::term_offset(raw, TERM), TERM);
        assert_eq!(unblock(&log, 2 * TERM as i64), Unblock::UnblockedToEnd);
        assert_eq!(log.metadata().active_term_count_acquire(), 2);
        assert!(matches!(
            appender.offer_one(b"x", i64::MAX),
            Ok(Append::Position(_))
        ));
    }

    #[test]
    fn a_position_that_is_no_frame_of_the_active_term_changes_nothing() {
        let (log, _, position) = log_near_end(1024);
        claim_and_die(&log, 512);
        let outside = [
            -32,
            position + 4,
            position + 1024 + 64,
            position - TERM as i64,
            i64::MAX,
            1 << 50,
        ];
        for wrong in outside {
            assert_eq!(unblock(&log, wrong), Unblock::None, "{wrong}");
        }
        let untouched = |term: &AtomicBuffer| (0..TERM).step_by(8).all(|at| term.get_i64(at) == 0);
        assert!((0..3).all(|partition| untouched(log.term(partition))));
    }

    #[test]
    fn a_claim_length_that_leaves_the_term_is_not_believed() {
        let (log, _, position) = log_near_end(1024);
        claim_and_die(&log, 512);
        for bad in [-1, -31, -1025, i32::MIN] {
            log.term(1).put_i32(TERM - 1024, bad);
            assert_eq!(unblock(&log, position), Unblock::None, "{bad}");
        }
        log.term(1).put_i32(TERM - 1024, -1024);
        assert_eq!(unblock(&log, position), Unblock::Unblocked);
    }
}
