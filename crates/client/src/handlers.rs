//! The handlers a program may register.
//!
//! The thread that services the client calls them, one at a time and in order, and never while the client's tables are
//! locked. So a handler may block, and may close or drop publications, subscriptions and counters; requests to the
//! client from inside a handler are refused ([`crate::ClientError::Reentrant`]).

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::CountersReader;
use headrace_protocol::ErrorCode;

use crate::error::ClientError;
use crate::image::Image;

/// Called with an image that came or went, on the thread that services the client.
pub type ImageHandler = Arc<dyn Fn(&Arc<Image>) + Send + Sync>;
/// Called for a counter that came or went, with the counters' reader, the registration id and the counter id.
pub type CounterHandler = Arc<dyn Fn(&CountersReader, i64, i32) + Send + Sync>;
/// Called when the client has closed.
pub type CloseHandler = Arc<dyn Fn() + Send + Sync>;
/// Called with each failure that no caller waits for.
pub type ErrorHandler = Arc<dyn Fn(&ClientError) + Send + Sync>;
/// Called with errors that subscribers or the driver raise against a publication of this client.
pub type PublicationErrorHandler = Arc<dyn Fn(&PublicationError) + Send + Sync>;

/// An error raised against a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationError {
    /// Handle in this client.
    pub registration_id: i64,
    /// The log, shared by all handles of the publication.
    pub original_registration_id: i64,
    /// Which destination, for a publication with several.
    pub destination_registration_id: Option<i64>,
    /// Session of the publication.
    pub session_id: i32,
    /// Stream of the publication.
    pub stream_id: i32,
    /// The receiver that raised it.
    pub receiver_id: i64,
    /// The receiver's group, if it has one.
    pub group_tag: Option<i64>,
    /// Where it came from, for network publications.
    pub source: Option<SocketAddr>,
    /// Kind of error.
    pub code: ErrorCode,
    /// The receiver's text.
    pub message: String,
}

/// Handlers of one subscription. Where one is missing, the client's applies.
#[derive(Clone, Default)]
pub struct SubscriptionHandlers {
    /// Called after an image was added.
    pub available_image: Option<ImageHandler>,
    /// Called after an image was removed and closed.
    pub unavailable_image: Option<ImageHandler>,
}

impl SubscriptionHandlers {
    /// These, and `others` where one is missing.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            available_image: self.available_image.or_else(|| others.available_image.clone()),
            unavailable_image: self
                .unavailable_image
                .or_else(|| others.unavailable_image.clone()),
        }
    }
}

/// A handler that a program adds and removes while the client runs.
#[derive(Clone)]
pub enum Handler {
    /// For each new counter.
    AvailableCounter(CounterHandler),
    /// For each freed counter.
    UnavailableCounter(CounterHandler),
    /// For the end of the client, for any reason.
    Close(CloseHandler),
}

impl Handler {
    /// The operation that adds it, for error texts.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::AvailableCounter(_) => "add available counter handler",
            Self::UnavailableCounter(_) => "add unavailable counter handler",
            Self::Close(_) => "add close handler",
        }
    }
}

/// Counter and close handlers, which come and go at run time, each under an id.
pub(crate) struct HandlerList<H> {
    entries: Vec<(i64, H)>,
}

impl<H> Default for HandlerList<H> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<H: Clone> HandlerList<H> {
    pub(crate) fn add(&mut self, id: i64, handler: H) {
        self.entries.push((id, handler));
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<H> {
        let index = self.entries.iter().position(|(entry, _)| *entry == id)?;
        Some(self.entries.remove(index).1)
    }

    pub(crate) fn all(&self) -> Vec<H> {
        self.entries.iter().map(|(_, handler)| handler.clone()).collect()
    }
}

/// The handlers of one client, which lets go of them once it has ended and the last of them has run.
pub(crate) struct Handlers {
    pub(crate) error: ErrorHandler,
    pub(crate) publication_error: Option<PublicationErrorHandler>,
    /// For subscriptions without their own.
    pub(crate) image: SubscriptionHandlers,
    pub(crate) lost_image: Option<ImageHandler>,
    pub(crate) available_counter: HandlerList<CounterHandler>,
    pub(crate) unavailable_counter: HandlerList<CounterHandler>,
    pub(crate) close: HandlerList<CloseHandler>,
}

impl Handlers {
    pub(crate) fn add(&mut self, id: i64, handler: Handler) {
        match handler {
            Handler::AvailableCounter(handler) => self.available_counter.add(id, handler),
            Handler::UnavailableCounter(handler) => self.unavailable_counter.add(id, handler),
            Handler::Close(handler) => self.close.add(id, handler),
        }
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<Handler> {
        let available = self.available_counter.remove(id).map(Handler::AvailableCounter);
        let counter = available.or_else(|| {
            self.unavailable_counter
                .remove(id)
                .map(Handler::UnavailableCounter)
        });
        counter.or_else(|| self.close.remove(id).map(Handler::Close))
    }
}

impl Default for Handlers {
    fn default() -> Self {
        Self {
            error: Arc::new(|error| eprintln!("headrace client: {error}")),
            publication_error: None,
            image: SubscriptionHandlers::default(),
            lost_image: None,
            available_counter: HandlerList::default(),
            unavailable_counter: HandlerList::default(),
            close: HandlerList::default(),
        }
    }
}
