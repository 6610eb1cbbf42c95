//! Requests to the driver, and their results.
//!
//! Every request goes through the same states. A blocking call is an asynchronous one that waits.
//!
//! ```text
//!   add -> AWAITING --ready event--> DONE(outcome) --take--> gone
//!             |------ON_ERROR------> DONE(error)   --take--> gone
//!             |------deadline------> DONE(driver timeout), the resource is removed at the driver
//!             |------cancel--------> gone, likewise
//! ```

mod request;

use std::collections::BTreeMap;

pub(crate) use request::{Kind, Outcome, Request};

use super::leaving::Leaving;
use crate::error::ClientError;

/// The requests whose outcome the program has not taken, by correlation id. An outcome that is dropped closes itself,
/// so none is dropped in here.
#[derive(Default)]
pub(crate) struct Requests {
    requests: BTreeMap<i64, Request>,
}

/// A request that someone asks for.
pub(crate) enum Found {
    Unknown,
    Awaiting,
    /// It is no longer here.
    Answered(Leaving<Request>),
}

impl Requests {
    pub(crate) fn add(&mut self, correlation_id: i64, request: Request) {
        self.requests.insert(correlation_id, request);
    }

    /// What was asked for, while there is no answer.
    pub(crate) fn awaited(&self, correlation_id: i64) -> Option<&Kind> {
        let request = self.requests.get(&correlation_id);
        request
            .filter(|request| request.is_awaiting())
            .map(|request| &request.kind)
    }

    /// Gives a pending request the result that `answer` makes of it; nothing when the reply does not fit.
    pub(crate) fn answer(
        &mut self,
        correlation_id: i64,
        answer: impl FnOnce(&Kind) -> Option<Result<Outcome, ClientError>>,
    ) {
        if let Some(request) = self.requests.get_mut(&correlation_id)
            && request.is_awaiting()
        {
            request.result = answer(&request.kind);
        }
    }

    /// Takes out a request that was answered.
    pub(crate) fn take(&mut self, correlation_id: i64) -> Found {
        if self.awaited(correlation_id).is_some() {
            return Found::Awaiting;
        }
        let request = self.requests.remove(&correlation_id);
        request.map_or(Found::Unknown, |request| Found::Answered(Leaving::new(request)))
    }

    /// Takes out a request, answered or not.
    pub(crate) fn remove(&mut self, correlation_id: i64) -> Leaving<Option<Request>> {
        Leaving::new(self.requests.remove(&correlation_id))
    }

    pub(crate) fn remove_all(&mut self) -> Leaving<BTreeMap<i64, Request>> {
        Leaving::new(std::mem::take(&mut self.requests))
    }

    /// Those whose deadline has passed without an answer.
    pub(crate) fn overdue(&self, now_ns: i64) -> Vec<i64> {
        self.requests
            .iter()
            .filter(|(_, request)| request.is_awaiting() && request.deadline_ns < now_ns)
            .map(|(correlation_id, _)| *correlation_id)
            .collect()
    }

    pub(crate) fn time_out(&mut self, correlation_id: i64, driver_timeout_ms: i64) {
        if let Some(request) = self.requests.get_mut(&correlation_id) {
            request.result = Some(Err(request.unanswered(correlation_id, driver_timeout_ms)));
        }
    }

    /// Notes a later request, whose answer shows that all has come that the driver had to say to this one.
    pub(crate) fn fence(&mut self, correlation_id: i64, fence_id: i64) {
        if let Some(request) = self.requests.get_mut(&correlation_id) {
            request.fence_id = Some(fence_id);
        }
    }

    /// The request that waits for the answer to this later one.
    pub(crate) fn fenced_by(&self, fence_id: i64) -> Option<i64> {
        let mut requests = self.requests.iter();
        let fenced = requests.find(|(_, request)| request.fence_id == Some(fence_id));
        fenced.map(|(correlation_id, _)| *correlation_id)
    }
}
