//! Properties of log buffers over all inputs: what goes in comes out, in whatever order datagrams arrive.

use headrace_buffers::log::descriptor::{framed_length, max_payload_length};
use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END, FRAME_ALIGNMENT, HEADER_LENGTH};
use headrace_buffers::log::gap::scan_for_gap;
use headrace_buffers::log::read::read;
use headrace_buffers::log::rebuild::{Insert, insert};
use headrace_buffers::log::scan::scan_datagrams;
use headrace_buffers::log::{
    Append, AppendError, ClaimResult, ConcurrentAppender, Datagram, ExclusiveAppender, LogBuffers, LogSpec,
    LogType,
};
use headrace_buffers::{Memory, align};
use proptest::collection::vec;
use proptest::prelude::*;

const TERM: usize = 65_536;

fn log(log_type: LogType, initial_term_id: i32, mtu: usize) -> LogBuffers {
    LogBuffers::heap(&LogSpec {
        log_type,
        initial_term_id,
        mtu,
        session_id: 11,
        stream_id: 12,
        ..LogSpec::default()
    })
    .unwrap()
}

/// Either appender, so that one property covers both.
enum Appender {
    Concurrent(ConcurrentAppender),
    Exclusive(ExclusiveAppender),
}

impl Appender {
    fn over(log: &LogBuffers, exclusive: bool) -> Self {
        if exclusive {
            Self::Exclusive(ExclusiveAppender::new(log).unwrap())
        } else {
            Self::Concurrent(ConcurrentAppender::new(log))
        }
    }

    fn offer(&mut self, parts: &[&[u8]]) -> Result<Append, AppendError> {
        match self {
            Self::Concurrent(appender) => appender.offer(parts, i64::MAX),
            Self::Exclusive(appender) => appender.offer(parts, i64::MAX),
        }
    }

    /// Claims a frame and gives it back, which leaves padding in the middle of the term.
    fn abort(&mut self, length: usize) -> Result<Append, AppendError> {
        let result = match self {
            Self::Concurrent(appender) => appender.try_claim(length, i64::MAX)?,
            Self::Exclusive(appender) => appender.try_claim(length, i64::MAX)?,
        };
        Ok(match result {
            ClaimResult::Claimed(claim) => Append::Position(claim.position()),
            ClaimResult::Refused(refusal) => refusal,
        })
    }
}

/// Retries over a term change, as a publisher does.
fn accepted(mut append: impl FnMut() -> Result<Append, AppendError>) -> i64 {
    for _ in 0..2 {
        match append().unwrap() {
            Append::Position(position) => return position,
            Append::AdminAction => {}
            refusal => panic!("{refusal:?}"),
        }
    }
    panic!("a fresh term refused the message");
}

/// Reads all there is from `position` on and puts fragmented messages together.
fn drain(log: &LogBuffers, position: &mut i64) -> Vec<Vec<u8>> {
    let geometry = log.geometry();
    let (mut messages, mut partial) = (Vec::new(), Vec::new());
    loop {
        let begin = geometry.term_offset(*position);
        let mut offset = begin;
        let term = log.term(geometry.partition(*position));
        read(
            term,
            geometry,
            &mut offset,
            TERM,
            usize::MAX,
            |payload, header| {
                if header.flags() & FLAG_BEGIN != 0 {
                    partial.clear();
                }
                partial.extend_from_slice(payload);
                if header.flags() & FLAG_END != 0 {
                    messages.push(std::mem::take(&mut partial));
                }
            },
        );
        *position += (offset - begin) as i64;
        if offset == begin {
            return messages;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Message { length: usize, cut: usize },
    Abort { length: usize },
}

fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![4 => 0usize..200, 2 => 0usize..3000, 1 => 0usize..=8192];
    let message = (length, any::<usize>()).prop_map(|(length, cut)| Step::Message {
        length,
        cut: cut % (length + 1),
    });
    let abort = (0usize..32).prop_map(|length| Step::Abort { length });
    vec(prop_oneof![8 => message, 1 => abort], 1..max)
}

fn payload(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (seed * 31 + i * 7) as u8).collect()
}

fn mtus() -> impl Strategy<Value = usize> {
    prop_oneof![Just(64usize), Just(96), Just(1408), Just(8192), Just(65_504)]
}

/// A publisher's log with one term of `steps`, and the datagrams that its sender would make of it.
fn sent_term(steps: &[Step], mtu: usize, window: usize) -> (LogBuffers, Vec<Datagram>, usize) {
    let source = log(LogType::ExclusivePublication, 5, mtu);
    let mut appender = Appender::over(&source, true);
    for (seed, step) in steps.iter().enumerate() {
        let appended = match *step {
            Step::Message { length, .. } => appender.offer(&[&payload(seed, length)]),
            Step::Abort { length } => appender.abort(length),
        };
        if appended.unwrap() == Append::AdminAction {
            break;
        }
    }
    let (mut datagrams, mut sent) = (Vec::new(), 0);
    loop {
        let before = datagrams.len();
        sent += scan_datagrams(source.term(0), sent, window, mtu, TERM, &mut datagrams).advance;
        if datagrams.len() == before {
            return (source, datagrams, sent);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_appended_is_read_back_in_order(
        steps in steps(120),
        initial_term_id: i32,
        mtu in mtus(),
        exclusive: bool,
    ) {
        let log_type = if exclusive { LogType::ExclusivePublication } else { LogType::ConcurrentPublication };
        let log = log(log_type, initial_term_id, mtu);
        let mut appender = Appender::over(&log, exclusive);
        let (mut position, mut clean_position, mut end) = (0, 0, 0);
        for (seed, step) in steps.iter().enumerate() {
            let (sent, length) = match *step {
                Step::Message { length, cut } => {
                    let message = payload(seed, length);
                    let (left, right) = message.split_at(cut);
                    end = accepted(|| appender.offer(&[left, right]));
                    (Some(message), length)
                }
                Step::Abort { length } => {
                    end = accepted(|| appender.abort(length));
                    (None, length)
                }
            };
            let framed = framed_length(length, max_payload_length(mtu)) as i64;
            let before = position;
            let received = drain(&log, &mut position);
            prop_assert_eq!(received, Vec::from_iter(sent));
            prop_assert_eq!(position, end);
            // A message never spans terms: what comes before its frames can only be padding to a term's end.
            let begin = end - framed;
            prop_assert!(begin == before || (begin > before && begin % TERM as i64 == 0));
            while log.clean(&mut clean_position, position) > 0 {}
        }
        prop_assert_eq!(log.producer_position(), end);
    }

    #[test]
    fn datagrams_cover_the_term_in_whole_frames(steps in steps(60), mtu in mtus(), window in 1usize..TERM) {
        let (source, datagrams, sent) = sent_term(&steps, mtu, window.max(mtu));
        prop_assert_eq!(sent as i64, source.producer_position().min(TERM as i64));
        let mut expected = 0;
        for datagram in &datagrams {
            prop_assert_eq!(datagram.offset, expected);
            prop_assert!(datagram.length <= mtu && datagram.length.is_multiple_of(FRAME_ALIGNMENT));
            expected += datagram.length + datagram.padding;
        }
    }

    #[test]
    fn datagrams_rebuild_the_publishers_term_in_any_order(
        steps in steps(60),
        mtu in mtus(),
        order in vec(any::<u32>(), 97),
    ) {
        let (source, datagrams, sent) = sent_term(&steps, mtu, TERM);
        // Each datagram arrives once in a random order, and every other one again.
        let mut arrivals: Vec<usize> = (0..datagrams.len()).chain((0..datagrams.len()).step_by(2)).collect();
        arrivals.sort_by_key(|index| order[*index % order.len()].rotate_left(*index as u32));
        let image = log(LogType::Image, 5, mtu);
        let mut arrived = vec![false; datagrams.len()];
        for index in arrivals {
            let datagram = datagrams[index];
            let mut packet = vec![0; datagram.length];
            source.term(0).get_bytes(datagram.offset, &mut packet);
            let outcome = insert(image.term(0), datagram.offset, &packet);
            prop_assert_eq!(outcome, if arrived[index] { Insert::Duplicate } else { Insert::Inserted });
            arrived[index] = true;

            let scan = scan_for_gap(image.term(0), 5, 0, sent);
            let Some(missing) = arrived.iter().position(|there| !there) else {
                prop_assert_eq!((scan.rebuild_offset, scan.gap), (sent, None));
                continue;
            };
            let next = (missing..datagrams.len()).find(|i| arrived[*i]);
            let (begin, end) = (datagrams[missing].offset, next.map_or(sent, |i| datagrams[i].offset));
            prop_assert_eq!(scan.rebuild_offset, begin);
            prop_assert_eq!(scan.gap.map(|gap| (gap.offset, gap.offset + gap.length)), Some((begin, end)));
        }
        for offset in (0..TERM).step_by(8) {
            prop_assert_eq!(image.term(0).get_i64(offset), source.term(0).get_i64(offset), "offset={}", offset);
        }
    }

    #[test]
    fn a_framed_length_is_the_sum_of_its_frames(length in 0usize..100_000, mtu in mtus()) {
        let max_payload = max_payload_length(mtu);
        let (mut frames, mut left) = (0, length);
        loop {
            let taken = left.min(max_payload);
            frames += align(taken + HEADER_LENGTH, FRAME_ALIGNMENT);
            left -= taken;
            if left == 0 {
                break;
            }
        }
        prop_assert_eq!(framed_length(length, max_payload), frames);
    }
}
