use super::*;
use headrace_buffers::log::{Append, ExclusiveAppender, LogBuffers, LogSpec, read};
use proptest::prelude::*;

const MTU: usize = 96;
const TERM_LENGTH: usize = 64 * 1024;

/// A stream of messages, fragmented as publishers do.
fn log_of(session_id: i32, messages: &[Vec<u8>]) -> LogBuffers {
    log_from(0, session_id, messages)
}

fn log_from(initial_term_id: i32, session_id: i32, messages: &[Vec<u8>]) -> LogBuffers {
    let spec = LogSpec {
        term_length: TERM_LENGTH,
        mtu: MTU,
        initial_term_id,
        session_id,
        ..LogSpec::default()
    };
    let log = LogBuffers::heap(&spec).unwrap();
    let mut appender = ExclusiveAppender::new(&log).unwrap();
    for message in messages {
        assert!(matches!(
            appender.offer_one(message, i64::MAX),
            Ok(Append::Position(_))
        ));
    }
    log
}

/// Reads up to `limit` fragments from `offset` on.
fn read_on(
    log: &LogBuffers,
    offset: &mut usize,
    limit: usize,
    mut each: impl FnMut(&[u8], &Header<'_>),
) -> usize {
    read::read(
        log.term(0),
        log.geometry(),
        offset,
        TERM_LENGTH,
        limit,
        |payload, header| {
            each(payload, &header);
        },
    )
}

#[test]
fn a_whole_message_has_one_header_that_ends_with_its_last_fragment() {
    let message: Vec<u8> = (0..200).collect();
    let log = log_of(5, &[vec![1], message.clone(), vec![2]]);
    let mut assembler = FragmentAssembler::new();
    let mut seen = Vec::new();
    let mut offset = 0;
    let fragments = read_on(&log, &mut offset, 100, |payload, header| {
        assembler.on_fragment(payload, header, |message, header| {
            seen.push((
                message.to_vec(),
                header.frame_length(),
                header.flags(),
                header.position(),
            ));
        });
    });
    assert_eq!(fragments, 6);
    // 200 bytes in frames of 64 bytes of payload: three full ones and one of 8 bytes.
    assert_eq!(
        seen,
        [
            (vec![1], 33, 0xC0, 64),
            (message, 232, 0xC0, 64 + 3 * 96 + 64),
            (vec![2], 33, 0xC0, 480),
        ]
    );
}

#[test]
fn a_message_that_lost_a_fragment_is_dropped_and_the_next_is_not() {
    let log = log_of(5, &[vec![7; 200], vec![8; 200]]);
    for lost in 0..4 {
        let mut assembler = FragmentAssembler::new();
        let mut seen = Vec::new();
        let (mut offset, mut index) = (0, 0);
        read_on(&log, &mut offset, 100, |payload, header| {
            if index != lost {
                assembler.on_fragment(payload, header, |message, _| seen.push(message.to_vec()));
            }
            index += 1;
        });
        assert_eq!(seen, [vec![8; 200]], "lost={lost}");
    }
}

/// Messages of equal lengths lie alike in each term, so offsets alone would let them pass.
#[test]
fn the_beginning_of_a_lost_image_and_the_rest_of_the_next_are_no_message() {
    let mut assembler = FragmentAssembler::new();
    let mut seen = Vec::new();
    for (term_id, wanted) in [(7, 0..2), (8, 2..8)] {
        let log = log_from(term_id, 5, &[vec![term_id as u8; 200], vec![9; 200]]);
        let (mut offset, mut index) = (0, 0);
        read_on(&log, &mut offset, 100, |payload, header| {
            if wanted.contains(&index) {
                assembler.on_fragment(payload, header, |message, _| seen.push(message.to_vec()));
            }
            index += 1;
        });
    }
    assert_eq!(seen, [vec![9; 200]]);
}

#[test]
fn an_aborted_message_is_whole_again_when_its_last_fragment_comes_again() {
    let log = log_of(5, &[vec![7; 200]]);
    let mut assembler = FragmentAssembler::new();
    let mut actions = vec![Action::Continue, Action::Abort, Action::Abort];
    let mut lengths = Vec::new();
    let mut offset = 0;
    for _ in 0..3 {
        read::read_controlled(
            log.term(0),
            log.geometry(),
            &mut offset,
            TERM_LENGTH,
            100,
            |payload, header| {
                assembler
                    .on_controlled_fragment(payload, &header, |message, _| {
                        lengths.push(message.len());
                        Ok::<_, ()>(actions.pop().unwrap())
                    })
                    .unwrap()
            },
            |_| {},
        );
    }
    assert_eq!((lengths, offset), (vec![200, 200, 200], 352));
}

#[test]
fn a_message_that_was_begun_in_another_session_is_delivered_once_wherever_that_was_left() {
    let messages = [vec![1], vec![7; 200], vec![2]];
    for left_after in 0..=6 {
        let mut seen = Vec::new();
        let mut assembler = FragmentAssembler::new();
        let mut offset = 0;
        read_on(
            &log_of(5, &messages),
            &mut offset,
            left_after,
            |payload, header| {
                assembler.on_fragment(payload, header, |message, _| seen.push(message.to_vec()));
            },
        );
        let mut next = FragmentAssembler::new();
        next.take_over(6, &mut assembler, 5);
        read_on(&log_of(6, &messages), &mut offset, 100, |payload, header| {
            next.on_fragment(payload, header, |message, header| {
                seen.push(message.to_vec());
                assert_eq!(header.session_id(), 6);
            });
        });
        assert_eq!(seen, messages, "left_after={left_after}");
        assert_eq!(assembler.session_count(), 0);
    }
}

#[test]
fn a_message_longer_than_any_publisher_sends_is_dropped() {
    let log = log_of(5, &[vec![7; 200]]);
    let mut assembler = FragmentAssembler::new();
    let mut offset = 0;
    read_on(&log, &mut offset, 1, |payload, header| {
        assembler.on_fragment(payload, header, |_, _| ());
    });
    assembler
        .sessions
        .get_mut(&5)
        .unwrap()
        .bytes
        .resize(MESSAGE_LENGTH_MAX, 0);
    read_on(&log, &mut offset, 100, |payload, header| {
        assembler.on_fragment(payload, header, |_, _| panic!("delivered"));
    });
    assert!(!assembler.sessions[&5].assembling);
}

#[test]
fn buffers_are_freed_on_request() {
    let log = log_of(5, &[vec![7; 200]]);
    let mut assembler = FragmentAssembler::new();
    read_on(&log, &mut 0, 2, |payload, header| {
        assembler.on_fragment(payload, header, |_, _| ());
    });
    assert_eq!(assembler.session_count(), 1);
    assert!(assembler.free_session(5) && !assembler.free_session(5));
    // What follows of the message has nothing to follow on.
    read_on(&log, &mut 96, 100, |payload, header| {
        assembler.on_fragment(payload, header, |_, _| panic!("delivered"));
    });
}

proptest! {
    #[test]
    fn messages_of_any_lengths_from_two_sessions_come_out_as_they_went_in(
        lengths in proptest::collection::vec(0usize..600, 1..20),
        limits in proptest::collection::vec(1usize..5, 1..50),
    ) {
        let messages: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(i, length)| vec![i as u8; *length]).collect();
        let logs = [log_of(1, &messages), log_of(2, &messages)];
        let mut seen = [Vec::new(), Vec::new()];
        let mut offsets = [0, 0];
        let mut assembler = FragmentAssembler::new();
        for limit in limits.iter().cycle() {
            let mut count = 0;
            for (index, log) in logs.iter().enumerate() {
                count += read_on(log, &mut offsets[index], *limit, |payload, header| {
                    assembler.on_fragment(payload, header, |message, header| {
                        assert_eq!(header.session_id(), index as i32 + 1);
                        seen[index].push(message.to_vec());
                    });
                });
            }
            if count == 0 {
                break;
            }
        }
        prop_assert_eq!(&seen[0], &messages);
        prop_assert_eq!(&seen[1], &messages);
    }
}
