//! Whatever is written, read and put back, the command ring is a queue.

use std::collections::VecDeque;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::ring::{ManyToOneRing, ReadAction, TRAILER_LENGTH};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    /// Write a message this long, in thousandths of the longest allowed.
    Write { length_permille: usize },
    /// Read up to `limit` messages, but refuse the one at `abort_at`.
    Read { limit: usize, abort_at: usize },
    /// Ask for repair, which a ring without dead producers does not need.
    Unblock,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..=1000usize).prop_map(|length_permille| Step::Write { length_permille }),
        3 => (0..8usize, 0..12usize).prop_map(|(limit, abort_at)| Step::Read { limit, abort_at }),
        1 => Just(Step::Unblock),
    ]
}

/// A message that cannot be mistaken for another, of any length.
fn message(number: i32, length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (number as usize * 31 + index * 7) as u8)
        .collect()
}

fn read(ring: &mut ManyToOneRing, limit: usize, abort_at: usize) -> Vec<(i32, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut shown = 0;
    let count = ring
        .read(limit, |type_id, bytes| {
            shown += 1;
            if shown > abort_at {
                return ReadAction::Abort;
            }
            seen.push((type_id, bytes.to_vec()));
            ReadAction::Continue
        })
        .unwrap();
    assert_eq!(count, seen.len());
    assert!(count <= limit);
    seen
}

fn drain(ring: &mut ManyToOneRing) -> Vec<(i32, Vec<u8>)> {
    let mut seen = Vec::new();
    while ring.consumer_position() != ring.producer_position() {
        seen.extend(read(ring, usize::MAX, usize::MAX));
    }
    seen
}

proptest! {
    #[test]
    fn a_ring_is_a_queue(capacity_bits in 5..12u32, steps in prop::collection::vec(step(), 1..200)) {
        let capacity = 1usize << capacity_bits;
        let mut ring = ManyToOneRing::new(AtomicBuffer::allocate(capacity + TRAILER_LENGTH)).unwrap();
        let mut queue = VecDeque::new();
        let mut number = 0;
        for step in steps {
            match step {
                Step::Write { length_permille } => {
                    number += 1;
                    let message = message(number, ring.max_message_length() * length_permille / 1000);
                    if !ring.try_write(number, &message).unwrap() {
                        // Refused for want of room: an empty ring has room for any message.
                        prop_assert_eq!(drain(&mut ring), queue.drain(..).collect::<Vec<_>>());
                        prop_assert!(ring.try_write(number, &message).unwrap());
                    }
                    queue.push_back((number, message));
                }
                Step::Read { limit, abort_at } => {
                    for seen in read(&mut ring, limit, abort_at) {
                        prop_assert_eq!(Some(seen), queue.pop_front());
                    }
                }
                Step::Unblock => prop_assert!(!ring.unblock()),
            }
            let used = ring.producer_position() - ring.consumer_position();
            prop_assert!((0..=capacity as i64).contains(&used));
        }
        prop_assert_eq!(drain(&mut ring), Vec::from(queue));
    }
}
