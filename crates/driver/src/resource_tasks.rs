//! The messages between the conductor and the resource agent.
//!
//! The conductor sends tasks and gets one outcome for each, except for ending and freeing a log, which have none, and for a channel
//! that must wait for a name, which has two. Labels of counters come of themselves.

use std::net::SocketAddr;
use std::path::PathBuf;

use headrace_buffers::log::{LogBuffers, LogSpec};
use headrace_protocol::channel::{ChannelRole, ChannelUri, UdpChannel};

use crate::endpoint::EndpointId;
use crate::errors::CommandError;

/// A log to create.
#[derive(Debug)]
pub(crate) struct CreateLog {
    /// Comes back in the outcome.
    pub(crate) correlation_id: i64,
    /// File to create.
    pub(crate) path: PathBuf,
    /// What its metadata says.
    pub(crate) spec: LogSpec,
}

/// A log that no publisher writes to any more.
#[derive(Debug)]
pub(crate) struct EndLog {
    pub(crate) path: PathBuf,
    /// Bytes up to its end that readers have not reached. The driver fills a hole that a dead publisher left there.
    pub(crate) unread_length: u64,
}

/// A log that no part of the driver uses any more.
#[derive(Debug)]
pub(crate) struct FreeLog {
    pub(crate) log: LogBuffers,
    pub(crate) path: PathBuf,
}

/// A channel whose names are to be looked up.
#[derive(Debug)]
pub(crate) struct FindAddresses {
    /// Comes back in the outcome.
    pub(crate) correlation_id: i64,
    pub(crate) uri: ChannelUri,
    pub(crate) role: ChannelRole,
}

/// A name to look up again for an open channel.
#[derive(Clone, Debug)]
pub(crate) struct Resolve {
    pub(crate) endpoint: EndpointId,
    /// `host:port` as the channel has it.
    pub(crate) name: String,
}

/// From the conductor.
#[derive(Debug)]
pub(crate) enum ResourceTask {
    CreateLog(Box<CreateLog>),
    FindAddresses(Box<FindAddresses>),
    Resolve(Box<Resolve>),
    EndLog(Box<EndLog>),
    FreeLog(Box<FreeLog>),
}

/// To the conductor.
#[derive(Debug)]
pub(crate) enum ResourceOutcome {
    LogCreated {
        correlation_id: i64,
        result: Result<LogBuffers, CommandError>,
    },
    /// A name of the channel is being looked up; `AddressesFound` follows.
    LookupBegun { correlation_id: i64 },
    AddressesFound {
        correlation_id: i64,
        result: Result<Box<UdpChannel>, CommandError>,
    },
    Resolved {
        endpoint: EndpointId,
        /// The name that was looked up.
        name: String,
        result: Result<SocketAddr, String>,
    },
    /// A counter has another label; of no task.
    Labelled { counter_id: i32, label: String },
}
