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

use std::net::IpAddr;
use std::sync::Arc;

use headrace_protocol::channel::ChannelUri;
use headrace_protocol::command::Command;
use headrace_protocol::text::excerpt;

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
    /// What was asked for, as people say it.
    pub(crate) operation: &'static str,
    pub(crate) channel: Option<String>,
    pub(crate) deadline_ns: i64,
    pub(crate) result: Option<Result<Outcome, ClientError>>,
}

impl Request {
    pub(crate) fn is_awaiting(&self) -> bool {
        self.result.is_none()
    }

    /// Says that no answer came, and what may hold it up.
    pub(crate) fn unanswered(&self, correlation_id: i64, driver_timeout_ms: i64) -> String {
        let channel = self.channel.as_deref();
        let on = channel.map_or_else(String::new, |channel| format!(" channel={}", excerpt(channel)));
        let doubt = channel.and_then(doubt_of).unwrap_or_default();
        format!(
            "no response to a request: {}{on} correlation_id={correlation_id} driver_timeout_ms={driver_timeout_ms}{doubt}",
            self.operation
        )
    }
}

/// The channel in a command, if it has one.
pub(crate) fn channel_of(command: &Command<'_>) -> Option<String> {
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

/// What may have held up the answer.
fn doubt_of(channel: &str) -> Option<String> {
    if let Some(host) = name_in(channel) {
        return Some(format!(": does a name server answer for host={host}?"));
    }
    let uri = ChannelUri::parse(channel).ok()?;
    (uri.get("sparse") == Some("false")).then(|| {
        ": the driver writes a log of three terms in full for sparse=false, which takes seconds where terms are large; \
         wait longer, or leave it sparse"
            .to_owned()
    })
}

/// The first host of a channel that the driver has to look up.
fn name_in(channel: &str) -> Option<String> {
    let uri = ChannelUri::parse(channel).ok()?;
    let addresses = ["endpoint", "control"].into_iter().filter_map(|key| uri.get(key));
    let mut hosts = addresses
        .filter_map(|address| address.rsplit_once(':'))
        .map(|(host, _)| host);
    hosts
        .find(|host| {
            let is_literal = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
            !host.is_empty() && !is_literal && !host.eq_ignore_ascii_case("localhost")
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_up_an_answer_is_named() {
        for (channel, expected) in [
            (
                "aeron:udp?endpoint=slow.example:1|sparse=false",
                "host=slow.example",
            ),
            ("aeron:ipc?term-length=1g|sparse=false", "sparse=false"),
        ] {
            let doubt = doubt_of(channel).unwrap();
            assert!(doubt.contains(expected), "{doubt}");
        }
        assert_eq!(doubt_of("aeron:ipc?term-length=1g|sparse=true"), None);
        assert_eq!(doubt_of("no channel"), None);
    }

    #[test]
    fn a_name_is_found_where_a_driver_looks_one_up() {
        for (channel, expected) in [
            ("aeron:udp?endpoint=slow.example:1", Some("slow.example")),
            (
                "aeron:udp?endpoint=10.0.0.1:1|control=slow.example:2",
                Some("slow.example"),
            ),
            ("aeron:udp?endpoint=[::1]:1|control=localhost:2", None),
            ("aeron:udp?endpoint=:1|control=10.0.0.1", None),
            ("aeron:ipc", None),
            ("no channel", None),
        ] {
            assert_eq!(name_in(channel).as_deref(), expected, "{channel}");
        }
    }
}
