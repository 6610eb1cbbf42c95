//! Streams of answers over the network: which subscription reads which.
//!
//! The driver of the requester learns the session from a frame that its sender takes, and tells its receiver; the driver
//! of the responder has its receiver send that frame (`receiver/announcement.rs`). Over IPC one driver knows
//! both ends. See `docs/internals/driver.md`.

use std::sync::Arc;

use headrace_buffers::counters::system_counter;

use super::context::Context;
use super::images::Images;
use super::publications::{ANSWERED_TWICE, Publications};
use super::rooms::Rooms;
use crate::errors::CommandError;
use crate::proxy::{AnswersCommand, ReceiverCommand};
use crate::shared::PublicationShared;
use crate::shared::publication::Exchange;

/// Fails if a publication answers no image that asks, or no subscription reads the answers to it.
pub(crate) fn check_exchange(exchange: Exchange, rooms: &mut Rooms) -> Result<(), CommandError> {
    let subscriptions = &mut rooms.subscriptions;
    match exchange {
        Exchange::None | Exchange::Prototype => Ok(()),
        Exchange::Requests { answers_id } if subscriptions.awaiting_network_answers(answers_id).is_some() => {
            Ok(())
        }
        Exchange::Requests { answers_id } => Err(CommandError::generic(format!(
            "unable to find response subscription for response-correlation-id={answers_id}: it must be the registration \
             id of a subscription with control-mode=response over UDP"
        ))),
        Exchange::Answers { image_id } => rooms.images.endpoint_of_asking(image_id).map(|_| ()),
    }
}

/// A new publication may carry answers: the requester is told, if another publication answers it already when that has
/// ended.
pub(crate) fn announce_answers(
    cx: &mut Context,
    images: &Images,
    publications: &Publications,
    publication: &Arc<PublicationShared>,
) {
    let Exchange::Answers { image_id } = publication.exchange else {
        return;
    };
    if publications.network.answers(image_id) {
        cx.warn(ANSWERED_TWICE);
    }
    if let Ok(endpoint) = images.endpoint_of_asking(image_id) {
        let command = AnswersCommand::Announce {
            correlation_id: image_id,
            answers: Arc::downgrade(publication),
        };
        cx.receiver.send(ReceiverCommand::Answers { endpoint, command });
    }
}

/// A receiver of requests said on which session the answers come. The subscription reads that session from now on, unless
/// it reads a stream that lives: strangers can say so, too.
pub(crate) fn on_announced(rooms: &mut Rooms, subscription_id: i64, session_id: i32) {
    let Rooms {
        cx,
        subscriptions,
        images,
        channels,
        ..
    } = rooms;
    let Some(subscription) = subscriptions.awaiting_network_answers(subscription_id) else {
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
            "answers cannot be asked for: a subscription with control-mode=response has no control, which must be \
             the address of the responder",
        );
    }
    let command = AnswersCommand::Ask {
        stream_id: subscription.stream_id,
        session_id,
    };
    cx.receiver.send(ReceiverCommand::Answers { endpoint, command });
}
