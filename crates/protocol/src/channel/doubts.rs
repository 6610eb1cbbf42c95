//! Parameters of a channel that the driver takes, although they do not do what their text suggests.
//!
//! A misspelt key leaves a stream with the default that its user wanted to change, and the driver notes it with the
//! nearest known key. Of right keys it notes the few slips after which a stream stalls, or loses data, without a word.

use super::{ChannelRole, ChannelUri, Media, keys};
use crate::text::{excerpt, nearest};

/// Most parameters noted for one channel.
const DOUBTS_MAX: usize = 8;

const DURATIONS: [&str; 5] = [
    keys::LINGER,
    keys::NAK_DELAY,
    keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
    keys::UNTETHERED_LINGER_TIMEOUT,
    keys::UNTETHERED_RESTING_TIMEOUT,
];

/// Shorter ones without a unit were probably not meant in nanoseconds.
const PLAIN_DURATION_MIN_NS: u64 = 1_000_000;

/// The datagrams of a publication whose channel has no `mtu`.
const USUAL_MTU: u64 = 1408;

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
        let advice =
            nearest(key, known_keys()).map_or_else(String::new, |known| format!(", did you mean {known}?"));
        return Some(format!("is unknown and has no effect{advice}"));
    }
    if DURATIONS.contains(&key) && lacks_unit(value, PLAIN_DURATION_MIN_NS) {
        return Some(format!(
            "means {value} nanoseconds: add a unit, as in {value}ms or {value}s"
        ));
    }
    let is_receiver = matches!(role, ChannelRole::Subscription | ChannelRole::ReceiveDestination)
        && uri.media() == Media::Udp
        && !uri.is_spy();
    let text = match key {
        keys::RECEIVER_WINDOW if lacks_unit(value, USUAL_MTU) => {
            "is in bytes, and less than a usual datagram: most publishers cannot send; add a unit, such as k"
        }
        keys::CONTROL_MODE if value == "dynamic" && is_receiver && !uri.contains(keys::CONTROL) => {
            "has no effect here: without control the receiver reports to no publisher"
        }
        keys::ENDPOINT
            if role == ChannelRole::Publication && uri.get(keys::CONTROL_MODE) == Some("manual") =>
        {
            "has no effect here: with control-mode=manual a publication sends to the destinations that are added"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether a value is a number without a unit, from 1 to less than `least`.
fn lacks_unit(value: &str, least: u64) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && value
            .parse::<u64>()
            .is_ok_and(|number| (1..least).contains(&number))
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    keys::BUILDER_ORDER.into_iter().chain([keys::TRANSPORT_SECURITY])
}

#[cfg(test)]
mod tests;
