//! What a driver tells its clients, through the to-clients broadcast.
//!
//! Events share nothing but their text form, an `i32` length and that many bytes. Every client sees every
//! event and picks out its own by the ids inside. Bytes after the last field are tolerated.

mod decode;
mod encode;

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::ErrorCode;

/// Type ids, as written in the broadcast.
pub mod type_id {
    #![allow(missing_docs)] // named after the variants of `Event`
    pub const ERROR: i32 = 0x0F01;
    pub const AVAILABLE_IMAGE: i32 = 0x0F02;
    pub const PUBLICATION_READY: i32 = 0x0F03;
    pub const OPERATION_SUCCESS: i32 = 0x0F04;
    pub const UNAVAILABLE_IMAGE: i32 = 0x0F05;
    pub const EXCLUSIVE_PUBLICATION_READY: i32 = 0x0F06;
    pub const SUBSCRIPTION_READY: i32 = 0x0F07;
    pub const COUNTER_READY: i32 = 0x0F08;
    pub const UNAVAILABLE_COUNTER: i32 = 0x0F09;
    pub const CLIENT_TIMEOUT: i32 = 0x0F0A;
    pub const STATIC_COUNTER: i32 = 0x0F0B;
    pub const PUBLICATION_ERROR: i32 = 0x0F0C;
    pub const NEXT_AVAILABLE_SESSION_ID: i32 = 0x0F0D;
}

/// A publication's log and counters, in the reply to the command that added it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationReady<'a> {
    /// The command answered.
    pub correlation_id: i64,
    /// Registration id of the log, which an earlier publication may have made.
    pub original_registration_id: i64,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Counter with the position a publisher may write up to.
    pub publisher_limit_counter_id: i32,
    /// Counter with the state of the channel; -1 for IPC.
    pub channel_status_counter_id: i32,
    /// Path of the log.
    pub log_file_name: Cow<'a, str>,
}

/// A subscriber refused a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationError<'a> {
    /// Registration id of the log.
    pub registration_id: i64,
    /// Destination the refusal came from; -1 if none.
    pub destination_registration_id: i64,
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// The refusing endpoint.
    pub receiver_id: i64,
    /// Its group; -1 if none.
    pub group_tag: i64,
    /// Where the refusal came from; `None` if the address is of a family not known here.
    pub source_address: Option<SocketAddr>,
    /// Why.
    pub error_code: ErrorCode,
    /// Why, in words.
    pub message: Cow<'a, str>,
}

/// News from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // ids are named as in `PublicationReady`
pub enum Event<'a> {
    /// A command was refused.
    Error {
        correlation_id: i64,
        error_code: ErrorCode,
        message: Cow<'a, str>,
    },
    /// A subscription can read a publisher's stream from now on.
    AvailableImage {
        image_correlation_id: i64,
        session_id: i32,
        stream_id: i32,
        subscription_registration_id: i64,
        subscriber_position_counter_id: i32,
        log_file_name: Cow<'a, str>,
        source_identity: Cow<'a, str>,
    },
    /// A publication was added.
    PublicationReady(PublicationReady<'a>),
    /// An exclusive publication was added.
    ExclusivePublicationReady(PublicationReady<'a>),
    /// A command without a reply of its own was done.
    OperationSuccess { correlation_id: i64 },
    /// A subscription can no longer read a publisher's stream.
    UnavailableImage {
        image_correlation_id: i64,
        subscription_registration_id: i64,
        stream_id: i32,
        channel: Cow<'a, str>,
    },
    /// A subscription was added; the counter id is -1 for IPC and spies.
    SubscriptionReady {
        correlation_id: i64,
        channel_status_counter_id: i32,
    },
    /// A counter was added; a client's heartbeat counter is announced under the client's id.
    CounterReady { registration_id: i64, counter_id: i32 },
    /// A counter is about to go.
    UnavailableCounter { registration_id: i64, counter_id: i32 },
    /// A client was not heard from and has lost everything it had.
    ClientTimeout { client_id: i64 },
    /// A static counter was added or found.
    StaticCounter { correlation_id: i64, counter_id: i32 },
    /// A subscriber refused a publication.
    PublicationError(PublicationError<'a>),
    /// The session id that was asked for.
    NextAvailableSessionId { correlation_id: i64, session_id: i32 },
}

/// A record of the broadcast that is not an event known here. Clients skip unknown types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// No event has the type id.
    #[error("unknown event: type_id={type_id}")]
    UnknownType {
        /// Type id of the record.
        type_id: i32,
    },
    /// Too short, or a length inside it points outside it.
    #[error("malformed event: type_id={type_id} length={length}")]
    Malformed {
        /// Type id of the record.
        type_id: i32,
        /// Length of the record's message.
        length: usize,
    },
}
