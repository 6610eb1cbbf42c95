//! System counters that the sender keeps.

use headrace_buffers::counters::{Counter, system_counter};

/// Counters marked "shared" have other writers too and are only added to atomically.
#[derive(Clone, Debug)]
pub(crate) struct SenderCounters {
    /// Bytes of data and heartbeats.
    pub bytes_sent: Counter,
    /// Valid NAKs for known publications.
    pub naks_received: Counter,
    /// Well-formed status messages.
    pub status_messages_received: Counter,
    /// Status messages too far from the sender's position.
    pub status_messages_rejected: Counter,
    /// Heartbeats.
    pub heartbeats_sent: Counter,
    /// Repairs.
    pub retransmits_sent: Counter,
    /// Bytes of the log that repairs covered.
    pub retransmitted_bytes: Counter,
    /// NAKs dropped because every retransmit action was busy.
    pub retransmit_overflow: Counter,
    /// Times a publication ran into its flow control limit.
    pub flow_control_limits: Counter,
    /// Valid error frames.
    pub error_frames_received: Counter,
    /// Re-resolved addresses that differed. Shared.
    pub resolution_changes: Counter,
    /// Datagrams that broke the protocol. Shared.
    pub invalid_packets: Counter,
    /// Datagrams that the system did not take whole. Shared.
    pub short_sends: Counter,
}

impl SenderCounters {
    /// Takes the counters from the driver's set by system counter id.
    pub(crate) fn new(mut counter: impl FnMut(i32) -> Counter) -> Self {
        Self {
            bytes_sent: counter(system_counter::BYTES_SENT),
            naks_received: counter(system_counter::NAK_MESSAGES_RECEIVED),
            status_messages_received: counter(system_counter::STATUS_MESSAGES_RECEIVED),
            status_messages_rejected: counter(system_counter::STATUS_MESSAGES_REJECTED),
            heartbeats_sent: counter(system_counter::HEARTBEATS_SENT),
            retransmits_sent: counter(system_counter::RETRANSMITS_SENT),
            retransmitted_bytes: counter(system_counter::RETRANSMITTED_BYTES),
            retransmit_overflow: counter(system_counter::RETRANSMIT_OVERFLOW),
            flow_control_limits: counter(system_counter::SENDER_FLOW_CONTROL_LIMITS),
            error_frames_received: counter(system_counter::ERROR_FRAMES_RECEIVED),
            resolution_changes: counter(system_counter::RESOLUTION_CHANGES),
            invalid_packets: counter(system_counter::INVALID_PACKETS),
            short_sends: counter(system_counter::SHORT_SENDS),
        }
    }
}
