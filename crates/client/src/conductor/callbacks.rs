//! The client's handlers, and the queue of their calls.
//!
//! What happened is queued here while the rooms are locked; [`super::duty_cycle`] makes the calls, one after the other,
//! while they are not.

use std::collections::VecDeque;
use std::sync::Arc;

use headrace_buffers::counters::CountersReader;

use super::leaving::Leaving;
use crate::error::ClientError;
use crate::handlers::{CounterHandler, Handler, Handlers, ImageHandler, PublicationError};
use crate::image::Image;

/// One queued handler call, lent what counter handlers read.
pub(crate) type Callback = Box<dyn FnOnce(&CountersReader) + Send>;

pub(crate) struct Callbacks {
    pub(crate) handlers: Handlers,
    queue: VecDeque<Callback>,
}

impl Callbacks {
    pub(crate) fn new(handlers: Handlers) -> Self {
        Self {
            handlers,
            queue: VecDeque::new(),
        }
    }

    /// Takes out a handler.
    pub(crate) fn remove(&mut self, id: i64) -> Leaving<Option<Handler>> {
        Leaving::new(self.handlers.remove(id))
    }

    pub(crate) fn queue_error(&mut self, error: ClientError) {
        let handler = Arc::clone(&self.handlers.error);
        self.queue(move |_| handler(&error));
    }

    pub(crate) fn queue_image(&mut self, handler: Option<ImageHandler>, image: Arc<Image>) {
        if let Some(handler) = handler {
            self.queue(move |_| handler(&image));
        }
    }

    pub(crate) fn queue_available_counter(&mut self, registration_id: i64, counter_id: i32) {
        let handlers = self.handlers.available_counter.all();
        self.queue_counter(handlers, registration_id, counter_id);
    }

    pub(crate) fn queue_unavailable_counter(&mut self, registration_id: i64, counter_id: i32) {
        let handlers = self.handlers.unavailable_counter.all();
        self.queue_counter(handlers, registration_id, counter_id);
    }

    fn queue_counter(&mut self, handlers: Vec<CounterHandler>, registration_id: i64, counter_id: i32) {
        for handler in handlers {
            self.queue(move |counters| handler(counters, registration_id, counter_id));
        }
    }

    pub(crate) fn queue_publication_error(&mut self, error: PublicationError) {
        if let Some(handler) = self.handlers.publication_error.clone() {
            self.queue(move |_| handler(&error));
        }
    }

    /// Drops what the program gave, after the handlers that were queued before and away from the lock: a handler may hold
    /// what holds the client, which would never go as long as the client holds the handler.
    pub(crate) fn let_go(&mut self, handlers: impl Send + 'static) {
        self.queue(move |_| drop(handlers));
    }

    /// The client has ended. Its handlers go after the last of them was called.
    pub(crate) fn queue_end(&mut self, reported: Option<ClientError>) {
        if let Some(reason) = reported {
            self.queue_error(reason);
        }
        for handler in self.handlers.close.all() {
            self.queue(move |_| handler());
        }
        let handlers = std::mem::take(&mut self.handlers);
        self.let_go(handlers);
    }

    /// The next call, to be made once the rooms are unlocked.
    pub(crate) fn next(&mut self) -> Option<Leaving<Callback>> {
        self.queue.pop_front().map(Leaving::new)
    }

    /// Gives up the calls that were not made.
    pub(crate) fn take_unmade(&mut self) -> Leaving<VecDeque<Callback>> {
        Leaving::new(std::mem::take(&mut self.queue))
    }

    fn queue(&mut self, callback: impl FnOnce(&CountersReader) + Send + 'static) {
        self.queue.push_back(Box::new(callback));
    }
}
