//! Writing commands.

use super::{Command, type_id};
use crate::bytes::{pad_to_4, pad_to_length, push_i32, push_i64, push_run};

/// The C driver refuses a shorter rejection.
const REJECT_IMAGE_LENGTH_MIN: usize = 40;

impl Command<'_> {
    /// Replaces the contents of `message` with this command; returns the type id to write it under.
    ///
    /// Text is copied as it is. Peers expect ASCII, so the caller checks what users type.
    pub fn encode(&self, message: &mut Vec<u8>) -> i32 {
        message.clear();
        let (client_id, correlation_id) = self.ids();
        push_i64(message, client_id);
        push_i64(message, correlation_id);
        match self {
            Command::AddPublication {
                stream_id, channel, ..
            } => {
                push_i32(message, *stream_id);
                push_run(message, channel.as_bytes());
                type_id::ADD_PUBLICATION
            }
            Command::AddExclusivePublication {
                stream_id, channel, ..
            } => {
                push_i32(message, *stream_id);
                push_run(message, channel.as_bytes());
                type_id::ADD_EXCLUSIVE_PUBLICATION
            }
            Command::RemovePublication {
                registration_id,
                revoke,
                ..
            } => {
                push_i64(message, *registration_id);
                push_i64(message, i64::from(*revoke));
                type_id::REMOVE_PUBLICATION
            }
            Command::AddSubscription {
                stream_id, channel, ..
            } => {
                push_i64(message, -1);
                push_i32(message, *stream_id);
                push_run(message, channel.as_bytes());
                type_id::ADD_SUBSCRIPTION
            }
            Command::RemoveSubscription { registration_id, .. } => {
                push_i64(message, *registration_id);
                type_id::REMOVE_SUBSCRIPTION
            }
            Command::ClientKeepalive { .. } => type_id::CLIENT_KEEPALIVE,
            Command::AddDestination {
                registration_id,
                channel,
                ..
            } => {
                push_destination(message, *registration_id, channel);
                type_id::ADD_DESTINATION
            }
            Command::RemoveDestination {
                registration_id,
                channel,
                ..
            } => {
                push_destination(message, *registration_id, channel);
                type_id::REMOVE_DESTINATION
            }
            Command::AddCounter {
                type_id, key, label, ..
            } => {
                push_i32(message, *type_id);
                push_key_and_label(message, key, label);
                type_id::ADD_COUNTER
            }
            Command::RemoveCounter { registration_id, .. } => {
                push_i64(message, *registration_id);
                type_id::REMOVE_COUNTER
            }
            Command::ClientClose { .. } => type_id::CLIENT_CLOSE,
            Command::AddReceiveDestination {
                registration_id,
                channel,
                ..
            } => {
                push_destination(message, *registration_id, channel);
                type_id::ADD_RECEIVE_DESTINATION
            }
            Command::RemoveReceiveDestination {
                registration_id,
                channel,
                ..
            } => {
                push_destination(message, *registration_id, channel);
                type_id::REMOVE_RECEIVE_DESTINATION
            }
            Command::TerminateDriver { token, .. } => {
                push_run(message, token);
                type_id::TERMINATE_DRIVER
            }
            Command::AddStaticCounter {
                registration_id,
                type_id,
                key,
                label,
                ..
            } => {
                push_i64(message, *registration_id);
                push_i32(message, *type_id);
                push_key_and_label(message, key, label);
                type_id::ADD_STATIC_COUNTER
            }
            Command::RejectImage {
                image_correlation_id,
                position,
                reason,
                ..
            } => {
                push_i64(message, *image_correlation_id);
                push_i64(message, *position);
                push_run(message, reason.as_bytes());
                pad_to_length(message, REJECT_IMAGE_LENGTH_MIN);
                type_id::REJECT_IMAGE
            }
            Command::RemoveDestinationById {
                registration_id,
                destination_registration_id,
                ..
            } => {
                push_i64(message, *registration_id);
                push_i64(message, *destination_registration_id);
                type_id::REMOVE_DESTINATION_BY_ID
            }
            Command::NextAvailableSessionId { stream_id, .. } => {
                push_i32(message, *stream_id);
                type_id::NEXT_AVAILABLE_SESSION_ID
            }
        }
    }
}

fn push_destination(message: &mut Vec<u8>, registration_id: i64, channel: &str) {
    push_i64(message, registration_id);
    push_run(message, channel.as_bytes());
}

fn push_key_and_label(message: &mut Vec<u8>, key: &[u8], label: &str) {
    push_run(message, key);
    pad_to_4(message);
    push_run(message, label.as_bytes());
}
