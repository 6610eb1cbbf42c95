//! Sends the datagrams of an endpoint; counts and reports those that fail.

use std::io;
use std::net::SocketAddr;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::frame;
use headrace_buffers::log::scan::{Datagram, scan_datagrams};
use headrace_protocol::channel::TimestampOffset;
use headrace_protocol::retransmit::ResendRange;
use headrace_sys::Clock;
use headrace_sys::net::is_too_long;

use super::counters::SenderCounters;
use super::destinations::{Destinations, Route};
use super::runs;
use super::timestamps;
use crate::endpoint::SendEndpointSpec;
use crate::network::{Network, advise_mtu};
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
    pub(super) requester: Option<SocketAddr>,
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
            requester: None,
            group: None,
            remote: spec.remote,
            ttl: spec.group.as_ref().map_or(0, |group| group.ttl),
            timestamp: spec.timestamp,
        }
    }

    /// The same, to the receiver that asked for a stream.
    pub(super) fn to_requester(self, requester: Option<SocketAddr>) -> Self {
        Self { requester, ..self }
    }

    /// The same, to answer what came through the sockets of a group.
    pub(super) fn heard_through(self, group: Option<usize>) -> Self {
        Self { group, ..self }
    }

    /// As [`Destinations::send_to_each`]. `send` gets the socket, and the address if the socket has no peer.
    fn send_to_each(
        self,
        whole: usize,
        mut send: impl FnMut(&dyn Transport, Option<SocketAddr>) -> Option<usize>,
    ) -> usize {
        match self.requester {
            Some(_) => send(self.transport, self.requester).unwrap_or(0),
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
    pub(super) network: &'a dyn Network,
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
    pub(super) fn send_datagrams(
        &mut self,
        shared: &PublicationShared,
        term: &AtomicBuffer,
        datagrams: &[Datagram],
    ) -> usize {
        self.sends += 1;
        let way = self.way;
        if let Some(timestamp) = way.timestamp {
            timestamps::write(term, datagrams, timestamp, self.clock.epoch_ns());
        }
        let sent_count = way.send_to_each(datagrams.len(), |via, to| {
            let sent = runs::send_datagrams(via, to, term, datagrams, self.limits.call);
            let sent = sent.map_err(|error| {
                let stream = (shared.mtu_length, shared.stream_id, shared.session_id);
                name_stream(error, stream, to.unwrap_or(way.remote), self.network)
            });
            self.taken(sent, to)
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
            let sent_count = self.send_datagrams(shared, term, &datagrams);
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

    /// Bytes that a destination took. Reports an error and returns none if it cannot be sent to.
    fn taken(&self, sent: io::Result<usize>, to: Option<SocketAddr>) -> Option<usize> {
        sent.inspect_err(|error| {
            let remote = to.unwrap_or(self.way.remote);
            self.conductor
                .report(format!("WARN - failed to send datagram to {remote}: {error}"));
        })
        .ok()
    }
}

/// Says of which stream the datagrams are that the kernel does not send, since the path takes only shorter ones.
fn name_stream(
    error: io::Error,
    (mtu, stream_id, session_id): (usize, i32, i32),
    to: SocketAddr,
    network: &dyn Network,
) -> io::Error {
    if !is_too_long(&error) {
        return error;
    }
    let known = advise_mtu(network, to, mtu).map_or(String::new(), |known| format!(" ({known})"));
    io::Error::other(format!(
        "{error}: datagrams of up to mtu={mtu} bytes are longer than the path takes: give the publication's channel a \
         smaller mtu{known}, streamId={stream_id} sessionId={session_id}"
    ))
}

#[cfg(test)]
mod tests {
    use headrace_protocol::channel::Interface;

    use super::*;
    use crate::network::{BufferLengths, OpenSocket, SocketRequest};

    /// Knows a path MTU.
    struct Known(Option<usize>);

    impl Network for Known {
        fn open(&self, _request: &SocketRequest) -> io::Result<OpenSocket> {
            unreachable!("only asked for the path")
        }

        fn buffer_lengths(&self) -> io::Result<BufferLengths> {
            unreachable!("only asked for the path")
        }

        fn interfaces(&self) -> io::Result<Vec<Interface>> {
            unreachable!("only asked for the path")
        }

        fn path_mtu(&self, _to: SocketAddr) -> Option<usize> {
            self.0
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_told_with_its_stream() {
        let told = |code, to: &str, known| {
            let error = io::Error::from_raw_os_error(code);
            name_stream(error, (8192, 10, -7), to.parse().unwrap(), &Known(known)).to_string()
        };
        let (emsgsize, enetunreach) = (90, 101);
        for (to, known, mtu) in [
            ("10.0.0.2:1", None, ""),
            ("10.0.0.2:1", Some(8220), ""),
            (
                "10.0.0.2:1",
                Some(1400),
                " (the kernel's path MTU to 10.0.0.2 is 1400 bytes: use mtu=1344)",
            ),
            (
                "[fd00::2]:1",
                Some(1280),
                " (the kernel's path MTU to fd00::2 is 1280 bytes: use mtu=1216)",
            ),
        ] {
            let text = format!(
                "Message too long (os error 90): datagrams of up to mtu=8192 bytes are longer than the path takes: \
                 give the publication's channel a smaller mtu{mtu}, streamId=10 sessionId=-7"
            );
            assert_eq!(told(emsgsize, to, known), text);
        }
        let text = "Network is unreachable (os error 101)";
        assert_eq!(told(enetunreach, "10.0.0.2:1", Some(1400)), text);
    }
}
