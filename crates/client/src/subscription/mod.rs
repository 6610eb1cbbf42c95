//! Subscriptions: the images of one channel and stream, polled in turn.

mod images;
mod poll_guard;
mod shared;

use std::sync::{Arc, Mutex, Weak};

use headrace_buffers::doorbell::{Awaited, Doorbells, Interests};
use headrace_buffers::log::{Action, Header};
use headrace_sys::idle::IdleStrategy;

pub use poll_guard::PollGuard;
use poll_guard::PollState;
pub use shared::Start;
pub(crate) use shared::SubscriptionShared;

use crate::channel_status::{self, EndpointStatus};
use crate::conductor_proxy::ConductorProxy;
use crate::destinations::{Destinations, Owner};
use crate::error::PollError;
use crate::image::{Block, HandlerResult, Image};
use crate::lock::try_lock;

/// A stream of messages from any number of publishers, each an [`Image`].
///
/// Any thread may call anything, but only one thread polls at a time: a second one is refused
/// ([`PollError::Busy`]), and so is a poll from inside a handler of the same subscription. Dropping closes.
pub struct Subscription {
    conductor: Weak<dyn ConductorProxy>,
    shared: Arc<SubscriptionShared>,
    poll_state: Mutex<PollState>,
}

impl Subscription {
    pub(crate) fn new(conductor: Weak<dyn ConductorProxy>, shared: Arc<SubscriptionShared>) -> Self {
        Self {
            conductor,
            shared,
            poll_state: Mutex::new(PollState::new()),
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
    ///
    /// The handler returns nothing, or an [`Action`] that says how to go on, or a `Result` of either; see
    /// [`HandlerResult`]. [`Action::Break`] and [`Action::Abort`] end the poll of the fragment's image; the other images are
    /// still polled.
    pub fn poll<F, R>(&self, handler: F, fragment_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value: Into<Action>>,
    {
        self.poll_guard()?.poll(handler, fragment_limit)
    }

    /// Delivers fragments, taking turns between images, until the handler returns false or `fragment_limit` is
    /// reached. The fragment for which it returned false is consumed; nothing after it is, of any image. Returns how
    /// many fragments were consumed.
    ///
    /// For callers with room for a limited number of messages: [`Action::Break`] would end the poll of one image only.
    pub fn poll_while<F, R>(&self, handler: F, fragment_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value = bool>,
    {
        self.poll_guard()?.poll_while(handler, fragment_limit)
    }

    /// Delivers whole runs of frames, at most one run of up to `block_length_limit` bytes from each image.
    /// Returns the bytes delivered.
    ///
    /// A run whose handler fails is not consumed: a recorder whose disk refuses a run must not give its publisher room for
    /// more.
    pub fn block_poll<F, R>(&self, handler: F, block_length_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(Block<'_>) -> R,
        R: HandlerResult<Value = ()>,
    {
        self.poll_guard()?.block_poll(handler, block_length_limit)
    }

    /// True when a poll would advance. Takes nothing, so any thread may call it while another polls.
    pub fn has_fragments(&self) -> bool {
        self.shared
            .images
            .list()
            .iter()
            .any(|image| image.has_fragments())
    }

    /// The present images.
    pub fn images(&self) -> Vec<Arc<Image>> {
        self.shared.images.list().to_vec()
    }

    /// Number of images now.
    pub fn image_count(&self) -> usize {
        self.shared.images.list().len()
    }

    /// The image of one publisher.
    pub fn image_by_session_id(&self, session_id: i32) -> Option<Arc<Image>> {
        self.shared
            .images
            .list()
            .iter()
            .find(|image| image.session_id() == session_id)
            .cloned()
    }

    /// True while there is an open image.
    pub fn is_connected(&self) -> bool {
        self.shared.images.list().iter().any(|image| !image.is_closed())
    }

    /// True once closed, by this program or with the client.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// The channel as the program passed it.
    pub fn channel(&self) -> &str {
        &self.shared.channel
    }

    /// Idles after a poll that took `taken` of at most `limit` messages.
    ///
    /// Uses [`IdleStrategy::idle_with_lead`] over `aeron:ipc`, where a publisher writes in step with its reader, and
    /// otherwise [`IdleStrategy::idle`]. For a thread that polls only this subscription.
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

    /// Registration id, which identifies this subscription in commands and events.
    pub fn registration_id(&self) -> i64 {
        self.shared.registration_id
    }

    /// The endpoint of the channel.
    pub fn status(&self) -> EndpointStatus {
        EndpointStatus::new(
            &self.conductor,
            self.shared.channel_status_id(),
            !self.is_closed(),
        )
    }

    /// The bound address, `ip:port`, once known: with port 0 in the channel, the one the system chose.
    pub fn resolved_endpoint(&self) -> Option<String> {
        self.status().local_socket_addresses().into_iter().next()
    }

    /// The channel with port 0 replaced by the one the system chose; `None` until that is known.
    pub fn resolved_channel(&self) -> Option<String> {
        channel_status::resolve_endpoint_port(&self.shared.channel, self.resolved_endpoint().as_deref())
    }

    /// The destinations of a channel with `control-mode=manual`.
    pub fn destinations(&self) -> Destinations<'_> {
        let registration_id = self.shared.registration_id;
        Destinations::new(
            &self.conductor,
            Owner::Subscription,
            registration_id,
            !self.is_closed(),
        )
    }

    /// Closes the subscription and its images, and calls the unavailable-image handler for each. Does not wait
    /// for the driver; closing again does nothing.
    ///
    /// If it is called from inside a handler of this client, the handlers run after that one has returned.
    pub fn close(&self) {
        let closed = self.start_close();
        // Lets go of the logs too, unless a poll is going on: the next one then does.
        // After the flag is set: a poll that finds the state taken can then tell why.
        if let Some(mut state) = try_lock(&self.poll_state) {
            state.images = Arc::from([]);
        }
        if closed && let Some(conductor) = self.conductor.upgrade() {
            conductor.run_handlers_now();
        }
    }

    fn start_close(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        match self.conductor.upgrade() {
            Some(conductor) => conductor.forget_subscription(self.shared.registration_id),
            None => self.shared.mark_closed(),
        }
    }
}

impl Awaited for Subscription {
    fn doorbells(&self) -> Doorbells {
        self.shared.doorbells.clone()
    }

    /// Messages, images that come and go, and its end.
    fn describe(&self, interests: &mut Interests) {
        interests.doorbell(&self.shared.images.doorbell);
        for image in self.shared.images.list().iter() {
            interests.doorbell(image.reader.data_doorbell());
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // A destructor may run anywhere, so it does not wait for a handler of another thread to return.
        if self.start_close()
            && let Some(conductor) = self.conductor.upgrade()
        {
            conductor.run_handlers_if_free();
        }
    }
}
