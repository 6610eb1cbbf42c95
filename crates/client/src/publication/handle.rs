//! The common part of concurrent and exclusive publications: everything but writing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::{Awaited, Doorbell, Doorbells, Interests};
use headrace_buffers::log::descriptor::{max_message_length, max_payload_length};
use headrace_buffers::log::{Append, ClaimResult, LogBuffers};

use crate::channel_status::{self, EndpointStatus};
use crate::conductor_proxy::ConductorProxy;
use crate::destinations::{Destinations, Owner};

/// How many subscribers a publication has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriberCount {
    /// Exactly this many.
    Exactly(usize),
    /// The driver only knows whether there is one at all.
    AtLeast(usize),
}

/// Sizes and positions that the log of a publication sets; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Id of the first term.
    pub initial_term_id: i32,
    /// Length of each term in bytes.
    pub term_length: usize,
    /// Stream position at which the stream ends.
    pub max_possible_position: i64,
    /// Longest message in bytes that fits one frame; longer ones are sent in fragments.
    pub max_payload_length: usize,
    /// Longest message in bytes.
    pub max_message_length: usize,
}

/// The common part of concurrent and exclusive publications.
///
/// Values that have no meaning once the publication is closed are `None` then.
pub struct PublicationHandle {
    closed: AtomicBool,
    pub(crate) limit: Counter,
    pub(crate) log: LogBuffers,
    // Copied out of the log for the sake of each offer.
    pub(crate) data_doorbell: Doorbell,
    driver_doorbell: Doorbell,
    conductor: Weak<dyn ConductorProxy>,
    registration_id: i64,
    original_registration_id: i64,
    channel: Arc<str>,
    stream_id: i32,
    session_id: i32,
    pub(crate) channel_status_id: i32,
}

pub(crate) struct HandleParts {
    pub(crate) conductor: Weak<dyn ConductorProxy>,
    pub(crate) registration_id: i64,
    pub(crate) original_registration_id: i64,
    pub(crate) channel: Arc<str>,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) channel_status_id: i32,
    pub(crate) limit: Counter,
    pub(crate) log: LogBuffers,
    pub(crate) driver_doorbell: Doorbell,
}

impl PublicationHandle {
    pub(crate) fn new(parts: HandleParts) -> Self {
        Self {
            closed: AtomicBool::new(false),
            limit: parts.limit,
            driver_doorbell: parts.driver_doorbell,
            data_doorbell: parts.log.doorbells().data.clone(),
            log: parts.log,
            conductor: parts.conductor,
            registration_id: parts.registration_id,
            original_registration_id: parts.original_registration_id,
            channel: parts.channel,
            stream_id: parts.stream_id,
            session_id: parts.session_id,
            channel_status_id: parts.channel_status_id,
        }
    }

    /// True for the call that closed it.
    pub(crate) fn mark_closed(&self) -> bool {
        let was_open = !self.closed.swap(true, Ordering::AcqRel);
        // Other threads may wait for room.
        self.log.doorbells().limit.ring();
        was_open
    }

    /// Wakes those that wait for the message that was just sent; or the driver, which may have room to give.
    #[inline(always)]
    pub(crate) fn announce(&self, append: Append) -> Append {
        match append {
            Append::Position(_) => self.data_doorbell.ring(),
            Append::BackPressured => self.driver_doorbell.ring(),
            _ => {}
        }
        append
    }

    #[inline]
    pub(crate) fn announce_when_committed<'a>(&self, result: ClaimResult<'a>) -> ClaimResult<'a> {
        match result {
            ClaimResult::Claimed(claim) => ClaimResult::Claimed(claim.with_doorbell(&self.data_doorbell)),
            ClaimResult::Refused(refused) => ClaimResult::Refused(self.announce(refused)),
        }
    }

    /// True once closed, by this program or with the client.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// True while a subscriber is connected.
    pub fn is_connected(&self) -> bool {
        !self.is_closed() && self.log.metadata().is_connected_acquire()
    }

    /// Number of subscribers now. Over IPC, the subscriptions that read the log; over a network, the receivers that
    /// flow control counts.
    pub fn subscriber_count(&self) -> SubscriberCount {
        let conductor = match self.conductor.upgrade() {
            Some(conductor) if !self.is_closed() => conductor,
            _ => return SubscriberCount::Exactly(0),
        };
        if self.channel_status_id == channel_status::NO_STATUS_COUNTER {
            return SubscriberCount::Exactly(channel_status::reader_count(
                conductor.counters(),
                self.original_registration_id,
            ));
        }
        match channel_status::receiver_count(conductor.counters(), self.original_registration_id) {
            Some(count) => SubscriberCount::Exactly(count),
            None => SubscriberCount::AtLeast(usize::from(self.is_connected())),
        }
    }

    /// Position of the stream after everything written so far.
    pub fn position(&self) -> Option<i64> {
        (!self.is_closed()).then(|| self.log.producer_position())
    }

    /// Position from which offers are refused until subscribers have read on.
    pub fn position_limit(&self) -> Option<i64> {
        (!self.is_closed()).then(|| self.limit.get_acquire())
    }

    /// Bytes that can be written before the limit is reached.
    pub fn available_window(&self) -> Option<i64> {
        Some(self.position_limit()?.saturating_sub(self.position()?))
    }

    /// The channel as the program passed it.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// Stream within the channel.
    pub fn stream_id(&self) -> i32 {
        self.stream_id
    }

    /// Session of this publisher.
    pub fn session_id(&self) -> i32 {
        self.session_id
    }

    /// Sizes and positions that the log sets.
    pub fn limits(&self) -> LogLimits {
        LogLimits {
            initial_term_id: self.log.initial_term_id(),
            term_length: self.log.term_length(),
            max_possible_position: self.log.geometry().max_possible_position(),
            max_payload_length: max_payload_length(self.log.mtu()),
            max_message_length: max_message_length(self.log.term_length()),
        }
    }

    /// Registration id of this handle.
    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Registration id of the log, shared by all handles of the publication.
    pub fn original_registration_id(&self) -> i64 {
        self.original_registration_id
    }

    /// True for the handle that made the driver create the log.
    pub fn is_original(&self) -> bool {
        self.original_registration_id == self.registration_id
    }

    /// Id of the counter with the position limit.
    pub fn position_limit_id(&self) -> i32 {
        self.limit.id()
    }

    /// The endpoint of the channel.
    pub fn status(&self) -> EndpointStatus {
        EndpointStatus::new(&self.conductor, self.channel_status_id, !self.is_closed())
    }

    /// The destinations of a channel with `control-mode=manual`.
    pub fn destinations(&self) -> Destinations<'_> {
        let registration_id = self.original_registration_id;
        Destinations::new(
            &self.conductor,
            Owner::Publication,
            registration_id,
            !self.is_closed(),
        )
    }

    /// Closes this handle. Messages that were sent are still delivered; the log is freed when its last handle is closed
    /// and its subscribers have read it. Does not wait for the driver; closing again does nothing.
    pub fn close(&self) {
        self.end(false);
    }

    /// Closes the whole publication, also for its other handles, and discards all unread messages. Does not wait for
    /// the driver; does nothing when this handle is closed already.
    pub fn revoke(&self) {
        self.end(true);
    }

    fn end(&self, revoke: bool) {
        if self.mark_closed()
            && let Some(conductor) = self.conductor.upgrade()
        {
            conductor.forget_publication(self.registration_id, self.original_registration_id, revoke);
        }
    }
}

impl Awaited for PublicationHandle {
    fn doorbells(&self) -> Doorbells {
        let conductor = self.conductor.upgrade();
        conductor.map_or_else(Doorbells::none, |conductor| conductor.doorbells())
    }

    /// Room, subscribers, and its end.
    fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.log.doorbells().limit);
        // The conductor only follows subscribers at once while it knows of a publisher that waits.
        interests.ask(&self.driver_doorbell);
    }
}
