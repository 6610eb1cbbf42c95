//! Images: one publisher's stream as one subscription sees it.
//!
//! The position counter is the whole state of a reader, and only the polling thread stores it. The flag `polling`
//! makes sure there is one polling thread at a time, which is also what lets the payloads be lent out in place:
//! the driver zeroes nothing that lies ahead of the stored position.
//!
//! All of that ends without a word when the driver takes the client for dead, which it does to a process that was paused.
//! The counter is then another reader's, and the log comes round. So each poll looks at the counter's owner, each fragment
//! at its term, and a position is only stored over the one that the poll began with.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use headrace_buffers::AtomicBuffer;
use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::{Doorbell, Interests};
use headrace_buffers::log::frame::FRAME_ALIGNMENT;
pub use headrace_buffers::log::read::Block;
use headrace_buffers::log::{Action, Header, LogBuffers, TermGeometry, frame, read};
use headrace_protocol::command::{Command, REJECTION_REASON_LENGTH_MAX};
use headrace_sys::fork;

use crate::assembler::FragmentAssembler;
use crate::error::{ClientError, PollError};
use crate::home::{self, Home};
use crate::lock::try_lock;

/// Where the stream of a publication on this host comes from.
const LOCAL_SOURCE_IDENTITY: &str = "aeron:ipc";
const SPY_PREFIX: &str = "aeron-spy:";

/// A publisher's stream, as delivered to one subscription.
///
/// Usable from any thread, but polled by one at a time ([`PollError::Busy`]). Polls of a closed image deliver
/// nothing; the other values stay readable as they were when it closed.
pub struct Image {
    terms: [AtomicBuffer; 3],
    geometry: TermGeometry,
    position: Counter,
    // What the counter says as long as it is this image's.
    counter_registration_id: i64,
    closed: AtomicBool,
    // The program took away the last destination that brought it. Written by the thread that services the client.
    left: AtomicBool,
    // True while a thread is inside a poll.
    polling: AtomicBool,
    last_state: OnceLock<LastState>,
    assembler: Mutex<FragmentAssembler>,
    log: LogBuffers,
    position_doorbell: Doorbell,
    home: Weak<dyn Home>,
    correlation_id: i64,
    subscription_registration_id: i64,
    subscription_channel: Arc<str>,
    session_id: i32,
    stream_id: i32,
    source_identity: String,
    join_position: i64,
}

/// What an image was like when it closed.
struct LastState {
    position: AtomicI64,
    end_of_stream_position: i64,
    is_publication_revoked: bool,
}

pub(crate) struct ImageParts {
    pub(crate) home: Weak<dyn Home>,
    pub(crate) correlation_id: i64,
    pub(crate) subscription_registration_id: i64,
    pub(crate) subscription_channel: Arc<str>,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) position: Counter,
    pub(crate) log: LogBuffers,
}

/// One poll. Dropping it, however the poll ends, stores the position reached and lets the next poll begin.
struct Reading<'a> {
    image: &'a Image,
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
        &self.image.terms[self.image.geometry.partition(self.position)]
    }

    #[inline]
    fn term_id(&self) -> i32 {
        self.image.geometry.term_id(self.position)
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

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.offset > self.start {
            let position = advance(self.position, self.offset - self.start);
            self.image.store_position(&mut self.stored, position);
            // It closed while a handler was called: what that got is consumed.
            if let Some(last) = self.image.last_state.get() {
                last.position.fetch_max(position, Ordering::AcqRel);
            }
        }
        self.image.polling.store(false, Ordering::Release);
    }
}

impl Image {
    pub(crate) fn new(parts: ImageParts) -> Self {
        Self {
            terms: [0, 1, 2].map(|partition| parts.log.term(partition).clone()),
            geometry: parts.log.geometry(),
            join_position: parts.position.get_acquire(),
            counter_registration_id: parts.position.registration_id(),
            position: parts.position,
            closed: AtomicBool::new(false),
            left: AtomicBool::new(false),
            polling: AtomicBool::new(false),
            last_state: OnceLock::new(),
            assembler: Mutex::new(FragmentAssembler::new()),
            position_doorbell: parts.log.doorbells().position.clone(),
            log: parts.log,
            home: parts.home,
            correlation_id: parts.correlation_id,
            subscription_registration_id: parts.subscription_registration_id,
            subscription_channel: parts.subscription_channel,
            session_id: parts.session_id,
            stream_id: parts.stream_id,
            source_identity: parts.source_identity,
        }
    }

    /// Keeps the values of now and ends polling. The driver may reuse the counter from here on.
    pub(crate) fn close(&self) {
        self.close_at(self.position.get_acquire());
    }

    fn close_at(&self, position: i64) {
        self.last_state.get_or_init(|| LastState {
            position: AtomicI64::new(position),
            end_of_stream_position: self.log.metadata().end_of_stream_position_acquire(),
            is_publication_revoked: self.log.metadata().is_publication_revoked_acquire(),
        });
        self.closed.store(true, Ordering::Release);
    }

    /// The program took a destination away: notes whether another one brings the image. One that is published on this
    /// host goes at once with its destination.
    pub(crate) fn note_destination_removed(&self) {
        if self.source_identity != LOCAL_SOURCE_IDENTITY && self.active_transport_count() == 0 {
            self.left.store(true, Ordering::Relaxed);
        }
    }

    /// The program took away the last destination that brought it. Nothing of a later one that brings it again.
    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    // The counter may be another one's once the image is closed.
    #[inline]
    fn store_position(&self, stored: &mut Stored, position: i64) {
        let is_ours = !self.is_closed() && self.owns_counter() && stored.generation == fork::generation();
        if is_ours && self.position.compare_and_set(stored.position, position) {
            stored.position = position;
            self.position_doorbell.ring();
        }
    }

    #[inline]
    fn owns_counter(&self) -> bool {
        self.position.registration_id() == self.counter_registration_id
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
    pub(crate) fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.log.doorbells().data);
    }

    /// Begins a poll; nothing when the image is closed.
    #[inline]
    fn begin(&self) -> Result<Option<Reading<'_>>, PollError> {
        if self.polling.swap(true, Ordering::Acquire) {
            return Err(PollError::Busy { what: "image" });
        }
        let position = self.position.get();
        let start = self.geometry.term_offset(position);
        let reading = Reading {
            image: self,
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

    /// Delivers up to `fragment_limit` fragments, not beyond the end of a term. Returns how many.
    #[inline]
    pub fn poll<F>(&self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.try_poll(infallible(&mut handler), fragment_limit)
    }

    /// As [`Self::poll`] for handlers that can fail. The first error stops the poll and is returned; the fragment
    /// it was raised for counts as consumed.
    #[inline]
    pub fn try_poll<F, E>(&self, handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.read(None, handler, fragment_limit)
    }

    /// Delivers up to `fragment_limit` fragments that begin before `limit_position`. Returns how many.
    #[inline]
    pub fn bounded_poll<F>(
        &self,
        limit_position: i64,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.try_bounded_poll(limit_position, infallible(&mut handler), fragment_limit)
    }

    /// As [`Self::bounded_poll`] for handlers that can fail; see [`Self::try_poll`].
    #[inline]
    pub fn try_bounded_poll<F, E>(
        &self,
        limit_position: i64,
        handler: F,
        fragment_limit: usize,
    ) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.read(Some(limit_position), handler, fragment_limit)
    }

    /// As [`Self::poll`], the handler deciding after each fragment how to go on.
    #[inline]
    pub fn controlled_poll<F>(&self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.try_controlled_poll(|payload, header| Ok(handler(payload, header)), fragment_limit)
    }

    /// As [`Self::controlled_poll`] for handlers that can fail; see [`Self::try_poll`].
    #[inline]
    pub fn try_controlled_poll<F, E>(&self, handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<Action, E>,
        E: From<PollError>,
    {
        self.read_controlled(None, handler, fragment_limit)
    }

    /// As [`Self::controlled_poll`] up to fragments that begin before `limit_position`.
    #[inline]
    pub fn bounded_controlled_poll<F>(
        &self,
        limit_position: i64,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let handler = |payload: &[u8], header: &Header<'_>| Ok(handler(payload, header));
        self.try_bounded_controlled_poll(limit_position, handler, fragment_limit)
    }

    /// As [`Self::bounded_controlled_poll`] for handlers that can fail; see [`Self::try_poll`].
    #[inline]
    pub fn try_bounded_controlled_poll<F, E>(
        &self,
        limit_position: i64,
        handler: F,
        fragment_limit: usize,
    ) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<Action, E>,
        E: From<PollError>,
    {
        self.read_controlled(Some(limit_position), handler, fragment_limit)
    }

    /// Delivers one run of whole frames of at most `block_length_limit` bytes. A padding frame is a run of its
    /// own. Returns the bytes delivered.
    pub fn block_poll<F>(&self, handler: F, block_length_limit: usize) -> Result<usize, PollError>
    where
        F: FnOnce(Block<'_>),
    {
        self.try_block_poll(
            |block| {
                handler(block);
                Ok(())
            },
            block_length_limit,
        )
    }

    /// As [`Self::block_poll`] for handlers that can fail. A run whose handler fails is not consumed: a recorder whose
    /// disk refuses a run must not give its publisher room for more.
    pub fn try_block_poll<F, E>(&self, handler: F, block_length_limit: usize) -> Result<usize, E>
    where
        F: FnOnce(Block<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        let Some(mut reading) = self.begin()? else {
            return Ok(0);
        };
        read::try_read_block(reading.term(), &mut reading.offset, block_length_limit, handler)
    }

    #[inline(always)]
    fn read<F, E>(
        &self,
        limit_position: Option<i64>,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        let Some(mut reading) = self.begin()? else {
            return Ok(0);
        };
        let limit_offset = self.limit_offset(reading.position, limit_position);
        let (position, term_id) = (reading.position, reading.term_id());
        read::try_read_controlled(
            reading.term(),
            self.geometry,
            &mut reading.offset,
            limit_offset,
            fragment_limit,
            |payload, header| {
                if header.term_id() != term_id {
                    return Err(self.overtaken(position).into());
                }
                handler(payload, &header)?;
                // The handler may be what closed the subscription.
                Ok(if self.closed.load(Ordering::Relaxed) {
                    Action::Break
                } else {
                    Action::Continue
                })
            },
            |_| {},
        )
    }

    #[inline(always)]
    fn read_controlled<F, E>(
        &self,
        limit_position: Option<i64>,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<Action, E>,
        E: From<PollError>,
    {
        let Some(mut reading) = self.begin()? else {
            return Ok(0);
        };
        let limit_offset = self.limit_offset(reading.position, limit_position);
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
            fragment_limit,
            |payload, header| {
                if header.term_id() != term_id {
                    return Err(self.overtaken(position).into());
                }
                let action = handler(payload, &header)?;
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

    #[inline(always)]
    fn limit_offset(&self, position: i64, limit_position: Option<i64>) -> usize {
        match limit_position {
            None => self.geometry.term_length(),
            Some(limit) => read::bounded_limit_offset(self.geometry, position, limit),
        }
    }

    /// Takes the right to put messages together until the guard is dropped, for polls of this image alone. It
    /// belongs to the image, so that all who hold the image know the message that is half there.
    pub fn assembler(&self) -> Result<MutexGuard<'_, FragmentAssembler>, PollError> {
        try_lock(&self.assembler).ok_or(PollError::Busy { what: "image" })
    }

    /// True when a poll would move on, if only past padding.
    pub fn has_fragments(&self) -> bool {
        let position = self.position();
        let term = &self.terms[self.geometry.partition(position)];
        !self.is_closed() && frame::committed(term, self.geometry.term_offset(position)).is_some()
    }

    /// Position up to which fragments were consumed.
    pub fn position(&self) -> i64 {
        match self.last_state.get() {
            Some(last) => last.position.load(Ordering::Acquire),
            None => self.position.get_acquire(),
        }
    }

    /// Position at which this image began.
    pub fn join_position(&self) -> i64 {
        self.join_position
    }

    /// Id of the counter with the position.
    pub fn subscriber_position_id(&self) -> i32 {
        self.position.id()
    }

    /// True when everything the publisher sent before it ended has been consumed.
    pub fn is_end_of_stream(&self) -> bool {
        self.position() >= self.end_of_stream_position()
    }

    /// Position at which the stream ends; `i64::MAX` while that is not known.
    pub fn end_of_stream_position(&self) -> i64 {
        match self.last_state.get() {
            Some(last) => last.end_of_stream_position,
            None => self.log.metadata().end_of_stream_position_acquire(),
        }
    }

    /// True when the publisher took back what had not been consumed.
    pub fn is_publication_revoked(&self) -> bool {
        match self.last_state.get() {
            Some(last) => last.is_publication_revoked,
            None => self.log.metadata().is_publication_revoked_acquire(),
        }
    }

    /// Number of live transports that feed this image; 0 for IPC and once closed.
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            return 0;
        }
        self.log.metadata().active_transport_count_acquire()
    }

    /// True once the image is unavailable, or its subscription or client closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Session of the publisher.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.session_id
    }

    /// Stream within the channel.
    pub fn stream_id(&self) -> i32 {
        self.stream_id
    }

    /// Id under which driver and clients know this image.
    #[inline]
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Registration id of the subscription.
    pub fn subscription_registration_id(&self) -> i64 {
        self.subscription_registration_id
    }

    /// Where the stream comes from: an address, or `aeron:ipc`.
    pub fn source_identity(&self) -> &str {
        &self.source_identity
    }

    /// Id of the stream's first term.
    pub fn initial_term_id(&self) -> i32 {
        self.geometry.initial_term_id()
    }

    /// Length of each term.
    pub fn term_length(&self) -> usize {
        self.geometry.term_length()
    }

    /// log2 of the term length.
    pub fn position_bits_to_shift(&self) -> u32 {
        self.geometry.position_bits_to_shift()
    }

    /// Longest frame of the stream.
    pub fn mtu_length(&self) -> usize {
        self.log.mtu()
    }

    /// Refuses this image: tells its publisher the reason, of at most 1023 bytes, and makes the image unavailable.
    /// Waits for the driver's answer.
    pub fn reject(&self, reason: &str) -> Result<(), ClientError> {
        let id = self.async_reject(reason)?;
        home::open(&self.home, true, "client")?.wait_for(id)
    }

    /// As [`Self::reject`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_reject(&self, reason: &str) -> Result<i64, ClientError> {
        if reason.len() > REJECTION_REASON_LENGTH_MAX {
            let rule = format!("must be at most {REJECTION_REASON_LENGTH_MAX} bytes");
            return Err(ClientError::argument("reason_length", reason.len(), rule));
        }
        if self.subscription_channel.starts_with(SPY_PREFIX) {
            let rule = "a spy only watches, it may not reject images";
            return Err(ClientError::argument("channel", &self.subscription_channel, rule));
        }
        let home = home::open(&self.home, !self.is_closed(), "image")?;
        let (client_id, position) = (home.client_id(), self.position());
        home.request("reject image", &|correlation_id| Command::RejectImage {
            client_id,
            correlation_id,
            image_correlation_id: self.correlation_id,
            position,
            reason: reason.into(),
        })
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.correlation_id)
            .field("session_id", &self.session_id)
            .field("stream_id", &self.stream_id)
            .field("source_identity", &self.source_identity)
            .field("position", &self.position())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Positions are never near the end of their range, but one that another process spoiled may be.
#[inline(always)]
fn advance(position: i64, consumed: usize) -> i64 {
    position.wrapping_add(consumed as i64)
}

#[inline(always)]
fn infallible<E>(
    handler: &mut impl FnMut(&[u8], &Header<'_>),
) -> impl FnMut(&[u8], &Header<'_>) -> Result<(), E> + '_ {
    move |payload, header| {
        handler(payload, header);
        Ok(())
    }
}
