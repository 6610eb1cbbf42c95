//! Logs as a stranger might leave them: no content may make a reader, a publisher or the driver panic, leave
//! the term or loop without end.

use headrace_buffers::log::read::{read, read_controlled, try_read_block};
use headrace_buffers::log::rebuild::{fill_gap, insert};
use headrace_buffers::log::scan::{scan_available, scan_datagrams};
use headrace_buffers::log::unblock::unblock;
use headrace_buffers::log::{
    Action, ConcurrentAppender, ExclusiveAppender, LogBuffers, LogSpec, TermGeometry, frame, gap, raw_tail,
};
use headrace_buffers::{AtomicBuffer, Memory};
use proptest::collection::vec;
use proptest::prelude::*;

const TERM: usize = 65_536;

fn term_of(words: &[(usize, i32)], everywhere: Option<i32>) -> AtomicBuffer {
    let term = AtomicBuffer::allocate(TERM);
    if let Some(value) = everywhere {
        (0..TERM).step_by(4).for_each(|at| term.put_i32(at, value));
    }
    for (slot, value) in words {
        term.put_i32(slot * 32, *value);
    }
    term
}

fn words() -> impl Strategy<Value = Vec<(usize, i32)>> {
    let value = prop_oneof![any::<i32>(), 0i32..300, Just(TERM as i32)];
    vec((0usize..TERM / 32, value), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn readers_and_scanners_stay_on_frames_of_the_term(
        words in words(),
        everywhere in prop::option::of(any::<i32>()),
        starts in vec((prop_oneof![any::<usize>(), 0usize..=TERM, (0usize..TERM / 32).prop_map(|s| s * 32)],
            prop_oneof![any::<usize>(), 0usize..2 * TERM]), 1..20),
    ) {
        let term = term_of(&words, everywhere);
        let geometry = TermGeometry::new(-1, TERM);
        for (start, limit) in starts {
            let sound = |offset: usize| offset == start || (offset > start && offset <= TERM && offset.is_multiple_of(32));
            let mut offset = start;
            read(&term, geometry, &mut offset, limit, usize::MAX, |payload, header| {
                assert!(payload.len() <= TERM);
                std::hint::black_box((header.position(), header.to_frame_header()));
            });
            prop_assert!(sound(offset), "{} to {}", start, offset);
            let mut offset = start;
            read_controlled(&term, geometry, &mut offset, limit, 5, |_, _| Action::Commit, |at| assert!(sound(at)));
            prop_assert!(sound(offset));
            let mut offset = start;
            let result = try_read_block(&term, &mut offset, limit, |block| {
                assert!(block.bytes.len() <= block.length);
                Ok::<(), ()>(())
            });
            prop_assert!(result.is_ok() && sound(offset));
            let scan = scan_available(&term, start, limit);
            prop_assert!(scan.available <= limit && sound(start.wrapping_add(scan.available + scan.padding)));
            let mut datagrams = Vec::new();
            let found = scan_datagrams(&term, start, limit, 1408, 65_536, &mut datagrams);
            prop_assert!(found.bytes <= found.advance && sound(start.wrapping_add(found.advance)));
            prop_assert!(sound(gap::scan_for_gap(&term, 0, start, limit).rebuild_offset));
            std::hint::black_box(frame::malformed_length(&term, start));
        }
    }

    #[test]
    fn the_receiver_writes_only_inside_the_term(
        words in words(),
        packets in vec((prop_oneof![any::<usize>(), 0usize..=TERM, (0usize..TERM / 32).prop_map(|s| s * 32)],
            vec(any::<u8>(), 0..200), prop::option::of(0i32..300)), 1..20),
        gaps in vec((any::<usize>(), any::<usize>()), 1..10),
    ) {
        let term = term_of(&words, None);
        for (offset, mut packet, length) in packets {
            if let (Some(length), Some(first)) = (length, packet.first_chunk_mut::<4>()) {
                *first = length.to_le_bytes();
            }
            insert(&term, offset, &packet);
        }
        let identity = frame::TermIdentity { session_id: 0, stream_id: 0, term_id: 0 };
        for (offset, length) in gaps {
            fill_gap(&term, identity, offset, length);
            fill_gap(&term, identity, (offset % TERM) & !31, (length % TERM) & !31);
        }
    }

    #[test]
    fn publishers_and_repair_survive_any_metadata(
        tails in prop::array::uniform3(any::<i64>()),
        near in prop::option::of((0i32..4, 0usize..=TERM + 64)),
        active_term_count in prop_oneof![any::<i32>(), 0i32..4],
        position in prop_oneof![any::<i64>(), (0i64..3 * TERM as i64 / 32).prop_map(|slot| slot * 32)],
        lengths in vec(0usize..9000, 1..10),
        first_word: i32,
    ) {
        let log = LogBuffers::heap(&LogSpec::default()).unwrap();
        let metadata = log.metadata();
        for (partition, tail) in tails.into_iter().enumerate() {
            metadata.put_raw_tail_release(partition, tail);
        }
        metadata.put_active_term_count_release(active_term_count);
        if let Some((count, offset)) = near {
            metadata.put_active_term_count_release(count);
            metadata.put_raw_tail_release(count as usize % 3, raw_tail::pack(count, offset));
        }
        (0..3).for_each(|partition| log.term(partition).put_i32(0, first_word));
        std::hint::black_box((unblock(&log, position), log.producer_position()));
        let appender = ConcurrentAppender::new(&log);
        let mut exclusive = ExclusiveAppender::new(&log);
        for length in lengths {
            let message = vec![1; length];
            // Refusals and errors are both fine here; what counts is that a call returns.
            let _ = appender.offer_one(&message, i64::MAX);
            let _ = appender.try_claim(length, i64::MAX);
            if let Ok(exclusive) = &mut exclusive {
                let _ = exclusive.offer_one(&message, i64::MAX);
                let _ = exclusive.append_padding(length, i64::MAX);
                let _ = exclusive.offer_block(&message, i64::MAX);
            }
            unblock(&log, position);
        }
    }
}
