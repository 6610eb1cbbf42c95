//! Counters that clients ask for.

use headrace_buffers::counters::LABEL_LENGTH_MAX;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::COUNTER_KEY_LENGTH_MAX;
use headrace_protocol::text::truncated;

use crate::conductor::clients::{Clients, OwnedCounter};
use crate::conductor::context::Context;
use crate::conductor::origin::Origin;
use crate::errors::CommandError;

/// What a client wants a counter to say.
pub(crate) struct CounterText<'a> {
    type_id: i32,
    key: &'a [u8],
    label: &'a str,
}

impl<'a> CounterText<'a> {
    /// Clients check the lengths; a text that is too long is shortened.
    pub(crate) fn new(type_id: i32, key: &'a [u8], label: &'a str) -> Self {
        Self {
            type_id,
            key: &key[..key.len().min(COUNTER_KEY_LENGTH_MAX)],
            label: truncated(label, LABEL_LENGTH_MAX),
        }
    }
}

/// A counter that lives as long as its client.
pub(crate) fn add(
    origin: Origin,
    text: &CounterText<'_>,
    cx: &mut Context,
    clients: &mut Clients,
) -> Result<(), CommandError> {
    let Origin {
        client_id,
        correlation_id,
        ..
    } = origin;
    clients.known(cx, origin)?;
    let counter = cx
        .counters
        .allocate(text.type_id, text.key, text.label, correlation_id, client_id)?;
    clients.known(cx, origin)?.counters.push(OwnedCounter {
        registration_id: correlation_id,
        counter_id: counter.id(),
    });
    cx.events.counter_ready(correlation_id, counter.id());
    Ok(())
}

/// Takes a counter back.
pub(crate) fn remove(
    correlation_id: i64,
    registration_id: i64,
    cx: &mut Context,
    clients: &mut Clients,
) -> Result<(), CommandError> {
    let Some(counter) = clients.remove_counter(registration_id) else {
        return Err(CommandError::new(
            ErrorCode::UnknownCounter,
            format!("registrationId={registration_id}"),
        ));
    };
    cx.events.operation_success(correlation_id);
    cx.events.unavailable_counter(registration_id, counter.counter_id);
    cx.counters.free(counter.counter_id);
    Ok(())
}

/// A counter that outlives its client. A second add with the same type and registration id finds the first.
pub(crate) fn add_static(
    origin: Origin,
    registration_id: i64,
    text: &CounterText<'_>,
    cx: &mut Context,
    clients: &mut Clients,
) -> Result<(), CommandError> {
    let type_id = text.type_id;
    let counter_id = match cx.counters.find(type_id, registration_id) {
        Some(counter_id) if cx.counters.is_static(counter_id) => counter_id,
        Some(counter_id) => {
            return Err(CommandError::generic(format!(
                "cannot add static counter, because a non-static counter exists (counterId={counter_id}) for \
                 typeId={type_id} and registrationId={registration_id}"
            )));
        }
        None => cx
            .counters
            .allocate_static(type_id, text.key, text.label, registration_id)?,
    };
    clients.known(cx, origin)?;
    cx.events.static_counter(origin.correlation_id, counter_id);
    Ok(())
}
