//! Subscriptions: the images of one channel and stream, polled in turn.
//!
//! The conductor replaces the image list, never changes it. A poller keeps the list it saw last, together with
//! its version; as long as the version stands, polling takes no lock that anyone else wants and shares no
//! reference counts.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use headrace_buffers::doorbell::{Awaited, Bell, Doorbell, Doorbells, Interests};
use headrace_buffers::log::{Action, Header};
use headrace_protocol::command::Command;
use headrace_sys::idle::IdleStrategy;

use crate::error::{ClientError, PollError};
use crate::handlers::SubscriptionHandlers;
use crate::home::{self, Home};
use crate::image::{Block, Image};
use crate::lock::{lock, try_lock};
use crate::status::{self, ChannelStatus, NO_STATUS_COUNTER};

/// How the channels of shared memory begin.
const IPC_CHANNEL: &str = "aeron:ipc";

type ImageList = Arc<[Arc<Image>]>;

/// The part of a subscription that the client's tables share with its handle.
pub(crate) struct SubscriptionShared {
    pub(crate) registration_id: i64,
    pub(crate) channel: Arc<str>,
    pub(crate) stream_id: i32,
    is_ipc: bool,
    pub(crate) closed: AtomicBool,
    // Empty once the subscription is closed: a handler may hold what holds the subscription.
    handlers: Mutex<SubscriptionHandlers>,
    channel_status_id: AtomicI32,
    images: Mutex<ImageList>,
    // Grows with each new list; stored with release while `images` is locked.
    version: AtomicU64,
    doorbells: Doorbells,
    // Rung when the list changes, and when the subscription is closed, which empties it.
    images_doorbell: Doorbell,
}

impl SubscriptionShared {
    pub(crate) fn new(
        registration_id: i64,
        channel: Arc<str>,
        stream_id: i32,
        handlers: SubscriptionHandlers,
        doorbells: &Doorbells,
    ) -> Self {
        Self {
            registration_id,
            is_ipc: channel.starts_with(IPC_CHANNEL),
            channel,
            stream_id,
            closed: AtomicBool::new(false),
            handlers: Mutex::new(handlers),
            channel_status_id: AtomicI32::new(NO_STATUS_COUNTER),
            images: Mutex::new(Arc::from([])),
            version: AtomicU64::new(0),
            doorbells: doorbells.clone(),
            images_doorbell: doorbells.bell(Bell::Images(registration_id)),
        }
    }

    pub(crate) fn channel_status_id(&self) -> i32 {
        self.channel_status_id.load(Ordering::Acquire)
    }

    pub(crate) fn set_channel_status_id(&self, status_id: i32) {
        self.channel_status_id.store(status_id, Ordering::Release);
    }

    pub(crate) fn handlers(&self) -> SubscriptionHandlers {
        lock(&self.handlers).clone()
    }

    pub(crate) fn take_handlers(&self) -> SubscriptionHandlers {
        std::mem::take(&mut lock(&self.handlers))
    }

    pub(crate) fn images(&self) -> ImageList {
        Arc::clone(&lock(&self.images))
    }

    pub(crate) fn has_image(&self, correlation_id: i64) -> bool {
        self.images()
            .iter()
            .any(|image| image.correlation_id() == correlation_id)
    }

    pub(crate) fn add_image(&self, image: Arc<Image>) {
        self.replace(|images| images.iter().cloned().chain([image]).collect());
    }

    pub(crate) fn remove_image(&self, correlation_id: i64) -> Option<Arc<Image>> {
        let removed = self
            .images()
            .iter()
            .find(|image| image.correlation_id() == correlation_id)
            .cloned()?;
        self.replace(|images| {
            images
                .iter()
                .filter(|image| image.correlation_id() != correlation_id)
                .cloned()
                .collect()
        });
        Some(removed)
    }

    pub(crate) fn take_images(&self) -> Vec<Arc<Image>> {
        let images = self.images();
        self.replace(|_| Arc::from([]));
        images.to_vec()
    }

    fn replace(&self, with: impl FnOnce(&ImageList) -> ImageList) {
        let mut images = lock(&self.images);
        *images = with(&images);
        // A poller that sees the new version finds the new list under the lock.
        self.version.fetch_add(1, Ordering::Release);
        self.images_doorbell.ring();
    }
}

/// What the polling thread keeps between polls.
struct PollState {
    images: ImageList,
    version: u64,
    round_robin: usize,
}

/// A stream of messages from any number of publishers, each an [`Image`].
///
/// Any thread may call anything, but only one thread polls at a time: a second one is refused
/// ([`PollError::Busy`]), and so is a poll from inside a handler of the same subscription. Dropping closes.
pub struct Subscription {
    home: Weak<dyn Home>,
    shared: Arc<SubscriptionShared>,
    poll_state: Mutex<PollState>,
}

impl Subscription {
    pub(crate) fn new(home: Weak<dyn Home>, shared: Arc<SubscriptionShared>) -> Self {
        let poll_state = PollState {
            images: Arc::from([]),
            version: 0,
            round_robin: 0,
        };
        Self {
            home,
            shared,
            poll_state: Mutex::new(poll_state),
        }
    }

    /// Takes the right to poll until the guard is dropped. A loop that polls through one guard saves the cost of
    /// taking it for each poll.
    pub fn poll_guard(&self) -> Result<PollGuard<'_>, PollError> {
        let what = "subscription";
        try_lock(&self.poll_state)
            .map(|state| PollGuard {
                shared: &self.shared,
                state,
            })
            .ok_or_else(|| {
                if self.is_closed() {
                    PollError::Closed
                } else {
                    PollError::Busy { what }
                }
            })
    }

    /// Delivers up to `fragment_limit` fragments, taking turns between images. Returns how many.
    pub fn poll<F>(&self, handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.poll_guard()?.poll(handler, fragment_limit)
    }

    /// As [`Self::poll`] for handlers that can fail. The first error stops the poll and is returned; the fragment
    /// it was raised for counts as consumed.
    pub fn try_poll<F, E>(&self, handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.poll_guard()?.try_poll(handler, fragment_limit)
    }

    /// As [`Self::poll`], the handler deciding after each fragment how to go on. [`Action::Break`] and
    /// [`Action::Abort`] end the poll of the fragment's image; the other images are still polled.
    pub fn controlled_poll<F>(&self, handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.poll_guard()?.controlled_poll(handler, fragment_limit)
    }

    /// As [`Self::controlled_poll`] for handlers that can fail; see [`Self::try_poll`].
    pub fn try_controlled_poll<F, E>(&self, handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<Action, E>,
        E: From<PollError>,
    {
        self.poll_guard()?.try_controlled_poll(handler, fragment_limit)
    }

    /// Delivers fragments, taking turns between images, until the handler gives false or `fragment_limit` is
    /// reached. The fragment for which it gave false is consumed; nothing after it is, of any image. Returns how
    /// many fragments were consumed.
    ///
    /// For callers that have room for a limited number of messages: [`Action::Break`] ends the poll of one image
    /// only.
    pub fn try_poll_while<F, E>(&self, handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<bool, E>,
        E: From<PollError>,
    {
        self.poll_guard()?.try_poll_while(handler, fragment_limit)
    }

    /// Delivers whole runs of frames, at most one run of up to `block_length_limit` bytes from each image.
    /// Returns the bytes delivered.
    pub fn block_poll<F>(&self, handler: F, block_length_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(Block<'_>),
    {
        self.poll_guard()?.block_poll(handler, block_length_limit)
    }

    /// As [`Self::block_poll`] for handlers that can fail. A run whose handler fails is not consumed: a recorder whose
    /// disk refuses a run must not give its publisher room for more.
    pub fn try_block_poll<F, E>(&self, handler: F, block_length_limit: usize) -> Result<usize, E>
    where
        F: FnMut(Block<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.poll_guard()?.try_block_poll(handler, block_length_limit)
    }

    /// True when a poll would move on. Takes nothing, so any thread may ask while another polls.
    pub fn has_fragments(&self) -> bool {
        self.shared.images().iter().any(|image| image.has_fragments())
    }

    /// The images of now.
    pub fn images(&self) -> Vec<Arc<Image>> {
        self.shared.images().to_vec()
    }

    /// Number of images now.
    pub fn image_count(&self) -> usize {
        self.shared.images().len()
    }

    /// The image of one publisher.
    pub fn image_by_session_id(&self, session_id: i32) -> Option<Arc<Image>> {
        self.shared
            .images()
            .iter()
            .find(|image| image.session_id() == session_id)
            .cloned()
    }

    /// True while there is an open image.
    pub fn is_connected(&self) -> bool {
        self.shared.images().iter().any(|image| !image.is_closed())
    }

    /// True once closed, by this program or with the client.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// The channel as it was given.
    pub fn channel(&self) -> &str {
        &self.shared.channel
    }

    /// Idles after a poll that took `taken` of at most `limit` messages.
    ///
    /// Over `aeron:ipc` as [`IdleStrategy::idle_with_lead`] says, since there a publisher in step with its reader writes
    /// what is read; else as [`IdleStrategy::idle`] says. For a thread that polls this subscription alone.
    #[inline]
    pub fn idle_after_poll(&self, idle: &mut IdleStrategy, taken: usize, limit: usize) {
        if self.shared.is_ipc {
            idle.idle_with_lead(taken, limit);
        } else {
            idle.idle(taken);
        }
    }

    /// Stream within the channel.
    pub fn stream_id(&self) -> i32 {
        self.shared.stream_id
    }

    /// Registration id, which names this subscription in commands and events.
    pub fn registration_id(&self) -> i64 {
        self.shared.registration_id
    }

    /// Id of the counter with the channel's status; -1 for channels that have none, as IPC.
    pub fn channel_status_id(&self) -> i32 {
        self.shared.channel_status_id()
    }

    /// State of the endpoint.
    pub fn channel_status(&self) -> ChannelStatus {
        match self.home.upgrade() {
            Some(home) if !self.is_closed() => {
                status::channel_status(home.counters(), self.channel_status_id())
            }
            _ => ChannelStatus::Closed,
        }
    }

    /// Addresses the endpoint's sockets are bound to, once it is active.
    pub fn local_socket_addresses(&self) -> Vec<String> {
        match self.home.upgrade() {
            Some(home) if !self.is_closed() => {
                status::local_socket_addresses(home.counters(), self.channel_status_id())
            }
            _ => Vec::new(),
        }
    }

    /// The bound address, `ip:port`, once known: with port 0 in the channel, the one the system chose.
    pub fn resolved_endpoint(&self) -> Option<String> {
        self.local_socket_addresses().into_iter().next()
    }

    /// The channel with port 0 replaced by the one the system chose; nothing until that is known.
    pub fn resolved_channel(&self) -> Option<String> {
        status::resolve_endpoint_port(&self.shared.channel, self.resolved_endpoint().as_deref())
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

    /// Removes a destination by its registration id and waits for the driver to do so. Drivers of another make may know
    /// this of publications only.
    pub fn remove_destination_by_id(&self, destination_registration_id: i64) -> Result<(), ClientError> {
        self.wait(self.async_remove_destination_by_id(destination_registration_id)?)
    }

    /// As [`Self::add_destination`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_add_destination(&self, channel: &str) -> Result<i64, ClientError> {
        let home = self.open_home()?;
        let (client_id, registration_id) = (home.client_id(), self.registration_id());
        home.request("add destination", &|correlation_id| {
            Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel: channel.into(),
            }
        })
    }

    /// As [`Self::remove_destination`] without waiting; see [`crate::Client::find_operation`].
    pub fn async_remove_destination(&self, channel: &str) -> Result<i64, ClientError> {
        let home = self.open_home()?;
        let (client_id, registration_id) = (home.client_id(), self.registration_id());
        home.request("remove destination", &|correlation_id| {
            Command::RemoveReceiveDestination {
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
        let (client_id, registration_id) = (home.client_id(), self.registration_id());
        home.request("remove destination", &|correlation_id| {
            Command::RemoveDestinationById {
                client_id,
                correlation_id,
                registration_id,
                destination_registration_id,
            }
        })
    }

    fn wait(&self, correlation_id: i64) -> Result<(), ClientError> {
        home::open(&self.home, true, "client")?.wait_for(correlation_id)
    }

    fn open_home(&self) -> Result<Arc<dyn Home>, ClientError> {
        home::open(&self.home, !self.is_closed(), "subscription")
    }

    /// Closes the subscription and its images, and calls the unavailable-image handler for each. Does not wait
    /// for the driver; closing again does nothing.
    ///
    /// Called from inside a handler of this client, the handlers run after that one has returned.
    pub fn close(&self) {
        let closed = self.start_close();
        // Lets go of the logs too, unless a poll is going on: the next one then does.
        // After the flag is set: a poll that finds the state taken can then tell why.
        if let Some(mut state) = try_lock(&self.poll_state) {
            state.images = Arc::from([]);
        }
        if closed && let Some(home) = self.home.upgrade() {
            home.run_callbacks_now();
        }
    }

    fn start_close(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        match self.home.upgrade() {
            Some(home) => home.forget_subscription(self.shared.registration_id),
            None => !self.shared.closed.swap(true, Ordering::AcqRel),
        }
    }
}

impl Awaited for Subscription {
    fn doorbells(&self) -> Doorbells {
        self.shared.doorbells.clone()
    }

    /// Messages, images that come and go, and its end.
    fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.shared.images_doorbell);
        for image in self.shared.images().iter() {
            image.describe(interests);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // A destructor may run anywhere, so it does not wait for a handler of another thread to return.
        if self.start_close()
            && let Some(home) = self.home.upgrade()
        {
            home.run_callbacks_if_free();
        }
    }
}

/// The right to poll a subscription, held by one thread at a time.
pub struct PollGuard<'a> {
    shared: &'a SubscriptionShared,
    state: MutexGuard<'a, PollState>,
}

impl PollGuard<'_> {
    /// See [`Subscription::poll`].
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.each_in_turn(fragment_limit, |image, limit| image.poll(&mut handler, limit))
    }

    /// See [`Subscription::try_poll`].
    #[inline]
    pub fn try_poll<F, E>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.each_in_turn(fragment_limit, |image, limit| image.try_poll(&mut handler, limit))
    }

    /// See [`Subscription::controlled_poll`].
    #[inline]
    pub fn controlled_poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.each_in_turn(fragment_limit, |image, limit| {
            image.controlled_poll(&mut handler, limit)
        })
    }

    /// See [`Subscription::try_controlled_poll`].
    #[inline]
    pub fn try_controlled_poll<F, E>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<Action, E>,
        E: From<PollError>,
    {
        self.each_in_turn(fragment_limit, |image, limit| {
            image.try_controlled_poll(&mut handler, limit)
        })
    }

    /// See [`Subscription::try_poll_while`].
    #[inline]
    pub fn try_poll_while<F, E>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, E>
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<bool, E>,
        E: From<PollError>,
    {
        let mut goes_on = true;
        self.each_in_turn(fragment_limit, |image, limit| {
            if !goes_on {
                return Ok(0);
            }
            let mut poll = || -> Result<usize, E> {
                image.try_controlled_poll(
                    |payload, header| {
                        goes_on = handler(payload, header)?;
                        Ok(if goes_on { Action::Continue } else { Action::Break })
                    },
                    limit,
                )
            };
            let position = image.position();
            match poll()? {
                // Only the padding that ends a term was there: what follows it may wait in the next term.
                0 if image.position() != position => poll(),
                count => Ok(count),
            }
        })
    }

    /// See [`Subscription::block_poll`].
    pub fn block_poll<F>(&mut self, mut handler: F, block_length_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(Block<'_>),
    {
        self.try_block_poll(
            |block| {
                handler(block);
                Ok(())
            },
            block_length_limit,
        )
    }

    /// See [`Subscription::try_block_poll`].
    pub fn try_block_poll<F, E>(&mut self, mut handler: F, block_length_limit: usize) -> Result<usize, E>
    where
        F: FnMut(Block<'_>) -> Result<(), E>,
        E: From<PollError>,
    {
        self.refresh()?;
        let mut bytes = 0;
        for image in self.state.images.iter() {
            bytes += image.try_block_poll(&mut handler, block_length_limit)?;
        }
        Ok(bytes)
    }

    /// Polls images from where the last poll left off, around the list, until the limit is used up.
    #[inline]
    fn each_in_turn<E: From<PollError>>(
        &mut self,
        fragment_limit: usize,
        mut poll: impl FnMut(&Image, usize) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.refresh()?;
        let state = &mut *self.state;
        let length = state.images.len();
        let mut start = state.round_robin;
        state.round_robin += 1;
        if start >= length {
            start = 0;
            state.round_robin = 1;
        }
        let (before, after) = state.images.split_at(start.min(length));
        let mut count = 0;
        for image in after.iter().chain(before) {
            if count >= fragment_limit {
                break;
            }
            count += poll(image, fragment_limit - count)?;
        }
        Ok(count)
    }

    /// Takes over a newer image list, if there is one.
    #[inline]
    fn refresh(&mut self) -> Result<(), PollError> {
        // Pairs with the release in `replace`.
        if self.shared.version.load(Ordering::Acquire) != self.state.version {
            self.take_over_images();
        }
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(PollError::Closed);
        }
        Ok(())
    }

    #[cold]
    fn take_over_images(&mut self) {
        let images = lock(&self.shared.images);
        self.state.version = self.shared.version.load(Ordering::Acquire);
        self.state.images = Arc::clone(&images);
    }
}
