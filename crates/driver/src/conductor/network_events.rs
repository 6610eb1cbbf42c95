//! What the sender and the receiver tell the conductor.

use std::net::SocketAddr;

use super::Conductor;
use super::endpoints::status;
use crate::errors::{CommandError, ErrorGroup};
use crate::proxy::{ConductorReply, ConductorRequest, EndpointId, SenderCommand};
use crate::resource_agent::{Resolve, ResourceTask};

impl Conductor {
    /// Takes one reply of the sender or the receiver. Never held back: they may be waiting for room.
    pub(crate) fn process_reply(&mut self) -> usize {
        let Some(reply) = self.replies.pop() else {
            return 0;
        };
        match reply {
            ConductorReply::PublicationReleased { registration_id } => {
                self.on_publication_released(registration_id);
            }
            ConductorReply::SendEndpointReleased(endpoint) => self.on_send_channel_closed(endpoint),
            ConductorReply::ImageReleased { correlation_id } => self.on_image_released(correlation_id),
            ConductorReply::ReceiveEndpointReleased(endpoint) => self.on_receive_channel_closed(endpoint),
            ConductorReply::ReconnectFailed { endpoint, reason } => {
                self.on_reconnect_failed(endpoint, &reason);
            }
        }
        1
    }

    /// Runs one request of the sender or the receiver, unless its consequences could not be passed on.
    pub(crate) fn process_request(&mut self) -> usize {
        if self.is_congested() {
            return 0;
        }
        let Some(request) = self.requests.pop() else {
            return 0;
        };
        match request {
            ConductorRequest::CreateImage {
                endpoint,
                setup,
                source,
            } => self.on_create_image(endpoint, setup, source),
            ConductorRequest::PublicationError {
                registration_id,
                frame,
                source,
            } => self.on_publication_error(registration_id, &frame, source),
            ConductorRequest::ReResolve { endpoint } => self.on_re_resolve(endpoint),
            ConductorRequest::Report { code, text } => {
                self.cx
                    .errors
                    .record_in(ErrorGroup::Sockets, code, &text, self.cx.now_ms);
            }
        }
        1
    }

    fn on_re_resolve(&mut self, endpoint: EndpointId) {
        let Some(send) = self.send_channel(endpoint) else {
            return;
        };
        let Some(name) = send.endpoint.channel.endpoint.clone() else {
            return;
        };
        if !send.endpoint.is_closing() {
            self.cx
                .tasks
                .send(ResourceTask::Resolve(Box::new(Resolve { endpoint, name })));
        }
    }

    pub(crate) fn on_resolved(&mut self, endpoint: EndpointId, result: Result<SocketAddr, String>) {
        let Some(send) = self.send_channel(endpoint) else {
            return;
        };
        match result {
            Ok(remote) if remote == send.endpoint.channel.remote || send.endpoint.is_closing() => {}
            Ok(remote) => {
                send.endpoint.channel.remote = remote;
                send.endpoint.counters.status.set_release(status::ACTIVE);
                self.sender.send(SenderCommand::Reconnect { endpoint, remote });
            }
            Err(reason) => {
                let text = format!(
                    "could not re-resolve: endpoint={}: {reason}",
                    send.endpoint.channel.endpoint.as_deref().unwrap_or_default()
                );
                self.cx.errors.warn(&text, self.cx.now_ms);
            }
        }
    }

    fn on_reconnect_failed(&mut self, endpoint: EndpointId, reason: &str) {
        let Some(send) = self.send_channel(endpoint) else {
            return;
        };
        send.endpoint.counters.status.set_release(status::ERRORED);
        let error = CommandError::generic(format!(
            "channel error - failed to reconnect: {reason}: {}",
            send.endpoint.channel.uri
        ));
        self.cx.record(&error);
    }
}
