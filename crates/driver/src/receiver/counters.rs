//! System counters that the receiver keeps.

use headrace_buffers::counters::{Counter, system_counter};

/// Counters marked "shared" have other writers too and are only added to atomically.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverCounters {
    /// Names of control addresses that have moved.
    pub resolution_changes: Counter,
    /// Bytes of all datagrams read.
    pub bytes_received: Counter,
    /// NAKs.
    pub naks_sent: Counter,
    /// Status messages.
    pub status_messages_sent: Counter,
    /// Heartbeats accepted.
    pub heartbeats_received: Counter,
    /// Packets before the position that subscribers have read.
    pub flow_control_under_runs: Counter,
    /// Packets beyond the window.
    pub flow_control_over_runs: Counter,
    /// Gaps of unreliable streams covered with padding.
    pub loss_gap_fills: Counter,
    /// Error frames.
    pub error_frames_sent: Counter,
    /// Images whose publication was revoked.
    pub publication_images_revoked: Counter,
    /// Streams of a group that come from further away than status messages reach.
    pub possible_ttl_asymmetries: Counter,
    /// Datagrams that broke the protocol. Shared.
    pub invalid_packets: Counter,
    /// Datagrams that the system did not take whole. Shared.
    pub short_sends: Counter,
}

impl ReceiverCounters {
    /// Takes the counters from the driver's set by system counter id.
    pub(crate) fn new(mut counter: impl FnMut(i32) -> Counter) -> Self {
        Self {
            resolution_changes: counter(system_counter::RESOLUTION_CHANGES),
            bytes_received: counter(system_counter::BYTES_RECEIVED),
            naks_sent: counter(system_counter::NAK_MESSAGES_SENT),
            status_messages_sent: counter(system_counter::STATUS_MESSAGES_SENT),
            heartbeats_received: counter(system_counter::HEARTBEATS_RECEIVED),
            flow_control_under_runs: counter(system_counter::FLOW_CONTROL_UNDER_RUNS),
            flow_control_over_runs: counter(system_counter::FLOW_CONTROL_OVER_RUNS),
            loss_gap_fills: counter(system_counter::LOSS_GAP_FILLS),
            error_frames_sent: counter(system_counter::ERROR_FRAMES_SENT),
            publication_images_revoked: counter(system_counter::PUBLICATION_IMAGES_REVOKED),
            possible_ttl_asymmetries: counter(system_counter::POSSIBLE_TTL_ASYMMETRY),
            invalid_packets: counter(system_counter::INVALID_PACKETS),
            short_sends: counter(system_counter::SHORT_SENDS),
        }
    }
}
