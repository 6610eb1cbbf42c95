//! Handles the events from the driver.
//!
//! Every event reaches every client, so an unknown id belongs to another client and is ignored.

mod counters;
mod errors;
mod images;
mod publications;
mod subscriptions;

use headrace_protocol::event::Event;

use super::context::Context;
use super::requests::{Kind, Outcome};
use super::rooms::Rooms;
use crate::error::ClientError;

/// Applies one event. An error ends the client.
pub(crate) fn apply(event: &Event<'_>, rooms: &mut Rooms, cx: &Context<'_>) -> Result<(), ClientError> {
    let left = rooms.subscriptions.take_left();
    match event {
        Event::Error {
            correlation_id,
            error_code,
            message,
        } => errors::on_error(*correlation_id, *error_code, message, rooms, cx),
        Event::AvailableImage { .. } => images::on_available(event, rooms, cx),
        Event::UnavailableImage {
            image_correlation_id,
            subscription_registration_id,
            ..
        } => {
            let ids = (*image_correlation_id, *subscription_registration_id);
            images::on_unavailable(ids, left, rooms, cx);
        }
        Event::PublicationReady(ready) => publications::on_ready(ready, rooms, cx),
        Event::ExclusivePublicationReady(ready) => publications::on_exclusive_ready(ready, rooms, cx),
        Event::SubscriptionReady {
            correlation_id,
            channel_status_counter_id,
        } => subscriptions::on_ready(*correlation_id, *channel_status_counter_id, rooms, cx),
        Event::OperationSuccess { correlation_id } => on_success(*correlation_id, rooms),
        Event::CounterReady {
            registration_id,
            counter_id,
        } => counters::on_ready(*registration_id, *counter_id, rooms, cx),
        Event::StaticCounter {
            correlation_id,
            counter_id,
        } => counters::on_static(*correlation_id, *counter_id, rooms, cx),
        Event::UnavailableCounter {
            registration_id,
            counter_id,
        } => {
            rooms.counters.close(*registration_id);
            rooms
                .callbacks
                .queue_unavailable_counter(*registration_id, *counter_id);
        }
        Event::NextAvailableSessionId {
            correlation_id,
            session_id,
        } => on_session_id(*correlation_id, *session_id, rooms, cx),
        Event::PublicationError(error) => errors::on_publication_error(error, rooms),
        Event::ClientTimeout { client_id } if *client_id == cx.driver.client_id() => {
            let reason = format!("the driver gave this client up: client_id={client_id}");
            return Err(ClientError::ClientTimeout { reason });
        }
        Event::ClientTimeout { .. } => {}
    }
    Ok(())
}

/// What was asked for is done.
fn on_success(correlation_id: i64, rooms: &mut Rooms) {
    let mut left = None;
    rooms.requests.answer(correlation_id, |kind| match kind {
        Kind::Operation => Some(Ok(Outcome::Done)),
        Kind::DestinationRemoval { registration_id } => {
            left = Some(*registration_id);
            Some(Ok(Outcome::Done))
        }
        _ => None,
    });
    if let Some(registration_id) = left {
        rooms.subscriptions.leave(registration_id);
    }
}

fn on_session_id(correlation_id: i64, session_id: i32, rooms: &mut Rooms, cx: &Context<'_>) {
    if subscriptions::on_fence(correlation_id, rooms, cx) {
        return;
    }
    rooms.requests.answer(correlation_id, |kind| match kind {
        Kind::SessionId => Some(Ok(Outcome::SessionId(session_id))),
        _ => None,
    });
}
