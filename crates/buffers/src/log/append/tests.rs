//! What publishers and readers of one log agree on, exercised through whole logs.

use super::*;
use crate::AtomicBuffer;
use crate::log::descriptor::framed_length;
use crate::log::frame::{
    FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, FrameHeader, TYPE_DATA, TYPE_PAD, TermIdentity,
};
use crate::log::position::index_by_term_count;
use crate::log::raw_tail;
use crate::log::read::read;
use crate::log::spec::{LogSpec, LogType, StartPosition};
use crate::log::unblock::{Unblock, unblock};

const TERM: usize = 65_536;

fn spec() -> LogSpec {
    LogSpec {
        session_id: 77,
        stream_id: 1001,
        initial_term_id: i32::MAX,
        ..LogSpec::default()
    }
}

fn concurrent() -> ConcurrentAppender {
    ConcurrentAppender::new(&LogBuffers::heap(&spec()).unwrap())
}

fn exclusive() -> ExclusiveAppender {
    let spec = LogSpec {
        log_type: LogType::ExclusivePublication,
        ..spec()
    };
    ExclusiveAppender::new(&LogBuffers::heap(&spec).unwrap()).unwrap()
}

/// A log whose next frame goes to the very last term of the stream.
fn at_the_last_term(log_type: LogType) -> LogBuffers {
    LogBuffers::heap(&LogSpec {
        log_type,
        initial_term_id: 1,
        start: Some(StartPosition {
            term_id: 1i32.wrapping_add(i32::MAX),
            term_offset: TERM - 64,
        }),
        ..LogSpec::default()
    })
    .unwrap()
}

fn messages(log: &LogBuffers, partition: usize) -> Vec<(u8, Vec<u8>)> {
    let (mut offset, mut seen) = (0, Vec::new());
    read(
        log.term(partition),
        log.geometry(),
        &mut offset,
        TERM,
        usize::MAX,
        |payload, header| {
            seen.push((header.flags(), payload.to_vec()));
        },
    );
    seen
}

#[test]
fn a_message_is_read_back_with_the_identity_of_its_stream() {
    let appender = concurrent();
    assert_eq!(appender.offer_one(b"hello", i64::MAX), Ok(Append::Position(64)));
    assert_eq!(
        appender.offer(&[b"wor", b"", b"ld"], i64::MAX),
        Ok(Append::Position(128))
    );
    assert_eq!(appender.offer(&[], i64::MAX), Ok(Append::Position(160)));
    let log = appender.log();
    assert_eq!(
        messages(log, 0),
        [
            (0xc0, b"hello".to_vec()),
            (0xc0, b"world".to_vec()),
            (0xc0, Vec::new())
        ]
    );
    let header = FrameHeader::read(log.term(0), 64);
    assert_eq!(
        (header.session_id, header.stream_id, header.term_id),
        (77, 1001, i32::MAX)
    );
    assert_eq!((header.frame_length, header.term_offset), (37, 64));
    assert_eq!(appender.position(), 160);
}

#[test]
fn a_long_message_is_split_into_full_frames_and_a_remainder() {
    let message: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
    let (left, right) = message.split_at(1999);
    let appender = concurrent();
    let mut writer = exclusive();
    let framed = framed_length(3000, 1376) as i64;
    assert_eq!(
        appender.offer_one(&message, i64::MAX),
        Ok(Append::Position(framed))
    );
    assert_eq!(
        writer.offer(&[left, right], i64::MAX),
        Ok(Append::Position(framed))
    );
    let expected = [
        (FLAG_BEGIN, message[..1376].to_vec()),
        (0, message[1376..2752].to_vec()),
        (FLAG_END, message[2752..].to_vec()),
    ];
    assert_eq!(messages(appender.log(), 0), expected);
    assert_eq!(messages(writer.log(), 0), expected);
}

#[test]
fn a_message_beyond_the_maximum_is_an_error_and_leaves_no_trace() {
    let appender = concurrent();
    let message = vec![0; 8193];
    let error = AppendError::MessageTooLong {
        length: 8193,
        max: 8192,
    };
    assert_eq!(appender.offer_one(&message, i64::MAX), Err(error));
    assert_eq!(exclusive().offer_one(&message, i64::MAX), Err(error));
    assert_eq!(appender.position(), 0);
    assert!(matches!(
        appender.offer_one(&message[..8192], i64::MAX),
        Ok(Append::Position(_))
    ));
    let too_long = AppendError::ClaimTooLong {
        length: 1377,
        max: 1376,
    };
    assert_eq!(appender.try_claim(1377, i64::MAX).unwrap_err(), too_long);
}

#[test]
fn at_the_limit_the_connected_flag_decides_between_two_refusals() {
    let appender = concurrent();
    assert_eq!(appender.offer_one(b"x", 0), Ok(Append::NotConnected));
    appender.log().metadata().put_is_connected_release(true);
    assert_eq!(appender.offer_one(b"x", 0), Ok(Append::BackPressured));
    assert_eq!(appender.offer_one(b"x", 1), Ok(Append::Position(64)));
    assert_eq!(
        appender.offer_one(&[0; 9000], 64),
        Ok(Append::BackPressured),
        "the limit is asked first"
    );
    let mut writer = exclusive();
    assert_eq!(writer.offer_one(b"x", 0), Ok(Append::NotConnected));
    assert!(matches!(
        writer.try_claim(1, 0),
        Ok(ClaimResult::Refused(Append::NotConnected))
    ));
}

#[test]
fn a_message_that_does_not_fit_pads_the_term_and_moves_on() {
    let appender = concurrent();
    let mut writer = exclusive();
    for _ in 0..(TERM / 1408) {
        assert!(matches!(
            appender.offer_one(&[1; 1376], i64::MAX),
            Ok(Append::Position(_))
        ));
        assert!(matches!(
            writer.offer_one(&[1; 1376], i64::MAX),
            Ok(Append::Position(_))
        ));
    }
    let tail = TERM / 1408 * 1408;
    assert_eq!(appender.offer_one(&[2; 1376], i64::MAX), Ok(Append::AdminAction));
    assert_eq!(writer.offer_one(&[2; 1376], i64::MAX), Ok(Append::AdminAction));
    for log in [appender.log(), writer.log()] {
        let pad = FrameHeader::read(log.term(0), tail);
        assert_eq!(
            (pad.frame_length as usize, pad.frame_type),
            (TERM - tail, TYPE_PAD)
        );
        assert_eq!((pad.flags, pad.session_id, pad.term_id), (0xc0, 77, i32::MAX));
        assert_eq!(log.metadata().active_term_count_acquire(), 1);
        assert_eq!(log.producer_position(), TERM as i64);
        assert_eq!(raw_tail::term_id(log.metadata().raw_tail_acquire(1)), i32::MIN);
    }
    let after = TERM as i64 + 1408;
    assert_eq!(
        appender.offer_one(&[2; 1376], i64::MAX),
        Ok(Append::Position(after))
    );
    assert_eq!(
        writer.offer_one(&[2; 1376], i64::MAX),
        Ok(Append::Position(after))
    );
    assert_eq!(writer.position(), after);
}

#[test]
fn a_message_that_ends_the_term_exactly_is_no_trip() {
    let appender = concurrent();
    for _ in 0..TERM / 64 {
        assert!(matches!(
            appender.offer_one(&[1; 32], i64::MAX),
            Ok(Append::Position(_))
        ));
    }
    assert_eq!(appender.position(), TERM as i64);
    assert_eq!(appender.log().metadata().active_term_count_acquire(), 0);
    assert_eq!(appender.offer_one(&[1; 32], i64::MAX), Ok(Append::AdminAction));
    assert_eq!(appender.log().metadata().active_term_count_acquire(), 1);
}

#[test]
fn the_last_term_is_padded_and_then_nothing_more_is_taken() {
    let log = at_the_last_term(LogType::ConcurrentPublication);
    let appender = ConcurrentAppender::new(&log);
    assert_eq!(
        appender.offer_one(&[1; 100], i64::MAX),
        Ok(Append::MaxPositionExceeded)
    );
    assert_eq!(
        appender.offer_one(&[1; 1], i64::MAX),
        Ok(Append::MaxPositionExceeded)
    );
    assert_eq!(appender.position(), log.geometry().max_possible_position());
    assert_eq!(appender.offer_one(&[1; 1], 0), Ok(Append::MaxPositionExceeded));
    // A tail that each refused offer added to would reach into the number of its term.
    let tail = || log.metadata().raw_tail_acquire(index_by_term_count(i32::MAX));
    let before = tail();
    assert_eq!(
        appender.offer_one(&[1; 1], i64::MAX),
        Ok(Append::MaxPositionExceeded)
    );
    assert_eq!(tail(), before);

    let log = at_the_last_term(LogType::ExclusivePublication);
    let mut writer = ExclusiveAppender::new(&log).unwrap();
    for _ in 0..2 {
        assert_eq!(
            writer.offer_one(&[1; 100], i64::MAX),
            Ok(Append::MaxPositionExceeded)
        );
        assert_eq!(
            writer.append_padding(100, i64::MAX),
            Ok(Append::MaxPositionExceeded)
        );
        assert_eq!(
            writer.offer_block(&[0; 32], i64::MAX),
            Ok(Append::MaxPositionExceeded)
        );
    }
    assert_eq!(writer.position(), log.geometry().max_possible_position());
}

#[test]
fn a_claim_is_invisible_until_committed() {
    let appender = concurrent();
    let ClaimResult::Claimed(mut claim) = appender.try_claim(5, i64::MAX).unwrap() else {
        panic!("refused");
    };
    assert_eq!((claim.position(), claim.length()), (64, 5));
    claim.put(0, b"ab");
    claim.buffer_mut()[2..].copy_from_slice(b"cde");
    claim.set_reserved_value(-3);
    claim.set_flags(FLAG_BEGIN);
    assert_eq!(messages(appender.log(), 0), []);
    assert_eq!(frame::frame_length_acquire(appender.log().term(0), 0), -37);
    assert!(claim.into_owned().commit());
    assert_eq!(messages(appender.log(), 0), [(FLAG_BEGIN, b"abcde".to_vec())]);
    assert_eq!(frame::reserved_value(appender.log().term(0), 0), -3);
}

/// The driver covers a claim that is held too long, and the log goes on, round to where the claim was.
#[test]
fn a_claim_that_was_taken_away_changes_nothing() {
    for has_come_round in [false, true] {
        let appender = concurrent();
        let claims = [0, 1].map(|_| match appender.try_claim(5, i64::MAX).unwrap() {
            ClaimResult::Claimed(claim) => claim,
            ClaimResult::Refused(refused) => panic!("{refused:?}"),
        });
        let term = appender.log().term(0);
        assert_eq!(unblock(appender.log(), 0), Unblock::Unblocked);
        assert_eq!(unblock(appender.log(), 64), Unblock::Unblocked);
        if has_come_round {
            let identity = TermIdentity {
                session_id: 77,
                stream_id: 1001,
                term_id: frame::term_id(term, 0).wrapping_add(3),
            };
            for offset in [0, 64] {
                frame::claim(
                    term,
                    offset,
                    37,
                    frame::kind(FLAGS_UNFRAGMENTED, TYPE_DATA),
                    identity,
                );
            }
        }
        let before: Vec<_> = (0..128).step_by(4).map(|offset| term.get_i32(offset)).collect();
        let [first, second] = claims;
        assert!(!first.commit());
        second.abort();
        let after: Vec<_> = (0..128).step_by(4).map(|offset| term.get_i32(offset)).collect();
        assert_eq!(before, after);
    }
}

#[test]
fn an_aborted_or_dropped_claim_becomes_padding() {
    let mut writer = exclusive();
    for abort in [true, false] {
        let ClaimResult::Claimed(claim) = writer.try_claim(33, i64::MAX).unwrap() else {
            panic!("refused");
        };
        if abort {
            claim.abort();
        }
    }
    assert_eq!(
        writer.offer_one(b"after", i64::MAX),
        Ok(Append::Position(2 * 96 + 64))
    );
    assert_eq!(messages(writer.log(), 0), [(0xc0, b"after".to_vec())]);
    assert_eq!(FrameHeader::read(writer.log().term(0), 96).frame_type, TYPE_PAD);
}

#[test]
fn the_reserved_value_sees_the_payload_and_is_stored_before_the_frame_shows() {
    let checksum = |term: &AtomicBuffer, offset: usize, length: usize| {
        assert!(frame::frame_length_acquire(term, offset) < 0);
        let mut payload = vec![0; length - HEADER_LENGTH];
        term.get_bytes(offset + HEADER_LENGTH, &mut payload);
        payload.iter().map(|byte| i64::from(*byte)).sum()
    };
    let appender = concurrent();
    appender
        .offer_reserved(&[&[1; 1376], &[2; 4]], i64::MAX, checksum)
        .unwrap();
    assert_eq!(frame::reserved_value(appender.log().term(0), 0), 1376);
    assert_eq!(frame::reserved_value(appender.log().term(0), 1408), 8);
    exclusive()
        .offer_reserved(&[b"\x05"], i64::MAX, checksum)
        .unwrap();
}

#[test]
fn padding_is_one_frame_of_the_length_asked_for() {
    let mut writer = exclusive();
    assert_eq!(writer.append_padding(100, i64::MAX), Ok(Append::Position(160)));
    let pad = FrameHeader::read(writer.log().term(0), 0);
    assert_eq!((pad.frame_length, pad.frame_type), (132, TYPE_PAD));
    let max = writer.max_framed_length();
    assert_eq!(
        writer.append_padding(max + 1, i64::MAX),
        Err(AppendError::PaddingTooLong { length: max + 1, max })
    );
    assert!(matches!(
        writer.append_padding(max, i64::MAX),
        Ok(Append::Position(_))
    ));
}

#[test]
fn a_block_formed_for_this_place_is_taken_and_any_other_is_not() {
    let mut source = exclusive();
    source.offer_one(b"first", i64::MAX).unwrap();
    source.offer_one(&[9; 70], i64::MAX).unwrap();
    let mut block = vec![0; 192];
    source.log().term(0).get_bytes(0, &mut block);

    let mut writer = exclusive();
    assert_eq!(writer.offer_block(&block, 0), Ok(Append::NotConnected));
    assert_eq!(writer.offer_block(&block, i64::MAX), Ok(Append::Position(192)));
    let mut copied = vec![0; 192];
    writer.log().term(0).get_bytes(0, &mut copied);
    assert_eq!(copied, block);

    let wrong_place = BlockError::FirstFrame {
        field: "term_offset",
        value: 0,
        expected: 192,
    };
    assert_eq!(writer.offer_block(&block, i64::MAX), Err(wrong_place.into()));
    let mut fresh = exclusive();
    assert!(matches!(
        fresh.offer_block(&block[..100], i64::MAX),
        Err(AppendError::Block(BlockError::Length { length: 100, .. }))
    ));
    block[64] = 200; // the second frame now claims more than the block holds
    assert_eq!(
        fresh.offer_block(&block, i64::MAX),
        Err(BlockError::Frame {
            offset: 64,
            frame_length: 200
        }
        .into())
    );
    assert_eq!(fresh.position(), 0);
}

#[test]
fn a_block_after_a_full_term_starts_the_next_one() {
    let mut writer = exclusive();
    for _ in 0..TERM / 64 {
        writer.offer_one(&[1; 32], i64::MAX).unwrap();
    }
    let mut block = [0; 32];
    let next = TermIdentity {
        term_id: i32::MIN,
        ..writer.log().identity(0)
    };
    let scratch = AtomicBuffer::allocate(32);
    frame::claim(&scratch, 0, 32, UNFRAGMENTED_DATA, next);
    frame::commit(&scratch, 0, 32);
    scratch.get_bytes(0, &mut block);
    assert_eq!(
        writer.offer_block(&block, i64::MAX),
        Ok(Append::Position(TERM as i64 + 32))
    );
    assert_eq!(writer.term_id(), i32::MIN);
}

#[test]
fn a_tail_no_publisher_wrote_is_an_error_not_a_panic() {
    let appender = concurrent();
    let metadata = appender.log().metadata();
    metadata.put_raw_tail_release(0, raw_tail::pack(i32::MAX, 7));
    assert!(matches!(
        appender.offer_one(b"x", i64::MAX),
        Err(AppendError::CorruptTail { .. })
    ));
    assert!(ExclusiveAppender::new(appender.log()).is_err());
    metadata.put_raw_tail_release(0, -1);
    appender.offer_one(b"x", i64::MAX).unwrap();
    metadata.put_active_term_count_release(-1);
    appender.offer_one(b"x", i64::MAX).unwrap();
    assert!(ExclusiveAppender::new(appender.log()).is_err());
}

#[test]
fn many_messages_at_once_are_laid_out_as_one_after_another_would_be() {
    let lengths = [
        5, 0, 1376, 40, 3000, 32, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 7,
    ];
    let bodies: Vec<Vec<u8>> = (0u8..)
        .zip(lengths)
        .map(|(byte, length)| vec![byte; length])
        .collect();
    let slices: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let (together, apart) = (concurrent(), concurrent());
    let outcome = together.offer_many(&slices, i64::MAX).unwrap();
    let last = slices
        .iter()
        .fold(None, |_, message| {
            Some(apart.offer_one(message, i64::MAX).unwrap())
        })
        .unwrap();
    assert_eq!(outcome.accepted, slices.len());
    assert_eq!(
        (outcome.position.map(Append::Position), outcome.refused),
        (Some(last), None)
    );
    assert_eq!(messages(together.log(), 0), messages(apart.log(), 0));
}

#[test]
fn many_messages_stop_at_the_limit_and_at_the_end_of_a_term_and_say_how_far_they_came() {
    let message = [7u8; 100];
    let slices = vec![&message[..]; 1000];
    let appender = concurrent();
    let span = 160;
    let limited = appender.offer_many(&slices, 10 * span as i64).unwrap();
    assert_eq!((limited.accepted, limited.position), (10, Some(10 * span as i64)));
    assert_eq!(limited.refused, Some(Append::NotConnected));
    let in_a_term = TERM / span;
    let tripped = appender.offer_many(&slices, i64::MAX).unwrap();
    assert_eq!(
        (tripped.accepted, tripped.refused),
        (in_a_term - 10, Some(Append::AdminAction))
    );
    assert_eq!(messages(appender.log(), 0).len(), in_a_term);
    assert_eq!(
        appender.offer_many(&slices, i64::MAX).unwrap().accepted,
        in_a_term
    );
    assert_eq!(appender.offer_many(&[], i64::MAX), Ok(Progress::default()));
}
