//! The way out of an endpoint: sends, and counts and reports what did not go.

use std::io;
use std::net::SocketAddr;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::frame;
use headrace_buffers::log::scan::{Datagram, scan_datagrams};
use headrace_protocol::channel::TimestampOffset;
use headrace_protocol::retransmit::ResendRange;
use headrace_sys::Clock;

use super::counters::SenderCounters;
use super::destinations::{Destinations, Route};
use super::runs;
use super::timestamps;
use crate::endpoint::SendEndpointSpec;
use crate::proxy::ConductorProxy;
use crate::shared::PublicationShared;
use crate::transport::Transport;

/// Memory reused by every send of an agent.
#[derive(Debug, Default)]
pub(super) struct SendBuffers {
    pub(super) datagrams: Vec<Datagram>,
}

/// How much is sent at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Bytes of one publication in one duty cycle.
    pub burst_length: usize,
    /// Datagrams of one publication in one duty cycle.
    pub turn: usize,
    /// Datagrams in one system call.
    pub call: usize,
}

impl Default for SendLimits {
    fn default() -> Self {
        Self {
            burst_length: 128 * 1024,
            turn: usize::MAX,
            call: usize::MAX,
        }
    }
}

/// The socket of a channel, and where it sends to.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) destinations: &'a Destinations,
    /// The receiver that asked for the stream, where that alone is sent to.
    pub(super) asker: Option<SocketAddr>,
    /// The destination, a group, through whose sockets came what is answered.
    group: Option<usize>,
    // The peer of the socket; for error texts.
    pub(super) remote: SocketAddr,
    /// What a SETUP says of how far datagrams to a group go.
    pub(super) ttl: u8,
    /// Where the time of sending is written.
    pub(super) timestamp: Option<TimestampOffset>,
}

impl<'a> Way<'a> {
    pub(super) fn of(spec: &'a SendEndpointSpec, destinations: &'a Destinations) -> Self {
        Self {
            transport: spec.transport.as_ref(),
            destinations,
            asker: None,
            group: None,
            remote: spec.remote,
            ttl: spec.group.as_ref().map_or(0, |group| group.ttl),
            timestamp: spec.timestamp,
        }
    }

    /// The same, to the receiver that asked for a stream.
    pub(super) fn to_asker(self, asker: Option<SocketAddr>) -> Self {
        Self { asker, ..self }
    }

    /// The same, to answer what came through the sockets of a group.
    pub(super) fn heard_through(self, group: Option<usize>) -> Self {
        Self { group, ..self }
    }

    /// As of all destinations. `send` is told the socket, and the address where that has no peer.
    fn send_to_each(
        self,
        whole: usize,
        mut send: impl FnMut(&dyn Transport, Option<SocketAddr>) -> Option<usize>,
    ) -> usize {
        match self.asker {
            Some(_) => send(self.transport, self.asker).unwrap_or(0),
            None => self
                .destinations
                .send_to_each(whole, |Route { to, via }| send(via.unwrap_or(self.transport), to)),
        }
    }
}

/// Where a stream's datagrams go during one call into its publication.
pub(super) struct Outgoing<'a> {
    pub(super) way: Way<'a>,
    pub(super) counters: &'a SenderCounters,
    pub(super) conductor: &'a ConductorProxy,
    pub(super) scratch: &'a mut SendBuffers,
    pub(super) limits: SendLimits,
    pub(super) clock: &'a dyn Clock,
    /// Sends so far: of a frame, or of a run of datagrams.
    pub(super) sends: usize,
}

impl Outgoing<'_> {
    /// Sends a frame that travels alone; returns the bytes sent, which are fewer than its length or all.
    pub(super) fn send_frame(&mut self, frame: &[u8]) -> usize {
        self.sends += 1;
        let way = self.way;
        let sent = way.send_to_each(frame.len(), |via, to| self.taken(via.send(frame, to), to));
        if sent < frame.len() {
            self.counters.short_sends.get_and_add(1);
        }
        sent
    }

    /// Sends a frame that travels alone to the one that asked for it.
    pub(super) fn answer(&mut self, frame: &[u8], source: SocketAddr) {
        let Route { to, via } = self.way.destinations.answer_to(source, self.way.group);
        let sent = self.taken(via.unwrap_or(self.way.transport).send(frame, to), to);
        if sent.unwrap_or(0) < frame.len() {
            self.counters.short_sends.get_and_add(1);
        }
    }

    /// Sends datagrams from the log; returns how many went. They leave in one call, so one time is that of them all.
    pub(super) fn send_datagrams(&mut self, term: &AtomicBuffer, datagrams: &[Datagram]) -> usize {
        self.sends += 1;
        let way = self.way;
        if let Some(timestamp) = way.timestamp {
            timestamps::write(term, datagrams, timestamp, self.clock.epoch_ns());
        }
        let sent_count = way.send_to_each(datagrams.len(), |via, to| {
            self.taken(
                runs::send_datagrams(via, to, term, datagrams, self.limits.call),
                to,
            )
        });
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
        if position < shared.lowest_repairable_position().max(0) || position >= sender_position {
            return;
        }
        let term = shared.log.term(geometry.partition(position));
        let (mut offset, end) = (
            range.term_offset as usize,
            (range.term_offset + range.length) as usize,
        );
        // A request may name any offset: in the middle of a message there is no header to go by.
        if frame::term_offset(term, offset) != range.term_offset {
            return;
        }
        let mut covered = 0;
        let mut datagrams = std::mem::take(&mut self.scratch.datagrams);
        while offset < end {
            datagrams.clear();
            scan_datagrams(
                term,
                offset,
                end - offset,
                shared.mtu_length,
                self.limits.burst_length,
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
            shared.retransmits_sent.increment_release();
            self.counters.retransmitted_bytes.add(covered as i64);
        }
    }

    /// What a destination took; none when it cannot be sent to, which is reported.
    fn taken(&self, sent: io::Result<usize>, to: Option<SocketAddr>) -> Option<usize> {
        sent.inspect_err(|error| {
            let remote = to.unwrap_or(self.way.remote);
            self.conductor
                .report(format!("WARN - failed to send datagram to {remote}: {error}"));
        })
        .ok()
    }
}
