//! From a command's bytes to the part of the conductor that runs it.

use std::sync::atomic::Ordering;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{ChannelUri, Media, doubts};
use headrace_protocol::command::{Command, REJECTION_REASON_LENGTH_MAX};

use super::Conductor;
use super::clients::{ClientRecord, PublicationHandle, PublicationKind};
use super::subscriptions::SubscriptionKind;
use crate::config::TerminationValidator;
use crate::errors::CommandError;

impl Conductor {
    pub(crate) fn on_command(&mut self, type_id: i32, message: &[u8]) {
        match Command::decode(type_id, message) {
            Ok(command) => {
                let correlation_id = command.correlation_id();
                if let Err(error) = self.run(command) {
                    self.refuse(correlation_id, &error);
                }
            }
            Err(error) => {
                let correlation_id = error.correlation_id.unwrap_or(0);
                self.refuse(
                    correlation_id,
                    &CommandError::new(error.code(), error.to_string()),
                );
            }
        }
    }

    fn run(&mut self, command: Command<'_>) -> Result<(), CommandError> {
        let (client, id) = (command.client_id(), command.correlation_id());
        match command {
            Command::AddPublication {
                stream_id, channel, ..
            } => self.add_publication(client, id, stream_id, &channel, false),
            Command::AddExclusivePublication {
                stream_id, channel, ..
            } => self.add_publication(client, id, stream_id, &channel, true),
            Command::RemovePublication {
                registration_id,
                revoke,
                ..
            } => self.remove_publication(id, registration_id, revoke),
            Command::AddSubscription {
                stream_id, channel, ..
            } => self.add_subscription(client, id, stream_id, &channel),
            Command::RemoveSubscription { registration_id, .. } => {
                self.remove_subscription(id, registration_id)
            }
            Command::AddDestination { registration_id, .. }
            | Command::RemoveDestination { registration_id, .. }
            | Command::RemoveDestinationById { registration_id, .. } => {
                Err(self.refuse_send_destination(registration_id))
            }
            Command::AddReceiveDestination { registration_id, .. }
            | Command::RemoveReceiveDestination { registration_id, .. } => {
                Err(self.refuse_receive_destination(registration_id))
            }
            Command::AddCounter {
                type_id, key, label, ..
            } => self.add_counter(client, id, type_id, key, &label),
            Command::RemoveCounter { registration_id, .. } => self.remove_counter(id, registration_id),
            Command::AddStaticCounter {
                registration_id,
                type_id,
                key,
                label,
                ..
            } => self.add_static_counter(client, id, registration_id, type_id, key, &label),
            Command::RejectImage {
                image_correlation_id,
                reason,
                ..
            } => self.reject_image(id, image_correlation_id, &reason),
            Command::NextAvailableSessionId { stream_id, .. } => {
                let session_id = self.next_session_id(stream_id);
                self.cx.events.next_available_session_id(id, session_id);
                Ok(())
            }
            Command::ClientKeepalive { .. } => {
                self.on_keepalive(client);
                Ok(())
            }
            Command::ClientClose { .. } => {
                self.on_client_close(client);
                Ok(())
            }
            Command::TerminateDriver { .. } => {
                self.on_terminate();
                Ok(())
            }
        }
    }

    fn on_keepalive(&mut self, client_id: i64) {
        let now_ms = self.cx.now_ms;
        if let Some(client) = self.clients.find(client_id) {
            client.heartbeat.set_release(now_ms);
        }
    }

    fn on_client_close(&mut self, client_id: i64) {
        self.cancel_lookups_of(client_id);
        if let Some(client) = self.clients.find(client_id) {
            client.is_closed = true;
            client.heartbeat.set_release(0);
        }
    }

    fn on_terminate(&mut self) {
        match self.cx.config.termination_validator {
            TerminationValidator::Allow => self.termination.store(true, Ordering::Release),
            TerminationValidator::Deny => {
                let text = "a client's request to terminate the driver was denied";
                self.cx.errors.warn(text, self.cx.now_ms);
            }
        }
    }

    /// What looks wrong and has no effect goes to the error log: the client is not refused.
    fn parse_channel(&self, channel: &str) -> Result<ChannelUri, CommandError> {
        let uri = ChannelUri::parse(channel)?;
        for doubt in doubts(&uri) {
            self.cx.errors.record(
                ErrorCode::GenericError.value(),
                &format!("WARN - {doubt}, channel={channel}"),
                self.cx.now_ms,
            );
        }
        Ok(uri)
    }

    fn add_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: &str,
        is_exclusive: bool,
    ) -> Result<(), CommandError> {
        let uri = self.parse_channel(channel)?;
        match uri.media() {
            Media::Ipc => {
                self.add_ipc_publication(client_id, correlation_id, stream_id, &uri, channel, is_exclusive)
            }
            Media::Udp => {
                self.add_network_publication(client_id, correlation_id, stream_id, uri, channel, is_exclusive)
            }
        }
    }

    fn add_subscription(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        channel: &str,
    ) -> Result<(), CommandError> {
        let uri = self.parse_channel(channel)?;
        match uri.media() {
            Media::Ipc => self.add_ipc_subscription(client_id, correlation_id, stream_id, &uri, channel),
            Media::Udp => self.add_network_subscription(client_id, correlation_id, stream_id, uri, channel),
        }
    }

    fn remove_publication(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
        revoke: bool,
    ) -> Result<(), CommandError> {
        if self.cancel_publication_lookup(registration_id) {
            self.cx.events.operation_success(correlation_id);
            return Ok(());
        }
        let Some(handle) = self.clients.remove_publication(registration_id) else {
            return Err(CommandError::new(
                ErrorCode::UnknownPublication,
                format!("registrationId={registration_id}"),
            ));
        };
        self.release_publication(handle, revoke);
        self.cx.events.operation_success(correlation_id);
        Ok(())
    }

    /// Drops a client's hold on a publication; a revoked one ends for everybody.
    fn release_publication(&mut self, handle: PublicationHandle, revoke: bool) {
        match handle.kind {
            PublicationKind::Ipc => self.release_ipc_publication(handle.publication_id, revoke),
            PublicationKind::Network => self.release_network_publication(handle.publication_id, revoke),
        }
    }

    fn remove_subscription(&mut self, correlation_id: i64, registration_id: i64) -> Result<(), CommandError> {
        if self.cancel_subscription_lookup(registration_id) {
            self.cx.events.operation_success(correlation_id);
            return Ok(());
        }
        let known = self
            .subscriptions
            .iter()
            .any(|subscription| subscription.registration_id == registration_id);
        if !known {
            return Err(CommandError::new(
                ErrorCode::UnknownSubscription,
                format!("registrationId={registration_id}"),
            ));
        }
        self.release_subscription(registration_id);
        self.cx.events.operation_success(correlation_id);
        Ok(())
    }

    /// Removes a subscription with all its links. The reader is not told: it asked, or it is dead.
    fn release_subscription(&mut self, registration_id: i64) {
        let removed: Vec<_> = self
            .subscriptions
            .extract_if(.., |subscription| subscription.registration_id == registration_id)
            .collect();
        for subscription in removed {
            match subscription.kind {
                SubscriptionKind::Ipc => self.unlink_ipc_subscription(subscription.registration_id),
                SubscriptionKind::Spy(_) => self.unlink_spy(subscription.registration_id),
                SubscriptionKind::Network { endpoint, .. } => {
                    self.unlink_images(subscription.registration_id);
                    self.remove_interest(endpoint, subscription.stream_id, subscription.session_id);
                }
            }
        }
    }

    fn refuse_send_destination(&self, registration_id: i64) -> CommandError {
        let is_ipc = self
            .ipc_publications
            .iter()
            .any(|publication| publication.registration_id() == registration_id);
        let is_network = self
            .network_publications
            .iter()
            .any(|publication| publication.registration_id() == registration_id);
        if is_ipc || is_network {
            CommandError::not_supported("destinations of publications are not supported in this release")
        } else {
            CommandError::new(
                ErrorCode::UnknownPublication,
                format!("registrationId={registration_id}"),
            )
        }
    }

    fn refuse_receive_destination(&self, registration_id: i64) -> CommandError {
        let known = self
            .subscriptions
            .iter()
            .any(|subscription| subscription.registration_id == registration_id);
        if known {
            CommandError::not_supported("destinations of subscriptions are not supported in this release")
        } else {
            CommandError::new(
                ErrorCode::UnknownSubscription,
                format!("registrationId={registration_id}"),
            )
        }
    }

    fn reject_image(
        &mut self,
        correlation_id: i64,
        image_correlation_id: i64,
        reason: &str,
    ) -> Result<(), CommandError> {
        if reason.len() > REJECTION_REASON_LENGTH_MAX {
            return Err(CommandError::generic(format!(
                "Invalidation reason must be {REJECTION_REASON_LENGTH_MAX} bytes or less, length={}",
                reason.len()
            )));
        }
        if self.is_spied(image_correlation_id) {
            return Err(CommandError::generic(format!(
                "spies may not reject images, correlationId={image_correlation_id}"
            )));
        }
        if !self.reject_ipc_image(image_correlation_id, reason)
            && !self.reject_network_image(image_correlation_id, reason)
        {
            return Err(CommandError::generic(format!(
                "Unable to resolve image for correlationId={image_correlation_id}"
            )));
        }
        self.cx
            .system
            .get(system_counter::IMAGES_REJECTED)
            .increment_release();
        self.cx.events.operation_success(correlation_id);
        Ok(())
    }

    /// An id that no publication of the stream uses, on any channel.
    fn next_session_id(&mut self, stream_id: i32) -> i32 {
        let (ipc, network) = (&self.ipc_publications, &self.network_publications);
        self.session_ids.allocate(|candidate| {
            ipc.iter()
                .any(|publication| publication.holds_session_id(candidate, stream_id))
                || network
                    .iter()
                    .any(|publication| publication.holds_session_id(candidate, stream_id))
        })
    }

    /// Makes the client known with its first success: the heartbeat counter comes before the command's reply.
    pub(crate) fn client(&mut self, client_id: i64) -> Result<&mut ClientRecord, CommandError> {
        if self.clients.find(client_id).is_none() {
            let heartbeat = self.cx.counters.allocate(
                type_ids::CLIENT_HEARTBEAT,
                &client_id.to_le_bytes(),
                &format!("client-heartbeat: id={client_id}"),
                client_id,
                client_id,
            )?;
            heartbeat.set_release(self.cx.now_ms);
            self.cx.events.counter_ready(client_id, heartbeat.id());
            let is_alive = self.processes.is_alive(client_id);
            self.clients.add(client_id, heartbeat, is_alive);
        }
        self.clients
            .find(client_id)
            .ok_or_else(|| CommandError::generic(format!("client id={client_id} is gone")))
    }

    /// Frees what clients held that closed, whose process ended, or that were not heard from.
    pub(crate) fn check_clients(&mut self) {
        let liveness_timeout_ms = self.cx.config.client_liveness_timeout_ns / 1_000_000;
        let read = self.ring.consumer_position();
        for client in self.clients.take_gone(self.cx.now_ms, liveness_timeout_ms, read) {
            self.cancel_lookups_of(client.id);
            if !client.is_closed {
                self.cx
                    .system
                    .get(system_counter::CLIENT_TIMEOUTS)
                    .increment_release();
                self.cx.events.client_timeout(client.id);
                if client.has_ended(read) {
                    let text = "a client's process ended without closing the client: \
                                the driver closes its publications, subscriptions and counters";
                    self.cx.errors.warn(text, self.cx.now_ms);
                }
            }
            self.cx
                .events
                .unavailable_counter(client.id, client.heartbeat.id());
            self.cx.counters.free(client.heartbeat.id());
            for handle in client.publications {
                self.release_publication(handle, false);
            }
            let subscriptions: Vec<_> = self
                .subscriptions
                .iter()
                .filter(|subscription| subscription.client_id == client.id)
                .map(|subscription| subscription.registration_id)
                .collect();
            for registration_id in subscriptions {
                self.release_subscription(registration_id);
            }
            for counter in client.counters {
                self.cx
                    .events
                    .unavailable_counter(counter.registration_id, counter.counter_id);
                self.cx.counters.free(counter.counter_id);
            }
        }
    }
}
