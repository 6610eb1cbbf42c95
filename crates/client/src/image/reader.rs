//! One reader's place in the log of a stream.
//!
//! The position counter is the whole state of a reader, and only the polling thread stores it. The flag `polling`
//! makes sure there is one polling thread at a time, which is also what lets the payloads be lent out in place:
//! the driver zeroes nothing that lies ahead of the stored position.
//!
//! All of that ends without notice when the driver declares the client dead, as it does when the process was paused.
//! The counter then belongs to another reader, and the log is reused. So each poll looks at the counter's owner, each
//! fragment at its term, and a position is only stored over the one that the poll began with.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use headrace_buffers::AtomicBuffer;
use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::Doorbell;
use headrace_buffers::log::frame::FRAME_ALIGNMENT;
use headrace_buffers::log::read::Block;
use headrace_buffers::log::{Action, Header, LogBuffers, TermGeometry, frame, read};
use headrace_sys::fork;

use super::poll::{HandlerResult, PollLimit};
use crate::error::PollError;

/// Reads the log from the position on, and stores how far it came.
pub(crate) struct ImageReader {
    terms: [AtomicBuffer; 3],
    pub(super) geometry: TermGeometry,
    counter: Counter,
    // What the counter says as long as it is this reader's.
    counter_registration_id: i64,
    closed: AtomicBool,
    // True while a thread is inside a poll.
    polling: AtomicBool,
    last_state: OnceLock<LastState>,
    pub(super) log: LogBuffers,
    position_doorbell: Doorbell,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
}

/// What an image was like when it closed.
struct LastState {
    position: AtomicI64,
    end_of_stream_position: i64,
    is_publication_revoked: bool,
}

/// One poll. Dropping it, however the poll ends, stores the position reached and lets the next poll begin.
struct Reading<'a> {
    reader: &'a ImageReader,
    position: i64,
    start: usize,
    offset: usize,
    stored: Stored,
}

/// What the counter has, and the process that reads: a child that a handler forks ends the poll too, and the position is
/// its parent's.
struct Stored {
    position: i64,
    generation: u64,
}

impl<'a> Reading<'a> {
    #[inline]
    fn term(&self) -> &'a AtomicBuffer {
        &self.reader.terms[self.reader.geometry.partition(self.position)]
    }

    #[inline]
    fn term_id(&self) -> i32 {
        self.reader.geometry.term_id(self.position)
    }

    /// True when the frame that comes next is of a later lap.
    #[inline]
    fn is_overtaken(&self) -> bool {
        let (term, start) = (self.term(), self.start);
        start.is_multiple_of(FRAME_ALIGNMENT)
            && frame::committed(term, start).is_some()
            && frame::term_id(term, start) != self.term_id()
    }
}

/// No poll of an image goes on.
pub(crate) struct PollsHeldOff<'a>(&'a ImageReader);

impl Drop for PollsHeldOff<'_> {
    fn drop(&mut self) {
        self.0.polling.store(false, Ordering::Release);
    }
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.offset > self.start {
            let position = advance(self.position, self.offset - self.start);
            self.reader.store_position(&mut self.stored, position);
            // It closed while a handler was called: what that got is consumed.
            if let Some(last) = self.reader.last_state.get() {
                last.position.fetch_max(position, Ordering::AcqRel);
            }
        }
        self.reader.polling.store(false, Ordering::Release);
    }
}

impl ImageReader {
    pub(super) fn new(log: LogBuffers, counter: Counter, session_id: i32, stream_id: i32) -> Self {
        Self {
            terms: [0, 1, 2].map(|partition| log.term(partition).clone()),
            geometry: log.geometry(),
            counter_registration_id: counter.registration_id(),
            counter,
            closed: AtomicBool::new(false),
            polling: AtomicBool::new(false),
            last_state: OnceLock::new(),
            position_doorbell: log.doorbells().position.clone(),
            log,
            session_id,
            stream_id,
        }
    }

    /// Moves past what has been published: to the end of a log that is written on this host, and past what has come of
    /// one that is received, of which only the frames tell how far that is.
    pub(super) fn pass_over(&self, is_written_here: bool) {
        if is_written_here {
            let joined = self.counter.get_acquire();
            if self
                .counter
                .compare_and_set(joined, self.log.producer_position().max(joined))
            {
                self.position_doorbell.ring();
            }
            return;
        }
        loop {
            let before = self.position();
            // An overtaken image has nothing to pass over, and says so when it is read.
            let _ = self.poll(|_, _| {}, usize::MAX.into());
            if self.position() == before {
                return;
            }
        }
    }

    /// Keeps polls from beginning until the guard is dropped; none while one is going on.
    pub(crate) fn hold_off_polls(&self) -> Option<PollsHeldOff<'_>> {
        let is_polled = self.polling.swap(true, Ordering::Acquire);
        // Made only where it holds: one that is dropped lets polls begin.
        (!is_polled).then(|| PollsHeldOff(self))
    }

    /// Keeps the values of now and ends polling. The driver may reuse the counter from here on.
    pub(crate) fn close(&self) {
        self.close_at(self.counter.get_acquire());
    }

    fn close_at(&self, position: i64) {
        self.last_state.get_or_init(|| LastState {
            position: AtomicI64::new(position),
            end_of_stream_position: self.log.metadata().end_of_stream_position_acquire(),
            is_publication_revoked: self.log.metadata().is_publication_revoked_acquire(),
        });
        self.closed.store(true, Ordering::Release);
    }

    // The counter may be another one's once the image is closed.
    #[inline]
    fn store_position(&self, stored: &mut Stored, position: i64) {
        let is_ours = !self.is_closed() && self.owns_counter() && stored.generation == fork::generation();
        if is_ours && self.counter.compare_and_set(stored.position, position) {
            stored.position = position;
            self.position_doorbell.ring();
        }
    }

    #[inline]
    fn owns_counter(&self) -> bool {
        self.counter.registration_id() == self.counter_registration_id
    }

    /// Ends the image where it is.
    #[cold]
    fn overtaken(&self, position: i64) -> PollError {
        self.close_at(position);
        PollError::Overtaken {
            session_id: self.session_id,
            stream_id: self.stream_id,
            position,
        }
    }

    /// What rings when there may be more to read.
    pub(crate) fn data_doorbell(&self) -> &Doorbell {
        &self.log.doorbells().data
    }

    /// Begins a poll; nothing when the image is closed.
    #[inline]
    fn begin(&self) -> Result<Option<Reading<'_>>, PollError> {
        if self.polling.swap(true, Ordering::Acquire) {
            // That of a closed image may be unmapped just now.
            return if self.is_closed() {
                Ok(None)
            } else {
                Err(PollError::Busy { what: "image" })
            };
        }
        let position = self.counter.get();
        let start = self.geometry.term_offset(position);
        let reading = Reading {
            reader: self,
            position,
            start,
            offset: start,
            stored: Stored {
                position,
                generation: fork::generation(),
            },
        };
        if self.is_closed() {
            return Ok(None);
        }
        if !self.owns_counter() || reading.is_overtaken() {
            return Err(self.overtaken(position));
        }
        Ok(Some(reading))
    }

    /// See [`super::Image::poll`].
    #[inline(always)]
    pub(super) fn poll<F, R>(&self, mut handler: F, limit: PollLimit) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value: Into<Action>>,
    {
        let Some(mut reading) = self.begin()? else {
            return Ok(0);
        };
        let limit_offset = self.limit_offset(reading.position, limit.position);
        let (term, term_id, position) = (reading.term(), reading.term_id(), reading.position);
        let Reading {
            start,
            offset,
            stored,
            ..
        } = &mut reading;
        read::try_read_controlled(
            term,
            self.geometry,
            offset,
            limit_offset,
            limit.fragments,
            |payload, header| {
                if header.term_id() != term_id {
                    return Err(self.overtaken(position).into());
                }
                let action = handler(payload, &header).into_result()?.into();
                // The handler may be what closed the subscription.
                let closed = self.closed.load(Ordering::Relaxed);
                Ok(if closed && action != Action::Abort {
                    Action::Break
                } else {
                    action
                })
            },
            |reached| self.store_position(stored, advance(position, reached - *start)),
        )
    }

    /// See [`super::Image::block_poll`].
    pub(super) fn block_poll<F, R>(&self, handler: F, block_length_limit: usize) -> Result<usize, R::Error>
    where
        F: FnOnce(Block<'_>) -> R,
        R: HandlerResult<Value = ()>,
    {
        let Some(mut reading) = self.begin()? else {
            return Ok(0);
        };
        let handler = |block: Block<'_>| handler(block).into_result();
        read::try_read_block(reading.term(), &mut reading.offset, block_length_limit, handler)
    }

    #[inline(always)]
    fn limit_offset(&self, position: i64, limit_position: Option<i64>) -> usize {
        match limit_position {
            None => self.geometry.term_length(),
            Some(limit) => read::bounded_limit_offset(self.geometry, position, limit),
        }
    }

    /// True when a poll would move on, if only past padding.
    pub(super) fn has_fragments(&self) -> bool {
        let position = self.position();
        let term = &self.terms[self.geometry.partition(position)];
        !self.is_closed() && frame::committed(term, self.geometry.term_offset(position)).is_some()
    }

    /// Position up to which fragments were consumed.
    pub(super) fn position(&self) -> i64 {
        match self.last_state.get() {
            Some(last) => last.position.load(Ordering::Acquire),
            None => self.counter.get_acquire(),
        }
    }

    /// Id of the counter with the position.
    pub(super) fn counter_id(&self) -> i32 {
        self.counter.id()
    }

    /// Position at which the stream ends; `i64::MAX` while that is not known.
    pub(super) fn end_of_stream_position(&self) -> i64 {
        match self.last_state.get() {
            Some(last) => last.end_of_stream_position,
            None => self.log.metadata().end_of_stream_position_acquire(),
        }
    }

    /// True when the publisher took back what had not been consumed.
    pub(super) fn is_publication_revoked(&self) -> bool {
        match self.last_state.get() {
            Some(last) => last.is_publication_revoked,
            None => self.log.metadata().is_publication_revoked_acquire(),
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// Positions are never near the end of their range, unless another process has damaged one.
#[inline(always)]
fn advance(position: i64, consumed: usize) -> i64 {
    position.wrapping_add(consumed as i64)
}
