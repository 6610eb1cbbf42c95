//! A publication to a group whose receivers are the test, each with an id of its own.

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::frame::{ErrorFrame, FrameKind, Setup, StatusMessage, setup, status_message};

use crate::common::{MILLISECOND, Reader, SECOND, STREAM};
use crate::sending::{self, Sending, nak};
use crate::{SESSION, WINDOW};

pub(crate) const DATA: &str = "224.0.1.1:40123";
pub(crate) const ANSWERS: &str = "224.0.1.2:40123";
const TAG: i64 = 1001;
/// The timeout that the channels here give a silent receiver.
const TIMEOUT_NS: i64 = 2 * SECOND;
const LIMIT: i64 = WINDOW as i64;
/// A message that takes three frames, and where the stream stands after it.
const MESSAGE: [u8; 4000] = [7; 4000];
const AFTER: i32 = 4096;

/// A publication to a group, of which no receiver has spoken.
fn group(parameters: &str) -> Sending {
    let mut sending = Sending::to(DATA, parameters);
    sending.socket = ANSWERS.parse().unwrap();
    sending
}

fn status(receiver_id: i64, term_offset: i32) -> StatusMessage {
    StatusMessage {
        receiver_id,
        ..sending::status(0, term_offset)
    }
}

impl Sending {
    /// Answers, and lets all agents take note.
    fn hear(&self, message: &StatusMessage) {
        self.answer(message);
        self.world.run_for(2 * MILLISECOND);
    }

    /// Publishes a message and sends it.
    fn publish(&mut self) {
        assert!(self.offers(&MESSAGE));
        self.world.run_for(2 * MILLISECOND);
    }

    /// Receivers that flow control counts, and how far they allow to send.
    fn counted(&self) -> (i64, i64) {
        let counted = self.counter(type_ids::FLOW_CONTROL_RECEIVERS);
        (counted, self.counter(type_ids::SENDER_LIMIT))
    }
}

#[test]
fn a_group_is_connected_when_it_has_its_size_and_its_slowest_receiver_decides() {
    let mut group = group("|fc=min,g:/2,t:2s");
    group.hear(&status(1, 0));
    assert_eq!(
        (group.counted(), group.publication.is_connected()),
        ((1, 0), false)
    );
    group.hear(&status(2, 0));
    assert_eq!(
        (group.counted(), group.publication.is_connected()),
        ((2, LIMIT), true)
    );
    group.publish();
    group.hear(&status(1, AFTER));
    assert_eq!(group.counted(), (2, LIMIT), "the other has not moved");
    group.hear(&status(2, 1408));
    assert_eq!(group.counted(), (2, LIMIT + 1408));
    group.hear(&StatusMessage {
        flags: status_message::FLAG_END_OF_STREAM,
        ..status(2, 1408)
    });
    assert_eq!(
        (group.counted().0, group.publication.is_connected()),
        (1, false),
        "too few are left"
    );
}

#[test]
fn a_receiver_that_leaves_refuses_or_falls_silent_frees_the_others() {
    for way in ["leaves", "refuses", "falls silent"] {
        let mut group = group("|fc=min,t:2s");
        group.hear(&status(1, 0));
        group.hear(&status(2, 0));
        group.publish();
        group.hear(&status(1, AFTER));
        assert_eq!(group.counted(), (2, LIMIT), "{way}");
        match way {
            "leaves" => group.hear(&StatusMessage {
                flags: status_message::FLAG_END_OF_STREAM,
                ..status(2, 0)
            }),
            "refuses" => {
                let error = ErrorFrame {
                    session_id: SESSION,
                    stream_id: STREAM,
                    receiver_id: 2,
                    group_tag: None,
                    error_code: 13,
                    text: String::new(),
                };
                let mut bytes = [0; ErrorFrame::LENGTH_MAX];
                let length = error.encode(&mut bytes);
                group.send(&bytes[..length]);
                group.world.run_for(2 * MILLISECOND);
            }
            _ => {
                group.world.run_for(TIMEOUT_NS - 10 * MILLISECOND);
                group.hear(&status(1, AFTER));
                assert_eq!(group.counted(), (2, LIMIT), "{way}");
                group.world.run_for(10 * MILLISECOND);
            }
        }
        assert_eq!(group.counted(), (1, LIMIT + i64::from(AFTER)), "{way}");
        assert!(group.publication.is_connected(), "{way}");
    }
}

/// A single receiver that says so ends the publication at once.
#[test]
fn one_of_a_group_does_not_say_for_all_that_the_stream_has_arrived() {
    let mut group = group("|fc=min,t:2s|linger=20s");
    group.hear(&status(1, 0));
    group.hear(&status(2, 0));
    group.publish();
    group.publication.close();
    group.world.run_for(2 * SECOND);
    group.hear(&StatusMessage {
        flags: status_message::FLAG_END_OF_STREAM,
        ..status(1, AFTER)
    });
    group.world.run_for(10 * SECOND);
    assert!(group.has_publication());
}

#[test]
fn only_receivers_with_the_tag_hold_a_tagged_group_back() {
    let group = group(&format!("|fc=tagged,g:{TAG}/1,t:2s"));
    group.hear(&status(1, 0));
    assert!(!group.publication.is_connected(), "it has no tag");
    group.hear(&StatusMessage {
        group_tag: Some(TAG),
        ..status(2, 0)
    });
    assert!(group.publication.is_connected());
    assert_eq!(group.counted(), (1, LIMIT));
}

#[test]
fn a_newcomer_that_asks_for_a_setup_is_not_overrun_before_it_speaks() {
    let mut group = group("|fc=min,t:2s");
    group.hear(&status(1, 0));
    group.peer.take();
    group.answer(&StatusMessage {
        flags: status_message::FLAG_SETUP,
        ..status(2, 0)
    });
    group.world.run_for(SECOND / 5);
    let setups = group.peer.take_frames(FrameKind::Setup);
    let flags = setup::FLAG_GROUP | setup::FLAG_OWN_WINDOWS;
    assert_eq!(Setup::decode(&setups[0]).unwrap().flags, flags);
    group.publish();
    group.hear(&status(1, AFTER));
    assert_eq!(group.counted(), (1, LIMIT), "held where the SETUP was sent");
    group.hear(&status(2, AFTER));
    group.hear(&status(1, AFTER));
    assert_eq!(group.counted(), (2, LIMIT + i64::from(AFTER)));
}

/// The stream that only spies move waits for the receiver that was told where it stands.
#[test]
fn spies_do_not_leave_the_first_receiver_behind_before_it_speaks() {
    let mut group = group("|fc=min,t:2s|ssc=true");
    let spied = format!("aeron-spy:aeron:udp?endpoint={DATA}");
    let mut spy = Reader::subscribe(&group.client, &spied, STREAM);
    group
        .world
        .run_until(SECOND, "a spy", || spy.subscription.is_connected());
    let mut go_on = |group: &mut Sending| {
        group.publish();
        spy.poll();
        group.world.run_for(2 * MILLISECOND);
        group.counter(type_ids::SENDER_POSITION)
    };
    let after = i64::from(AFTER);
    assert_eq!(go_on(&mut group), after);
    group.answer(&StatusMessage {
        flags: status_message::FLAG_SETUP,
        ..status(1, 0)
    });
    group.world.run_for(SECOND / 5);
    assert_eq!(go_on(&mut group), after);
    group.hear(&status(1, AFTER));
    group.world.run_for(2 * MILLISECOND);
    assert_eq!(group.counter(type_ids::SENDER_POSITION), 2 * after);
    assert_eq!(group.counted(), (1, after + LIMIT));
    // One that does not speak is not waited for longer than one that has fallen silent.
    group.hear(&StatusMessage {
        flags: status_message::FLAG_END_OF_STREAM,
        ..status(1, AFTER)
    });
    group.world.run_for(20 * SECOND);
    group.answer(&StatusMessage {
        flags: status_message::FLAG_SETUP,
        ..status(2, 0)
    });
    group.world.run_for(SECOND / 5);
    assert_eq!(go_on(&mut group), 2 * after);
    group.world.run_for(TIMEOUT_NS);
    assert_eq!(go_on(&mut group), 4 * after);
}

#[test]
fn a_group_has_as_many_repairs_at_a_time_as_its_channel_says() {
    let mut group = group("|max-resend=2");
    group.answer(&status(1, 0));
    group.world.run_for(2 * MILLISECOND);
    for _ in 0..4 {
        assert!(group.offers(&[7; 992]));
    }
    group.world.run_for(2 * MILLISECOND);
    group.peer.take();
    for index in 0..4 {
        group.send(&nak(index * 1024, 1024));
    }
    group.world.run_for(MILLISECOND);
    assert_eq!(group.peer.take_frames(FrameKind::Data).len(), 2);
    assert_eq!(group.system(system_counter::RETRANSMITS_SENT), 2);
    assert_eq!(group.system(system_counter::RETRANSMIT_OVERFLOW), 2);
}

#[test]
fn strangers_beyond_the_bound_are_counted_and_not_remembered() {
    let group = group("|fc=min,t:2s");
    for id in 0..5000 {
        group.answer(&status(id, 0));
        if id % 500 == 499 {
            group.world.run_for(MILLISECOND); // more would overflow the socket's buffer
        }
    }
    assert_eq!(group.system(system_counter::STATUS_MESSAGES_RECEIVED), 5000);
    assert_eq!(group.counted().0, 4096);
    assert_eq!(
        group.system(system_counter::STATUS_MESSAGES_REJECTED),
        5000 - 4096
    );
}

/// It may be as far below the slowest as its window is long, and then decides: the limit goes back to what it allows.
#[test]
fn a_newcomer_within_a_window_of_the_slowest_is_waited_for() {
    let mut group = group("|fc=min,t:2s");
    group.hear(&status(1, 0));
    group.publish();
    group.hear(&status(1, AFTER));
    assert_eq!(group.counted(), (1, LIMIT + i64::from(AFTER)));
    group.hear(&status(2, 1408));
    assert_eq!(group.counted(), (2, LIMIT + 1408));
}

/// The publisher may write, since a spy reads: the one receiver of two that is there gets all of it, and sets the pace.
#[test]
fn a_spy_stands_in_for_the_receivers_that_a_group_lacks() {
    for parameters in ["|fc=min,g:/2,t:2s|ssc=true", "|fc=tagged,g:1001/2,t:2s|ssc=true"] {
        let mut group = group(parameters);
        let of_the_group = |term_offset| StatusMessage {
            group_tag: Some(TAG),
            ..status(1, term_offset)
        };
        let spied = format!("aeron-spy:aeron:udp?endpoint={DATA}");
        let mut spy = Reader::subscribe(&group.client, &spied, STREAM);
        group
            .world
            .run_until(SECOND, "a spy", || spy.subscription.is_connected());
        group.hear(&of_the_group(0));
        let mut position = 0;
        for _ in 0..12 {
            group.publish();
            spy.poll();
            position += AFTER;
            group.hear(&of_the_group(position));
            let sent = group.counter(type_ids::SENDER_POSITION);
            assert_eq!((sent, parameters), (i64::from(position), parameters));
        }
        assert_eq!(group.counted(), (1, i64::from(position) + LIMIT));
        assert!(group.publication.is_connected());
        drop(spy);
        group.world.run_for(SECOND / 10);
        assert!(
            !group.publication.is_connected(),
            "the group is not complete: {parameters}"
        );
    }
}
