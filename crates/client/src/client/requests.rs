//! Requests to the driver whose caller does not wait.

use std::sync::Arc;

use headrace_protocol::command::Command;

use super::{
    Client, SessionIdRequest, as_counter, as_exclusive_publication, as_publication, as_session_id,
    as_static_counter, as_subscription, expect,
};
use crate::conductor::{Kind, Outcome, Registry};
use crate::counter::{Counter, StaticCounter, check_counter};
use crate::error::ClientError;
use crate::handlers::SubscriptionHandlers;
use crate::lock::lock;
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::{Start, Subscription, SubscriptionShared};

/// Asks the driver and returns at once: a method that adds returns the id of its request, and the one that finds takes
/// the result.
pub struct Requests<'a>(pub(super) &'a Client);

impl Requests<'_> {
    /// Asks for a publication and returns its registration id for [`Self::find_publication`].
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let kind = Kind::Publication {
            channel: channel.into(),
        };
        self.registry().submit(
            "add publication",
            |_| kind,
            |client_id, correlation_id| Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            },
        )
    }

    /// Takes the requested publication: `None` while the request is pending, then, once, the publication or the error.
    pub fn find_publication(&self, registration_id: i64) -> Result<Option<Publication>, ClientError> {
        self.find("find publication", registration_id, as_publication)
    }

    /// Asks for an exclusive publication and returns its registration id for
    /// [`Self::find_exclusive_publication`].
    pub fn add_exclusive_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let kind = Kind::ExclusivePublication {
            channel: channel.into(),
        };
        self.registry().submit(
            "add exclusive publication",
            |_| kind,
            |client_id, correlation_id| Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            },
        )
    }

    /// As [`Self::find_publication`].
    pub fn find_exclusive_publication(&self, id: i64) -> Result<Option<ExclusivePublication>, ClientError> {
        self.find("find exclusive publication", id, as_exclusive_publication)
    }

    /// Asks for a subscription and returns its registration id for [`Self::find_subscription`].
    pub fn add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64, ClientError> {
        self.add_subscription_from(Start::Joined, channel, stream_id, handlers)
    }

    /// As [`Self::add_subscription`], but `start` says where it begins to read.
    pub fn add_subscription_from(
        &self,
        start: Start,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64, ClientError> {
        let handlers = handlers.or(&self.registry().rooms().callbacks.handlers.image);
        let kind = |id| {
            let doorbells = &self.0.services().doorbells;
            let shared = SubscriptionShared::new(id, channel.into(), stream_id, start, handlers, doorbells);
            Kind::Subscription(Arc::new(shared))
        };
        self.registry()
            .submit("add subscription", kind, |client_id, correlation_id| {
                Command::AddSubscription {
                    client_id,
                    correlation_id,
                    stream_id,
                    channel: channel.into(),
                }
            })
    }

    /// As [`Self::find_publication`].
    pub fn find_subscription(&self, registration_id: i64) -> Result<Option<Subscription>, ClientError> {
        self.find("find subscription", registration_id, as_subscription)
    }

    /// Asks for a counter and returns its registration id for [`Self::find_counter`].
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<i64, ClientError> {
        check_counter(key, label)?;
        self.registry().submit(
            "add counter",
            |_| Kind::Counter,
            |client_id, correlation_id| Command::AddCounter {
                client_id,
                correlation_id,
                type_id,
                key,
                label: label.into(),
            },
        )
    }

    /// As [`Self::find_publication`].
    pub fn find_counter(&self, registration_id: i64) -> Result<Option<Counter>, ClientError> {
        self.find("find counter", registration_id, as_counter)
    }

    /// Asks for a static counter and returns the id for [`Self::find_static_counter`].
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<i64, ClientError> {
        check_counter(key, label)?;
        let kind = Kind::StaticCounter { registration_id };
        self.registry().submit(
            "add static counter",
            |_| kind,
            |client_id, correlation_id| Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                type_id,
                key,
                label: label.into(),
            },
        )
    }

    /// As [`Self::find_publication`], by the id of the request.
    pub fn find_static_counter(&self, correlation_id: i64) -> Result<Option<StaticCounter>, ClientError> {
        self.find("find static counter", correlation_id, as_static_counter)
    }

    /// As [`Self::next_available_session_id`] without waiting; take the result with [`Self::find_session_id`].
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<SessionIdRequest, ClientError> {
        let registry = self.registry();
        registry
            .handler_thread
            .refuse_reentry("next available session id")?;
        if !self.0.services().context().driver_knows_session_ids() {
            drop(registry.open()?);
            return Ok(SessionIdRequest::Chosen(lock(&self.0.random).i32(..)));
        }
        let id = self.registry().submit(
            "next available session id",
            |_| Kind::SessionId,
            |client_id, correlation_id| Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            },
        )?;
        Ok(SessionIdRequest::Asked(id))
    }

    /// As [`Self::find_publication`], by the id of the request.
    pub fn find_session_id(&self, correlation_id: i64) -> Result<Option<i32>, ClientError> {
        self.find("find session id", correlation_id, as_session_id)
    }

    /// True, once, when an asynchronous request without a result, such as adding a destination, is done. False while it
    /// is pending, and when the id is not known.
    pub fn find_operation(&self, correlation_id: i64) -> Result<bool, ClientError> {
        let done = self.find("find operation", correlation_id, |outcome| {
            matches!(outcome, Outcome::Done).then_some(())
        })?;
        Ok(done.is_some())
    }

    /// True while an asynchronous request has not been answered.
    pub fn is_pending(&self, correlation_id: i64) -> bool {
        self.registry().rooms().requests.awaited(correlation_id).is_some()
    }

    /// Does the work of a blocking call between two looks for its reply: reads events, unless another thread does, and
    /// fails the request when its time is over. For programs that wait in their own loop.
    pub fn drive(&self, correlation_id: i64) -> usize {
        let work_count = self.0.step();
        self.registry().expire_requests(Some(correlation_id));
        work_count
    }

    /// Cancels an asynchronous request. Its result is removed at the driver and, if it has arrived already, closed.
    /// False when the id is not known, for example after the result was taken.
    pub fn cancel(&self, correlation_id: i64) -> Result<bool, ClientError> {
        self.registry().cancel(correlation_id)
    }

    fn find<T>(
        &self,
        operation: &'static str,
        id: i64,
        convert: impl FnOnce(Outcome) -> Option<T>,
    ) -> Result<Option<T>, ClientError> {
        self.registry().handler_thread.refuse_reentry(operation)?;
        self.registry()
            .take(id)?
            .map(|outcome| expect(outcome, convert))
            .transpose()
    }

    fn registry(&self) -> &Registry {
        self.0.registry()
    }
}
