//! What the client knows: its requests, resources and handlers. Held for short times under one lock, and never
//! while a handler runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use headrace_buffers::log::LogBuffers;

use crate::counter::CounterShared;
use crate::error::ClientError;
use crate::handlers::{Callback, Handlers};
use crate::image::Image;
use crate::mappings::LogMappings;
use crate::publication::PublicationHandle;
use crate::requests::Request;
use crate::subscription::SubscriptionShared;

/// How long a log stays mapped after the program closed what used it.
pub(crate) const EXPLICIT_CLOSE_LINGER_NS: i64 = 1_000_000_000;

// The tables are ordered, so that what is done for each entry is done in the order of their making.
pub(crate) struct State {
    /// Why the client ended, once it has.
    pub(crate) ended: Option<ClientError>,
    pub(crate) requests: BTreeMap<i64, Request>,
    pub(crate) publications: BTreeMap<i64, Arc<PublicationHandle>>,
    pub(crate) subscriptions: BTreeMap<i64, Arc<SubscriptionShared>>,
    pub(crate) counters: BTreeMap<i64, Arc<CounterShared>>,
    /// A subscription from which the program took a destination, if the last event said so or told of one of the images
    /// that went with it: the driver tells of them right after it.
    pub(crate) left_stream: Option<i64>,
    pub(crate) mappings: LogMappings,
    pub(crate) callbacks: VecDeque<Callback>,
    pub(crate) handlers: Handlers,
}

/// Things whose destructors lock the state or unmap memory, to be dropped after the lock is given back.
pub(crate) struct Leftovers {
    _requests: BTreeMap<i64, Request>,
    _logs: Vec<LogBuffers>,
}

impl State {
    /// Nothing yet, with the program's handlers.
    pub(crate) fn new(mappings: LogMappings, handlers: Handlers) -> Self {
        Self {
            ended: None,
            requests: BTreeMap::new(),
            publications: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            counters: BTreeMap::new(),
            left_stream: None,
            mappings,
            callbacks: VecDeque::new(),
            handlers,
        }
    }

    /// The reason, if the client has ended.
    pub(crate) fn check_open(&self) -> Result<(), ClientError> {
        match &self.ended {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn queue(&mut self, callback: Callback) {
        self.callbacks.push_back(callback);
    }

    pub(crate) fn queue_error(&mut self, error: ClientError) {
        let handler = Arc::clone(&self.handlers.error);
        self.queue(Box::new(move |_| handler(&error)));
    }

    pub(crate) fn queue_available_counter(&mut self, registration_id: i64, counter_id: i32) {
        let handlers: Vec<_> = self.handlers.available_counter.iter().collect();
        for handler in handlers {
            self.queue(Box::new(move |counters| {
                handler(counters, registration_id, counter_id);
            }));
        }
    }

    pub(crate) fn queue_unavailable_counter(&mut self, registration_id: i64, counter_id: i32) {
        let handlers: Vec<_> = self.handlers.unavailable_counter.iter().collect();
        for handler in handlers {
            self.queue(Box::new(move |counters| {
                handler(counters, registration_id, counter_id);
            }));
        }
    }

    /// Drops what the program gave, after the handlers that were queued before and away from the lock: a handler may hold
    /// what holds the client, which would never go as long as the client holds the handler.
    fn let_go(&mut self, handlers: impl Send + 'static) {
        self.queue(Box::new(move |_| drop(handlers)));
    }

    /// Closes an image that has left its subscription's list and tells the subscription's handler.
    pub(crate) fn retire_image(
        &mut self,
        subscription: &SubscriptionShared,
        image: Arc<Image>,
        now_ns: i64,
        linger_ns: i64,
    ) {
        image.close();
        self.mappings.release(image.correlation_id(), now_ns, linger_ns);
        if let Some(handler) = subscription.handlers().unavailable_image {
            self.queue(Box::new(move |_| handler(&image)));
        }
    }

    /// The driver took a destination from this subscription because the program wants it so. An image that has no other
    /// one goes later, when nothing has come for a while.
    pub(crate) fn leave(&mut self, registration_id: Option<i64>) {
        self.left_stream = registration_id;
        let subscription = registration_id.and_then(|id| self.subscriptions.get(&id));
        for image in subscription
            .iter()
            .flat_map(|subscription| subscription.images().to_vec())
        {
            image.note_destination_removed();
        }
    }

    /// Forgets a subscription and closes it with its images. False when it is not there.
    pub(crate) fn drop_subscription(&mut self, registration_id: i64, now_ns: i64) -> bool {
        let Some(subscription) = self.subscriptions.remove(&registration_id) else {
            return false;
        };
        subscription.closed.store(true, Ordering::Release);
        for image in subscription.take_images() {
            self.retire_image(&subscription, image, now_ns, EXPLICIT_CLOSE_LINGER_NS);
        }
        self.let_go(subscription.take_handlers());
        true
    }

    /// Closes every resource without a word to the driver, and queues the handlers that follow from it.
    pub(crate) fn end(&mut self, reason: ClientError, report: bool, now_ns: i64) -> Leftovers {
        self.ended = Some(reason.clone());
        for publication in std::mem::take(&mut self.publications).into_values() {
            publication.mark_closed();
        }
        for subscription in std::mem::take(&mut self.subscriptions).into_values() {
            subscription.closed.store(true, Ordering::Release);
            for image in subscription.take_images() {
                self.retire_image(&subscription, image, now_ns, 0);
            }
            self.let_go(subscription.take_handlers());
        }
        for counter in std::mem::take(&mut self.counters).into_values() {
            counter.mark_closed();
            self.queue_unavailable_counter(counter.registration_id, counter.counter_id);
        }
        if report {
            self.queue_error(reason);
        }
        let close_handlers: Vec<_> = self.handlers.close.iter().collect();
        for handler in close_handlers {
            self.queue(Box::new(move |_| handler()));
        }
        let handlers = std::mem::take(&mut self.handlers);
        self.let_go(handlers);
        Leftovers {
            _requests: std::mem::take(&mut self.requests),
            _logs: self.mappings.drain(),
        }
    }
}
