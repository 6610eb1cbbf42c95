//! Writes the conductor's events for clients to the broadcast.

use std::net::{Ipv4Addr, SocketAddr};

use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::doorbell::Doorbell;
use headrace_protocol::ErrorCode;
use headrace_protocol::event::{Event, PublicationError, PublicationReady};

use super::subscriptions::links::Link;
use crate::errors::ErrorRecorder;

/// What an available or unavailable image event says about the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamDescription<'a> {
    /// Image correlation id, or registration id of the local publication.
    pub(crate) image_correlation_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) log_file_name: &'a str,
    pub(crate) source_identity: &'a str,
}

/// What a publication-ready event says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicationDescription<'a> {
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) publisher_limit_counter_id: i32,
    pub(crate) channel_status_counter_id: i32,
    pub(crate) log_file_name: &'a str,
    pub(crate) is_exclusive: bool,
}

/// Writes events.
pub(crate) struct EventProxy {
    transmitter: Transmitter,
    message: Vec<u8>,
    errors: ErrorRecorder,
    now_ms: i64,
    doorbell: Doorbell,
}

impl EventProxy {
    pub(crate) fn new(transmitter: Transmitter, errors: ErrorRecorder, doorbell: Doorbell) -> Self {
        Self {
            doorbell,
            transmitter,
            message: Vec::with_capacity(4096),
            errors,
            now_ms: 0,
        }
    }

    /// Sets the time that a failure to transmit is recorded with.
    pub(crate) fn set_time(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    pub(crate) fn send(&mut self, event: &Event<'_>) {
        let type_id = event.encode(&mut self.message);
        if let Err(error) = self.transmitter.transmit(type_id, &self.message) {
            let text =
                ErrorCode::GenericError.describe(format_args!("event type={type_id:#x} not sent: {error}"));
            self.errors
                .record(ErrorCode::GenericError.value(), &text, self.now_ms);
        }
        self.doorbell.ring();
    }

    pub(crate) fn error(&mut self, correlation_id: i64, error_code: ErrorCode, message: &str) {
        self.send(&Event::Error {
            correlation_id,
            error_code,
            message: message.into(),
        });
    }

    pub(crate) fn operation_success(&mut self, correlation_id: i64) {
        self.send(&Event::OperationSuccess { correlation_id });
    }

    pub(crate) fn publication_ready(&mut self, correlation_id: i64, publication: PublicationDescription<'_>) {
        let ready = PublicationReady {
            correlation_id,
            original_registration_id: publication.registration_id,
            session_id: publication.session_id,
            stream_id: publication.stream_id,
            publisher_limit_counter_id: publication.publisher_limit_counter_id,
            channel_status_counter_id: publication.channel_status_counter_id,
            log_file_name: publication.log_file_name.into(),
        };
        self.send(&if publication.is_exclusive {
            Event::ExclusivePublicationReady(ready)
        } else {
            Event::PublicationReady(ready)
        });
    }

    pub(crate) fn available_image(&mut self, stream: StreamDescription<'_>, link: &Link) {
        self.send(&Event::AvailableImage {
            image_correlation_id: stream.image_correlation_id,
            session_id: stream.session_id,
            stream_id: stream.stream_id,
            subscription_registration_id: link.subscription_id,
            subscriber_position_counter_id: link.position.id(),
            log_file_name: stream.log_file_name.into(),
            source_identity: stream.source_identity.into(),
        });
    }

    pub(crate) fn unavailable_image(&mut self, image_correlation_id: i64, link: &Link) {
        self.send(&Event::UnavailableImage {
            image_correlation_id,
            subscription_registration_id: link.subscription_id,
            stream_id: link.stream_id,
            channel: (&*link.channel).into(),
        });
    }

    pub(crate) fn subscription_ready(&mut self, correlation_id: i64, channel_status_counter_id: i32) {
        self.send(&Event::SubscriptionReady {
            correlation_id,
            channel_status_counter_id,
        });
    }

    pub(crate) fn counter_ready(&mut self, registration_id: i64, counter_id: i32) {
        self.send(&Event::CounterReady {
            registration_id,
            counter_id,
        });
    }

    pub(crate) fn static_counter(&mut self, correlation_id: i64, counter_id: i32) {
        self.send(&Event::StaticCounter {
            correlation_id,
            counter_id,
        });
    }

    pub(crate) fn client_timeout(&mut self, client_id: i64) {
        self.send(&Event::ClientTimeout { client_id });
    }

    pub(crate) fn next_available_session_id(&mut self, correlation_id: i64, session_id: i32) {
        self.send(&Event::NextAvailableSessionId {
            correlation_id,
            session_id,
        });
    }

    pub(crate) fn unavailable_counter(&mut self, registration_id: i64, counter_id: i32) {
        self.send(&Event::UnavailableCounter {
            registration_id,
            counter_id,
        });
    }

    /// Tells publishers on this host that a local subscriber rejected their stream.
    pub(crate) fn local_rejection(
        &mut self,
        registration_id: i64,
        session_id: i32,
        stream_id: i32,
        reason: &str,
    ) {
        self.send(&Event::PublicationError(PublicationError {
            registration_id,
            destination_registration_id: -1,
            session_id,
            stream_id,
            receiver_id: -1,
            group_tag: -1,
            source_address: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            error_code: ErrorCode::ImageRejected,
            message: reason.into(),
        }));
    }
}
