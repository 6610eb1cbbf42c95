//! Data that is sent for the first time, and heartbeats while there is none.

use headrace_buffers::log::scan::scan_datagrams;
use headrace_protocol::frame::{DataHeader, data};

use super::outgoing::Outgoing;
use crate::shared::PublicationShared;

/// Silence after which a heartbeat says where the sender is.
const HEARTBEAT_INTERVAL_NS: i64 = 100_000_000;

/// How one stream moves on, up to the limit.
pub(super) struct Transmission {
    /// In its last turn the receivers' windows had no room for it.
    pub(super) is_limited: bool,
    // Running into the limit is counted once between two successful sends.
    counts_next_limit: bool,
    last_data_or_heartbeat_ns: i64,
}

impl Transmission {
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            is_limited: false,
            counts_next_limit: false,
            last_data_or_heartbeat_ns: now_ns,
        }
    }

    /// Sends what is new. Returns the bytes by which the stream moved.
    #[inline]
    pub(super) fn send(&mut self, shared: &PublicationShared, now_ns: i64, out: &mut Outgoing<'_>) -> usize {
        self.is_limited = false;
        let position = shared.sender_position.get();
        let window = shared.sender_limit.get() - position;
        if window <= 0 {
            self.on_limit(shared, out);
            return 0;
        }
        let geometry = shared.log.geometry();
        let term = shared.log.term(geometry.partition(position));
        let mut datagrams = std::mem::take(&mut out.scratch.datagrams);
        datagrams.clear();
        let found = scan_datagrams(
            term,
            geometry.term_offset(position),
            window as usize,
            shared.mtu_length,
            out.limits.burst_length,
            &mut datagrams,
        );
        datagrams.truncate(out.limits.turn);
        let mut advance = 0;
        if !datagrams.is_empty() {
            let sent_count = out.send_datagrams(shared, term, &datagrams);
            advance = datagrams[..sent_count]
                .iter()
                .map(|sent| sent.length + sent.padding)
                .sum();
        }
        out.scratch.datagrams = datagrams;
        if advance > 0 {
            shared.sender_position.set_release(position + advance as i64);
            shared.log.doorbells().position.ring();
            self.last_data_or_heartbeat_ns = now_ns;
            self.counts_next_limit = true;
        } else if found.blocked {
            self.on_limit(shared, out);
        }
        advance
    }

    fn on_limit(&mut self, shared: &PublicationShared, out: &Outgoing<'_>) {
        self.is_limited = true;
        if std::mem::take(&mut self.counts_next_limit) {
            shared.back_pressure_events.increment_release();
            out.counters.flow_control_limits.increment_release();
        }
    }

    /// Sends a heartbeat if it is time. Returns its length.
    #[inline]
    pub(super) fn send_heartbeat(
        &mut self,
        shared: &PublicationShared,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) -> usize {
        if now_ns - self.last_data_or_heartbeat_ns <= HEARTBEAT_INTERVAL_NS {
            return 0;
        }
        self.last_data_or_heartbeat_ns = now_ns;
        let flags = if shared.log.metadata().is_publication_revoked_acquire() {
            data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM | data::FLAG_REVOKED
        } else if shared.signals_end_of_stream && is_at_end_of_stream(shared) {
            data::FLAGS_UNFRAGMENTED | data::FLAG_END_OF_STREAM
        } else {
            data::FLAGS_UNFRAGMENTED
        };
        out.counters.heartbeats_sent.increment_release();
        out.send_frame(&heartbeat(shared, flags))
    }
}

/// Where the stream is.
pub(super) fn heartbeat(shared: &PublicationShared, flags: u8) -> [u8; DataHeader::LENGTH] {
    let geometry = shared.log.geometry();
    let position = shared.sender_position.get();
    let heartbeat = DataHeader::heartbeat(
        shared.session_id,
        shared.stream_id,
        geometry.term_id(position),
        geometry.term_offset(position) as i32,
        flags,
    );
    let mut frame = [0; DataHeader::LENGTH];
    heartbeat.encode(&mut frame);
    frame
}

/// Ended, and sent to its end. A stream also ends when no receiver is left to send the rest to; one that comes back
/// gets the rest, and must not be told before that it was all.
fn is_at_end_of_stream(shared: &PublicationShared) -> bool {
    let end = shared.log.metadata().end_of_stream_position_acquire();
    shared.is_end_of_stream() && shared.sender_position.get() >= end
}
