//! How long a publication keeps what it has sent.

use headrace_buffers::Memory;
use headrace_protocol::frame::{FrameKind, Nak, StatusMessage};

use crate::common::{MILLISECOND, Reader, SECOND, STREAM};
use crate::groups::{ANSWERS, DATA};
use crate::sending::{Sending, nak, status};

const MESSAGE: i32 = 1024;

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
        let has_bytes = |message: i32| {
            let mut bytes = [0; MESSAGE as usize];
            log.term(0).get_bytes((message * MESSAGE) as usize, &mut bytes);
            bytes.iter().any(|byte| *byte != 0)
        };
        (0..count).map(has_bytes).collect()
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
