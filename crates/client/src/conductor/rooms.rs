//! The state of a client: its requests, resources and handlers. Locked for short times, and never while a handler runs.
//!
//! Each room owns its tables. Its methods take the room, a [`Context`] and whatever else they need, by name. A value
//! whose drop locks the rooms, or takes long, is moved out of them as a [`Leaving`].

use std::collections::BTreeMap;

use super::callbacks::Callbacks;
use super::context::Context;
use super::counters::Counters;
use super::driver_proxy::Removal;
use super::leaving::Leaving;
use super::log_mappings::{LogMappings, Mapping};
use super::publications::Publications;
use super::requests::{Kind, Request, Requests};
use super::subscriptions::{Ending, Subscriptions};
use crate::error::ClientError;
use crate::handlers::Handlers;

/// How long a log stays mapped after the program closed what used it.
pub(crate) const EXPLICIT_CLOSE_LINGER_NS: i64 = 1_000_000_000;

pub(crate) struct Rooms {
    // Why the client ended, once it has.
    ended: Option<ClientError>,
    pub(crate) requests: Requests,
    pub(crate) publications: Publications,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) counters: Counters,
    pub(crate) mappings: LogMappings,
    pub(crate) callbacks: Callbacks,
}

/// The requests and the logs of a client that has ended.
pub(crate) type Leftovers = (BTreeMap<i64, Request>, Vec<Mapping>);

impl Rooms {
    /// Nothing yet, with the program's handlers.
    pub(crate) fn new(mappings: LogMappings, handlers: Handlers) -> Self {
        Self {
            ended: None,
            requests: Requests::default(),
            publications: Publications::default(),
            subscriptions: Subscriptions::default(),
            counters: Counters::default(),
            mappings,
            callbacks: Callbacks::new(handlers),
        }
    }

    /// Why the client ended, once it has.
    pub(crate) fn ended_by(&self) -> Option<&ClientError> {
        self.ended.as_ref()
    }

    /// The reason, if the client has ended.
    pub(crate) fn check_open(&self) -> Result<(), ClientError> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    /// The subscriptions, and the rooms that an image's end concerns: its log stays mapped for a while.
    pub(crate) fn ending(&mut self, now_ns: i64, linger_ns: i64) -> (&mut Subscriptions, Ending<'_>) {
        let ending = Ending {
            mappings: &mut self.mappings,
            callbacks: &mut self.callbacks,
            now_ns,
            linger_ns,
        };
        (&mut self.subscriptions, ending)
    }

    /// Forgets a subscription and closes it with its images. False when it is not there.
    pub(crate) fn close_subscription(&mut self, registration_id: i64, now_ns: i64) -> bool {
        let (subscriptions, mut ending) = self.ending(now_ns, EXPLICIT_CLOSE_LINGER_NS);
        subscriptions.close(registration_id, &mut ending)
    }

    /// Has the driver free a resource, where no caller could act on a failure.
    pub(crate) fn remove_at_driver(&mut self, cx: &Context<'_>, registration_id: i64, removal: Removal) {
        if self.ended.is_none()
            && let Err(error) = cx.driver.remove(registration_id, removal)
        {
            self.callbacks.queue_error(error);
        }
    }

    /// Undoes a pending request at the driver, and what the client has noted down for it.
    pub(crate) fn undo_request(&mut self, cx: &Context<'_>, correlation_id: i64) {
        let Some(removal) = self.requests.awaited(correlation_id).and_then(Kind::removal) else {
            return;
        };
        if matches!(removal, Removal::Subscription) {
            self.close_subscription(correlation_id, cx.now_ns);
        }
        self.remove_at_driver(cx, correlation_id, removal);
    }

    /// Closes every resource without a word to the driver, and queues the handlers that follow from it.
    pub(crate) fn end(&mut self, reason: ClientError, report: bool, now_ns: i64) -> Leaving<Leftovers> {
        self.ended = Some(reason.clone());
        self.publications.close_all();
        let (subscriptions, mut ending) = self.ending(now_ns, 0);
        subscriptions.close_all(&mut ending);
        self.counters.close_all(&mut self.callbacks);
        self.callbacks.queue_end(report.then_some(reason));
        self.requests.remove_all().and(self.mappings.remove_all())
    }
}
