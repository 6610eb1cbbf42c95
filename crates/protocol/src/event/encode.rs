//! Writing events.

use std::net::{IpAddr, SocketAddr};

use super::{Event, PublicationReady, type_id};
use crate::bytes::{pad_to_4, pad_to_length, push_i32, push_i64, push_run};

pub(super) const ADDRESS_TYPE_IP4: u16 = 1;
pub(super) const ADDRESS_TYPE_IP6: u16 = 2;
/// Bytes an address takes, whatever its family.
const ADDRESS_LENGTH: usize = 16;
/// The C client ignores a shorter publication error.
const PUBLICATION_ERROR_LENGTH_MIN: usize = 72;

impl Event<'_> {
    /// Replaces the contents of `message` with this event; returns the type id to transmit it under.
    pub fn encode(&self, message: &mut Vec<u8>) -> i32 {
        message.clear();
        match self {
            Event::Error {
                correlation_id,
                error_code,
                message: text,
            } => {
                push_i64(message, *correlation_id);
                push_i32(message, error_code.value());
                push_run(message, text.as_bytes());
                type_id::ERROR
            }
            Event::AvailableImage {
                image_correlation_id,
                session_id,
                stream_id,
                subscription_registration_id,
                subscriber_position_counter_id,
                log_file_name,
                source_identity,
            } => {
                push_i64(message, *image_correlation_id);
                push_i32(message, *session_id);
                push_i32(message, *stream_id);
                push_i64(message, *subscription_registration_id);
                push_i32(message, *subscriber_position_counter_id);
                push_run(message, log_file_name.as_bytes());
                pad_to_4(message);
                push_run(message, source_identity.as_bytes());
                type_id::AVAILABLE_IMAGE
            }
            Event::PublicationReady(ready) => {
                push_publication_ready(message, ready);
                type_id::PUBLICATION_READY
            }
            Event::ExclusivePublicationReady(ready) => {
                push_publication_ready(message, ready);
                type_id::EXCLUSIVE_PUBLICATION_READY
            }
            Event::OperationSuccess { correlation_id } => {
                push_i64(message, *correlation_id);
                type_id::OPERATION_SUCCESS
            }
            Event::UnavailableImage {
                image_correlation_id,
                subscription_registration_id,
                stream_id,
                channel,
            } => {
                push_i64(message, *image_correlation_id);
                push_i64(message, *subscription_registration_id);
                push_i32(message, *stream_id);
                push_run(message, channel.as_bytes());
                type_id::UNAVAILABLE_IMAGE
            }
            Event::SubscriptionReady {
                correlation_id,
                channel_status_counter_id,
            } => {
                push_id_pair(message, *correlation_id, *channel_status_counter_id);
                type_id::SUBSCRIPTION_READY
            }
            Event::CounterReady {
                registration_id,
                counter_id,
            } => {
                push_id_pair(message, *registration_id, *counter_id);
                type_id::COUNTER_READY
            }
            Event::UnavailableCounter {
                registration_id,
                counter_id,
            } => {
                push_id_pair(message, *registration_id, *counter_id);
                type_id::UNAVAILABLE_COUNTER
            }
            Event::ClientTimeout { client_id } => {
                push_i64(message, *client_id);
                type_id::CLIENT_TIMEOUT
            }
            Event::StaticCounter {
                correlation_id,
                counter_id,
            } => {
                push_id_pair(message, *correlation_id, *counter_id);
                type_id::STATIC_COUNTER
            }
            Event::PublicationError(error) => {
                push_i64(message, error.registration_id);
                push_i64(message, error.destination_registration_id);
                push_i32(message, error.session_id);
                push_i32(message, error.stream_id);
                push_i64(message, error.receiver_id);
                push_i64(message, error.group_tag);
                push_address(message, error.source_address);
                push_i32(message, error.error_code.value());
                push_run(message, error.message.as_bytes());
                pad_to_length(message, PUBLICATION_ERROR_LENGTH_MIN);
                type_id::PUBLICATION_ERROR
            }
            Event::NextAvailableSessionId {
                correlation_id,
                session_id,
            } => {
                push_id_pair(message, *correlation_id, *session_id);
                type_id::NEXT_AVAILABLE_SESSION_ID
            }
        }
    }
}

fn push_id_pair(message: &mut Vec<u8>, first: i64, second: i32) {
    push_i64(message, first);
    push_i32(message, second);
}

fn push_publication_ready(message: &mut Vec<u8>, ready: &PublicationReady<'_>) {
    push_i64(message, ready.correlation_id);
    push_i64(message, ready.original_registration_id);
    push_i32(message, ready.session_id);
    push_i32(message, ready.stream_id);
    push_i32(message, ready.publisher_limit_counter_id);
    push_i32(message, ready.channel_status_counter_id);
    push_run(message, ready.log_file_name.as_bytes());
}

/// Family, port in host order, and 16 bytes of address in network order, zero after an IPv4 one.
fn push_address(message: &mut Vec<u8>, address: Option<SocketAddr>) {
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
    message.extend_from_slice(&family.to_le_bytes());
    message.extend_from_slice(&port.to_le_bytes());
    message.extend_from_slice(&octets);
}
