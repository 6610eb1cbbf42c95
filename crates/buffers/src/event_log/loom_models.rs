use loom::thread;

use super::ring::{Look, Ring, SLOTS_OFFSET};
use crate::loom_memory::{LoomMemory, model};

const SLOT_LENGTH: usize = 16;

fn ring(slot_count: usize) -> Ring<LoomMemory> {
    let end = SLOTS_OFFSET + slot_count * SLOT_LENGTH;
    let mut words64 = vec![64, 72];
    words64.extend((SLOTS_OFFSET..end).step_by(SLOT_LENGTH));
    let memory = LoomMemory::new(end, std::slice::from_ref(&(SLOTS_OFFSET..end)), &words64);
    Ring::new(memory, SLOT_LENGTH).unwrap()
}

fn payload(tag: u8) -> [u8; 8] {
    [tag; 8]
}

/// The tag of an entry, which must not be mixed from two.
fn read(ring: &Ring<LoomMemory>, number: i64) -> Result<u8, Look> {
    let mut into = [0; 8];
    match ring.read(number, &mut into) {
        Look::Whole => {
            assert!(
                into[0] != 0 && into == payload(into[0]),
                "an entry was torn: {into:?}"
            );
            Ok(into[0])
        }
        other => Err(other),
    }
}

#[test]
fn loom_event_log_gives_each_of_two_writers_a_number_of_its_own() {
    model(3, || {
        let ring = ring(4);
        let other = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.append(&payload(1))))
        };
        assert!(ring.append(&payload(2)));
        assert!(ring.last() >= 1, "an entry that was written has a number");
        other.join().unwrap();
        assert_eq!((ring.last(), ring.dropped_count()), (2, 0));
        let mut tags = [read(&ring, 1), read(&ring, 2)].map(Result::unwrap);
        tags.sort_unstable();
        assert_eq!(tags, [1, 2]);
        assert_eq!(read(&ring, 3), Err(Look::None));
    });
}

#[test]
fn loom_event_log_reader_keeps_no_entry_that_is_overwritten_meanwhile() {
    model(3, || {
        let ring = ring(1);
        assert!(ring.append(&payload(1)));
        let reader = {
            let ring = ring.clone();
            thread::spawn(move || (read(&ring, 1), read(&ring, 2)))
        };
        assert!(ring.append(&payload(2)));
        let (first, second) = reader.join().unwrap();
        assert!(matches!(first, Ok(1) | Err(Look::Lost)), "{first:?}");
        assert!(
            matches!(second, Ok(2) | Err(Look::None | Look::Unfinished)),
            "{second:?}"
        );
        assert_eq!(read(&ring, 2), Ok(2));
    });
}

#[test]
fn loom_event_log_drops_rather_than_waits_for_a_writer_of_the_lap_before() {
    model(3, || {
        let ring = ring(1);
        let other = {
            let ring = ring.clone();
            thread::spawn(move || ring.append(&payload(1)))
        };
        let own = ring.append(&payload(2));
        let written = usize::from(own) + usize::from(other.join().unwrap());
        assert!(written >= 1);
        assert_eq!(ring.last(), written as i64);
        assert_eq!(ring.dropped_count(), 2 - written as i64);
        assert!(read(&ring, ring.last()).is_ok());
    });
}
