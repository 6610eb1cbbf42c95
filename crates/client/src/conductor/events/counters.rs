//! Counters that the driver has made.

use std::sync::Arc;

use crate::conductor::context::Context;
use crate::conductor::requests::{Kind, Outcome};
use crate::conductor::rooms::Rooms;
use crate::counter::{Counter, CounterShared, StaticCounter};

pub(super) fn on_ready(registration_id: i64, counter_id: i32, rooms: &mut Rooms, cx: &Context<'_>) {
    let counters = &mut rooms.counters;
    rooms.requests.answer(registration_id, |kind| match kind {
        Kind::Counter => Some(cx.counter(counter_id).map(|value| {
            let shared = CounterShared::new(registration_id, counter_id);
            counters.add(Arc::clone(&shared));
            Outcome::Counter(Counter::new(cx.proxy.clone(), shared, value))
        })),
        _ => None,
    });
    // Other clients' counters are news too.
    rooms
        .callbacks
        .queue_available_counter(registration_id, counter_id);
}

pub(super) fn on_static(correlation_id: i64, counter_id: i32, rooms: &mut Rooms, cx: &Context<'_>) {
    rooms.requests.answer(correlation_id, |kind| match kind {
        Kind::StaticCounter { registration_id } => {
            let value = cx.counter(counter_id);
            Some(value.map(|value| Outcome::StaticCounter(StaticCounter::new(*registration_id, value))))
        }
        _ => None,
    });
}
