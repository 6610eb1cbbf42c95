use proptest::prelude::*;

use super::*;
use crate::frame::status_message;

const TIMEOUT_NS: i64 = 1_000;
const WINDOW: i32 = 1_024;
const TAG: i64 = 1001;

fn group(tag: Option<i64>, min_size: usize) -> MinFlowControl {
    let group = Group {
        tag,
        min_size,
        receiver_timeout_ns: TIMEOUT_NS,
    };
    MinFlowControl::new(group, 4)
}

fn tagged_message(receiver_id: i64, group_tag: Option<i64>, flags: u8) -> StatusMessage {
    StatusMessage {
        flags,
        receiver_window_length: WINDOW,
        ..StatusMessage::eliciting_setup(1, 2, receiver_id, group_tag)
    }
}

fn error(receiver_id: i64, group_tag: Option<i64>) -> ErrorFrame {
    ErrorFrame {
        session_id: 1,
        stream_id: 2,
        receiver_id,
        group_tag,
        error_code: 13,
        text: String::new(),
    }
}

/// What happens to a strategy, in the order of a case.
enum Event {
    /// A status message: receiver, tag, position.
    Status(i64, Option<i64>, i64),
    /// A last status message: receiver, position.
    Leave(i64, i64),
    /// A receiver with this tag asks for a SETUP, which is sent.
    Setup(Option<i64>),
    /// A receiver refuses the stream: its id and tag.
    Error(i64, Option<i64>),
    /// A cycle that sent nothing.
    Idle,
    /// Time passes.
    Wait(i64),
}
use Event::{Error, Idle, Leave, Setup, Status, Wait};

/// The limit after each event of a case, starting from 0.
fn limits(flow: &mut MinFlowControl, events: &[Event]) -> Vec<i64> {
    let (mut now_ns, mut limit) = (0, 0);
    let mut after = Vec::new();
    for event in events {
        match *event {
            Status(id, tag, position) => {
                limit = flow.on_status_message(&tagged_message(id, tag, 0), position, limit, now_ns);
            }
            Leave(id, position) => {
                let message = tagged_message(id, None, status_message::FLAG_END_OF_STREAM);
                limit = flow.on_status_message(&message, position, limit, now_ns);
            }
            Setup(tag) => {
                flow.on_trigger_setup(&tagged_message(9, tag, status_message::FLAG_SETUP));
                flow.on_setup(now_ns, limit);
            }
            Error(id, tag) => flow.on_error(&error(id, tag)),
            Idle => limit = flow.on_idle(now_ns, limit),
            Wait(ns) => now_ns += ns,
        }
        after.push(limit);
    }
    after
}

/// A case: what it shows, the tag and least size of the group, the events, and after them all limits and the count.
type Case = (
    &'static str,
    Option<i64>,
    usize,
    &'static [Event],
    &'static [i64],
    usize,
);

const CASES: &[Case] = &[
    (
        "the slowest receiver decides, and the limit does not go back but on an idle cycle",
        None,
        0,
        &[
            Status(1, None, 4096),
            Status(2, None, 4096),
            Status(1, None, 8192),
            Status(2, None, 3072),
            Idle,
        ],
        &[5120, 5120, 5120, 5120, 4096],
        2,
    ),
    (
        "a receiver more than a window below the slowest is not let in",
        None,
        0,
        &[
            Status(1, None, 4096),
            Status(2, None, 3071),
            Status(3, None, 3072),
            Idle,
        ],
        &[5120, 5120, 5120, 4096],
        2,
    ),
    (
        "nothing moves before the group has its size",
        None,
        2,
        &[Status(1, None, 0), Idle, Status(2, None, 0), Status(1, None, 64)],
        &[0, 0, 1024, 1024],
        2,
    ),
    (
        "a receiver that leaves frees the limit on the next idle cycle",
        None,
        0,
        &[
            Status(1, None, 0),
            Status(2, None, 0),
            Status(1, None, 512),
            Leave(2, 0),
            Idle,
        ],
        &[1024, 1024, 1024, 1024, 1536],
        1,
    ),
    (
        "the farewell of an unknown receiver makes no receiver, but moves the limit of an empty group",
        None,
        0,
        &[Leave(1, 64), Idle],
        &[1088, 1088],
        0,
    ),
    (
        "a silent receiver frees the limit when more than the time-out has passed",
        None,
        0,
        &[
            Status(1, None, 0),
            Wait(1),
            Status(2, None, 512),
            Wait(TIMEOUT_NS - 1),
            Idle,
            Wait(1),
            Idle,
        ],
        &[1024, 1024, 1024, 1024, 1024, 1024, 1536],
        1,
    ),
    (
        "receivers without the tag never count beside one with it",
        Some(TAG),
        0,
        &[
            Status(1, Some(TAG), 4096),
            Status(2, None, 64),
            Status(3, Some(-1), 0),
            Status(1, Some(TAG), 8192),
        ],
        &[5120, 5120, 5120, 9216],
        1,
    ),
    (
        "without a receiver with the tag, any may move the limit, as with max",
        Some(TAG),
        0,
        &[
            Status(2, None, 64),
            Status(3, Some(7), 4096),
            Status(2, None, 128),
            Idle,
        ],
        &[1088, 5120, 5120, 5120],
        0,
    ),
    (
        "with a least size, receivers without the tag do not",
        Some(TAG),
        1,
        &[Status(2, None, 64), Idle, Status(1, Some(TAG), 0)],
        &[0, 0, 1024],
        1,
    ),
    (
        "-1 is a tag like others: receivers without a tag do not carry it",
        Some(-1),
        1,
        &[Status(1, None, 64), Status(2, Some(-1), 64)],
        &[0, 1088],
        1,
    ),
    (
        "a SETUP that a newcomer asked for holds the limit until the newcomer speaks",
        None,
        0,
        &[
            Status(1, None, 0),
            Setup(None),
            Status(1, None, 512),
            Idle,
            Status(9, None, 512),
            Status(1, None, 512),
        ],
        &[1024, 1024, 1024, 1024, 1024, 1536],
        2,
    ),
    (
        "or until the time-out",
        None,
        0,
        &[
            Status(1, None, 0),
            Setup(None),
            Wait(TIMEOUT_NS),
            Status(1, None, 512),
            Wait(1),
            Status(1, None, 512),
        ],
        &[1024, 1024, 1024, 1024, 1024, 1536],
        1,
    ),
    (
        "a newcomer that does not count holds nothing, and neither does one to an empty group",
        Some(TAG),
        0,
        &[
            Setup(Some(TAG)),
            Status(1, Some(TAG), 0),
            Setup(None),
            Status(1, Some(TAG), 512),
        ],
        &[0, 1024, 1024, 1536],
        1,
    ),
    (
        "a receiver that refuses the stream is gone on the next idle cycle",
        Some(TAG),
        0,
        &[
            Status(1, Some(TAG), 0),
            Status(2, Some(TAG), 512),
            Error(2, None),
            Error(3, Some(TAG)),
            Error(1, Some(TAG)),
            Idle,
        ],
        &[1024, 1024, 1024, 1024, 1024, 1536],
        1,
    ),
    (
        "a receiver that speaks after its farewell stays",
        None,
        0,
        &[Status(1, None, 0), Leave(1, 0), Status(1, None, 64), Idle],
        &[1024, 1024, 1088, 1088],
        1,
    ),
];

#[test]
fn the_cases_of_the_specification() {
    for (what, tag, min_size, events, expected, count) in CASES {
        let mut flow = group(*tag, *min_size);
        assert_eq!(limits(&mut flow, events), *expected, "{what}");
        assert_eq!(flow.receiver_count(), Some(*count), "{what}");
        assert_eq!(flow.has_required_receivers(), count >= min_size, "{what}");
    }
}

/// A spy may read while the group is not complete: those of its receivers that are there are then served.
#[test]
fn a_stand_in_completes_the_group_and_the_receivers_that_are_there_set_the_limit() {
    let mut flow = group(None, 2);
    assert_eq!(limits(&mut flow, &[Status(1, None, 0), Idle]), [0, 0]);
    flow.set_stand_in(true);
    assert!(flow.has_required_receivers());
    let window = i64::from(WINDOW);
    assert_eq!(limits(&mut flow, &[Status(1, None, 64), Idle]), [64 + window; 2]);
    flow.set_stand_in(false);
    assert!(!flow.has_required_receivers());
    assert_eq!(
        limits(&mut flow, &[Status(1, None, 128)]),
        [0],
        "as before the spy"
    );
}

#[test]
fn windows_may_differ() {
    let message = |receiver_id, window| StatusMessage {
        receiver_window_length: window,
        ..tagged_message(receiver_id, None, 0)
    };
    let mut flow = group(None, 0);
    let mut limit = 0;
    for (id, window, position, expected) in [
        (1, 16 * WINDOW, 512, 512 + 16 * WINDOW),
        (2, WINDOW, 512 - WINDOW, 512 + 16 * WINDOW),
        (3, WINDOW, 511 - 2 * WINDOW, 512 + 16 * WINDOW),
    ] {
        limit = flow.on_status_message(&message(id, window), i64::from(position), limit, 0);
        assert_eq!(limit, i64::from(expected), "{id}");
    }
    assert_eq!(flow.receiver_count(), Some(2), "the third is too far behind");
    assert_eq!(flow.on_idle(0, limit), 512);
    assert_eq!(flow.limiting_receiver(), Some(2));
}

#[test]
fn a_time_out_without_end_does_not_overflow() {
    let forever = Group {
        tag: None,
        min_size: 0,
        receiver_timeout_ns: i64::MAX,
    };
    let mut flow = MinFlowControl::new(forever, 4);
    let limit = flow.on_status_message(&tagged_message(1, None, 0), 64, 0, i64::MAX);
    assert_eq!(flow.on_idle(i64::MAX, limit), 1088);
}

#[test]
fn strangers_with_ever_new_ids_are_not_all_remembered() {
    let mut flow = group(Some(TAG), 0);
    let last = RECEIVERS_MAX as i64;
    for id in 0..last {
        assert!(flow.accepts(&tagged_message(id, Some(TAG), 0)));
        flow.on_status_message(&tagged_message(id, Some(TAG), 0), 0, 0, 0);
    }
    assert!(!flow.accepts(&tagged_message(last, Some(TAG), 0)));
    assert_eq!(
        flow.limiting_receiver(),
        Some(0),
        "the first of those with the lowest limit"
    );
    assert!(flow.accepts(&tagged_message(0, Some(TAG), 0)));
    assert!(
        flow.accepts(&tagged_message(last, None, 0)),
        "one that does not count needs no room"
    );
}

#[test]
fn one_nak_brings_back_a_multiple_of_the_window() {
    assert_eq!(group(None, 0).retransmit_length_max(1 << 30), 4 * 128 * 1024);
}

#[derive(Clone, Debug)]
enum Step {
    Status { id: i64, consumed: i64 },
    Leave { id: i64 },
    Send { bytes: i64 },
    Idle,
    Wait { ns: i64 },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_i64, 0..2_048_i64).prop_map(|(id, consumed)| Step::Status { id, consumed }),
        1 => (0..4_i64).prop_map(|id| Step::Leave { id }),
        3 => (0..2_048_i64).prop_map(|bytes| Step::Send { bytes }),
        2 => Just(Step::Idle),
        1 => (0..TIMEOUT_NS).prop_map(|ns| Step::Wait { ns }),
    ]
}

proptest! {
    /// Receivers that consume what was sent to them, join where the sender is, leave and fall silent.
    #[test]
    fn the_limit_never_passes_the_slowest_receiver_and_its_window(
        steps in proptest::collection::vec(any_step(), 1..200),
        min_size in 0..3_usize,
    ) {
        let mut flow = group(None, min_size);
        let (mut now_ns, mut limit, mut sent) = (0, 0, 0_i64);
        // The model: where each receiver is that counts, and when it was heard.
        let mut there: std::collections::BTreeMap<i64, (i64, i64)> = Default::default();
        for step in steps {
            match step {
                Step::Status { id, consumed } => {
                    let position = there.get(&id).map_or(sent, |(position, _)| sent.min(position + consumed));
                    let before = limit;
                    limit = flow.on_status_message(&tagged_message(id, None, 0), position, limit, now_ns);
                    there.insert(id, (position, now_ns));
                    prop_assert!(limit >= before, "a status message never takes room back");
                    if there.len() < min_size {
                        prop_assert_eq!(limit, before);
                    }
                }
                Step::Leave { id } => {
                    let message = tagged_message(id, None, status_message::FLAG_END_OF_STREAM);
                    if let Some((position, _)) = there.remove(&id) {
                        limit = flow.on_status_message(&message, position, limit, now_ns);
                        limit = flow.on_idle(now_ns, limit);
                        there.retain(|_, (_, heard_ns)| now_ns - *heard_ns <= TIMEOUT_NS);
                    }
                }
                Step::Send { bytes } => sent = limit.max(sent).min(sent + bytes),
                Step::Idle => {
                    limit = flow.on_idle(now_ns, limit);
                    there.retain(|_, (_, heard_ns)| now_ns - *heard_ns <= TIMEOUT_NS);
                    if !there.is_empty() && there.len() >= min_size {
                        let slowest = there.values().map(|(position, _)| position).min().unwrap();
                        prop_assert_eq!(limit, slowest + i64::from(WINDOW), "those that are gone free the limit");
                    }
                }
                Step::Wait { ns } => now_ns += ns,
            }
            prop_assert_eq!(flow.receiver_count(), Some(there.len()));
            for (position, _) in there.values() {
                prop_assert!(sent <= position + 2 * i64::from(WINDOW), "overran a receiver");
            }
        }
    }
}
