//! Putting messages together that were sent in several fragments.
//!
//! ```text
//!            BEGIN|END: deliver as it is
//!   IDLE ----BEGIN----> ASSEMBLING --middle, offset as expected--> ASSEMBLING
//!    ^                    |  | END, offset as expected: deliver the whole
//!    +--------------------+--+ any other fragment of the session: drop the fragments
//! ```
//!
//! Messages never span terms, so the term and the offset in it tell whether a fragment follows the one before. A gap in
//! an unreliable stream shows as padding and breaks the chain; the rest of that message is dropped. So is the rest of one
//! that began in an image that went, when its session has another image that joins in the middle of a message.

use std::collections::HashMap;

use headrace_buffers::log::descriptor::MESSAGE_LENGTH_MAX;
use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, FrameHeader};
use headrace_buffers::log::{Action, Header, header};

/// What a buffer starts with; it grows by half and is kept for the next message.
const INITIAL_LENGTH: usize = 4096;

/// Turns fragments into messages, with one buffer per session.
///
/// Used inside a poll's handler:
///
/// ```no_run
/// # fn example(subscription: &headrace_client::Subscription) -> Result<(), headrace_client::PollError> {
/// let mut assembler = headrace_client::FragmentAssembler::new();
/// subscription.poll(|payload, header| {
///     assembler.on_fragment(payload, header, |message, header| println!("{} bytes", message.len()));
/// }, 10)?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct FragmentAssembler {
    sessions: HashMap<i32, Builder>,
}

/// The message of one session that is being put together.
struct Builder {
    bytes: Vec<u8>,
    first: FrameHeader,
    next_term_offset: usize,
    assembling: bool,
}

impl FragmentAssembler {
    /// An assembler without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a fragment and passes the message to `deliver` if it is whole. The result is that of `deliver`, or
    /// nothing when there is no whole message yet.
    #[inline]
    pub fn on_fragment<R>(
        &mut self,
        payload: &[u8],
        header: &Header<'_>,
        deliver: impl FnOnce(&[u8], &Header<'_>) -> R,
    ) -> Option<R> {
        let flags = header.flags();
        if flags & FLAGS_UNFRAGMENTED == FLAGS_UNFRAGMENTED {
            return Some(deliver(payload, header));
        }
        let builder = self.accept(payload, header, flags)?;
        let result = builder.deliver(flags, header, deliver);
        builder.reset();
        Some(result)
    }

    /// As [`Self::on_fragment`] inside a controlled poll. When `deliver` aborts, the last fragment is forgotten, so
    /// that delivering it again delivers the message again.
    #[inline]
    pub fn on_controlled_fragment<E>(
        &mut self,
        payload: &[u8],
        header: &Header<'_>,
        deliver: impl FnOnce(&[u8], &Header<'_>) -> Result<Action, E>,
    ) -> Result<Action, E> {
        let flags = header.flags();
        if flags & FLAGS_UNFRAGMENTED == FLAGS_UNFRAGMENTED {
            return deliver(payload, header);
        }
        let Some(builder) = self.accept(payload, header, flags) else {
            return Ok(Action::Continue);
        };
        let result = builder.deliver(flags, header, deliver);
        match result {
            Ok(Action::Abort) => builder.bytes.truncate(builder.bytes.len() - payload.len()),
            _ => builder.reset(),
        }
        result
    }

    /// Frees the buffer of a session, as when its image is gone. False when there was none.
    pub fn free_session(&mut self, session_id: i32) -> bool {
        self.sessions.remove(&session_id).is_some()
    }

    /// Frees the buffers of all sessions but those that `keep` names.
    pub fn retain_sessions(&mut self, mut keep: impl FnMut(i32) -> bool) {
        self.sessions.retain(|session_id, _| keep(*session_id));
    }

    /// Frees all buffers.
    pub fn clear(&mut self) {
        self.sessions.clear();
    }

    /// Number of sessions with a buffer.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Adds a fragment to its message; returns the message if this was the last.
    fn accept(&mut self, payload: &[u8], header: &Header<'_>, flags: u8) -> Option<&mut Builder> {
        if flags & FLAG_BEGIN != 0 {
            let builder = self
                .sessions
                .entry(header.session_id())
                .or_insert_with(|| Builder {
                    bytes: Vec::with_capacity(INITIAL_LENGTH),
                    first: header.to_frame_header(),
                    next_term_offset: 0,
                    assembling: false,
                });
            builder.bytes.clear();
            builder.bytes.extend_from_slice(payload);
            builder.first = header.to_frame_header();
            builder.next_term_offset = header.next_term_offset();
            builder.assembling = true;
            return None;
        }
        let builder = self
            .sessions
            .get_mut(&header.session_id())
            .filter(|builder| builder.assembling)?;
        let follows = header.term_id() == builder.first.term_id
            && usize::try_from(header.term_offset()) == Ok(builder.next_term_offset);
        // The length can only be exceeded by a publisher that breaks the rules.
        if !follows || builder.bytes.len() + payload.len() > MESSAGE_LENGTH_MAX {
            builder.reset();
            return None;
        }
        builder.grow_for(payload.len());
        builder.bytes.extend_from_slice(payload);
        if flags & FLAG_END != 0 {
            return Some(builder);
        }
        builder.next_term_offset = header.next_term_offset();
        None
    }
}

impl Builder {
    fn deliver<R>(
        &self,
        last_flags: u8,
        last: &Header<'_>,
        deliver: impl FnOnce(&[u8], &Header<'_>) -> R,
    ) -> R {
        let (whole, occupancy) = header::assemble(&self.first, last_flags, self.bytes.len());
        deliver(
            &self.bytes,
            &Header::assembled(&whole, occupancy, last.geometry()),
        )
    }

    fn reset(&mut self) {
        self.bytes.clear();
        self.assembling = false;
    }

    fn grow_for(&mut self, additional: usize) {
        let length = self.bytes.len();
        if length + additional > self.bytes.capacity() {
            let wanted = (self.bytes.capacity() + self.bytes.capacity() / 2).max(length + additional);
            self.bytes.reserve_exact(wanted - length);
        }
    }
}

#[cfg(test)]
mod tests {
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
}
