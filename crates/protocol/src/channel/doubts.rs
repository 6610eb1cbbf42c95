//! Parameters of a channel that look wrong, but that the driver accepts, because the protocol ignores them.
//!
//! A misspelt key leaves a stream with the default that its user wanted to change. So the driver notes each, with
//! the nearest known key.

use std::net::SocketAddr;

use super::{ChannelRole, ChannelUri, Media, keys};
use crate::text::{excerpt, nearest};

/// Most parameters noted for one channel.
const DOUBTS_MAX: usize = 8;

const BOOLEANS: [&str; 7] = [
    keys::RELIABLE,
    keys::SPARSE,
    keys::END_OF_STREAM,
    keys::TETHER,
    keys::REJOIN,
    keys::SPIES_SIMULATE_CONNECTION,
    keys::TRANSPORT_SECURITY,
];

const DURATIONS: [&str; 5] = [
    keys::LINGER,
    keys::NAK_DELAY,
    keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
    keys::UNTETHERED_LINGER_TIMEOUT,
    keys::UNTETHERED_RESTING_TIMEOUT,
];

/// The option of `fc` that is a duration.
const RECEIVER_TIMEOUT: &str = "t:";

/// Shorter ones without a unit were probably not meant in nanoseconds.
const PLAIN_DURATION_MIN_NS: u64 = 1_000_000;

/// The datagrams of a publication that gives no `mtu`.
const USUAL_MTU: u64 = 1408;

/// What only a network has.
const OF_NETWORKS: [&str; 16] = [
    keys::ENDPOINT,
    keys::INTERFACE,
    keys::CONTROL,
    keys::TTL,
    keys::RELIABLE,
    keys::NAK_DELAY,
    keys::MAX_RESEND,
    keys::CONGESTION_CONTROL,
    keys::FLOW_CONTROL,
    keys::GROUP_TAG,
    keys::SOCKET_SNDBUF,
    keys::SOCKET_RCVBUF,
    keys::RECEIVER_WINDOW,
    keys::MEDIA_RECEIVE_TIMESTAMP_OFFSET,
    keys::CHANNEL_RECEIVE_TIMESTAMP_OFFSET,
    keys::CHANNEL_SEND_TIMESTAMP_OFFSET,
];

/// What belongs to a stream, and not to one of the paths that it takes.
const OF_STREAMS: [&str; 20] = [
    keys::TERM_LENGTH,
    keys::INITIAL_TERM_ID,
    keys::TERM_ID,
    keys::TERM_OFFSET,
    keys::RELIABLE,
    keys::LINGER,
    keys::CONGESTION_CONTROL,
    keys::FLOW_CONTROL,
    keys::SPARSE,
    keys::END_OF_STREAM,
    keys::TETHER,
    keys::REJOIN,
    keys::SPIES_SIMULATE_CONNECTION,
    keys::NAK_DELAY,
    keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
    keys::MAX_RESEND,
    keys::PUBLICATION_WINDOW,
    keys::MEDIA_RECEIVE_TIMESTAMP_OFFSET,
    keys::CHANNEL_RECEIVE_TIMESTAMP_OFFSET,
    keys::CHANNEL_SEND_TIMESTAMP_OFFSET,
];

/// Of these, what a destination that is published on this host has for itself.
const OF_LOCAL_DESTINATIONS: [&str; 2] = [keys::TETHER, keys::REJOIN];

/// One sentence for each parameter that has no effect, or not the one that its text suggests.
pub fn doubts(uri: &ChannelUri, role: ChannelRole) -> Vec<String> {
    uri.params()
        .filter_map(|(key, value)| {
            let doubt = doubt(uri, role, key, value)?;
            Some(format!(
                "channel parameter {}={} {doubt}",
                excerpt(key),
                excerpt(value)
            ))
        })
        .take(DOUBTS_MAX)
        .collect()
}

fn doubt(uri: &ChannelUri, role: ChannelRole, key: &str, value: &str) -> Option<String> {
    if !known_keys().any(|known| known == key) {
        return Some(format!(
            "is unknown and has no effect{}",
            advice(key, known_keys())
        ));
    }
    if let Some(joined) = joined_param(value) {
        return Some(format!(
            "has another parameter in its value: put | and not & before {}",
            excerpt(joined)
        ));
    }
    if let Some(reason) = without_effect(uri, role, key, value) {
        return Some(format!("has no effect here: {reason}"));
    }
    if BOOLEANS.contains(&key) && !matches!(value, "true" | "false") {
        let advice = advice(value, ["true", "false"].into_iter());
        return Some(format!("is neither true nor false{advice}"));
    }
    number_doubt(uri, role, key, value).or_else(|| choice_doubt(key, value))
}

/// A parameter that is joined to a value as in the query of a web address.
fn joined_param(value: &str) -> Option<&str> {
    value.split('&').skip(1).find(|part| {
        part.split_once('=')
            .is_some_and(|(key, _)| known_keys().any(|known| known == key))
    })
}

/// A number that probably lacks its unit, where it has an effect.
fn number_doubt(uri: &ChannelUri, role: ChannelRole, key: &str, value: &str) -> Option<String> {
    let is_of_role = match key {
        keys::LINGER | keys::FLOW_CONTROL => role == ChannelRole::Publication,
        keys::NAK_DELAY | keys::RECEIVER_WINDOW => role == ChannelRole::Subscription && !uri.is_spy(),
        _ => true,
    };
    if !is_of_role {
        return None;
    }
    let lacks_unit = |text: &str, least: u64| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_number)?;
        (1..least).contains(&number).then_some(number)
    };
    let duration = |text: &str, whole: &str| {
        let number = lacks_unit(text, PLAIN_DURATION_MIN_NS)?;
        Some(format!(
            "means {number} nanoseconds: give a unit, as in {whole}ms or {whole}s"
        ))
    };
    if DURATIONS.contains(&key) {
        duration(value, value)
    } else if key == keys::FLOW_CONTROL {
        let text = value
            .split(',')
            .find_map(|option| option.strip_prefix(RECEIVER_TIMEOUT))?;
        duration(text, &format!("{RECEIVER_TIMEOUT}{text}"))
    } else if key == keys::RECEIVER_WINDOW {
        let number = lacks_unit(value, USUAL_MTU)?;
        Some(format!(
            "means {number} bytes, less than a usual datagram, so that most publishers cannot send: give a unit, as in \
             {number}k or {number}m"
        ))
    } else {
        None
    }
}

/// A value that is not of its list.
fn choice_doubt(key: &str, value: &str) -> Option<String> {
    // Of `fc`, options follow the name.
    let name = value.split(',').next().unwrap_or_default();
    let (known, rest): (&[&str], _) = match key {
        keys::GROUP => (&["true", "false", "infer"], ", and counts as false"),
        keys::CONTROL_MODE => (&["manual", "dynamic", "response"], ", and has no effect"),
        keys::CONGESTION_CONTROL => (&["static", "cubic"], ""),
        keys::FLOW_CONTROL => (&["max", "min", "tagged"], ""),
        _ => return None,
    };
    (!known.contains(&name)).then(|| {
        let (last, others) = known.split_last().expect("no list is empty");
        let advice = advice(name, known.iter().copied());
        format!("is none of {} and {last}{rest}{advice}", others.join(", "))
    })
}

/// Why a known parameter changes nothing where it stands.
fn without_effect(uri: &ChannelUri, role: ChannelRole, key: &str, value: &str) -> Option<&'static str> {
    let mode = uri.get(keys::CONTROL_MODE);
    let is_receive_path = role == ChannelRole::ReceiveDestination;
    let is_path = role == ChannelRole::SendDestination || is_receive_path;
    let is_socket = uri.media() == Media::Udp && !uri.is_spy();
    let is_of_stream = OF_STREAMS.contains(&key) && (is_socket || !OF_LOCAL_DESTINATIONS.contains(&key));
    if is_path && (is_of_stream || is_socket && key == keys::SESSION_ID) {
        Some("it belongs to the channel that the destination is added to")
    } else if role == ChannelRole::SendDestination
        && matches!(key, keys::INTERFACE | keys::TTL)
        && names_one_address(uri)
    {
        Some("it is for a multicast group: to one address the publication's own socket sends")
    } else if is_path && key == keys::CONTROL_MODE && value == "manual" {
        Some("a destination has no destinations of its own")
    } else if (is_receive_path || role == ChannelRole::Subscription && is_socket)
        && key == keys::CONTROL_MODE
        && value == "dynamic"
        && !uri.contains(keys::CONTROL)
    {
        Some("without control no publisher is told of the receiver")
    } else if uri.media() == Media::Ipc
        && (OF_NETWORKS.contains(&key) || key == keys::CONTROL_MODE && matches!(value, "manual" | "dynamic"))
    {
        Some("an IPC channel has no network")
    } else if role == ChannelRole::Publication && key == keys::ENDPOINT && mode == Some("manual") {
        Some("with control-mode=manual a publication sends to the destinations that are added")
    } else {
        None
    }
}

fn names_one_address(uri: &ChannelUri) -> bool {
    let address = uri.get(keys::ENDPOINT).map(str::parse::<SocketAddr>);
    address.is_some_and(|parsed| parsed.is_ok_and(|address| !address.ip().is_multicast()))
}

fn advice(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest(name, known).map_or_else(String::new, |known| format!(", did you mean {known}?"))
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    keys::BUILDER_ORDER.into_iter().chain([keys::TRANSPORT_SECURITY])
}

#[cfg(test)]
mod tests;
