//! Images: one publisher's stream as one subscription sees it.

mod assembler;
mod poll;
mod reader;
mod replay_blocks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use headrace_buffers::counters::Counter;
pub use headrace_buffers::log::read::Block;
use headrace_buffers::log::{Action, Header, LogBuffers};
use headrace_protocol::command::{Command, REJECTION_REASON_LENGTH_MAX};

pub use assembler::FragmentAssembler;
pub use poll::{HandlerResult, PollLimit};
use reader::ImageReader;
pub use replay_blocks::ReplayBlocks;

use crate::conductor_proxy::{self, ConductorProxy};
use crate::error::{ClientError, PollError};
use crate::lock::try_lock;

/// Where the stream of a publication on this host comes from.
const LOCAL_SOURCE_IDENTITY: &str = "aeron:ipc";
const SPY_PREFIX: &str = "aeron-spy:";

/// A publisher's stream, as delivered to one subscription.
///
/// Usable from any thread, but polled by one at a time ([`PollError::Busy`]). Polls of a closed image deliver
/// nothing; the other values stay readable as they were when it closed.
pub struct Image {
    pub(crate) reader: ImageReader,
    // The program took away the last destination that brought it. Written by the thread that services the client.
    left: AtomicBool,
    assembler: Mutex<FragmentAssembler>,
    conductor: Weak<dyn ConductorProxy>,
    correlation_id: i64,
    subscription_channel: Arc<str>,
    source_identity: String,
    join_position: i64,
}

pub(crate) struct ImageParts {
    pub(crate) conductor: Weak<dyn ConductorProxy>,
    pub(crate) correlation_id: i64,
    pub(crate) subscription_channel: Arc<str>,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) position: Counter,
    pub(crate) log: LogBuffers,
    /// Begins after what has been published, wherever the driver linked it.
    pub(crate) starts_now: bool,
}

impl Image {
    pub(crate) fn new(parts: ImageParts) -> Self {
        let reader = ImageReader::new(parts.log, parts.position, parts.session_id, parts.stream_id);
        if parts.starts_now {
            reader.pass_over(parts.source_identity == LOCAL_SOURCE_IDENTITY);
        }
        Self {
            join_position: reader.position(),
            reader,
            left: AtomicBool::new(false),
            assembler: Mutex::new(FragmentAssembler::new()),
            conductor: parts.conductor,
            correlation_id: parts.correlation_id,
            subscription_channel: parts.subscription_channel,
            source_identity: parts.source_identity,
        }
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

    /// Delivers fragments up to a limit, not beyond the end of a term. Returns how many.
    ///
    /// The handler returns nothing, or an [`Action`] that says how to go on, or a `Result` of either; see
    /// [`HandlerResult`].
    #[inline]
    pub fn poll<F, R>(&self, handler: F, limit: impl Into<PollLimit>) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value: Into<Action>>,
    {
        self.reader.poll(handler, limit.into())
    }

    /// Delivers one run of whole frames of at most `block_length_limit` bytes. A padding frame is a run of its own. Returns
    /// the bytes delivered.
    ///
    /// A run whose handler fails is not consumed: a recorder whose disk refuses a run must not give its publisher room for
    /// more.
    pub fn block_poll<F, R>(&self, handler: F, block_length_limit: usize) -> Result<usize, R::Error>
    where
        F: FnOnce(Block<'_>) -> R,
        R: HandlerResult<Value = ()>,
    {
        self.reader.block_poll(handler, block_length_limit)
    }

    /// Takes the right to assemble messages until the guard is dropped, for polls of this image only. The assembler
    /// belongs to the image, so that all its holders share a half-assembled message.
    pub fn assembler(&self) -> Result<MutexGuard<'_, FragmentAssembler>, PollError> {
        try_lock(&self.assembler).ok_or(PollError::Busy { what: "image" })
    }

    /// Takes over the message that polls of another image have begun: this image continues the same stream, like a
    /// replay or the log of the next leader.
    pub fn take_fragments(&self, previous: &Self) -> Result<(), PollError> {
        let mut begun = previous.assembler()?;
        self.assembler()?
            .take_over(self.session_id(), &mut begun, previous.session_id());
        Ok(())
    }

    /// True when a poll would advance, even if only past padding.
    pub fn has_fragments(&self) -> bool {
        self.reader.has_fragments()
    }

    /// Position up to which fragments were consumed.
    pub fn position(&self) -> i64 {
        self.reader.position()
    }

    /// Position at which this image began.
    pub fn join_position(&self) -> i64 {
        self.join_position
    }

    /// Id of the counter with the position.
    pub fn subscriber_position_id(&self) -> i32 {
        self.reader.counter_id()
    }

    /// True when everything the publisher sent before it ended has been consumed.
    pub fn is_end_of_stream(&self) -> bool {
        self.position() >= self.end_of_stream_position()
    }

    /// Position at which the stream ends; `i64::MAX` while that is not known.
    pub fn end_of_stream_position(&self) -> i64 {
        self.reader.end_of_stream_position()
    }

    /// True when the publisher revoked the stream, which discarded everything that was not consumed.
    pub fn is_publication_revoked(&self) -> bool {
        self.reader.is_publication_revoked()
    }

    /// Number of live transports that feed this image; 0 for IPC and once closed.
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            return 0;
        }
        self.reader.log.metadata().active_transport_count_acquire()
    }

    /// True once the image is unavailable, or its subscription or client closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    /// Session of the publisher.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.reader.session_id
    }

    /// Stream within the channel.
    pub fn stream_id(&self) -> i32 {
        self.reader.stream_id
    }

    /// Id under which driver and clients know this image.
    #[inline]
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Where the stream comes from: an address, or `aeron:ipc`.
    pub fn source_identity(&self) -> &str {
        &self.source_identity
    }

    /// Id of the stream's first term.
    pub fn initial_term_id(&self) -> i32 {
        self.reader.geometry.initial_term_id()
    }

    /// Length of each term.
    pub fn term_length(&self) -> usize {
        self.reader.geometry.term_length()
    }

    /// Longest frame of the stream.
    pub fn mtu_length(&self) -> usize {
        self.reader.log.mtu()
    }

    /// Rejects this image: sends its publisher the reason, of at most 1023 bytes, and makes the image unavailable.
    /// Waits for the driver's answer.
    pub fn reject(&self, reason: &str) -> Result<(), ClientError> {
        let id = self.async_reject(reason)?;
        conductor_proxy::open(&self.conductor, true, "client")?.wait_for(id)
    }

    /// As [`Self::reject`] without waiting; see [`crate::Requests::find_operation`].
    pub fn async_reject(&self, reason: &str) -> Result<i64, ClientError> {
        if reason.len() > REJECTION_REASON_LENGTH_MAX {
            let rule = format!("must be at most {REJECTION_REASON_LENGTH_MAX} bytes");
            return Err(ClientError::argument("reason_length", reason.len(), rule));
        }
        if self.subscription_channel.starts_with(SPY_PREFIX) {
            let rule = "a spy only watches, it may not reject images";
            return Err(ClientError::argument("channel", &self.subscription_channel, rule));
        }
        let conductor = conductor_proxy::open(&self.conductor, !self.is_closed(), "image")?;
        let position = self.position();
        conductor.request("reject image", &|client_id, correlation_id| {
            Command::RejectImage {
                client_id,
                correlation_id,
                image_correlation_id: self.correlation_id,
                position,
                reason: reason.into(),
            }
        })
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.correlation_id)
            .field("session_id", &self.session_id())
            .field("stream_id", &self.stream_id())
            .field("source_identity", &self.source_identity)
            .field("position", &self.position())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
