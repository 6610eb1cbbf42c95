//! Images that come and go.

use std::sync::Arc;

use headrace_protocol::event::Event;

use crate::conductor::context::Context;
use crate::conductor::rooms::Rooms;
use crate::image::{Image, ImageParts};

pub(super) fn on_available(event: &Event<'_>, rooms: &mut Rooms, cx: &Context<'_>) {
    let Event::AvailableImage {
        image_correlation_id: correlation_id,
        session_id,
        stream_id,
        subscription_registration_id,
        subscriber_position_counter_id,
        log_file_name,
        source_identity,
    } = event
    else {
        return;
    };
    let Some(subscription) = rooms.subscriptions.get(*subscription_registration_id) else {
        return;
    };
    if subscription.images.has(*correlation_id) {
        return;
    }
    let made = cx.counter(*subscriber_position_counter_id).and_then(|position| {
        let log = rooms
            .mappings
            .acquire(*correlation_id, log_file_name, cx.pre_touches_logs)?;
        Ok(Arc::new(Image::new(ImageParts {
            conductor: cx.proxy.clone(),
            correlation_id: *correlation_id,
            subscription_channel: Arc::clone(&subscription.channel),
            session_id: *session_id,
            stream_id: *stream_id,
            source_identity: source_identity.to_string(),
            position,
            log,
            starts_now: subscription.passes_over(*correlation_id),
        })))
    });
    match made {
        Ok(image) => {
            rooms.mappings.note_image(*correlation_id, &image);
            subscription.images.add(Arc::clone(&image));
            rooms
                .callbacks
                .queue_image(subscription.handlers().available_image, image);
        }
        Err(error) => rooms.callbacks.queue_error(error),
    }
}

/// `left` is the subscription that the event before this one left.
pub(super) fn on_unavailable(
    (image_correlation_id, subscription_registration_id): (i64, i64),
    left: Option<i64>,
    rooms: &mut Rooms,
    cx: &Context<'_>,
) {
    let is_left = left == Some(subscription_registration_id);
    if is_left {
        rooms.subscriptions.put_back_left(subscription_registration_id);
    }
    let Some(subscription) = rooms.subscriptions.get(subscription_registration_id) else {
        return;
    };
    let Some(image) = subscription.images.remove(image_correlation_id) else {
        return;
    };
    if !is_left && !image.is_left() && !image.is_end_of_stream() && !image.is_publication_revoked() {
        let handler = rooms.callbacks.handlers.lost_image.clone();
        rooms.callbacks.queue_image(handler, Arc::clone(&image));
    }
    let (_, mut ending) = rooms.ending(cx.now_ns, cx.resource_linger_ns);
    ending.close_image(&subscription, image);
}
