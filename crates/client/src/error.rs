//! The errors of a client. Normal refusals are not errors but values ([`crate::Offer`]).

use headrace_buffers::log::AppendError;
use headrace_protocol::ErrorCode;
use headrace_protocol::text::excerpt;

/// An error of a client. Cheap to clone, because every later call on a client that has ended returns the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// This program has closed the client, or the object of the call.
    #[error("{what} is closed")]
    Closed {
        /// The kind of object.
        what: &'static str,
    },

    /// A handler called back into the client that was calling it.
    #[error(
        "a client handler may not call the client: operation={operation}; \
         take note of the event in the handler and act on it from another thread or after the handler returned"
    )]
    Reentrant {
        /// The call that was refused.
        operation: &'static str,
    },

    /// There is no driver, or it did not answer in time.
    #[error("driver timeout: {reason}")]
    DriverTimeout {
        /// The awaited event, with names and values.
        reason: String,
    },

    /// The driver stopped, or its process ended: no time-out was needed to notice it.
    #[error("{reason}")]
    DriverEnded {
        /// How the driver ended, and which one it was.
        reason: String,
    },

    /// The driver declared this client dead.
    #[error("client timeout: {reason}")]
    ClientTimeout {
        /// How this client learned of it.
        reason: String,
    },

    /// The conductor did not run for so long that the driver may have declared the client dead.
    #[error("service interval exceeded: interval_ns={interval_ns} timeout_ns={timeout_ns}")]
    ServiceInterval {
        /// Time between two turns of the conductor.
        interval_ns: i64,
        /// The greatest time allowed.
        timeout_ns: i64,
    },

    /// The client lost events, so its view of its resources may be wrong.
    #[error("unable to keep up with the driver's event broadcast")]
    Lapped,

    /// The driver refused a request.
    #[error(
        "{} (error_code={code:?} correlation_id={correlation_id})",
        without_code(message)
    )]
    Registration {
        /// Kind of refusal.
        code: ErrorCode,
        /// The request.
        correlation_id: i64,
        /// The driver's text.
        message: String,
    },

    /// The ring to the driver stayed full.
    #[error("the driver's command buffer is full: command={command}; is the driver running?")]
    CommandBufferFull {
        /// What could not be sent.
        command: &'static str,
    },

    /// The driver's shared files cannot be used.
    #[error("{reason}")]
    DriverFiles {
        /// File and rule.
        reason: String,
    },

    /// An argument or setting is wrong; nothing was started.
    #[error("invalid {name}: {name}={value}: {rule}")]
    InvalidArgument {
        /// The argument or setting.
        name: String,
        /// The value.
        value: String,
        /// The rule.
        rule: String,
    },

    /// An event from the driver cannot be decoded, or contradicts an earlier one.
    #[error("invalid event from the driver: {reason}")]
    InvalidEvent {
        /// The fault.
        reason: String,
    },

    /// A handler panicked. The panic was stopped at the handler's boundary.
    #[error("a client handler panicked: {reason}")]
    HandlerPanicked {
        /// Text of the panic.
        reason: String,
    },
}

impl ClientError {
    pub(crate) fn argument(name: impl Into<String>, value: impl ToString, rule: impl Into<String>) -> Self {
        Self::InvalidArgument {
            name: excerpt(&name.into()).into_owned(),
            value: excerpt(&value.to_string()).into_owned(),
            rule: rule.into(),
        }
    }
}

/// Why a poll was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// Two polls at once, which would deliver messages twice.
    #[error("{what} is being polled by another thread, or from inside its own handler")]
    Busy {
        /// Subscription or image.
        what: &'static str,
    },
    /// The subscription was closed, by this program or because its client ended.
    #[error("subscription is closed")]
    Closed,
    /// The driver took the reader for dead, gave its place away and went on without it.
    #[error(
        "the stream of session {session_id}, stream {stream_id}, went on without this reader at position {position}: this process \
         did not run for longer than the driver waits for a client (client_liveness_timeout_ns); end the process and start it again"
    )]
    Overtaken {
        /// Session of the publisher.
        session_id: i32,
        /// Stream within the channel.
        stream_id: i32,
        /// The reader's position.
        position: i64,
    },
}

/// Why a message can never be sent this way. Normal refusals are values ([`crate::Offer`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// An exclusive publication has one writer at a time.
    #[error("exclusive publication is being written by another thread")]
    Busy,
    /// The message breaks a rule of the log.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// A driver's text without the prefix of errors without a specific code: the code after the text says more.
fn without_code(message: &str) -> &str {
    let words = ErrorCode::GenericError.describe("");
    message.strip_prefix(&words).unwrap_or(message)
}
