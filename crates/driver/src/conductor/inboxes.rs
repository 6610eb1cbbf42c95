//! The messages of the other agents to the conductor.

use std::net::SocketAddr;

use headrace_protocol::ErrorCode;
use headrace_protocol::event::{Event, PublicationError};
use headrace_protocol::frame::ErrorFrame;

use super::commands::{CommandRing, Progress};
use super::context::Context;
use super::images::Arrival;
use super::responses;
use super::rooms::Rooms;
use crate::errors::ErrorGroup;
use crate::mailbox::Inbox;
use crate::proxy::{ConductorReply, ConductorRequest};
use crate::resource_tasks::ResourceOutcome;

/// The queues that the conductor takes from.
pub(crate) struct Inboxes {
    pub(crate) outcomes: Inbox<ResourceOutcome>,
    pub(crate) replies: Inbox<ConductorReply>,
    pub(crate) requests: Inbox<ConductorRequest>,
}

impl Inboxes {
    /// How many messages wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.outcomes.len() + self.replies.len() + self.requests.len()
    }

    /// Takes one outcome of the resource agent.
    pub(crate) fn take_outcome(&self, rooms: &mut Rooms, progress: &mut Progress) -> usize {
        let Some(outcome) = self.outcomes.pop() else {
            return 0;
        };
        match outcome {
            ResourceOutcome::LogCreated {
                correlation_id,
                result,
            } => {
                let result = result.map(|log| log.with_doorbells(&rooms.cx.doorbells));
                if rooms.images.making.awaits(correlation_id) {
                    let channels = &mut rooms.channels.receive;
                    rooms.images.on_log(
                        &mut rooms.cx,
                        &rooms.subscriptions,
                        channels,
                        correlation_id,
                        result,
                    );
                } else {
                    progress.on_log(rooms, correlation_id, result);
                }
            }
            ResourceOutcome::LookupBegun { correlation_id } => progress.on_lookup_begun(correlation_id),
            ResourceOutcome::AddressesFound {
                correlation_id,
                result,
            } => progress.on_addresses(rooms, correlation_id, result.map(|udp| *udp)),
            ResourceOutcome::Resolved {
                endpoint,
                name,
                result,
            } => {
                let (cx, channels) = (&mut rooms.cx, &mut rooms.channels);
                channels.receive.on_resolved(cx, endpoint, &name, result.clone());
                channels.send.on_resolved(cx, endpoint, name, result);
            }
            ResourceOutcome::Labelled { counter_id, label } => {
                rooms.cx.counters.set_label(counter_id, &label)
            }
        }
        1
    }

    /// Takes one reply of the sender or the receiver. Never held back: they may be waiting for room.
    pub(crate) fn take_reply(&self, rooms: &mut Rooms, progress: &mut Progress) -> usize {
        let Some(reply) = self.replies.pop() else {
            return 0;
        };
        let Rooms {
            cx,
            publications,
            images,
            channels,
            ..
        } = rooms;
        match reply {
            ConductorReply::PublicationReleased { registration_id } => {
                publications.on_released(cx, registration_id);
            }
            ConductorReply::SendEndpointReleased(endpoint) => channels.send.on_closed(cx, endpoint),
            ConductorReply::ImageReleased { correlation_id } => images.on_released(cx, correlation_id),
            ConductorReply::ReceiveEndpointReleased(endpoint) => channels.receive.on_closed(cx, endpoint),
            ConductorReply::ReceivePathReleased { endpoint, path } => {
                channels.receive.on_path_closed(cx, endpoint, path);
                progress.on_path_closed(cx, endpoint, path);
            }
            ConductorReply::Reconnected(endpoint) => channels.send.on_reconnected(cx, endpoint),
            ConductorReply::ReconnectFailed { endpoint, reason } => {
                channels.send.on_reconnect_failed(cx, endpoint, &reason);
            }
        }
        1
    }

    /// Takes one request of the sender or the receiver, unless its consequences could not be passed on.
    pub(crate) fn take_request(&self, rooms: &mut Rooms, ring: &CommandRing) -> usize {
        if rooms.cx.is_congested() {
            return 0;
        }
        let Some(request) = self.requests.pop() else {
            return 0;
        };
        match request {
            ConductorRequest::CreateImage {
                endpoint,
                path,
                setup,
                source,
            } => {
                let arrival = Arrival {
                    endpoint,
                    path,
                    setup,
                    source,
                    is_multicast: rooms.channels.receive.is_group(endpoint),
                };
                let channels = &mut rooms.channels.receive;
                rooms
                    .images
                    .begin(&mut rooms.cx, &rooms.subscriptions, channels, arrival, || {
                        ring.next_id()
                    });
            }
            ConductorRequest::ResponsesAnnounced {
                subscription_id,
                session_id,
            } => responses::on_announced(rooms, subscription_id, session_id),
            ConductorRequest::PublicationError {
                registration_id,
                frame,
                source,
                destination,
            } => on_publication_error(&mut rooms.cx, registration_id, &frame, source, destination),
            ConductorRequest::ReResolve {
                endpoint,
                destination,
            } => {
                let (cx, channels) = (&mut rooms.cx, &mut rooms.channels);
                channels.receive.re_resolve(cx, endpoint, destination.clone());
                channels.send.re_resolve(cx, endpoint, destination);
            }
            ConductorRequest::Destinations {
                endpoint,
                destinations,
            } => {
                let (cx, channels) = (&mut rooms.cx, &mut rooms.channels);
                channels.send.show_destinations(cx, endpoint, &destinations);
            }
            ConductorRequest::Report { code, text } => {
                rooms
                    .cx
                    .errors
                    .record_in(ErrorGroup::Sockets, code, &text, rooms.cx.now_ms);
            }
        }
        1
    }
}

/// A receiver refused a stream: its publishers are told, and the log keeps it.
fn on_publication_error(
    cx: &mut Context,
    registration_id: i64,
    frame: &ErrorFrame,
    source: SocketAddr,
    destination: Option<i64>,
) {
    let text = format!(
        "WARN - error frame received: sessionId={} streamId={} receiverId={} code={} source={source}: {}",
        frame.session_id, frame.stream_id, frame.receiver_id, frame.error_code, frame.text
    );
    cx.errors
        .record_in(ErrorGroup::ErrorFrames, frame.error_code, &text, cx.now_ms);
    cx.events.send(&Event::PublicationError(PublicationError {
        registration_id,
        destination_registration_id: destination.unwrap_or(-1),
        session_id: frame.session_id,
        stream_id: frame.stream_id,
        receiver_id: frame.receiver_id,
        group_tag: frame.group_tag.unwrap_or(-1),
        source_address: Some(source),
        error_code: ErrorCode::from_value(frame.error_code),
        message: frame.text.as_str().into(),
    }));
}
