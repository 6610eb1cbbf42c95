//! Parameters of a channel that look wrong, but that the driver accepts, because the protocol ignores them.
//!
//! A misspelt key leaves a stream with the default that its user wanted to change. So the driver notes each, with
//! the nearest known key.

use super::{ChannelUri, keys};
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

/// One sentence for each parameter that has no effect, or not the one that its text suggests.
pub fn doubts(uri: &ChannelUri) -> Vec<String> {
    uri.params()
        .filter_map(|(key, value)| doubt(key, value))
        .take(DOUBTS_MAX)
        .collect()
}

fn doubt(key: &str, value: &str) -> Option<String> {
    let (name, shown) = (excerpt(key), excerpt(value));
    if !known_keys().any(|known| known == key) {
        let advice =
            nearest(key, known_keys()).map_or_else(String::new, |known| format!(", did you mean {known}?"));
        return Some(format!(
            "channel parameter {name}={shown} is unknown and has no effect{advice}"
        ));
    }
    if BOOLEANS.contains(&key) && !matches!(value, "true" | "false") {
        return Some(format!(
            "channel parameter {name}={shown} is neither true nor false"
        ));
    }
    if key == keys::GROUP && !matches!(value, "true" | "false" | "infer") {
        return Some(format!(
            "channel parameter {name}={shown} is none of true, false and infer, and counts as false"
        ));
    }
    None
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    keys::BUILDER_ORDER.into_iter().chain([keys::TRANSPORT_SECURITY])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts_of(channel: &str) -> Vec<String> {
        doubts(&ChannelUri::parse(channel).unwrap())
    }

    #[test]
    fn a_misspelt_key_is_told_with_the_nearest_one() {
        for (given, meant) in [
            ("term-lenght=64k", "term-length"),
            ("relaible=false", "reliable"),
            ("Endpoint=localhost:1", "endpoint"),
            ("linger-timeout=1s", ""),
            ("tethr=false", "tether"),
            ("rcvwnd=1m", "rcv-wnd"),
        ] {
            let doubts = doubts_of(&format!("aeron:ipc?{given}"));
            let text = &doubts[0];
            assert!(text.contains(given) && doubts.len() == 1, "{doubts:?}");
            let ending = format!("did you mean {meant}?");
            assert!(meant.is_empty() || text.ends_with(&ending), "{text}");
        }
    }

    #[test]
    fn values_that_are_no_boolean_are_told() {
        assert!(doubts_of("aeron:ipc?eos=yes")[0].contains("eos=yes is neither true nor false"));
        assert!(doubts_of("aeron:udp?endpoint=localhost:1|group=yes")[0].contains("counts as false"));
    }

    #[test]
    fn a_channel_that_is_right_leaves_no_doubt() {
        let all: Vec<String> = known_keys()
            .map(|key| {
                let is_boolean = BOOLEANS.contains(&key) || key == keys::GROUP;
                format!("{key}={}", if is_boolean { "true" } else { "1" })
            })
            .collect();
        assert_eq!(doubts_of(&format!("aeron:udp?{}", all.join("|"))), [""; 0]);
    }

    #[test]
    fn there_is_an_end_to_telling() {
        let many: Vec<String> = (0..100).map(|index| format!("x{index}=1")).collect();
        let doubts = doubts_of(&format!("aeron:ipc?{}", many.join("|")));
        assert_eq!(doubts.len(), DOUBTS_MAX);
        assert_eq!(doubts_of(&format!("aeron:ipc?{}=1", "k".repeat(4000))).len(), 1);
    }
}
