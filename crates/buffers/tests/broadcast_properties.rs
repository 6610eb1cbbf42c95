//! A receiver of the broadcast misses nothing without being told, and is told only when the transmitter lapped it.

use std::collections::VecDeque;

use headrace_buffers::broadcast::{LappedError, Receiver, TRAILER_LENGTH, Transmitter};
use headrace_buffers::{AtomicBuffer, align};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    /// Send a message this long, in thousandths of the longest allowed.
    Transmit { length_permille: usize },
    /// Take up to this many.
    Receive { count: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..=1000usize).prop_map(|length_permille| Step::Transmit { length_permille }),
        1 => (1..8usize).prop_map(|count| Step::Receive { count }),
    ]
}

fn message(number: i32, length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (number as usize * 31 + index * 7) as u8)
        .collect()
}

fn record_length(message: &[u8]) -> usize {
    align(8 + message.len(), 8)
}

proptest! {
    #[test]
    fn a_receiver_sees_everything_or_is_told(
        capacity_bits in 6..12u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let capacity = 1usize << capacity_bits;
        let memory = AtomicBuffer::allocate(capacity + TRAILER_LENGTH);
        let mut transmitter = Transmitter::new(memory.clone()).unwrap();
        let mut receiver = Receiver::new(memory).unwrap();
        let mut pending: VecDeque<(i32, Vec<u8>)> = VecDeque::new();
        let mut number = 0;
        let mut scratch = Vec::new();
        // Padding at the end of the area is shorter than the record it makes way for.
        let padding_max = 8 + transmitter.max_message_length();
        for step in steps {
            match step {
                Step::Transmit { length_permille } => {
                    number += 1;
                    let message = message(number, transmitter.max_message_length() * length_permille / 1000);
                    transmitter.transmit(number, &message).unwrap();
                    pending.push_back((number, message));
                }
                Step::Receive { count } => for _ in 0..count {
                    match receiver.receive(&mut scratch) {
                        Ok(None) => prop_assert!(pending.is_empty()),
                        Ok(Some(type_id)) => {
                            prop_assert_eq!(Some((type_id, scratch.clone())), pending.pop_front());
                        }
                        Err(LappedError) => {
                            let behind: usize = pending.iter().map(|(_, message)| record_length(message)).sum();
                            prop_assert!(behind + padding_max >= capacity, "lapped while only {behind} behind");
                            // It goes on with the newest.
                            pending.drain(..pending.len() - 1);
                        }
                    }
                },
            }
        }
    }
}
