//! How long a publication keeps what it has sent.

use headrace_buffers::Memory;
use headrace_buffers::log::LogBuffers;
use headrace_client::ClaimResult;
use headrace_protocol::frame::{DataHeader, FrameKind, Nak, StatusMessage};

use crate::TERM_LENGTH;
use crate::common::{MILLISECOND, Reader, SECOND, STREAM, is_accepted};
use crate::groups::{ANSWERS, DATA};
use crate::sending::{Sending, nak, status};

const MESSAGE: i32 = 1024;
/// More than the driver's unblock time-out.
const UNBLOCK_SECONDS: usize = 20;
const OTHER_SESSION: i32 = 78;

/// Whether the log still has one of the first messages.
fn has_bytes(log: &LogBuffers, message: i32) -> bool {
    let mut bytes = [0; MESSAGE as usize];
    log.term(0).get_bytes((message * MESSAGE) as usize, &mut bytes);
    bytes.iter().any(|byte| *byte != 0)
}

impl Sending {
    /// Longer than a SETUP may be on its way.
    fn settle(&self) {
        self.world.run_for(SECOND + MILLISECOND);
        self.peer.take();
    }

    /// A receiver says how far it is; then another message brings publishers room, and the log its cleaning.
    fn hear_and_go_on(&mut self, message: &StatusMessage) {
        self.answer(&StatusMessage {
            consumption_term_id: self.first_term(),
            ..*message
        });
        self.world.run_for(2 * MILLISECOND);
        assert!(self.offers(&[5; 992]));
        self.world.run_for(2 * MILLISECOND);
        self.peer.take();
    }

    /// Which of the first messages the log still has.
    fn kept(&self, count: i32) -> Vec<bool> {
        let log = self.log();
        (0..count).map(|message| has_bytes(&log, message)).collect()
    }

    /// Which of the first messages come again when they are asked for, one by one.
    fn repaired(&self, count: i32) -> Vec<bool> {
        let is_repaired = |message: i32| {
            let mut asked = Nak::decode(&nak(message * MESSAGE, MESSAGE)).unwrap();
            asked.term_id = self.first_term();
            let mut frame = [0; Nak::LENGTH];
            asked.encode(&mut frame);
            self.send(&frame);
            self.world.run_for(20 * MILLISECOND);
            !self.peer.take_frames(FrameKind::Data).is_empty()
        };
        (0..count).map(is_repaired).collect()
    }
}

/// A stream that one receiver reads, of which no other publisher has the like.
fn connected(count: usize) -> Sending {
    Sending::at_any_term("10.9.9.9:40123", "").and_sent(count)
}

/// Of the first four messages.
const ALL: [bool; 4] = [true; 4];
const LAST_TWO: [bool; 4] = [false, false, true, true];

#[test]
fn what_the_only_receiver_has_read_is_neither_kept_nor_sent_again() {
    let mut sending = connected(4);
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (ALL.to_vec(), ALL.to_vec())
    );
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (ALL.to_vec(), ALL.to_vec()),
        "a SETUP may be on its way"
    );
    sending.settle();
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (LAST_TWO.to_vec(), LAST_TWO.to_vec())
    );
    // Status messages overtake each other.
    sending.hear_and_go_on(&status(0, MESSAGE));
    assert_eq!(sending.repaired(4), LAST_TWO);
}

/// A receiver that joins, or comes back, may be further back than the one that was there.
#[test]
fn of_several_receivers_none_decides_what_is_kept() {
    let mut sending = connected(4);
    sending.settle();
    let other = StatusMessage {
        receiver_id: 2,
        ..status(0, MESSAGE)
    };
    sending.hear_and_go_on(&other);
    sending.hear_and_go_on(&status(0, 3 * MESSAGE));
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (ALL.to_vec(), ALL.to_vec())
    );
}

/// What was not sent is not read, whatever a receiver says.
#[test]
fn a_receiver_that_claims_more_than_was_sent_ends_no_repair_of_what_follows() {
    let mut sending = connected(2);
    sending.settle();
    sending.hear_and_go_on(&status(0, 8 * MESSAGE));
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    let expected = [false, false, true, true];
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (expected.to_vec(), expected.to_vec())
    );
}

#[test]
fn receivers_of_a_group_leave_a_term_to_those_that_join() {
    let mut sending = Sending::at_any_term(DATA, "");
    sending.socket = ANSWERS.parse().unwrap();
    let mut sending = sending.and_sent(4);
    sending.settle();
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (ALL.to_vec(), ALL.to_vec())
    );
}

/// A spy reads the log itself, may rest where it does not count, and may still be reading when it is closed.
#[test]
fn where_a_spy_reads_or_has_read_a_term_is_kept() {
    for is_closed in [false, true] {
        let sending = connected(0);
        let channel = "aeron-spy:aeron:udp?endpoint=10.9.9.9:40123|tether=false";
        let mut spy = Reader::subscribe(&sending.client, channel, STREAM);
        sending
            .world
            .run_until(SECOND, "a spy", || spy.subscription.is_connected());
        let mut sending = sending.and_sent(4);
        assert_eq!(spy.poll().len(), 4);
        if is_closed {
            spy.subscription.close();
        }
        sending.settle();
        sending.hear_and_go_on(&status(0, 2 * MESSAGE));
        if !is_closed {
            spy.poll();
        }
        sending.hear_and_go_on(&status(0, 2 * MESSAGE));
        assert_eq!(sending.kept(4), ALL, "{is_closed}");
    }
}

/// A subscription with two paths that comes back may begin where the slower publisher of a stream is.
#[test]
fn where_the_stream_may_have_another_publisher_a_term_is_kept() {
    let mut sending = Sending::connected(4);
    sending.settle();
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    assert_eq!(
        (sending.kept(4), sending.repaired(4)),
        (ALL.to_vec(), ALL.to_vec())
    );
}

/// A publisher that was taken for dead may go on. Its late write must be gone when the log comes round.
#[test]
fn what_is_written_late_into_a_hole_is_zeroed() {
    let sending = connected(0);
    // The driver fills holes of publications that several may write to.
    let channel = format!("aeron:udp?endpoint=10.9.9.9:40123|term-length=64k|session-id={OTHER_SESSION}");
    let publication = sending.client.add_publication(&channel, STREAM).unwrap();
    let log = sending.log_of(publication.registration_id());
    let hear = |position: i32| {
        let term = log
            .geometry()
            .initial_term_id()
            .wrapping_add(position / TERM_LENGTH);
        sending.answer(&StatusMessage {
            session_id: OTHER_SESSION,
            consumption_term_id: term,
            ..status(0, position % TERM_LENGTH)
        });
        sending.world.run_for(2 * MILLISECOND);
    };
    hear(0);
    let ClaimResult::Claimed(mut late) = publication.try_claim(992).unwrap() else {
        panic!("there is room");
    };
    for _ in 0..UNBLOCK_SECONDS {
        hear(0);
        sending.world.run_for(SECOND);
    }
    // Another message brings publishers room, and the log its cleaning.
    hear(MESSAGE);
    assert!(is_accepted(publication.offer(&[5; 992])));
    hear(2 * MESSAGE);
    late.put(0, &[7; 992]);
    assert!(!late.commit(), "the driver has filled the hole");
    for message in 2..=TERM_LENGTH / MESSAGE + 1 {
        // The first offer after the end of a term only turns to the next one.
        assert!((0..2).any(|_| is_accepted(publication.offer(&[5; 992]))));
        hear((message + 1) * MESSAGE);
    }
    assert!(!has_bytes(&log, 0));
}

/// The receiver misses the end of what it asks for: it has read the rest while its request was on the way.
#[test]
fn of_a_late_request_the_end_is_sent_again() {
    let mut sending = connected(4);
    sending.settle();
    sending.hear_and_go_on(&status(0, 2 * MESSAGE));
    let mut late = Nak::decode(&nak(MESSAGE, 2 * MESSAGE)).unwrap();
    late.term_id = sending.first_term();
    let mut frame = [0; Nak::LENGTH];
    late.encode(&mut frame);
    sending.send(&frame);
    sending.world.run_for(MILLISECOND);
    let repeated = sending.peer.take_frames(FrameKind::Data);
    let offsets: Vec<_> = repeated
        .iter()
        .map(|frame| DataHeader::decode(frame).unwrap().term_offset)
        .collect();
    assert_eq!(offsets, [2 * MESSAGE]);
}
