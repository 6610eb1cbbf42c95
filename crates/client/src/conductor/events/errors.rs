//! Errors that the driver reports: of requests, of channels and of publications.

use headrace_protocol::ErrorCode;
use headrace_protocol::event;

use super::subscriptions::on_fence;
use crate::conductor::context::Context;
use crate::conductor::requests::Kind;
use crate::conductor::rooms::Rooms;
use crate::error::ClientError;
use crate::handlers::PublicationError;

/// Destination or group of a publication error that has none.
const NO_VALUE: i64 = -1;

pub(super) fn on_error(
    correlation_id: i64,
    code: ErrorCode,
    message: &str,
    rooms: &mut Rooms,
    cx: &Context<'_>,
) {
    if on_fence(correlation_id, rooms, cx) {
        return;
    }
    let error = ClientError::Registration {
        code,
        correlation_id,
        message: message.to_owned(),
    };
    let Some(kind) = rooms.requests.awaited(correlation_id) else {
        if code == ErrorCode::ChannelEndpointError {
            on_channel_error(correlation_id, error, rooms);
        }
        return;
    };
    let is_subscription = matches!(kind, Kind::Subscription(_));
    rooms.requests.answer(correlation_id, |_| Some(Err(error)));
    if is_subscription {
        rooms.close_subscription(correlation_id, cx.now_ns);
    }
}

/// Older drivers report a failed socket with the channel's status counter instead of a request.
fn on_channel_error(status_id: i64, error: ClientError, rooms: &mut Rooms) {
    let Ok(status_id) = i32::try_from(status_id) else {
        return;
    };
    if rooms.publications.use_channel(status_id) || rooms.subscriptions.use_channel(status_id) {
        rooms.callbacks.queue_error(error);
    }
}

pub(super) fn on_publication_error(error: &event::PublicationError<'_>, rooms: &mut Rooms) {
    let present = |value: i64| (value != NO_VALUE).then_some(value);
    for registration_id in rooms.publications.of_log(error.registration_id) {
        rooms.callbacks.queue_publication_error(PublicationError {
            registration_id,
            original_registration_id: error.registration_id,
            destination_registration_id: present(error.destination_registration_id),
            session_id: error.session_id,
            stream_id: error.stream_id,
            receiver_id: error.receiver_id,
            group_tag: present(error.group_tag),
            source: error.source_address,
            code: error.error_code,
            message: error.message.to_string(),
        });
    }
}
