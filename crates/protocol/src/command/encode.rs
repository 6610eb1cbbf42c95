//! Writing commands.

use super::{Command, type_id};
use crate::bytes::MessageWriter;

/// The C driver refuses a shorter rejection.
const REJECT_IMAGE_LENGTH_MIN: usize = 40;
/// Where a subscription carries eight bytes that mean nothing.
const UNUSED: i64 = -1;

impl Command<'_> {
    /// Replaces the contents of `message` with this command; returns the type id to write it under.
    ///
    /// Text is copied as it is. Peers expect ASCII, so the caller checks what users type.
    pub fn encode(&self, message: &mut Vec<u8>) -> i32 {
        let mut fields = MessageWriter::new(message);
        fields.i64(self.client_id()).i64(self.correlation_id());
        self.put_fields(&mut fields);
        self.type_id()
    }

    /// What follows the ids.
    fn put_fields(&self, fields: &mut MessageWriter<'_>) {
        use Command as C;
        match self {
            C::AddPublication {
                stream_id, channel, ..
            }
            | C::AddExclusivePublication {
                stream_id, channel, ..
            } => fields.i32(*stream_id).text(channel),
            C::RemovePublication {
                registration_id: id,
                revoke,
                ..
            } => fields.i64(*id).i64((*revoke).into()),
            C::AddSubscription {
                stream_id, channel, ..
            } => fields.i64(UNUSED).i32(*stream_id).text(channel),
            C::RemoveSubscription { registration_id, .. } | C::RemoveCounter { registration_id, .. } => {
                fields.i64(*registration_id)
            }
            C::AddDestination {
                registration_id: id,
                channel,
                ..
            }
            | C::RemoveDestination {
                registration_id: id,
                channel,
                ..
            }
            | C::AddReceiveDestination {
                registration_id: id,
                channel,
                ..
            }
            | C::RemoveReceiveDestination {
                registration_id: id,
                channel,
                ..
            } => fields.i64(*id).text(channel),
            C::AddCounter {
                type_id, key, label, ..
            } => fields.i32(*type_id).run(key).pad_to_4().text(label),
            C::AddStaticCounter {
                registration_id: id,
                type_id,
                key,
                label,
                ..
            } => fields.i64(*id).i32(*type_id).run(key).pad_to_4().text(label),
            C::TerminateDriver { token, .. } => fields.run(token),
            C::RejectImage {
                image_correlation_id: id,
                position,
                reason,
                ..
            } => fields
                .i64(*id)
                .i64(*position)
                .text(reason)
                .pad_to_length(REJECT_IMAGE_LENGTH_MIN),
            C::RemoveDestinationById {
                registration_id,
                destination_registration_id,
                ..
            } => fields.i64(*registration_id).i64(*destination_registration_id),
            C::NextAvailableSessionId { stream_id, .. } => fields.i32(*stream_id),
            C::ClientKeepalive { .. } | C::ClientClose { .. } => fields,
        };
    }

    fn type_id(&self) -> i32 {
        match self {
            Command::AddPublication { .. } => type_id::ADD_PUBLICATION,
            Command::AddExclusivePublication { .. } => type_id::ADD_EXCLUSIVE_PUBLICATION,
            Command::RemovePublication { .. } => type_id::REMOVE_PUBLICATION,
            Command::AddSubscription { .. } => type_id::ADD_SUBSCRIPTION,
            Command::RemoveSubscription { .. } => type_id::REMOVE_SUBSCRIPTION,
            Command::ClientKeepalive { .. } => type_id::CLIENT_KEEPALIVE,
            Command::AddDestination { .. } => type_id::ADD_DESTINATION,
            Command::RemoveDestination { .. } => type_id::REMOVE_DESTINATION,
            Command::AddCounter { .. } => type_id::ADD_COUNTER,
            Command::RemoveCounter { .. } => type_id::REMOVE_COUNTER,
            Command::ClientClose { .. } => type_id::CLIENT_CLOSE,
            Command::AddReceiveDestination { .. } => type_id::ADD_RECEIVE_DESTINATION,
            Command::RemoveReceiveDestination { .. } => type_id::REMOVE_RECEIVE_DESTINATION,
            Command::TerminateDriver { .. } => type_id::TERMINATE_DRIVER,
            Command::AddStaticCounter { .. } => type_id::ADD_STATIC_COUNTER,
            Command::RejectImage { .. } => type_id::REJECT_IMAGE,
            Command::RemoveDestinationById { .. } => type_id::REMOVE_DESTINATION_BY_ID,
            Command::NextAvailableSessionId { .. } => type_id::NEXT_AVAILABLE_SESSION_ID,
        }
    }
}
