//! The way out of an endpoint: sends, and counts and reports what did not go.

use std::net::SocketAddr;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::scan::{Datagram, scan_datagrams};
use headrace_protocol::retransmit::ResendRange;

use super::counters::SenderCounters;
use super::runs;
use crate::proxy::ConductorProxy;
use crate::shared::PublicationShared;
use crate::transport::Transport;

/// Memory reused by every send of an agent.
#[derive(Debug, Default)]
pub(super) struct SendBuffers {
    pub(super) datagrams: Vec<Datagram>,
}

/// Where a stream's datagrams go during one call into its publication.
pub(super) struct Outgoing<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) remote: SocketAddr,
    /// What a SETUP says of how far datagrams to a group go.
    pub(super) ttl: u8,
    pub(super) counters: &'a SenderCounters,
    pub(super) conductor: &'a ConductorProxy,
    pub(super) scratch: &'a mut SendBuffers,
    pub(super) burst_length_max: usize,
}

impl Outgoing<'_> {
    /// Sends a frame that travels alone; returns the bytes sent, which are fewer than its length or all.
    pub(super) fn send_frame(&mut self, frame: &[u8]) -> usize {
        let sent = match self.transport.send(frame, None) {
            Ok(sent) => sent,
            Err(error) => self.failed(&error),
        };
        if sent < frame.len() {
            self.counters.short_sends.get_and_add(1);
        }
        sent
    }

    /// Sends datagrams from the log; returns how many went.
    pub(super) fn send_datagrams(&mut self, term: &AtomicBuffer, datagrams: &[Datagram]) -> usize {
        let sent_count = match runs::send_datagrams(self.transport, None, term, datagrams) {
            Ok(sent_count) => sent_count,
            Err(error) => self.failed(&error),
        };
        if sent_count < datagrams.len() {
            self.counters.short_sends.get_and_add(1);
        }
        sent_count
    }

    /// Sends a range of the log again, unless the stream has moved too far past it for the log still to hold it.
    pub(super) fn resend(&mut self, shared: &PublicationShared, range: ResendRange) {
        let geometry = shared.log.geometry();
        let sender_position = shared.sender_position.get();
        let position = geometry.position(range.term_id, range.term_offset as usize);
        if position < shared.lowest_receiver_position().max(0) || position >= sender_position {
            return;
        }
        let term = shared.log.term(geometry.partition(position));
        let (mut offset, end) = (
            range.term_offset as usize,
            (range.term_offset + range.length) as usize,
        );
        let mut covered = 0;
        let mut datagrams = std::mem::take(&mut self.scratch.datagrams);
        while offset < end {
            datagrams.clear();
            scan_datagrams(
                term,
                offset,
                end - offset,
                shared.mtu_length,
                self.burst_length_max,
                &mut datagrams,
            );
            let sent_count = self.send_datagrams(term, &datagrams);
            let advance: usize = datagrams[..sent_count]
                .iter()
                .map(|sent| sent.length + sent.padding)
                .sum();
            covered += advance;
            offset += advance;
            if advance == 0 || sent_count < datagrams.len() {
                break;
            }
        }
        self.scratch.datagrams = datagrams;
        if covered > 0 {
            self.counters.retransmits_sent.increment_release();
            self.counters.retransmitted_bytes.add(covered as i64);
        }
    }

    fn failed(&mut self, error: &std::io::Error) -> usize {
        self.conductor.report(format!(
            "WARN - failed to send datagram to {}: {error}",
            self.remote
        ));
        0
    }
}
