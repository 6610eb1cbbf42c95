//! Moving a stream on to its next term.

use crate::Memory;

use super::descriptor::PARTITION_COUNT;
use super::metadata::LogMetadata;
use super::position::index_by_term_count;
use super::raw_tail;

/// Rotates a log that several publishers share from its `term_count`-th term, which has id `term_id`.
///
/// Any number of callers may race. The tail of the next partition is set first, so a publisher that sees the
/// new term count sees the new tail; a tail that is not the one three terms back was already set by another caller.
/// Returns true for the one caller that counted the rotation.
pub fn rotate<M: Memory>(metadata: &LogMetadata<M>, term_count: i32, term_id: i32) -> bool {
    let next_term_id = term_id.wrapping_add(1);
    let next_count = term_count.wrapping_add(1);
    let partition = index_by_term_count(next_count);
    let expected_term_id = next_term_id.wrapping_sub(PARTITION_COUNT as i32);
    loop {
        let raw = metadata.raw_tail_acquire(partition);
        if raw_tail::term_id(raw) != expected_term_id {
            break;
        }
        if metadata.compare_and_set_raw_tail(partition, raw, raw_tail::pack(next_term_id, 0)) {
            break;
        }
    }
    metadata.compare_and_set_active_term_count(term_count, next_count)
}

/// Rotates a log that has a single publisher, which is the caller.
pub fn rotate_exclusive<M: Memory>(metadata: &LogMetadata<M>, term_count: i32, term_id: i32) {
    let next_count = term_count.wrapping_add(1);
    metadata.put_raw_tail_release(
        index_by_term_count(next_count),
        raw_tail::pack(term_id.wrapping_add(1), 0),
    );
    metadata.put_active_term_count_release(next_count);
}
