//! The counters that every driver has; their counter id is their system counter id.

use std::fmt::Write;

/// What the driver tells about itself in the labels.
#[derive(Debug, Clone, Copy)]
pub struct LabelFacts<'a> {
    /// Version of Aeron that the driver implements, as text.
    pub version: &'a str,
    /// Version of the driver itself.
    pub own_version: &'a str,
    /// Commit the driver was built from.
    pub commit: &'a str,
    /// Threading mode, as in `SHARED`.
    pub threading_mode: &'a str,
    /// Name by which the driver is known to others; often empty.
    pub driver_name: &'a str,
    /// Cycle threshold of the conductor, as duration text.
    pub conductor_threshold: &'a str,
    /// Cycle threshold of the sender, as duration text.
    pub sender_threshold: &'a str,
    /// Cycle threshold of the receiver, as duration text.
    pub receiver_threshold: &'a str,
    /// Threshold of name resolution, as duration text.
    pub name_resolver_threshold: &'a str,
}

/// What follows the fixed part of a label.
#[derive(Clone, Copy)]
enum Suffix {
    None,
    Version,
    DriverName,
    Mode,
    ConductorThreshold,
    SenderThreshold,
    ReceiverThreshold,
    NameResolverThreshold,
}

macro_rules! system_counters {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $text:literal, $suffix:ident;)+) => {
        $($(#[$doc])* #[doc = concat!("Label: `", $text, "`.")] pub const $name: i32 = $id;)+
        const LABELS: &[(i32, &str, Suffix)] = &[$(($name, $text, Suffix::$suffix)),+];
    };
}

system_counters! {
    BYTES_SENT = 0, "Bytes sent", None;
    BYTES_RECEIVED = 1, "Bytes received", None;
    RECEIVER_PROXY_FAILS = 2, "Failed offers to ReceiverProxy", None;
    SENDER_PROXY_FAILS = 3, "Failed offers to SenderProxy", None;
    CONDUCTOR_PROXY_FAILS = 4, "Failed offers to DriverConductorProxy", None;
    NAK_MESSAGES_SENT = 5, "NAKs sent", None;
    NAK_MESSAGES_RECEIVED = 6, "NAKs received", None;
    STATUS_MESSAGES_SENT = 7, "Status Messages sent", None;
    STATUS_MESSAGES_RECEIVED = 8, "Status Messages received", None;
    HEARTBEATS_SENT = 9, "Heartbeats sent", None;
    HEARTBEATS_RECEIVED = 10, "Heartbeats received", None;
    RETRANSMITS_SENT = 11, "Retransmits sent", None;
    FLOW_CONTROL_UNDER_RUNS = 12, "Flow control under runs", None;
    FLOW_CONTROL_OVER_RUNS = 13, "Flow control over runs", None;
    INVALID_PACKETS = 14, "Invalid packets", None;
    ERRORS = 15, "Errors", Version;
    SHORT_SENDS = 16, "Short sends", None;
    FREE_FAILS = 17, "Failed attempts to free log buffers", None;
    SENDER_FLOW_CONTROL_LIMITS = 18, "Sender flow control limits, i.e. back-pressure events", None;
    UNBLOCKED_PUBLICATIONS = 19, "Unblocked Publications", None;
    UNBLOCKED_COMMANDS = 20, "Unblocked Control Commands", None;
    POSSIBLE_TTL_ASYMMETRY = 21, "Possible TTL Asymmetry", None;
    CONTROLLABLE_IDLE_STRATEGY = 22, "ControllableIdleStrategy status", None;
    LOSS_GAP_FILLS = 23, "Loss gap fills", None;
    CLIENT_TIMEOUTS = 24, "Client liveness timeouts", None;
    RESOLUTION_CHANGES = 25, "Resolution changes", DriverName;
    CONDUCTOR_MAX_CYCLE_TIME = 26, "Conductor max cycle time doing its work in ns", Mode;
    CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED = 27, "Conductor work cycle exceeded threshold count", ConductorThreshold;
    SENDER_MAX_CYCLE_TIME = 28, "Sender max cycle time doing its work in ns", Mode;
    SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED = 29, "Sender work cycle exceeded threshold count", SenderThreshold;
    RECEIVER_MAX_CYCLE_TIME = 30, "Receiver max cycle time doing its work in ns", Mode;
    RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED = 31, "Receiver work cycle exceeded threshold count", ReceiverThreshold;
    NAME_RESOLVER_MAX_TIME = 32, "NameResolver max time in ns", None;
    NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED = 33, "NameResolver exceeded threshold count", NameResolverThreshold;
    /// The value is the packed semantic version.
    AERON_VERSION = 34, "Aeron software", Version;
    BYTES_CURRENTLY_MAPPED = 35, "Bytes currently mapped", None;
    RETRANSMITTED_BYTES = 36, "Retransmitted bytes", None;
    RETRANSMIT_OVERFLOW = 37, "Retransmit Pool Overflow count", None;
    ERROR_FRAMES_RECEIVED = 38, "Error Frames received", None;
    ERROR_FRAMES_SENT = 39, "Error Frames sent", None;
    PUBLICATIONS_REVOKED = 40, "Publications Revoked", None;
    PUBLICATION_IMAGES_REVOKED = 41, "Publication Images Revoked", None;
    IMAGES_REJECTED = 42, "Images rejected", None;
    /// The value is [`CONTROL_PROTOCOL_SEMANTIC_VERSION`].
    CONTROL_PROTOCOL_VERSION = 43, "Control protocol version", None;
    STATUS_MESSAGES_REJECTED = 44, "Status Messages rejected", None;
    NATIVE_RESOURCE_AGENT_PROXY_FAILS = 45, "Failed offers to NativeResourceAgentProxy", None;
}

/// How many system counters there are; their ids are 0 to this.
pub const COUNT: usize = LABELS.len();
/// Version of the commands and events between clients and driver: 1.0.0, packed.
pub const CONTROL_PROTOCOL_SEMANTIC_VERSION: i64 = 1 << 16;

/// Ids and labels of all system counters, in the order of ids.
pub fn labels(facts: &LabelFacts<'_>) -> impl Iterator<Item = (i32, String)> {
    LABELS
        .iter()
        .map(|(id, text, suffix)| (*id, label(text, *suffix, facts)))
}

fn label(text: &str, suffix: Suffix, facts: &LabelFacts<'_>) -> String {
    let mut label = text.to_owned();
    let mode = facts.threading_mode;
    // Writing to a String cannot fail.
    let _ = match suffix {
        Suffix::None => Ok(()),
        Suffix::Version => {
            let LabelFacts {
                version,
                commit,
                own_version,
                ..
            } = facts;
            write!(
                label,
                ": version={version} commit={commit} headrace={own_version}"
            )
        }
        Suffix::DriverName => write!(label, ": driverName={}", facts.driver_name),
        Suffix::Mode => write!(label, ": {mode}"),
        Suffix::ConductorThreshold => write!(label, ": threshold={} {mode}", facts.conductor_threshold),
        Suffix::SenderThreshold => write!(label, ": threshold={} {mode}", facts.sender_threshold),
        Suffix::ReceiverThreshold => write!(label, ": threshold={} {mode}", facts.receiver_threshold),
        Suffix::NameResolverThreshold => write!(label, ": threshold={}", facts.name_resolver_threshold),
    };
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_ids_and_carry_the_facts() {
        let facts = LabelFacts {
            version: "1.2.3",
            own_version: "0.4.5",
            commit: "abcdef",
            threading_mode: "SHARED",
            driver_name: "",
            conductor_threshold: "100ms",
            sender_threshold: "200ms",
            receiver_threshold: "300ms",
            name_resolver_threshold: "5s",
        };
        let labels: Vec<_> = labels(&facts).collect();
        assert!(labels.iter().map(|(id, _)| *id).eq(0..COUNT as i32));
        assert_eq!(COUNT, 46);
        for (id, text) in [
            (0, "Bytes sent"),
            (15, "Errors: version=1.2.3 commit=abcdef headrace=0.4.5"),
            (25, "Resolution changes: driverName="),
            (26, "Conductor max cycle time doing its work in ns: SHARED"),
            (
                27,
                "Conductor work cycle exceeded threshold count: threshold=100ms SHARED",
            ),
            (
                29,
                "Sender work cycle exceeded threshold count: threshold=200ms SHARED",
            ),
            (
                31,
                "Receiver work cycle exceeded threshold count: threshold=300ms SHARED",
            ),
            (33, "NameResolver exceeded threshold count: threshold=5s"),
            (34, "Aeron software: version=1.2.3 commit=abcdef headrace=0.4.5"),
            (45, "Failed offers to NativeResourceAgentProxy"),
        ] {
            assert_eq!(labels[id].1, text);
        }
    }
}
