//! What can go wrong, apart from normal refusals: those are values ([`crate::Offer`]).

use headrace_buffers::log::AppendError;
use headrace_protocol::ErrorCode;
use headrace_protocol::text::excerpt;

/// A fault reported by the client. Cheap to clone, because the reason a client ended is given to every later
/// call on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client, or the thing called, was closed by this program.
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

    /// The driver is not there, or did not answer in time.
    #[error("driver timeout: {reason}")]
    DriverTimeout {
        /// What was awaited, with names and values.
        reason: String,
    },

    /// The driver stopped, or its process ended: no time-out was needed to notice it.
    #[error("{reason}")]
    DriverEnded {
        /// How it ended, and which driver it was.
        reason: String,
    },

    /// The driver declared this client dead.
    #[error("client timeout: {reason}")]
    ClientTimeout {
        /// How this client learned of it.
        reason: String,
    },

    /// The conductor was not run for so long that the driver may have given the client up.
    #[error("service interval exceeded: interval_ns={interval_ns} timeout_ns={timeout_ns}")]
    ServiceInterval {
        /// Time between two turns of the conductor.
        interval_ns: i64,
        /// The most there may be.
        timeout_ns: i64,
    },

    /// The client lost events, so what it knows of its resources may be wrong.
    #[error("unable to keep up with the driver's event broadcast")]
    Lapped,

    /// The driver refused a request.
    #[error("{message} (error_code={code:?} correlation_id={correlation_id})")]
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
        /// What was given.
        value: String,
        /// What is allowed.
        rule: String,
    },

    /// An event from the driver cannot be decoded or contradicts what it said before.
    #[error("invalid event from the driver: {reason}")]
    InvalidEvent {
        /// What is wrong.
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

/// Why a poll could not be made.
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
        /// Where the reader is.
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
