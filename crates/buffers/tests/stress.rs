//! Real threads on real memory, for what models are too small to show.

use std::thread;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::broadcast::{self, LappedError, Receiver, Transmitter};
use headrace_buffers::ring::{self, ManyToOneRing, ReadAction};

/// `number`, repeated over a length that depends on it.
fn message(number: i32, length_max: usize) -> Vec<u8> {
    let words = 1 + number as usize % (length_max / 4);
    number.to_ne_bytes().repeat(words)
}

#[test]
fn a_small_ring_carries_many_producers() {
    const PRODUCERS: usize = 4;
    const MESSAGES: i32 = 20_000;
    let memory = AtomicBuffer::allocate(1024 + ring::TRAILER_LENGTH);
    let mut ring = ManyToOneRing::new(memory).unwrap();
    let max = ring.max_message_length();
    thread::scope(|scope| {
        for producer in 1..=PRODUCERS {
            let ring = ring.clone();
            scope.spawn(move || {
                for number in 1..=MESSAGES {
                    while !ring.try_write(producer as i32, &message(number, max)).unwrap() {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut last = [0; PRODUCERS];
        while last.iter().any(|last| *last < MESSAGES) {
            let read = ring.read(16, |producer, bytes| {
                let last = &mut last[producer as usize - 1];
                *last += 1;
                assert_eq!(bytes, message(*last, max), "producer {producer}");
                ReadAction::Continue
            });
            if read == Ok(0) {
                thread::yield_now();
            }
        }
    });
    assert_eq!(ring.consumer_position(), ring.producer_position());
}

#[test]
fn correlation_ids_are_never_drawn_twice() {
    const DRAWS: usize = 10_000;
    let ring = ManyToOneRing::new(AtomicBuffer::allocate(64 + ring::TRAILER_LENGTH)).unwrap();
    let mut ids: Vec<i64> = thread::scope(|scope| {
        let draw = || (0..DRAWS).map(|_| ring.next_correlation_id()).collect::<Vec<_>>();
        let drawn: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
        drawn.into_iter().flat_map(|ids| ids.join().unwrap()).collect()
    });
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..4 * DRAWS as i64));
}

#[test]
fn receivers_of_a_hasty_broadcast_see_whole_messages_in_order() {
    const MESSAGES: i32 = 100_000;
    let memory = AtomicBuffer::allocate(1024 + broadcast::TRAILER_LENGTH);
    let mut transmitter = Transmitter::new(memory.clone()).unwrap();
    let max = transmitter.max_message_length();
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut receiver = Receiver::new(memory.clone()).unwrap();
            scope.spawn(move || {
                let (mut last, mut lapped, mut scratch) = (0, false, Vec::new());
                while last < MESSAGES {
                    match receiver.receive(&mut scratch) {
                        Ok(Some(number)) => {
                            assert_eq!(scratch, message(number, max));
                            assert!(
                                number == last + 1 || (lapped && number > last),
                                "{last} then {number}"
                            );
                            (last, lapped) = (number, false);
                        }
                        Ok(None) => thread::yield_now(),
                        Err(LappedError) => lapped = true,
                    }
                }
            });
        }
        for number in 1..=MESSAGES {
            transmitter.transmit(number, &message(number, max)).unwrap();
            // Now and then the receivers are let in, so that both being lapped and keeping up occur.
            if number % 64 == 0 {
                thread::yield_now();
            }
        }
    });
}
