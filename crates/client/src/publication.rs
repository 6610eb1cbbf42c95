//! Publications that any number of threads, and processes, may write to at once.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use headrace_buffers::AtomicBuffer;
use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::{Awaited, Doorbell, Doorbells, Interests};
use headrace_buffers::log::append::{Progress, ReservedValue};
use headrace_buffers::log::descriptor::{max_message_length, max_payload_length};
use headrace_buffers::log::{Append, ClaimResult, ConcurrentAppender, LogBuffers};
use headrace_protocol::command::Command;

use crate::error::{ClientError, OfferError};
use crate::home::{self, Home};
use crate::status::{self, ChannelStatus};

/// A stream to one or more subscribers, shared by any number of writers.
///
/// Usable from any thread; offers neither lock nor allocate nor call the system. Dropping closes.
pub struct Publication {
    handle: Arc<PublicationHandle>,
    appender: ConcurrentAppender,
}

impl Publication {
    pub(crate) fn new(handle: Arc<PublicationHandle>) -> Self {
        let appender = ConcurrentAppender::new(&handle.log);
        Self { handle, appender }
    }

    /// Sends one message, or says why not. An error means the message can never be sent.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Append, OfferError> {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self
            .appender
            .offer_one(message, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce(append))
    }

    /// Sends messages in order until one is refused.
    pub fn offer_many(&self, messages: &[&[u8]]) -> Result<Progress, OfferError> {
        if self.handle.is_closed() {
            return Ok(Progress {
                refused: Some(Append::Closed),
                ..Progress::default()
            });
        }
        let progress = self
            .appender
            .offer_many(messages, self.handle.limit.get_acquire())?;
        self.handle.data_doorbell.ring();
        if let Some(refused) = progress.refused {
            self.handle.announce(refused);
        }
        Ok(progress)
    }

    /// As [`Self::offer`] for a message given in parts.
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<Append, OfferError> {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self.appender.offer(parts, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce(append))
    }

    /// As [`Self::offer_parts`], asking `reserved` for the reserved value of each frame once its payload is there.
    #[inline]
    pub fn offer_reserved<R>(&self, parts: &[&[u8]], reserved: R) -> Result<Append, OfferError>
    where
        R: ReservedValue<AtomicBuffer>,
    {
        if self.handle.is_closed() {
            return Ok(Append::Closed);
        }
        let append = self
            .appender
            .offer_reserved(parts, self.handle.limit.get_acquire(), reserved)?;
        Ok(self.handle.announce(append))
    }

    /// Claims room for a message of `length` bytes, at most the payload of one frame, to be filled in place.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<ClaimResult<'_>, OfferError> {
        if self.handle.is_closed() {
            return Ok(ClaimResult::Refused(Append::Closed));
        }
        let result = self.appender.try_claim(length, self.handle.limit.get_acquire())?;
        Ok(self.handle.announce_when_committed(result))
    }
}

impl Deref for Publication {
    type Target = PublicationHandle;

    fn deref(&self) -> &PublicationHandle {
        &self.handle
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// How many subscribers a publication has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriberCount {
    /// As many as this.
    Exactly(usize),
    /// The driver only knows whether there is one at all.
    AtLeast(usize),
}

/// What concurrent and exclusive publications have in common.
///
/// Values that stop making sense when the publication is closed are then nothing.
pub struct PublicationHandle {
    closed: AtomicBool,
    pub(crate) limit: Counter,
    pub(crate) log: LogBuffers,
    // Copied out of the log for the sake of each offer.
    pub(crate) data_doorbell: Doorbell,
    driver_doorbell: Doorbell,
    home: Weak<dyn Home>,
    registration_id: i64,
    original_registration_id: i64,
    channel: Arc<str>,
    stream_id: i32,
    session_id: i32,
    channel_status_id: i32,
}

pub(crate) struct HandleParts {
    pub(crate) home: Weak<dyn Home>,
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
            home: parts.home,
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
        let home = match self.home.upgrade() {
            Some(home) if !self.is_closed() => home,
            _ => return SubscriberCount::Exactly(0),
        };
        if self.channel_status_id == status::NO_STATUS_COUNTER {
            return SubscriberCount::Exactly(status::reader_count(
                home.counters(),
                self.original_registration_id,
            ));
        }
        match status::receiver_count(home.counters(), self.original_registration_id) {
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

    /// The channel as it was given.
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

    /// Id of the first term.
    pub fn initial_term_id(&self) -> i32 {
        self.log.initial_term_id()
    }

    /// Length of each term.
    pub fn term_length(&self) -> usize {
        self.log.term_length()
    }

    /// log2 of the term length.
    pub fn position_bits_to_shift(&self) -> u32 {
        self.log.position_bits_to_shift()
    }

    /// Position that the stream can never reach.
    pub fn max_possible_position(&self) -> i64 {
        self.log.geometry().max_possible_position()
    }

    /// Longest message that fits one frame; longer ones are sent in fragments.
    pub fn max_payload_length(&self) -> usize {
        max_payload_length(self.log.mtu())
    }

    /// Longest message.
    pub fn max_message_length(&self) -> usize {
        max_message_length(self.log.term_length())
    }

    /// Registration id of this handle.
    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Registration id of the log, shared by all handles of the publication.
    pub fn original_registration_id(&self) -> i64 {
        self.original_registration_id
    }

    /// True for the handle with which the log came into being.
    pub fn is_original(&self) -> bool {
        self.original_registration_id == self.registration_id
    }

    /// Id of the counter with the position limit.
    pub fn position_limit_id(&self) -> i32 {
        self.limit.id()
    }

    /// Id of the counter with the channel's status; -1 for channels that have none, as IPC.
    pub fn channel_status_id(&self) -> i32 {
        self.channel_status_id
    }

    /// State of the endpoint.
    pub fn channel_status(&self) -> ChannelStatus {
        match self.home.upgrade() {
            Some(home) if !self.is_closed() => {
                status::channel_status(home.counters(), self.channel_status_id)
            }
            _ => ChannelStatus::Closed,
        }
    }

    /// Addresses the endpoint's sockets are bound to, once it is active.
    pub fn local_socket_addresses(&self) -> Vec<String> {
        match self.home.upgrade() {
            Some(home) if !self.is_closed() => {
                status::local_socket_addresses(home.counters(), self.channel_status_id)
            }
            _ => Vec::new(),
        }
    }

    /// Adds a destination, waits for the driver to do so and returns its registration id. The channel must have
    /// `control-mode=manual`.
    pub fn add_destination(&self, channel: &str) -> Result<i64, ClientError> {
        let id = self.async_add_destination(channel)?;
        self.wait(id).map(|()| id)
    }

    /// Removes a destination by its channel and waits for the driver to do so.
    pub fn remove_destination(&self, channel: &str) -> Result<(), ClientError> {
        self.wait(self.async_remove_destination(channel)?)
    }

    /// Removes a destination by its registration id and waits for the driver to do so.
    pub fn remove_destination_by_id(&self, destination_registration_id: i64) -> Result<(), ClientError> {
        self.wait(self.async_remove_destination_by_id(destination_registration_id)?)
    }

    /// As [`Self::add_destination`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_add_destination(&self, channel: &str) -> Result<i64, ClientError> {
        let home = self.open_home()?;
        let client_id = home.client_id();
        // Destinations belong to the log, whichever handle adds them.
        let registration_id = self.original_registration_id;
        home.request("add destination", &|correlation_id| Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: channel.into(),
        })
    }

    /// As [`Self::remove_destination`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_remove_destination(&self, channel: &str) -> Result<i64, ClientError> {
        let home = self.open_home()?;
        let client_id = home.client_id();
        let registration_id = self.original_registration_id;
        home.request("remove destination", &|correlation_id| {
            Command::RemoveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel: channel.into(),
            }
        })
    }

    /// As [`Self::remove_destination_by_id`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_remove_destination_by_id(
        &self,
        destination_registration_id: i64,
    ) -> Result<i64, ClientError> {
        let home = self.open_home()?;
        let client_id = home.client_id();
        let registration_id = self.original_registration_id;
        home.request("remove destination", &|correlation_id| {
            Command::RemoveDestinationById {
                client_id,
                correlation_id,
                registration_id,
                destination_registration_id,
            }
        })
    }

    fn open_home(&self) -> Result<Arc<dyn Home>, ClientError> {
        home::open(&self.home, !self.is_closed(), "publication")
    }

    fn wait(&self, correlation_id: i64) -> Result<(), ClientError> {
        home::open(&self.home, true, "client")?.wait_for(correlation_id)
    }

    /// Closes this handle. What was sent is still delivered; the log goes when its last handle is closed and its
    /// subscribers have read it. Does not wait for the driver; closing again does nothing.
    pub fn close(&self) {
        self.end(false);
    }

    /// Closes the whole publication, also for its other handles, and discards what subscribers have not read.
    /// Does not wait for the driver; does nothing when this handle is closed already.
    pub fn revoke(&self) {
        self.end(true);
    }

    fn end(&self, revoke: bool) {
        if self.mark_closed()
            && let Some(home) = self.home.upgrade()
        {
            home.forget_publication(self.registration_id, self.original_registration_id, revoke);
        }
    }
}

impl Awaited for PublicationHandle {
    fn doorbells(&self) -> Doorbells {
        let home = self.home.upgrade();
        home.map_or_else(Doorbells::none, |home| home.doorbells())
    }

    /// Room, subscribers, and its end.
    fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.log.doorbells().limit);
        // The conductor only follows subscribers at once while it knows of a publisher that waits.
        interests.ask(&self.driver_doorbell);
    }
}
