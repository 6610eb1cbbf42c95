use loom::thread;

use super::*;
use crate::loom_memory::{LoomMemory, model};

const CAPACITY: usize = 64;

/// An empty ring whose next record goes to `position`.
fn ring_at(position: i64) -> ManyToOneRing<LoomMemory> {
    let fields = [TAIL_OFFSET, HEAD_CACHE_OFFSET, HEAD_OFFSET].map(|offset| CAPACITY + offset);
    let memory = LoomMemory::new(
        CAPACITY + TRAILER_LENGTH,
        std::slice::from_ref(&(0..CAPACITY)),
        &fields,
    );
    for field in fields {
        memory.put_i64(field, position);
    }
    ManyToOneRing::new(memory).unwrap()
}

fn read_into(ring: &mut ManyToOneRing<LoomMemory>, seen: &mut Vec<i32>) {
    ring.read(9, |type_id, message| {
        assert_eq!(message, type_id.to_ne_bytes(), "a message was torn");
        seen.push(type_id);
        ReadAction::Continue
    })
    .unwrap();
}

fn write(ring: &ManyToOneRing<LoomMemory>, type_id: i32) -> bool {
    ring.try_write(type_id, &type_id.to_ne_bytes()).unwrap()
}

fn spawn_producer(ring: &ManyToOneRing<LoomMemory>, type_id: i32) -> thread::JoinHandle<bool> {
    let ring = ring.clone();
    thread::spawn(move || write(&ring, type_id))
}

/// The rest is read; every message came once, and the ring is as good as new.
fn assert_drained(ring: &mut ManyToOneRing<LoomMemory>, mut seen: Vec<i32>, expected: &[i32]) {
    while ring.consumer_position() != ring.producer_position() {
        read_into(ring, &mut seen);
    }
    seen.sort_unstable();
    assert_eq!(seen, expected);
    for offset in (0..CAPACITY).step_by(4) {
        let word = ring.memory.get_i32(offset);
        assert_eq!(word, 0, "offset={offset} was not handed back clean");
    }
}

fn producers_against_spawned_consumer(position: i64) {
    let mut ring = ring_at(position);
    let consumer = {
        let mut ring = ring.clone();
        thread::spawn(move || {
            let mut seen = Vec::new();
            read_into(&mut ring, &mut seen);
            seen
        })
    };
    let producer = spawn_producer(&ring, 1);
    assert!(write(&ring, 2));
    assert!(producer.join().unwrap());
    let seen = consumer.join().unwrap();
    assert_drained(&mut ring, seen, &[1, 2]);
}

fn spawned_producers_against_consumer(position: i64) {
    let mut ring = ring_at(position);
    let producers = [1, 2].map(|type_id| spawn_producer(&ring, type_id));
    let mut seen = Vec::new();
    read_into(&mut ring, &mut seen);
    assert!(producers.into_iter().all(|producer| producer.join().unwrap()));
    assert_drained(&mut ring, seen, &[1, 2]);
}

#[test]
fn loom_ring_delivers_each_message_once_and_whole() {
    model(2, || producers_against_spawned_consumer(0));
    model(2, || spawned_producers_against_consumer(0));
}

#[test]
fn loom_ring_wraps_after_padding() {
    // 8 bytes to the end: the first producer pads them.
    model(2, || producers_against_spawned_consumer(CAPACITY as i64 - 8));
    model(2, || spawned_producers_against_consumer(CAPACITY as i64 - 8));
}

#[test]
fn loom_ring_producer_reuses_only_what_was_handed_back_clean() {
    model(3, || {
        let mut ring = ring_at(0);
        (1..=4).for_each(|type_id| assert!(write(&ring, type_id)));
        let producer = spawn_producer(&ring, 5);
        let mut seen = Vec::new();
        read_into(&mut ring, &mut seen);
        let written = producer.join().unwrap();
        let expected: &[i32] = if written { &[1, 2, 3, 4, 5] } else { &[1, 2, 3, 4] };
        assert_drained(&mut ring, seen, expected);
    });
}

/// One producer died, with or without having stored its length; another writes while the consumer unblocks.
fn unblock_race(position: i64, stored_length: i32) {
    let mut ring = ring_at(position);
    let dead = ring.claim(16).unwrap().unwrap();
    ring.memory.put_i32(dead, stored_length);
    let consumer = {
        let mut ring = ring.clone();
        thread::spawn(move || {
            let mut seen = Vec::new();
            let unblocked = ring.unblock();
            read_into(&mut ring, &mut seen);
            (unblocked, seen)
        })
    };
    assert!(write(&ring, 7));
    let (unblocked, seen) = consumer.join().unwrap();
    assert!(unblocked || ring.unblock());
    assert_drained(&mut ring, seen, &[7]);
}

#[test]
fn loom_ring_unblock_never_harms_a_live_producer() {
    for position in [0, CAPACITY as i64 - 16] {
        model(3, move || unblock_race(position, -16));
        model(3, move || unblock_race(position, 0));
    }
}
