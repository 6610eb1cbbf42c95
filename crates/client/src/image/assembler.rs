//! Assembles messages that were sent in several fragments.
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

    /// Takes a fragment and passes the message to `deliver` if it is whole. Returns the result of `deliver`, or `None`
    /// while the message is incomplete.
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

    /// Takes over the message that another assembler has begun, in any session: its rest follows in this session.
    pub fn take_over(&mut self, session_id: i32, previous: &mut Self, previous_session_id: i32) {
        if let Some(mut builder) = previous.sessions.remove(&previous_session_id) {
            builder.first.session_id = session_id;
            self.sessions.insert(session_id, builder);
        }
    }

    /// Frees the buffer of a session, for example when its image is gone. False when there was none.
    pub fn free_session(&mut self, session_id: i32) -> bool {
        self.sessions.remove(&session_id).is_some()
    }

    /// Frees the buffers of all sessions for which `keep` returns false.
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
mod tests;
