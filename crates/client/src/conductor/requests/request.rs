//! One request, and its result.

use std::sync::Arc;

use headrace_protocol::command::Command;
use headrace_protocol::text::excerpt;

use crate::conductor::driver_proxy::Removal;
use crate::counter::{Counter, StaticCounter};
use crate::error::ClientError;
use crate::publication::{ExclusivePublication, Publication};
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
    /// The same: a destination is taken from the stream with this registration id.
    DestinationRemoval {
        registration_id: i64,
    },
}

impl Kind {
    /// What a command asks for that is answered with success or an error, and nothing else.
    pub(crate) fn of_operation(command: &Command<'_>) -> Self {
        match *command {
            Command::RemoveReceiveDestination { registration_id, .. }
            | Command::RemoveDestinationById { registration_id, .. } => {
                Self::DestinationRemoval { registration_id }
            }
            _ => Self::Operation,
        }
    }

    /// How the driver undoes it while it is pending. A static counter outlives its client, and the others leave nothing in
    /// the driver.
    pub(crate) fn removal(&self) -> Option<Removal> {
        match self {
            Self::Publication { .. } | Self::ExclusivePublication { .. } => {
                Some(Removal::Publication { revoke: false })
            }
            Self::Subscription(_) => Some(Removal::Subscription),
            Self::Counter => Some(Removal::Counter),
            Self::StaticCounter { .. }
            | Self::SessionId
            | Self::Operation
            | Self::DestinationRemoval { .. } => None,
        }
    }
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
    pub(super) kind: Kind,
    // What was asked for, as people say it.
    operation: &'static str,
    channel: Option<String>,
    pub(super) deadline_ns: i64,
    pub(super) result: Option<Result<Outcome, ClientError>>,
    /// A later request, whose answer shows that all has come that the driver had to say to this one.
    pub(super) fence_id: Option<i64>,
}

impl Request {
    pub(crate) fn new(kind: Kind, operation: &'static str, command: &Command<'_>, deadline_ns: i64) -> Self {
        Self {
            kind,
            operation,
            channel: channel_of(command),
            deadline_ns,
            result: None,
            fence_id: None,
        }
    }

    /// What came of it; nothing while it is pending.
    pub(crate) fn into_result(self) -> Option<Result<Outcome, ClientError>> {
        self.result
    }

    pub(super) fn is_awaiting(&self) -> bool {
        self.result.is_none()
    }

    /// The error that says that no answer came.
    pub(super) fn unanswered(&self, correlation_id: i64, driver_timeout_ms: i64) -> ClientError {
        let channel = self.channel.as_deref();
        let on = channel.map_or_else(String::new, |channel| format!(" channel={}", excerpt(channel)));
        let reason = format!(
            "no response to a request: {}{on} correlation_id={correlation_id} driver_timeout_ms={driver_timeout_ms}",
            self.operation
        );
        ClientError::DriverTimeout { reason }
    }
}

/// The channel in a command, if it has one.
fn channel_of(command: &Command<'_>) -> Option<String> {
    match command {
        Command::AddPublication { channel, .. }
        | Command::AddExclusivePublication { channel, .. }
        | Command::AddSubscription { channel, .. }
        | Command::AddDestination { channel, .. }
        | Command::RemoveDestination { channel, .. }
        | Command::AddReceiveDestination { channel, .. }
        | Command::RemoveReceiveDestination { channel, .. } => Some(channel.to_string()),
        _ => None,
    }
}
