//! Every interleaving, within a bound, of the parties that share a log.
//!
//! Terms here are two slots of 64 bytes and messages are 4 bytes long, so that a message fills a slot. Models
//! build their logs from parts: no sound file has terms this short.

use loom::thread;

use crate::Memory;
use crate::loom_memory::{LoomMemory, model};

use super::append::{Append, ClaimResult, ConcurrentAppender, ExclusiveAppender};
use super::buffers::LogBuffers;
use super::clean::zero_range;
use super::descriptor::{
    ACTIVE_TERM_COUNT_OFFSET, DEFAULT_FRAME_HEADER_OFFSET, INITIAL_TERM_ID_OFFSET, IS_CONNECTED_OFFSET,
    METADATA_LENGTH,
};
use super::frame::{self, HEADER_LENGTH, SESSION_ID_OFFSET, STREAM_ID_OFFSET};
use super::metadata::LogMetadata;
use super::raw_tail;
use super::read::{Action, walk};
use super::rebuild::{Insert, insert};
use super::rotation::rotate;
use super::unblock::{Unblock, unblock};

const SLOT: usize = 64;
const TERM: usize = 2 * SLOT;
const MTU: usize = 64;
const ANY_LIMIT: i64 = i64::MAX;

type Log = LogBuffers<LoomMemory>;

/// Room for a message in either slot, or for a padding frame in the second half of the last.
fn term() -> LoomMemory {
    let frames = [0, SLOT, SLOT + 32];
    let payloads = [0, SLOT].map(|slot| slot + HEADER_LENGTH..slot + HEADER_LENGTH + 4);
    let words32 = [&frames.map(|at| at..at + 8)[..], &payloads].concat();
    let words64 = frames.map(|at| [at + 8, at + 16, at + 24]).concat();
    LoomMemory::new(TERM, &words32, &words64).with_zeros(HEADER_LENGTH + 4..SLOT)
}

/// A log whose next frame goes to `offset` in its first term.
fn log_at(offset: usize) -> Log {
    let words32 = [
        ACTIVE_TERM_COUNT_OFFSET,
        IS_CONNECTED_OFFSET,
        INITIAL_TERM_ID_OFFSET,
        DEFAULT_FRAME_HEADER_OFFSET + SESSION_ID_OFFSET,
        DEFAULT_FRAME_HEADER_OFFSET + STREAM_ID_OFFSET,
    ]
    .map(|at| at..at + 4);
    let metadata = LogMetadata::new(LoomMemory::new(METADATA_LENGTH, &words32, &[0, 8, 16]));
    metadata.put_raw_tail_release(0, raw_tail::pack(0, offset));
    metadata.put_raw_tail_release(1, raw_tail::pack(-2, 0));
    metadata.put_raw_tail_release(2, raw_tail::pack(-1, 0));
    LogBuffers::assemble([term(), term(), term()], metadata, TERM, MTU)
}

/// Offers until the message is in; a rotation under way is the only refusal there can be.
fn offer(log: &Log, message: u32) -> i64 {
    let appender = ConcurrentAppender::new(log);
    loop {
        match appender.offer_one(&message.to_ne_bytes(), ANY_LIMIT).unwrap() {
            Append::Position(position) => return position,
            Append::AdminAction => thread::yield_now(),
            refusal => panic!("{refusal:?}"),
        }
    }
}

/// Messages that can be read from `offset` on, and the offset reached.
fn messages(term: &LoomMemory, mut offset: usize) -> (Vec<u32>, usize) {
    let mut seen = Vec::new();
    let result = walk(term, &mut offset, TERM, 9, |at, length, _| {
        assert_eq!(length, LENGTH, "a frame has the wrong length");
        let mut bytes = [0; 4];
        term.get_bytes(at + HEADER_LENGTH, &mut bytes);
        seen.push(u32::from_ne_bytes(bytes));
        Ok::<Action, ()>(Action::Continue)
    });
    assert_eq!(result, Ok(seen.len()));
    (seen, offset)
}

fn assert_rotated_once(log: &Log, next_offset: usize) {
    let metadata = log.metadata();
    assert_eq!(metadata.active_term_count_acquire(), 1);
    assert_eq!(metadata.raw_tail_acquire(1), raw_tail::pack(1, next_offset));
    assert_eq!(metadata.raw_tail_acquire(2), raw_tail::pack(-1, 0));
}

/// Two publishers meet at the end of a term, which `offset` says how near it is. Each message is read once,
/// and the term before is closed.
fn publishers_at_the_end_of_a_term(offset: usize, in_old_term: usize) {
    let log = log_at(offset);
    let other = log.clone();
    let publisher = thread::spawn(move || offer(&other, 1));
    let ours = offer(&log, 2);
    let theirs = publisher.join().unwrap();
    assert_ne!(ours, theirs, "both got the same space");
    let (old, end) = messages(log.term(0), offset.min(TERM));
    let (new, reached) = messages(log.term(1), 0);
    assert_eq!(
        (old.len(), end),
        (in_old_term, TERM),
        "the old term is not closed"
    );
    assert_eq!(reached, new.len() * SLOT);
    let mut all = [old, new].concat();
    all.sort_unstable();
    assert_eq!(all, [1, 2]);
    assert_rotated_once(&log, reached);
}

#[test]
fn loom_log_publishers_share_the_last_slot_and_rotate_once() {
    model(3, || publishers_at_the_end_of_a_term(SLOT, 1));
}

#[test]
fn loom_log_one_publisher_pads_and_both_rotate_to_the_same_term() {
    model(3, || publishers_at_the_end_of_a_term(TERM, 0));
    model(3, || publishers_at_the_end_of_a_term(SLOT + 32, 0));
}

#[test]
fn loom_log_publishers_claim_disjoint_slots() {
    model(3, || {
        let log = log_at(0);
        let other = log.clone();
        let publisher = thread::spawn(move || offer(&other, 1));
        let positions = [offer(&log, 2), publisher.join().unwrap()];
        assert!(positions == [64, 128] || positions == [128, 64], "{positions:?}");
        let (mut seen, reached) = messages(log.term(0), 0);
        seen.sort_unstable();
        assert_eq!((seen, reached), (vec![1, 2], TERM));
    });
}

#[test]
fn loom_log_a_reader_sees_whole_messages_in_order_or_nothing() {
    model(3, || {
        let log = log_at(0);
        let shared = log.clone();
        let reader = thread::spawn(move || messages(shared.term(0), 0));
        let mut appender = ExclusiveAppender::new(&log).unwrap();
        for message in [7u32, 8] {
            appender.offer_one(&message.to_ne_bytes(), ANY_LIMIT).unwrap();
        }
        let (seen, reached) = reader.join().unwrap();
        assert!([&[][..], &[7], &[7, 8]].contains(&&seen[..]), "{seen:?}");
        assert_eq!(reached, seen.len() * SLOT);
    });
}

#[test]
fn loom_log_a_reader_follows_a_publisher_into_the_next_term() {
    model(3, || {
        let log = log_at(SLOT + 32);
        let shared = log.clone();
        let reader = thread::spawn(move || {
            let (seen, reached) = messages(shared.term(0), SLOT + 32);
            assert_eq!(seen, []);
            if reached < TERM {
                Vec::new()
            } else {
                messages(shared.term(1), 0).0
            }
        });
        assert_eq!(offer(&log, 7), (TERM + SLOT) as i64);
        let seen = reader.join().unwrap();
        assert!(seen.is_empty() || seen == [7], "{seen:?}");
    });
}

#[test]
fn loom_log_an_aborted_claim_is_never_data() {
    model(3, || {
        let log = log_at(0);
        let shared = log.clone();
        let reader = thread::spawn(move || messages(shared.term(0), 0));
        let appender = ConcurrentAppender::new(&log);
        let ClaimResult::Claimed(mut claim) = appender.try_claim(4, ANY_LIMIT).unwrap() else {
            panic!("refused");
        };
        claim.put(0, &[9; 4]);
        claim.abort();
        let (seen, reached) = reader.join().unwrap();
        assert!(
            seen.is_empty() && [0, SLOT].contains(&reached),
            "{seen:?} {reached}"
        );
        assert_eq!(messages(log.term(0), 0), (vec![], SLOT));
    });
}

const LENGTH: usize = HEADER_LENGTH + 4;
const DATA: i32 = frame::kind(frame::FLAGS_UNFRAGMENTED, frame::TYPE_DATA);

/// Runs two sides against each other, each in turn on the spawned thread.
fn against<T: Send + 'static>(
    log: &Log,
    spawn_left: bool,
    left: fn(&Log) -> T,
    right: fn(&Log) -> T,
) -> (T, T) {
    let shared = log.clone();
    if spawn_left {
        let thread = thread::spawn(move || left(&shared));
        let right = right(log);
        (thread.join().unwrap(), right)
    } else {
        let thread = thread::spawn(move || right(&shared));
        let left = left(log);
        (left, thread.join().unwrap())
    }
}

fn unblock_and_read(log: &Log) -> (Unblock, Vec<u32>) {
    let outcome = unblock(log, 0);
    (outcome, messages(log.term(0), 0).0)
}

/// A publisher that was taken for dead commits after all. Its frame and the padding span the same slot, so the
/// reader sees one or the other and goes on at the same place.
#[test]
fn loom_log_a_late_commit_and_the_unblocker_agree_on_the_slot() {
    for spawn_publisher in [true, false] {
        model(3, move || {
            let log = log_at(0);
            log.metadata().get_and_add_raw_tail(0, SLOT);
            frame::claim(log.term(0), 0, LENGTH, DATA, log.identity(0));
            let publish = |log: &Log| {
                log.term(0).put_bytes(HEADER_LENGTH, &7u32.to_ne_bytes());
                frame::commit(log.term(0), 0, LENGTH);
                (Unblock::None, Vec::new())
            };
            let (_, (outcome, early)) = against(&log, spawn_publisher, publish, unblock_and_read);
            let (late, reached) = messages(log.term(0), 0);
            assert_eq!(reached, SLOT);
            if outcome == Unblock::None {
                assert_eq!((early, late), (vec![7], vec![7]));
            } else {
                assert!(early.is_empty() && late.is_empty(), "padding stays padding");
            }
        });
    }
}

/// A publisher wakes up that had claimed a slot and written nothing, while the slot is being covered. No one
/// could have told its frame's length, so a reader may find a message as long as the hole there; but the slot
/// keeps its span, and the frame after it is reached.
#[test]
fn loom_log_a_publisher_that_wakes_up_does_not_hide_the_frames_after_it() {
    for spawn_publisher in [true, false] {
        model(3, move || {
            let log = log_at(0);
            log.metadata().get_and_add_raw_tail(0, SLOT);
            offer(&log, 8);
            let publish = |log: &Log| {
                frame::claim(log.term(0), 0, LENGTH, DATA, log.identity(0));
                log.term(0).put_bytes(HEADER_LENGTH, &7u32.to_ne_bytes());
                frame::commit(log.term(0), 0, LENGTH);
            };
            against(&log, spawn_publisher, publish, |log| {
                unblock(log, 0);
            });
            let found = frame::committed(log.term(0), 0).expect("one or the other committed the slot");
            assert!(
                found.span == SLOT && [LENGTH, SLOT].contains(&found.length),
                "{found:?}"
            );
            assert_eq!(messages(log.term(0), found.span).0, [8]);
        });
    }
}

#[test]
fn loom_log_an_empty_first_word_means_a_clean_slot() {
    model(3, || {
        let log = log_at(0);
        offer(&log, 7);
        let shared = log.clone();
        let observer = thread::spawn(move || {
            let term = shared.term(0);
            if frame::frame_length_acquire(term, 0) == 0 {
                let mut bytes = [1; SLOT - 4];
                term.get_bytes(4, &mut bytes);
                assert_eq!(bytes, [0; SLOT - 4], "a half-cleaned frame looked empty");
            }
        });
        zero_range(log.term(0), 0, SLOT);
        observer.join().unwrap();
    });
}

/// The driver cleans a slot and then raises the limit; the publisher appends once the limit allows it. What it
/// wrote is not zeroed under it.
#[test]
fn loom_log_cleaning_comes_before_the_limit_and_the_append_after() {
    model(3, || {
        let log = log_at(0);
        log.term(0).put_i32(4, 1 << 16);
        log.term(0).put_i32(32, 99);
        log.term(0).put_i32_release(0, 36);
        let limit = loom::sync::Arc::new(loom::sync::atomic::AtomicI64::new(0));
        let (shared, raised) = (log.clone(), limit.clone());
        let publisher = thread::spawn(move || {
            let limit = raised.load(loom::sync::atomic::Ordering::Acquire);
            ConcurrentAppender::new(&shared).offer_one(&7u32.to_ne_bytes(), limit)
        });
        let mut clean_position = 0;
        assert_eq!(log.clean(&mut clean_position, SLOT as i64), SLOT);
        limit.store(SLOT as i64, loom::sync::atomic::Ordering::Release);
        let appended = publisher.join().unwrap().unwrap();
        let expected = match appended {
            Append::Position(64) => vec![7],
            Append::NotConnected => vec![],
            other => panic!("{other:?}"),
        };
        assert_eq!(messages(log.term(0), 0).0, expected);
    });
}

#[test]
fn loom_log_of_two_rotations_one_counts_and_neither_takes_a_claim_back() {
    model(3, || {
        let log = log_at(TERM);
        let shared = log.clone();
        let other = thread::spawn(move || {
            let counted = rotate(shared.metadata(), 0, 0);
            let raw = shared.metadata().get_and_add_raw_tail(1, SLOT);
            assert_eq!(raw, raw_tail::pack(1, 0), "the claim is in the new term");
            counted
        });
        let counted = [rotate(log.metadata(), 0, 0), other.join().unwrap()];
        assert_eq!(counted.iter().filter(|counted| **counted).count(), 1);
        assert_rotated_once(&log, SLOT);
    });
}

#[test]
fn loom_log_an_inserted_datagram_shows_whole_or_not_at_all() {
    model(3, || {
        let source = log_at(0);
        offer(&source, 7);
        let mut packet = [0; SLOT];
        source.term(0).get_bytes(0, &mut packet);
        let image = log_at(0);
        let shared = image.clone();
        let reader = thread::spawn(move || messages(shared.term(0), 0));
        assert_eq!(insert(image.term(0), 0, &packet), Insert::Inserted);
        let (seen, _) = reader.join().unwrap();
        assert!(seen.is_empty() || seen == [7], "{seen:?}");
        assert_eq!(insert(image.term(0), 0, &packet), Insert::Duplicate);
    });
}

/// The models must be able to fail: a frame committed before its payload is seen torn.
#[test]
#[should_panic(expected = "torn")]
fn loom_log_finds_a_commit_that_comes_too_early() {
    model(3, || {
        let log = log_at(0);
        let shared = log.clone();
        let reader = thread::spawn(move || {
            let (seen, _) = messages(shared.term(0), 0);
            assert!(seen.is_empty() || seen == [7], "torn: {seen:?}");
        });
        let term = log.term(0);
        frame::claim(term, 0, LENGTH, DATA, log.identity(0));
        frame::commit(term, 0, LENGTH);
        term.put_bytes(HEADER_LENGTH, &7u32.to_ne_bytes());
        reader.join().unwrap();
    });
}
