//! Subscriptions that the driver has made.

use std::sync::Arc;

use headrace_protocol::command::Command;

use crate::conductor::context::Context;
use crate::conductor::requests::{Kind, Outcome};
use crate::conductor::rooms::Rooms;
use crate::subscription::Subscription;

pub(super) fn on_ready(registration_id: i64, status_id: i32, rooms: &mut Rooms, cx: &Context<'_>) {
    let Some(Kind::Subscription(shared)) = rooms.requests.awaited(registration_id) else {
        return;
    };
    shared.set_channel_status_id(status_id);
    let starts_now = shared.starts_now();
    if !(starts_now && send_fence(registration_id, rooms, cx)) {
        finish(registration_id, rooms, cx);
    }
}

/// The driver announces the streams that exist right after it reports that a subscription is ready. A subscription that
/// skips what they have published must have them before the program gets it: everything published from then on is for
/// the program. So this asks the driver for something else, which it answers after the announcements. False if it
/// cannot ask.
fn send_fence(registration_id: i64, rooms: &mut Rooms, cx: &Context<'_>) -> bool {
    let correlation_id = cx.driver.next_correlation_id();
    let command = Command::NextAvailableSessionId {
        client_id: cx.driver.client_id(),
        correlation_id,
        stream_id: 0,
    };
    let is_sent = cx.driver_knows_session_ids() && cx.driver.send("add subscription", &command).is_ok();
    if is_sent {
        rooms.requests.fence(registration_id, correlation_id);
    }
    is_sent
}

/// True for the answer to a fence.
pub(super) fn on_fence(correlation_id: i64, rooms: &mut Rooms, cx: &Context<'_>) -> bool {
    let registration_id = rooms.requests.fenced_by(correlation_id);
    if let Some(registration_id) = registration_id {
        finish(registration_id, rooms, cx);
    }
    registration_id.is_some()
}

fn finish(registration_id: i64, rooms: &mut Rooms, cx: &Context<'_>) {
    rooms.requests.answer(registration_id, |kind| match kind {
        Kind::Subscription(shared) => {
            let subscription = Subscription::new(cx.proxy.clone(), Arc::clone(shared));
            Some(Ok(Outcome::Subscription(subscription)))
        }
        _ => None,
    });
}
