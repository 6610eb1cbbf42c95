//! The agent that sends: data, heartbeats and SETUPs out, status messages and NAKs in.
//!
//! In every duty cycle each publication may send a burst; the sockets are polled for frames of receivers when there was
//! nothing to send, and otherwise every few cycles.

mod counters;
mod destinations;
mod endpoint;
mod liveness;
mod outgoing;
mod publication;
mod receivers;
mod repairs;
mod responses;
mod runs;
mod setups;
mod timestamps;
mod transmission;

use std::sync::Arc;
use std::time::Duration;

use headrace_buffers::doorbell::{Bell, Interests};
use headrace_protocol::frame::first_datagram;
use headrace_protocol::retransmit::RetransmitHandler;
use headrace_sys::Clock;
use headrace_sys::net::ReceiveBatch;

pub(crate) use counters::SenderCounters;
pub(crate) use outgoing::SendLimits;

use crate::agent::Agent;
use crate::endpoint::EndpointId;
use crate::mailbox::Inbox;
use crate::names::Following;
use crate::network::Network;
use crate::proxy::{ConductorProxy, ConductorReply, SenderCommand};
use destinations::Changed;
use endpoint::{Cycle, SendEndpoint, Sent};
use outgoing::SendBuffers;
use publication::SenderPublication;
use repairs::Repairs;

/// How late the timers of a sender may be that has nothing to send.
const TIMER_RESOLUTION: Duration = Duration::from_millis(10);

/// Time between polls of the control sockets while nothing is sent and no publication waits for a status message: a
/// thread that is busy with other agents does not look at empty sockets most of the time. It is less than matters to a
/// repair.
const IDLE_POLL_INTERVAL_NS: i64 = 10_000;

/// Duty cycles after which it looks at the latest where receivers are many: what those send at once fills the buffer of a
/// socket in less than that time, and in fewer cycles than `send_to_status_poll_ratio`.
const POLL_CYCLES_OF_MANY: usize = 3;

/// Receivers' streams on one socket that are not many.
const FEW_HEARD_FROM: usize = 16;

/// Messages taken from a control socket in one poll.
const RECEIVE_BUFFERS: usize = 4;

/// Most names that are looked up again after one look at who is silent. The next look has the others.
const NAMES_A_CHECK: usize = 16;

/// Settings of the sender, from the driver's configuration.
#[derive(Clone, Debug)]
pub(crate) struct SenderSettings {
    /// Duty cycles with data between polls of the control sockets.
    pub send_to_status_poll_ratio: usize,
    /// `aeron.rcv.status.message.timeout`; sockets are polled at least every half of it.
    pub status_message_timeout_ns: i64,
    /// Silence after which a receiver no longer counts as connected.
    pub publication_connection_timeout_ns: i64,
    /// Wait between a NAK and its repair.
    pub retransmit_delay_ns: i64,
    /// Time during which further NAKs for a repaired range are ignored.
    pub retransmit_linger_ns: i64,
    /// The linger follows the round trip if that is known, and is at most the setting.
    pub adapts_linger: bool,
    /// How quickly names of silent receivers are followed, if at all.
    pub following: Option<Following>,
    /// Additional bytes a second that each address may get when it asks a dynamic channel for its streams.
    pub newcomer_allowance: usize,
    /// How much is sent at once.
    pub limits: SendLimits,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            send_to_status_poll_ratio: 6,
            status_message_timeout_ns: 200_000_000,
            publication_connection_timeout_ns: 5_000_000_000,
            retransmit_delay_ns: 0,
            retransmit_linger_ns: 10_000_000,
            adapts_linger: true,
            following: Following::within(1_000_000_000),
            newcomer_allowance: 0,
            limits: SendLimits::default(),
        }
    }
}

/// The sender agent.
pub(crate) struct Sender {
    inbox: Inbox<SenderCommand>,
    conductor: ConductorProxy,
    counters: SenderCounters,
    settings: SenderSettings,
    // Of the machine's wall, for timestamps in messages.
    clock: Arc<dyn Clock>,
    /// Knows how long datagrams may be.
    network: Arc<dyn Network>,
    endpoints: Vec<SendEndpoint>,
    first_to_send: usize,
    batch: ReceiveBatch,
    scratch: SendBuffers,
    cycles_since_poll: usize,
    /// The most streams of receivers that one socket hears from.
    most_heard_from: usize,
    last_poll_ns: i64,
    last_re_resolution_check_ns: i64,
    first_to_re_resolve: usize,
    // A socket took less than it was given: nothing tells when it has room again.
    is_socket_full: bool,
    // A turn ended before every publication had sent.
    is_turn_left: bool,
}

impl Sender {
    /// A sender without channels, taking commands from `inbox` and answering to `conductor`.
    pub(crate) fn new(
        inbox: Inbox<SenderCommand>,
        conductor: ConductorProxy,
        counters: SenderCounters,
        settings: SenderSettings,
        clock: Arc<dyn Clock>,
        network: Arc<dyn Network>,
    ) -> Self {
        Self {
            inbox,
            conductor,
            counters,
            settings,
            clock,
            network,
            endpoints: Vec::new(),
            first_to_send: 0,
            most_heard_from: 0,
            batch: ReceiveBatch::of(RECEIVE_BUFFERS, first_datagram),
            scratch: SendBuffers::default(),
            cycles_since_poll: 0,
            last_poll_ns: 0,
            last_re_resolution_check_ns: 0,
            first_to_re_resolve: 0,
            is_socket_full: false,
            is_turn_left: false,
        }
    }

    fn cycle(&mut self, now_ns: i64) -> (&mut [SendEndpoint], &mut ReceiveBatch, Cycle<'_>) {
        let cycle = Cycle {
            now_ns,
            counters: &self.counters,
            conductor: &mut self.conductor,
            scratch: &mut self.scratch,
            limits: self.settings.limits,
            connection_timeout_ns: self.settings.publication_connection_timeout_ns,
            clock: self.clock.as_ref(),
            network: self.network.as_ref(),
        };
        (&mut self.endpoints, &mut self.batch, cycle)
    }

    fn endpoint(&mut self, id: EndpointId) -> Option<&mut SendEndpoint> {
        self.endpoints.iter_mut().find(|endpoint| endpoint.id() == id)
    }

    fn on_command(&mut self, command: SenderCommand, now_ns: i64) {
        match command {
            SenderCommand::AddEndpoint(spec) => {
                let allowance = self.settings.newcomer_allowance;
                self.endpoints.push(SendEndpoint::new(*spec, allowance, now_ns));
            }
            SenderCommand::RemoveEndpoint(id) => {
                self.endpoints.retain(|endpoint| endpoint.id() != id);
                self.conductor.reply(ConductorReply::SendEndpointReleased(id));
            }
            SenderCommand::AddPublication {
                endpoint,
                publication,
                flow_control,
                max_resend,
            } => {
                let (delay_ns, linger_ns) = (
                    self.settings.retransmit_delay_ns,
                    self.settings.retransmit_linger_ns,
                );
                let retransmit = if publication.has_group_semantics {
                    RetransmitHandler::group(max_resend, delay_ns, linger_ns)
                } else {
                    RetransmitHandler::unicast(delay_ns, linger_ns)
                };
                let repairs = Repairs {
                    retransmit,
                    measured_linger_max_ns: self.settings.adapts_linger.then_some(linger_ns),
                };
                let added = SenderPublication::new(Arc::clone(&publication), flow_control, repairs, now_ns);
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.add(added);
                }
            }
            SenderCommand::RemovePublication {
                endpoint,
                registration_id,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.remove(registration_id);
                }
                self.conductor
                    .reply(ConductorReply::PublicationReleased { registration_id });
            }
            SenderCommand::ChangeDestinations { endpoint, change } => {
                let changed = self
                    .endpoint(endpoint)
                    .map(|endpoint| endpoint.change(change, now_ns));
                if changed == Some(Changed::Moved) {
                    self.counters.resolution_changes.get_and_add(1);
                }
            }
            SenderCommand::Reconnect { endpoint, remote } => {
                let (endpoints, _, mut cycle) = self.cycle(now_ns);
                if let Some(found) = endpoints.iter_mut().find(|found| found.id() == endpoint) {
                    found.reconnect(remote, &mut cycle);
                }
            }
        }
    }

    fn send(&mut self, now_ns: i64) -> Sent {
        let count = self.endpoints.len();
        let mut total = Sent::default();
        if count == 0 {
            return total;
        }
        // A division would be a good part of a turn without work.
        let first = if self.first_to_send + 1 < count {
            self.first_to_send + 1
        } else {
            0
        };
        self.first_to_send = first;
        let (endpoints, _, mut cycle) = self.cycle(now_ns);
        let (earlier, later) = endpoints.split_at_mut(first);
        for endpoint in later.iter_mut().chain(earlier) {
            let sent = endpoint.send(&mut cycle);
            total.bytes += sent.bytes;
            total.is_all &= sent.is_all;
            total.is_limited |= sent.is_limited;
        }
        self.is_turn_left = !total.is_all;
        if total.bytes > 0 {
            self.counters.bytes_sent.add(total.bytes as i64);
        }
        total
    }

    fn poll(&mut self, now_ns: i64) -> usize {
        self.cycles_since_poll = 0;
        self.last_poll_ns = now_ns;
        self.most_heard_from = self
            .endpoints
            .iter()
            .map(SendEndpoint::heard_from)
            .max()
            .unwrap_or(0);
        let (endpoints, batch, mut cycle) = self.cycle(now_ns);
        endpoints
            .iter_mut()
            .map(|endpoint| endpoint.poll(batch, &mut cycle))
            .sum()
    }

    fn check_re_resolution(&mut self, now_ns: i64) {
        let Some(following) = self.settings.following else {
            return;
        };
        if now_ns - self.last_re_resolution_check_ns <= following.check_interval_ns() {
            return;
        }
        self.last_re_resolution_check_ns = now_ns;
        self.first_to_re_resolve = self.first_to_re_resolve.wrapping_add(1);
        let first = self.first_to_re_resolve % self.endpoints.len().max(1);
        let (endpoints, _, mut cycle) = self.cycle(now_ns);
        let (after, from_first) = endpoints.split_at_mut(first);
        let mut allowed = NAMES_A_CHECK;
        for endpoint in from_first.iter_mut().chain(after) {
            endpoint.connect_late();
            allowed = endpoint.check_re_resolution(following, allowed, &mut cycle);
        }
    }
}

impl Agent for Sender {
    fn role_name(&self) -> &'static str {
        "sender"
    }

    fn do_work(&mut self, now_ns: i64) -> usize {
        let mut work_count = self.conductor.flush();
        // Commands are taken even while replies wait for room: see `mailbox`.
        if let Some(command) = self.inbox.pop() {
            self.on_command(command, now_ns);
            work_count += 1;
        }
        let short_sends = self.counters.short_sends.get();
        let sent = self.send(now_ns);
        self.is_socket_full = short_sends != self.counters.short_sends.get();
        self.cycles_since_poll += 1;
        let (ratio, interval_ns) = if sent.bytes > 0 {
            let interval_ns = self.settings.status_message_timeout_ns / 2;
            (self.settings.send_to_status_poll_ratio, interval_ns)
        } else {
            (usize::MAX, IDLE_POLL_INTERVAL_NS)
        };
        let cycles = if self.most_heard_from > FEW_HEARD_FROM {
            ratio.min(POLL_CYCLES_OF_MANY)
        } else {
            ratio
        };
        if sent.is_limited
            || self.cycles_since_poll >= cycles
            || now_ns - self.last_poll_ns >= interval_ns
            || self.is_socket_full
        {
            work_count += self.poll(now_ns);
        }
        self.check_re_resolution(now_ns);
        work_count + sent.bytes + usize::from(self.is_turn_left)
    }

    fn describe(&self, interests: &mut Interests) {
        interests.bell(Bell::Sender);
        if !self.endpoints.is_empty() {
            interests.limit_park(TIMER_RESOLUTION);
        }
        if self.is_socket_full || self.is_turn_left || self.conductor.has_backlog() {
            interests.may_come_unrung();
        }
        for endpoint in &self.endpoints {
            endpoint.describe(interests);
        }
    }

    fn waiting_messages(&self) -> usize {
        self.inbox.len() + self.conductor.backlog_length()
    }

    fn on_close(&mut self) {
        self.endpoints.clear();
    }
}
