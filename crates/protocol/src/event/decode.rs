//! Reading events.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::encode::{ADDRESS_TYPE_IP4, ADDRESS_TYPE_IP6};
use super::{Event, EventError, PublicationError, PublicationReady, type_id};
use crate::ErrorCode;
use crate::bytes::{array_at, i32_at, i64_at, run_at, text, u16_at};

impl<'a> Event<'a> {
    /// Reads the message of a broadcast record.
    pub fn decode(type_id: i32, message: &'a [u8]) -> Result<Self, EventError> {
        let fixed_length = fixed_length(type_id).ok_or(EventError::UnknownType { type_id })?;
        if message.len() < fixed_length {
            return Err(EventError::Malformed {
                type_id,
                length: message.len(),
            });
        }
        decode(type_id, message).ok_or(EventError::Malformed {
            type_id,
            length: message.len(),
        })
    }
}

/// Bytes up to and including the length of the first text, if the event has one.
fn fixed_length(type_id: i32) -> Option<usize> {
    Some(match type_id {
        type_id::OPERATION_SUCCESS | type_id::CLIENT_TIMEOUT => 8,
        type_id::SUBSCRIPTION_READY
        | type_id::COUNTER_READY
        | type_id::UNAVAILABLE_COUNTER
        | type_id::STATIC_COUNTER
        | type_id::NEXT_AVAILABLE_SESSION_ID => 12,
        type_id::ERROR => 16,
        type_id::UNAVAILABLE_IMAGE => 24,
        type_id::AVAILABLE_IMAGE => 32,
        type_id::PUBLICATION_READY | type_id::EXCLUSIVE_PUBLICATION_READY => 36,
        type_id::PUBLICATION_ERROR => 68,
        _ => return None,
    })
}

fn decode(type_id: i32, message: &[u8]) -> Option<Event<'_>> {
    let id = i64_at(message, 0);
    Some(match type_id {
        type_id::ERROR => Event::Error {
            correlation_id: id,
            error_code: ErrorCode::from_value(i32_at(message, 8)),
            message: text_at(message, 12)?,
        },
        type_id::AVAILABLE_IMAGE => {
            let log_file_name = run_at(message, 28)?;
            Event::AvailableImage {
                image_correlation_id: id,
                session_id: i32_at(message, 8),
                stream_id: i32_at(message, 12),
                subscription_registration_id: i64_at(message, 16),
                subscriber_position_counter_id: i32_at(message, 24),
                log_file_name: text(log_file_name),
                source_identity: text_at(message, 32 + log_file_name.len().next_multiple_of(4))?,
            }
        }
        type_id::PUBLICATION_READY => Event::PublicationReady(publication_ready(message)?),
        type_id::EXCLUSIVE_PUBLICATION_READY => Event::ExclusivePublicationReady(publication_ready(message)?),
        type_id::OPERATION_SUCCESS => Event::OperationSuccess { correlation_id: id },
        type_id::UNAVAILABLE_IMAGE => Event::UnavailableImage {
            image_correlation_id: id,
            subscription_registration_id: i64_at(message, 8),
            stream_id: i32_at(message, 16),
            channel: text_at(message, 20)?,
        },
        type_id::SUBSCRIPTION_READY => Event::SubscriptionReady {
            correlation_id: id,
            channel_status_counter_id: i32_at(message, 8),
        },
        type_id::COUNTER_READY => Event::CounterReady {
            registration_id: id,
            counter_id: i32_at(message, 8),
        },
        type_id::UNAVAILABLE_COUNTER => Event::UnavailableCounter {
            registration_id: id,
            counter_id: i32_at(message, 8),
        },
        type_id::CLIENT_TIMEOUT => Event::ClientTimeout { client_id: id },
        type_id::STATIC_COUNTER => Event::StaticCounter {
            correlation_id: id,
            counter_id: i32_at(message, 8),
        },
        type_id::PUBLICATION_ERROR => Event::PublicationError(PublicationError {
            registration_id: id,
            destination_registration_id: i64_at(message, 8),
            session_id: i32_at(message, 16),
            stream_id: i32_at(message, 20),
            receiver_id: i64_at(message, 24),
            group_tag: i64_at(message, 32),
            source_address: source_address(message),
            error_code: ErrorCode::from_value(i32_at(message, 60)),
            message: text_at(message, 64)?,
        }),
        type_id::NEXT_AVAILABLE_SESSION_ID => Event::NextAvailableSessionId {
            correlation_id: id,
            session_id: i32_at(message, 8),
        },
        _ => return None,
    })
}

fn publication_ready(message: &[u8]) -> Option<PublicationReady<'_>> {
    Some(PublicationReady {
        correlation_id: i64_at(message, 0),
        original_registration_id: i64_at(message, 8),
        session_id: i32_at(message, 16),
        stream_id: i32_at(message, 20),
        publisher_limit_counter_id: i32_at(message, 24),
        channel_status_counter_id: i32_at(message, 28),
        log_file_name: text_at(message, 32)?,
    })
}

fn source_address(message: &[u8]) -> Option<SocketAddr> {
    let ip = match u16_at(message, 40) {
        ADDRESS_TYPE_IP4 => IpAddr::V4(Ipv4Addr::from(array_at::<4>(message, 44))),
        ADDRESS_TYPE_IP6 => IpAddr::V6(Ipv6Addr::from(array_at::<16>(message, 44))),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16_at(message, 42)))
}

fn text_at(message: &[u8], offset: usize) -> Option<Cow<'_, str>> {
    run_at(message, offset).map(text)
}
