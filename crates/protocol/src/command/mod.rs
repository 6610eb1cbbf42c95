//! What clients ask of a driver, through the to-driver ring.
//!
//! Every command starts with the same sixteen bytes; text is an `i32` length and that many bytes:
//!
//! ```text
//!   0           8                16
//!   | client id | correlation id | fields of the command
//! ```
//!
//! Bytes after the last field are tolerated: peers round some commands up. The correlation id names the reply
//! and, for commands that add something, becomes its registration id.

mod decode;
mod encode;

use std::borrow::Cow;

use crate::ErrorCode;

/// Longest key of a counter; a driver cuts longer ones.
pub const COUNTER_KEY_LENGTH_MAX: usize = 112;
/// Longest label of a counter; a driver cuts longer ones.
pub const COUNTER_LABEL_LENGTH_MAX: usize = 380;
/// Longest reason for rejecting an image.
pub const REJECTION_REASON_LENGTH_MAX: usize = 1023;

/// Type ids, as written in the ring.
pub mod type_id {
    #![allow(missing_docs)] // named after the variants of `Command`
    pub const ADD_PUBLICATION: i32 = 0x01;
    pub const REMOVE_PUBLICATION: i32 = 0x02;
    pub const ADD_EXCLUSIVE_PUBLICATION: i32 = 0x03;
    pub const ADD_SUBSCRIPTION: i32 = 0x04;
    pub const REMOVE_SUBSCRIPTION: i32 = 0x05;
    pub const CLIENT_KEEPALIVE: i32 = 0x06;
    pub const ADD_DESTINATION: i32 = 0x07;
    pub const REMOVE_DESTINATION: i32 = 0x08;
    pub const ADD_COUNTER: i32 = 0x09;
    pub const REMOVE_COUNTER: i32 = 0x0A;
    pub const CLIENT_CLOSE: i32 = 0x0B;
    pub const ADD_RECEIVE_DESTINATION: i32 = 0x0C;
    pub const REMOVE_RECEIVE_DESTINATION: i32 = 0x0D;
    pub const TERMINATE_DRIVER: i32 = 0x0E;
    pub const ADD_STATIC_COUNTER: i32 = 0x0F;
    pub const REJECT_IMAGE: i32 = 0x10;
    pub const REMOVE_DESTINATION_BY_ID: i32 = 0x11;
    pub const NEXT_AVAILABLE_SESSION_ID: i32 = 0x12;
}

/// A request. Ids are those the sender drew from the correlation counter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `client_id`, `correlation_id`, `registration_id`, `stream_id` mean the same everywhere
pub enum Command<'a> {
    /// Add a publication that threads and clients may share.
    AddPublication {
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: Cow<'a, str>,
    },
    /// Add a publication with a single writer.
    AddExclusivePublication {
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: Cow<'a, str>,
    },
    /// Give up one handle of a publication; `revoke` discards what was not read yet.
    RemovePublication {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        revoke: bool,
    },
    /// Add a subscription.
    AddSubscription {
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: Cow<'a, str>,
    },
    /// Remove a subscription and what was linked to it.
    RemoveSubscription {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
    },
    /// "I am alive." Clients now say so through their heartbeat counter instead.
    ClientKeepalive { client_id: i64, correlation_id: i64 },
    /// Add a destination to a publication.
    AddDestination {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        channel: Cow<'a, str>,
    },
    /// Remove a destination of a publication by its channel.
    RemoveDestination {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        channel: Cow<'a, str>,
    },
    /// Add a counter that lives as long as its client.
    AddCounter {
        client_id: i64,
        correlation_id: i64,
        type_id: i32,
        key: &'a [u8],
        label: Cow<'a, str>,
    },
    /// Remove a counter.
    RemoveCounter {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
    },
    /// The client leaves in good order.
    ClientClose { client_id: i64, correlation_id: i64 },
    /// Add a destination to a subscription.
    AddReceiveDestination {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        channel: Cow<'a, str>,
    },
    /// Remove a destination of a subscription.
    RemoveReceiveDestination {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        channel: Cow<'a, str>,
    },
    /// Ask the driver to stop; `token` is for the driver's validator.
    TerminateDriver {
        client_id: i64,
        correlation_id: i64,
        token: &'a [u8],
    },
    /// Add a counter that outlives its client, or find it by the registration id the caller chose.
    AddStaticCounter {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        type_id: i32,
        key: &'a [u8],
        label: Cow<'a, str>,
    },
    /// Refuse an image at a position. C clients leave the client and correlation ids zero.
    RejectImage {
        client_id: i64,
        correlation_id: i64,
        image_correlation_id: i64,
        position: i64,
        reason: Cow<'a, str>,
    },
    /// Remove a destination of a publication by the registration id of the destination.
    RemoveDestinationById {
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        destination_registration_id: i64,
    },
    /// Ask for a session id that no publication of the stream uses.
    NextAvailableSessionId {
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
    },
}

/// Length of the ids that every command starts with.
pub(crate) const HEADER_LENGTH: usize = 16;

impl Command<'_> {
    /// The client that sent it.
    pub fn client_id(&self) -> i64 {
        self.ids().0
    }

    /// Names the reply.
    pub fn correlation_id(&self) -> i64 {
        self.ids().1
    }

    fn ids(&self) -> (i64, i64) {
        macro_rules! ids_of {
            ($($variant:ident)*) => {
                match *self {
                    $(Command::$variant { client_id, correlation_id, .. } => (client_id, correlation_id),)*
                }
            };
        }
        ids_of! {
            AddPublication AddExclusivePublication RemovePublication AddSubscription RemoveSubscription
            ClientKeepalive AddDestination RemoveDestination AddCounter RemoveCounter ClientClose
            AddReceiveDestination RemoveReceiveDestination TerminateDriver AddStaticCounter RejectImage
            RemoveDestinationById NextAvailableSessionId
        }
    }
}

/// A record of the ring that is not a command. Answered with [`CommandError::code`], never fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("command={type_id} {fault}: length={length}")]
pub struct CommandError {
    /// Type id of the record.
    pub type_id: i32,
    /// Length of the record's message.
    pub length: usize,
    /// Correlation id, if the record was long enough to carry one.
    pub correlation_id: Option<i64>,
    /// What is wrong.
    pub fault: CommandFault,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    /// No command has the type id.
    #[error("unknown")]
    UnknownType,
    /// Shorter than the command's fixed fields.
    #[error("too short")]
    TooShort,
    /// A length inside the message points outside it.
    #[error("has an impossible length in field {0}")]
    Field(&'static str),
}

impl CommandError {
    /// The code to answer with.
    pub fn code(&self) -> ErrorCode {
        match self.fault {
            CommandFault::UnknownType => ErrorCode::UnknownCommandTypeId,
            CommandFault::TooShort | CommandFault::Field(_) => ErrorCode::MalformedCommand,
        }
    }
}
