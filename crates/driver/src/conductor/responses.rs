//! Streams of responses over the network: which subscription reads which.
//!
//! The driver of the requester learns the session from a frame that its sender takes, and tells its receiver; the driver
//! of the responder has its receiver send that frame (`receiver/announcement.rs`). Over IPC one driver knows
//! both ends. See `docs/internals/driver.md`.

use std::sync::Arc;

use headrace_buffers::counters::system_counter;

use super::context::Context;
use super::images::Images;
use super::publications::{Publications, RESPONDED_TWICE};
use super::rooms::Rooms;
use crate::errors::CommandError;
use crate::proxy::{ReceiverCommand, ResponsesCommand};
use crate::shared::PublicationShared;
use crate::shared::publication::Exchange;

/// Fails if a publication responds to no image that asks, or no subscription reads the responses to it.
pub(crate) fn check_exchange(exchange: Exchange, rooms: &mut Rooms) -> Result<(), CommandError> {
    let subscriptions = &mut rooms.subscriptions;
    match exchange {
        Exchange::None | Exchange::Prototype => Ok(()),
        Exchange::Requests { responses_id }
            if subscriptions.awaiting_network_responses(responses_id).is_some() =>
        {
            Ok(())
        }
        Exchange::Requests { responses_id } => Err(CommandError::generic(format!(
            "unable to find response subscription for response-correlation-id={responses_id}: it must be the \
             registration id of a subscription with control-mode=response over UDP"
        ))),
        Exchange::Responses { image_id } => rooms.images.endpoint_of_asking(image_id).map(|_| ()),
    }
}

/// A new publication may carry responses: the receiver announces it to the requester, if another publication responds
/// already, when that has ended.
pub(crate) fn announce_responses(
    cx: &mut Context,
    images: &Images,
    publications: &Publications,
    publication: &Arc<PublicationShared>,
) {
    let Exchange::Responses { image_id } = publication.exchange else {
        return;
    };
    if publications.network.responds_to(image_id) {
        cx.warn(RESPONDED_TWICE);
    }
    if let Ok(endpoint) = images.endpoint_of_asking(image_id) {
        let command = ResponsesCommand::Announce {
            correlation_id: image_id,
            responses: Arc::downgrade(publication),
        };
        cx.receiver.send(ReceiverCommand::Responses { endpoint, command });
    }
}

/// A receiver of requests said on which session the responses come. The subscription reads that session from now on,
/// unless it reads a stream that lives: strangers can say so, too.
pub(crate) fn on_announced(rooms: &mut Rooms, subscription_id: i64, session_id: i32) {
    let Rooms {
        cx,
        subscriptions,
        images,
        channels,
        ..
    } = rooms;
    let Some(subscription) = subscriptions.awaiting_network_responses(subscription_id) else {
        return; // it is closed
    };
    let Some((endpoint, _)) = subscription.network() else {
        return;
    };
    let is_served = images.brings_live_stream_to(subscription_id);
    if subscription.session_id != Some(session_id) {
        if is_served {
            cx.system.get(system_counter::INVALID_PACKETS).get_and_add(1);
            return;
        }
        let before = subscription.interest();
        subscription.session_id = Some(session_id);
        // In this order: a channel that nothing is read from closes.
        let receive = &mut channels.receive;
        receive.add_interest(cx, endpoint, subscription.interest());
        receive.remove_interest(cx, endpoint, before);
        images.link(cx, subscription);
    }
    if is_served {
        return;
    }
    if !channels.receive.has_control(endpoint) {
        cx.warn(
            "responses cannot be asked for: a subscription with control-mode=response has no control, which must be \
             the address of the responder",
        );
    }
    let command = ResponsesCommand::Ask {
        stream_id: subscription.stream_id,
        session_id,
    };
    cx.receiver.send(ReceiverCommand::Responses { endpoint, command });
}
