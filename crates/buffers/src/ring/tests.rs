use super::*;

fn ring(capacity: usize) -> ManyToOneRing {
    ManyToOneRing::new(AtomicBuffer::allocate(capacity + TRAILER_LENGTH)).unwrap()
}

fn drain(ring: &mut ManyToOneRing) -> Vec<(i32, Vec<u8>)> {
    let mut seen = Vec::new();
    loop {
        let before = ring.consumer_position();
        let show = |type_id, message: &[u8]| {
            seen.push((type_id, message.to_vec()));
            ReadAction::Continue
        };
        ring.read(usize::MAX, show).unwrap();
        // A turn that meets nothing but padding shows no message and still makes way.
        if ring.consumer_position() == before {
            return seen;
        }
    }
}

#[test]
fn messages_come_out_in_order_with_their_types() {
    let mut ring = ring(1024);
    assert!(ring.try_write(1, b"one").unwrap());
    assert!(ring.try_write(2, b"").unwrap());
    assert_eq!(drain(&mut ring), [(1, b"one".to_vec()), (2, b"".to_vec())]);
    assert_eq!(ring.consumer_position(), ring.producer_position());
}

#[test]
fn a_record_has_the_documented_bytes() {
    let ring = ring(1024);
    ring.try_write(7, &[0xaa, 0xbb, 0xcc]).unwrap();
    let mut bytes = [0; 16];
    ring.memory.get_bytes(0, &mut bytes);
    assert_eq!(bytes, [11, 0, 0, 0, 7, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0, 0, 0, 0, 0]);
    assert_eq!(ring.memory.get_i64(1024 + 128), 16);
}

#[test]
fn a_message_that_would_straddle_the_end_starts_over_behind_padding() {
    let mut ring = ring(64);
    for _ in 0..3 {
        ring.try_write(1, &[1; 8]).unwrap(); // 16 bytes each: index 48
    }
    ring.try_write(1, &[]).unwrap(); // 8 bytes: index 56
    assert_eq!(drain(&mut ring).len(), 4);
    assert!(ring.try_write(2, &[2; 8]).unwrap());
    assert_eq!(ring.producer_position(), 64 + 16);
    assert_eq!(ring.memory.get_i32(56 + 4), PADDING_TYPE_ID);
    assert_eq!(drain(&mut ring), [(2, vec![2; 8])]);
}

#[test]
fn a_full_ring_refuses_until_something_is_read() {
    let mut ring = ring(64);
    for _ in 0..4 {
        assert!(ring.try_write(1, &[0; 8]).unwrap());
    }
    assert!(!ring.try_write(1, &[0; 8]).unwrap());
    assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1));
    assert!(ring.try_write(1, &[0; 8]).unwrap());
}

#[test]
fn wrapping_needs_room_at_the_front() {
    let mut ring = ring(64);
    ring.try_write(1, &[]).unwrap();
    for _ in 0..3 {
        ring.try_write(1, &[0; 8]).unwrap(); // tail index 56
    }
    assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1)); // head index 8
    assert!(!ring.try_write(1, &[0; 8]).unwrap()); // 8 at the end and 8 at the front do not make 16
    assert_eq!(ring.read(1, |_, _| ReadAction::Continue), Ok(1));
    assert!(ring.try_write(1, &[0; 8]).unwrap());
}

#[test]
fn an_aborted_message_is_shown_again() {
    let mut ring = ring(64);
    ring.try_write(1, b"a").unwrap();
    ring.try_write(2, b"b").unwrap();
    let shown = ring.read(10, |type_id, _| {
        if type_id == 2 {
            ReadAction::Abort
        } else {
            ReadAction::Continue
        }
    });
    assert_eq!(shown, Ok(1));
    assert_eq!(drain(&mut ring), [(2, b"b".to_vec())]);
}

#[test]
fn misuse_is_an_error() {
    let ring = ring(64);
    assert_eq!(ring.try_write(0, b""), Err(BufferError::TypeId { type_id: 0 }));
    let (length, maximum) = (9, 8);
    assert_eq!(
        ring.try_write(1, &[0; 9]),
        Err(BufferError::MessageTooLong { length, maximum })
    );
    assert!(ManyToOneRing::new(AtomicBuffer::allocate(TRAILER_LENGTH)).is_err());
    assert!(ManyToOneRing::new(AtomicBuffer::allocate(TRAILER_LENGTH + 16)).is_err());
    assert!(ManyToOneRing::new(AtomicBuffer::allocate(TRAILER_LENGTH + 48)).is_err());
}

#[test]
fn correlation_ids_count_up_from_zero() {
    let ring = ring(64);
    assert_eq!((ring.next_correlation_id(), ring.next_correlation_id()), (0, 1));
}

#[test]
fn a_producer_that_died_while_copying_is_unblocked() {
    let mut ring = ring(64);
    let dead = ring.claim(16).unwrap().unwrap();
    ring.memory.put_i32_release(dead, -16);
    ring.try_write(3, b"alive").unwrap();
    assert_eq!(drain(&mut ring), []);
    assert!(ring.unblock());
    assert_eq!(drain(&mut ring), [(3, b"alive".to_vec())]);
    assert!(!ring.unblock());
}

#[test]
fn a_producer_that_died_before_storing_its_length_is_unblocked() {
    let mut ring = ring(64);
    ring.claim(16).unwrap().unwrap();
    assert!(!ring.unblock()); // No record after it yet, so its end is unknown.
    ring.try_write(3, b"alive").unwrap();
    assert!(ring.unblock());
    assert_eq!(drain(&mut ring), [(3, b"alive".to_vec())]);
}

#[test]
fn a_producer_that_died_just_before_the_end_is_unblocked() {
    let mut ring = ring(64);
    for _ in 0..3 {
        ring.try_write(1, &[0; 8]).unwrap();
    }
    drain(&mut ring);
    ring.claim(16).unwrap().unwrap();
    assert!(!ring.unblock());
    ring.try_write(3, b"front").unwrap();
    assert!(ring.unblock());
    assert_eq!(drain(&mut ring), [(3, b"front".to_vec())]);
}

#[test]
fn a_record_of_impossible_length_empties_the_ring_and_is_reported() {
    for length in [7, 17, 64, i32::MAX] {
        let mut ring = ring(64);
        // Leave the head in the middle so that what is queued wraps.
        ring.try_write(1, &[0; 8]).unwrap();
        ring.try_write(1, &[0; 8]).unwrap();
        ring.try_write(1, &[0; 8]).unwrap();
        drain(&mut ring);
        ring.try_write(1, &[0; 8]).unwrap();
        ring.try_write(1, &[0; 8]).unwrap();
        ring.memory.put_i32(48, length);
        let position = 48;
        assert_eq!(
            ring.read(9, |_, _| panic!("a corrupt record was shown")),
            Err(BufferError::CorruptRecord { position, length })
        );
        assert_eq!(ring.read(9, |_, _| ReadAction::Continue), Ok(0));
        ring.try_write(5, b"again").unwrap();
        assert_eq!(drain(&mut ring), [(5, b"again".to_vec())]);
    }
}

#[test]
fn a_record_longer_than_what_was_claimed_is_corrupt() {
    let mut ring = ring(64);
    ring.try_write(1, &[0; 8]).unwrap();
    ring.memory.put_i32(0, 24);
    assert!(matches!(
        ring.read(9, |_, _| panic!("a corrupt record was shown")),
        Err(BufferError::CorruptRecord {
            position: 0,
            length: 24
        })
    ));
    assert_eq!(ring.consumer_position(), ring.producer_position());
}

#[test]
fn misaligned_positions_are_an_error() {
    let mut ring = ring(64);
    ring.memory.put_i64(64 + TAIL_OFFSET, 3);
    assert!(matches!(
        ring.try_write(1, b""),
        Err(BufferError::CorruptPositions { .. })
    ));
    assert!(!ring.unblock());
    ring.memory.put_i64(64 + HEAD_OFFSET, 5);
    assert!(matches!(
        ring.read(1, |_, _| ReadAction::Continue),
        Err(BufferError::CorruptPositions { head: 5, tail: 3 })
    ));
}
