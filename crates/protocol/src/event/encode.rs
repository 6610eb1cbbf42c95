//! Writing events.

use std::net::{IpAddr, SocketAddr};

use super::{Event, PublicationError, PublicationReady, type_id};
use crate::bytes::MessageWriter;

pub(super) const ADDRESS_TYPE_IP4: u16 = 1;
pub(super) const ADDRESS_TYPE_IP6: u16 = 2;
/// Bytes an address takes, whatever its family.
const ADDRESS_LENGTH: usize = 16;
/// The C client ignores a shorter publication error.
const PUBLICATION_ERROR_LENGTH_MIN: usize = 72;

impl Event<'_> {
    /// Replaces the contents of `message` with this event; returns the type id to transmit it under.
    pub fn encode(&self, message: &mut Vec<u8>) -> i32 {
        let mut fields = MessageWriter::new(message);
        use Event as E;
        match self {
            E::Error {
                correlation_id: id,
                error_code,
                message,
            } => {
                fields.i64(*id).i32(error_code.value()).text(message);
            }
            E::AvailableImage {
                image_correlation_id,
                session_id,
                stream_id,
                subscription_registration_id,
                subscriber_position_counter_id,
                log_file_name,
                source_identity,
            } => {
                fields.i64(*image_correlation_id).i32(*session_id).i32(*stream_id);
                fields
                    .i64(*subscription_registration_id)
                    .i32(*subscriber_position_counter_id);
                fields.text(log_file_name).pad_to_4().text(source_identity);
            }
            E::PublicationReady(ready) | E::ExclusivePublicationReady(ready) => {
                put_publication_ready(&mut fields, ready);
            }
            E::UnavailableImage {
                image_correlation_id: id,
                subscription_registration_id,
                stream_id,
                channel,
            } => {
                fields
                    .i64(*id)
                    .i64(*subscription_registration_id)
                    .i32(*stream_id)
                    .text(channel);
            }
            E::PublicationError(error) => put_publication_error(&mut fields, error),
            E::OperationSuccess { correlation_id: id } | E::ClientTimeout { client_id: id } => {
                fields.i64(*id);
            }
            E::SubscriptionReady {
                correlation_id: id,
                channel_status_counter_id: second,
            }
            | E::CounterReady {
                registration_id: id,
                counter_id: second,
            }
            | E::UnavailableCounter {
                registration_id: id,
                counter_id: second,
            }
            | E::StaticCounter {
                correlation_id: id,
                counter_id: second,
            }
            | E::NextAvailableSessionId {
                correlation_id: id,
                session_id: second,
            } => {
                fields.i64(*id).i32(*second);
            }
        }
        self.type_id()
    }

    fn type_id(&self) -> i32 {
        match self {
            Event::Error { .. } => type_id::ERROR,
            Event::AvailableImage { .. } => type_id::AVAILABLE_IMAGE,
            Event::PublicationReady(_) => type_id::PUBLICATION_READY,
            Event::ExclusivePublicationReady(_) => type_id::EXCLUSIVE_PUBLICATION_READY,
            Event::OperationSuccess { .. } => type_id::OPERATION_SUCCESS,
            Event::UnavailableImage { .. } => type_id::UNAVAILABLE_IMAGE,
            Event::SubscriptionReady { .. } => type_id::SUBSCRIPTION_READY,
            Event::CounterReady { .. } => type_id::COUNTER_READY,
            Event::UnavailableCounter { .. } => type_id::UNAVAILABLE_COUNTER,
            Event::ClientTimeout { .. } => type_id::CLIENT_TIMEOUT,
            Event::StaticCounter { .. } => type_id::STATIC_COUNTER,
            Event::PublicationError(_) => type_id::PUBLICATION_ERROR,
            Event::NextAvailableSessionId { .. } => type_id::NEXT_AVAILABLE_SESSION_ID,
        }
    }
}

fn put_publication_ready(fields: &mut MessageWriter<'_>, ready: &PublicationReady<'_>) {
    fields
        .i64(ready.correlation_id)
        .i64(ready.original_registration_id);
    fields.i32(ready.session_id).i32(ready.stream_id);
    fields
        .i32(ready.publisher_limit_counter_id)
        .i32(ready.channel_status_counter_id);
    fields.text(&ready.log_file_name);
}

fn put_publication_error(fields: &mut MessageWriter<'_>, error: &PublicationError<'_>) {
    fields
        .i64(error.registration_id)
        .i64(error.destination_registration_id);
    fields.i32(error.session_id).i32(error.stream_id);
    fields.i64(error.receiver_id).i64(error.group_tag);
    put_address(fields, error.source_address);
    fields
        .i32(error.error_code.value())
        .text(&error.message)
        .pad_to_length(PUBLICATION_ERROR_LENGTH_MIN);
}

/// Family, port in host order, and 16 bytes of address in network order, zero after an IPv4 one.
fn put_address(fields: &mut MessageWriter<'_>, address: Option<SocketAddr>) {
    let mut octets = [0; ADDRESS_LENGTH];
    let (family, port) = match address {
        None => (0, 0),
        Some(address) => match address.ip() {
            IpAddr::V4(ip) => {
                octets[..4].copy_from_slice(&ip.octets());
                (ADDRESS_TYPE_IP4, address.port())
            }
            IpAddr::V6(ip) => {
                octets = ip.octets();
                (ADDRESS_TYPE_IP6, address.port())
            }
        },
    };
    fields.u16(family).u16(port).bytes(&octets);
}
