//! No interleaving loses a wake-up for good: the waiter saw what was written, or a writer took its bit.

use loom::thread;

use super::table::{BellWord, SlotWords};
use crate::Memory;
use crate::loom_memory::{LoomMemory, model};

const DATA: usize = 8;

fn bell(memory: &LoomMemory) -> BellWord<'_, LoomMemory> {
    BellWord { memory, offset: 0 }
}

fn words(memory: &LoomMemory) -> SlotWords<'_, LoomMemory> {
    SlotWords { memory, offset: 0 }
}

/// Makes a value visible and rings; returns the bits whose owners it wakes.
fn write(memory: &LoomMemory, value: i64) -> u64 {
    memory.put_i64_release(DATA, value);
    if bell(memory).is_armed() {
        bell(memory).take()
    } else {
        0
    }
}

/// Arms and looks once more; returns the value that it saw.
fn arm_and_look(memory: &LoomMemory, slot: usize) -> i64 {
    assert!(bell(memory).arm(slot));
    memory.heavy_fence();
    memory.get_i64_acquire(DATA)
}

fn fresh() -> LoomMemory {
    LoomMemory::new(16, &[], &[0, DATA])
}

#[test]
fn loom_a_waiter_sees_the_message_or_is_woken() {
    model(3, || {
        let memory = fresh();
        let writer = memory.clone();
        let writer = thread::spawn(move || write(&writer, 1));
        let seen = arm_and_look(&memory, 5);
        let woken = writer.join().unwrap();
        assert!(seen == 1 || woken == 1 << 5, "blocked for good");
        // What a waiter that saw the message leaves behind is at most its own bit.
        bell(&memory).disarm(5);
        assert_eq!(bell(&memory).take(), 0);
    });
}

#[test]
fn loom_a_spawned_waiter_sees_the_message_or_is_woken() {
    model(3, || {
        let memory = fresh();
        let waiter = memory.clone();
        let waiter = thread::spawn(move || arm_and_look(&waiter, 5));
        let woken = write(&memory, 1);
        assert!(waiter.join().unwrap() == 1 || woken == 1 << 5, "blocked for good");
    });
}

#[test]
fn loom_two_writers_wake_a_waiter_once() {
    model(2, || {
        let memory = fresh();
        assert_eq!(arm_and_look(&memory, 0), 0);
        let other = memory.clone();
        let other = thread::spawn(move || write(&other, 1));
        let woken = write(&memory, 2);
        assert_eq!(woken + other.join().unwrap(), 1, "woken twice or not at all");
    });
}

#[test]
fn loom_two_waiters_are_each_woken_or_see_the_message() {
    model(2, || {
        let memory = fresh();
        let (writer, second) = (memory.clone(), memory.clone());
        let writer = thread::spawn(move || write(&writer, 1));
        let second = thread::spawn(move || arm_and_look(&second, 1));
        let first_saw = arm_and_look(&memory, 0) == 1;
        let second_saw = second.join().unwrap() == 1;
        let woken = writer.join().unwrap();
        assert!(first_saw || woken & 1 != 0, "the first is blocked for good");
        assert!(second_saw || woken & 2 != 0, "the second is blocked for good");
    });
}

#[test]
fn loom_an_owner_that_begins_to_watch_its_file_sees_the_wake_up_or_has_it_written() {
    model(3, || {
        let memory = LoomMemory::new(16, &[0..8], &[]);
        let writer = memory.clone();
        let writer = thread::spawn(move || words(&writer).wake());
        words(&memory).set_watched(true);
        let is_seen = words(&memory).count() != 0;
        assert!(is_seen || writer.join().unwrap(), "blocked for good");
    });
}
