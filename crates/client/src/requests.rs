//! Requests to the driver: what was asked, and what came of it.
//!
//! Every request goes through the same states. A blocking call is an asynchronous one that waits.
//!
//! ```text
//!   submit -> AWAITING --ready event--> DONE(outcome) --take--> gone
//!                |------ON_ERROR------> DONE(error)   --take--> gone
//!                |------deadline------> DONE(driver timeout), the resource is removed at the driver
//!                |------cancel--------> gone, likewise
//! ```

use std::sync::Arc;

use crate::counter::{Counter, StaticCounter};
use crate::error::ClientError;
use crate::exclusive::ExclusivePublication;
use crate::publication::Publication;
use crate::subscription::{Subscription, SubscriptionShared};

/// What was asked for.
pub(crate) enum Kind {
    Publication {
        channel: Arc<str>,
    },
    ExclusivePublication {
        channel: Arc<str>,
    },
    Subscription(Arc<SubscriptionShared>),
    Counter,
    StaticCounter {
        registration_id: i64,
    },
    SessionId,
    /// Answered with success or an error, and nothing else.
    Operation,
}

/// What the driver answered.
pub(crate) enum Outcome {
    Publication(Publication),
    ExclusivePublication(ExclusivePublication),
    Subscription(Subscription),
    Counter(Counter),
    StaticCounter(StaticCounter),
    SessionId(i32),
    Done,
}

/// One request, from the moment its command is written until its outcome is taken.
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) deadline_ns: i64,
    pub(crate) result: Option<Result<Outcome, ClientError>>,
}

impl Request {
    pub(crate) fn is_awaiting(&self) -> bool {
        self.result.is_none()
    }
}
