//! Links readers to a stream, and informs them of its changes.

use super::links::{Link, Links, UntetheredAction};
use super::subscription::Subscription;
use crate::conductor::context::Context;
use crate::conductor::events::StreamDescription;

/// Links a subscription to a stream and tells the reader. False when no position counter could be had, which is
/// recorded: the command that led here was answered.
pub(crate) fn attach(
    cx: &mut Context,
    links: &mut Links,
    subscription: &Subscription,
    stream: StreamDescription<'_>,
    join_position: i64,
) -> bool {
    let key = subscription.key(stream.session_id);
    let made = cx
        .counters
        .subscriber_position(key, stream.image_correlation_id, join_position);
    match made {
        Ok(position) => {
            let link = links.add(subscription.link(position), cx.now_ns);
            cx.events.available_image(stream, &link);
            true
        }
        Err(error) => {
            cx.record_image_error(&error);
            false
        }
    }
}

/// Tells the readers of a stream that it is gone for them.
pub(crate) fn announce_end<'a>(
    cx: &mut Context,
    image_correlation_id: i64,
    links: impl IntoIterator<Item = &'a Link>,
) {
    for link in links.into_iter().filter(|link| link.is_available()) {
        cx.events.unavailable_image(image_correlation_id, link);
    }
}

/// Does what the state machine of untethered links asks for.
pub(crate) fn announce_untethered(
    cx: &mut Context,
    actions: &[UntetheredAction],
    stream: StreamDescription<'_>,
) {
    for action in actions {
        match action {
            UntetheredAction::Unavailable(link) => {
                cx.events.unavailable_image(stream.image_correlation_id, link);
            }
            UntetheredAction::Available(link) => cx.events.available_image(stream, link),
            UntetheredAction::Removed(link) => cx.counters.free(link.position.id()),
        }
    }
}
