//! The settings of printed changes of state: which kinds of things tell of theirs.
//!
//! A name is one of this driver's kinds, or that of an event of Aeron's drivers, which stands for the kind that the event is
//! about: `CMD_IN_ADD_PUBLICATION` for publications. Of frames and repairs nothing is printed.

use std::collections::BTreeSet;

use headrace_protocol::text::{excerpt, nearest};

use super::DriverConfig;
use super::settings::property;

/// What a driver tells of.
const KINDS: [&str; 8] = [
    "driver",
    "client",
    "publication",
    "connection",
    "subscription",
    "image",
    "link",
    "channel",
];
/// What asks for none.
const NONE: [&str; 3] = ["", "0", "0x0"];
/// What asks for all changes of state, and for nothing else.
const ALL: &str = "admin";
/// The word that asks for every event.
const EVERYTHING: &str = "all";

/// How the names of events of Aeron's drivers begin.
const BEGINNINGS: [&str; 12] = [
    "CMD_IN_",
    "CMD_OUT_",
    "REMOVE_",
    "SEND_",
    "RECEIVE_CHANNEL_",
    "UNTETHERED_",
    "NAME_RESOLUTION_",
    "FLOW_CONTROL_",
    "NAK_",
    "FRAME_",
    "PUBLICATION_",
    "RESEND",
];
/// What such a name has that is about something of a kind; the first counts.
const ABOUT: [(&str, &str); 9] = [
    ("UNTETHERED", "link"),
    ("FLOW_CONTROL_RECEIVER", "connection"),
    ("IMAGE", "image"),
    ("PUBLICATION", "publication"),
    ("SUBSCRIPTION", "subscription"),
    ("CHANNEL", "channel"),
    ("CLIENT", "client"),
    ("KEEPALIVE", "client"),
    ("TERMINATE", "driver"),
];

/// What one name of a list asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Nothing,
    Kind(&'static str),
    /// All kinds.
    All,
    /// All kinds, and frames, of which nothing is printed.
    Everything,
    /// An event of which nothing is printed.
    Silent,
    Unknown,
}

fn named(name: &str) -> Named {
    let is_number = name.parse::<u64>().is_ok() || name.starts_with("0x");
    let own = KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(name));
    let upper = name.to_ascii_uppercase();
    match own {
        _ if NONE.contains(&name) => Named::Nothing,
        Some(kind) => Named::Kind(kind),
        None if name.eq_ignore_ascii_case(ALL) => Named::All,
        None if is_number || name.eq_ignore_ascii_case(EVERYTHING) => Named::Everything,
        None if !BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning)) => Named::Unknown,
        None => {
            let about = ABOUT.into_iter().find(|(part, _)| upper.contains(part));
            about.map_or(Named::Silent, |(_, kind)| Named::Kind(kind))
        }
    }
}

fn names(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim)
}

fn kinds(text: Option<&str>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for name in names(text) {
        match named(name) {
            Named::Kind(kind) => found.extend([kind]),
            Named::All | Named::Everything => found.extend(KINDS),
            Named::Nothing | Named::Silent | Named::Unknown => {}
        }
    }
    found
}

impl DriverConfig {
    /// Changes of state are to be printed.
    pub fn prints_events(&self) -> bool {
        !self.printed_kinds().is_empty()
    }

    /// Of what.
    pub(crate) fn printed_kinds(&self) -> BTreeSet<&'static str> {
        let disabled = kinds(self.event_log_disable.as_deref());
        kinds(self.event_log.as_deref())
            .difference(&disabled)
            .copied()
            .collect()
    }

    /// What is not printed although it was asked for, and names that ask for nothing.
    pub(super) fn event_doubts(&self) -> Vec<String> {
        let (wanted, log) = (self.event_log.as_deref(), property::event_log);
        let mut doubts = Vec::new();
        for name in names(wanted) {
            let said = excerpt(name);
            match named(name) {
                Named::Everything => doubts.push(format!(
                    "{log}={said} prints each change of state, as {ALL} does, and no frames"
                )),
                Named::Silent => doubts.push(format!(
                    "{log}={said} prints nothing: no change of state is that event"
                )),
                Named::Unknown => doubts.push(unknown(log, name)),
                Named::Nothing | Named::Kind(_) | Named::All => {}
            }
        }
        let disabled = names(self.event_log_disable.as_deref());
        let unknown_ones = disabled.filter(|name| named(name) == Named::Unknown);
        doubts.extend(unknown_ones.map(|name| unknown(property::event_log_disable, name)));
        if self.event_limit == 0 && self.prints_events() {
            let (wanted, limit) = (wanted.unwrap_or_default(), property::event_limit);
            doubts.push(format!("{log}={wanted} prints nothing with {limit}=0"));
        }
        doubts
    }
}

fn unknown(setting: &str, name: &str) -> String {
    let advice = nearest(name, KINDS.into_iter().chain([ALL]))
        .map_or_else(String::new, |known| format!(", did you mean {known}?"));
    format!(
        "{setting}={} is no event, and has no effect{advice}",
        excerpt(name)
    )
}
