//! The agent that receives: packets into images, status messages and NAKs back to senders.

mod announcement;
mod connections;
mod counters;
mod dispatcher;
mod elicitor;
mod end_of_stream;
mod endpoint;
mod frontier;
mod image;
mod liveness;
mod outgoing;
mod paths;
mod pending_setups;
mod rebuilder;
mod rejection;
mod repairs;
mod round_trips;
mod status_messages;
mod window;

use std::sync::Arc;
use std::time::Duration;

use headrace_buffers::doorbell::{Bell, Interests};
use headrace_protocol::frame::first_datagram;
use headrace_sys::Clock;
use headrace_sys::net::ReceiveBatch;

pub(crate) use counters::ReceiverCounters;

use crate::agent::Agent;
use crate::endpoint::EndpointId;
use crate::mailbox::Inbox;
use crate::names::Following;
use crate::proxy::{ConductorProxy, ConductorReply, ReceiverCommand};
use endpoint::{Cycle, ReceiveEndpoint};
use image::ImageTimeouts;

/// How late the timers of a receiver may be to which nothing comes.
const TIMER_RESOLUTION: Duration = Duration::from_millis(10);

/// Settings of the receiver, from the driver's configuration.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverSettings {
    /// A status message is sent at least this often.
    pub status_message_timeout_ns: i64,
    /// Silence after which an image is given up.
    pub image_liveness_timeout_ns: i64,
    /// Most images of one stream of one channel.
    pub stream_session_limit: usize,
    /// How quickly names of silent senders are followed, if at all.
    pub following: Option<Following>,
    /// Messages taken from a socket in one poll; each may hold many datagrams.
    pub receive_buffers: usize,
}

impl Default for ReceiverSettings {
    fn default() -> Self {
        Self {
            status_message_timeout_ns: 200_000_000,
            image_liveness_timeout_ns: 10_000_000_000,
            stream_session_limit: i32::MAX as usize,
            following: Following::within(1_000_000_000),
            receive_buffers: 16,
        }
    }
}

/// The receiver agent.
pub(crate) struct Receiver {
    inbox: Inbox<ReceiverCommand>,
    conductor: ConductorProxy,
    counters: ReceiverCounters,
    settings: ReceiverSettings,
    // Of the machine's wall, for timestamps in messages.
    clock: Arc<dyn Clock>,
    endpoints: Vec<ReceiveEndpoint>,
    batch: ReceiveBatch,
}

impl Receiver {
    /// A receiver without channels, taking commands from `inbox` and answering to `conductor`.
    pub(crate) fn new(
        inbox: Inbox<ReceiverCommand>,
        conductor: ConductorProxy,
        counters: ReceiverCounters,
        settings: ReceiverSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let batch = ReceiveBatch::of(settings.receive_buffers, first_datagram);
        Self {
            inbox,
            conductor,
            counters,
            settings,
            clock,
            endpoints: Vec::new(),
            batch,
        }
    }

    /// Applies a command to its endpoint. One that names a closed endpoint has come too late to matter.
    fn at(&mut self, id: EndpointId, command: impl FnOnce(&mut ReceiveEndpoint)) {
        if let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| endpoint.id() == id) {
            command(endpoint);
        }
    }

    /// The same for a command that sends or counts.
    fn at_in_cycle(
        &mut self,
        id: EndpointId,
        now_ns: i64,
        command: impl FnOnce(&mut ReceiveEndpoint, &mut Cycle<'_>),
    ) {
        let (endpoints, _, mut cycle) = self.cycle(now_ns);
        if let Some(endpoint) = endpoints.iter_mut().find(|endpoint| endpoint.id() == id) {
            command(endpoint, &mut cycle);
        }
    }

    fn cycle(&mut self, now_ns: i64) -> (&mut [ReceiveEndpoint], &mut ReceiveBatch, Cycle<'_>) {
        let cycle = Cycle {
            now_ns,
            counters: &self.counters,
            conductor: &mut self.conductor,
            timeouts: ImageTimeouts {
                status_message_ns: self.settings.status_message_timeout_ns,
                liveness_ns: self.settings.image_liveness_timeout_ns,
            },
            stream_session_limit: self.settings.stream_session_limit,
            following: self.settings.following,
            clock: self.clock.as_ref(),
        };
        (&mut self.endpoints, &mut self.batch, cycle)
    }

    fn on_command(&mut self, command: ReceiverCommand, now_ns: i64) {
        match command {
            ReceiverCommand::AddEndpoint(spec) => self.endpoints.push(ReceiveEndpoint::new(*spec, now_ns)),
            ReceiverCommand::AddPath { endpoint, path, spec } => {
                self.at(endpoint, |endpoint| endpoint.add_path(path, *spec, now_ns))
            }
            ReceiverCommand::RemovePath { endpoint, path } => {
                self.at_in_cycle(endpoint, now_ns, |endpoint, cycle| {
                    endpoint.remove_path(path, cycle)
                });
                self.conductor
                    .reply(ConductorReply::ReceivePathReleased { endpoint, path });
            }
            ReceiverCommand::MoveControl {
                endpoint,
                path,
                address,
            } => {
                self.at_in_cycle(endpoint, now_ns, |endpoint, cycle| {
                    endpoint.move_control(path, address, cycle);
                });
            }
            ReceiverCommand::RemoveEndpoint(id) => {
                self.endpoints.retain(|endpoint| endpoint.id() != id);
                self.conductor.reply(ConductorReply::ReceiveEndpointReleased(id));
            }
            ReceiverCommand::AddSubscription {
                endpoint,
                stream_id,
                session_id,
            } => self.at(endpoint, |endpoint| {
                endpoint.add_subscription(stream_id, session_id)
            }),
            ReceiverCommand::RemoveSubscription {
                endpoint,
                stream_id,
                session_id,
            } => self.at(endpoint, |endpoint| {
                endpoint.remove_subscription(stream_id, session_id)
            }),
            ReceiverCommand::Responses { endpoint, command } => {
                self.at_in_cycle(endpoint, now_ns, |endpoint, cycle| {
                    endpoint.on_responses(command, cycle);
                });
            }
            ReceiverCommand::AddImage { endpoint, image } => {
                self.at(endpoint, |endpoint| endpoint.add_image(image, now_ns))
            }
            ReceiverCommand::RemoveImage {
                endpoint,
                correlation_id,
            } => {
                self.at_in_cycle(endpoint, now_ns, |endpoint, cycle| {
                    endpoint.remove_image(correlation_id, cycle);
                });
                self.conductor
                    .reply(ConductorReply::ImageReleased { correlation_id });
            }
            ReceiverCommand::ForgetArrival(name) => self.at(name.endpoint, |at| at.forget_arrival(&name)),
            ReceiverCommand::EndCoolDown(name) => self.at(name.endpoint, |at| at.end_cool_down(&name)),
            ReceiverCommand::RejectImage {
                endpoint,
                correlation_id,
                reason,
            } => self.at(endpoint, |endpoint| endpoint.reject_image(correlation_id, reason)),
        }
    }
}

impl Agent for Receiver {
    fn role_name(&self) -> &'static str {
        "receiver"
    }

    fn do_work(&mut self, now_ns: i64) -> usize {
        let mut work_count = self.conductor.flush();
        // Commands are taken even while replies wait for room: see `mailbox`.
        if let Some(command) = self.inbox.pop() {
            self.on_command(command, now_ns);
            work_count += 1;
        }
        let (endpoints, batch, mut cycle) = self.cycle(now_ns);
        // What images owe their senders can wait for the next turn, what arrives cannot: it is with the program at once
        // whose thread this is.
        for endpoint in &mut *endpoints {
            work_count += endpoint.service_images(&mut cycle);
        }
        for endpoint in endpoints {
            work_count += endpoint.poll(batch, &mut cycle);
            work_count += endpoint.judge_images(&cycle);
        }
        work_count
    }

    fn describe(&self, interests: &mut Interests) {
        interests.bell(Bell::Receiver);
        if !self.endpoints.is_empty() {
            interests.limit_park(TIMER_RESOLUTION);
        }
        if self.conductor.has_backlog() {
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
