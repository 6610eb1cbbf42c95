//! Counters that clients ask for.

use headrace_buffers::counters::LABEL_LENGTH_MAX;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::COUNTER_KEY_LENGTH_MAX;

use super::Conductor;
use super::clients::OwnedCounter;
use super::counters::truncated;
use crate::errors::CommandError;

/// Owner of counters that outlive the client that added them.
const STATIC_OWNER_ID: i64 = -1;

impl Conductor {
    pub(crate) fn add_counter(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<(), CommandError> {
        self.client(client_id)?;
        let (key, label) = fitted(key, label);
        let counter = self
            .cx
            .counters
            .allocate(type_id, key, label, correlation_id, client_id)?;
        let counter_id = counter.id();
        self.client(client_id)?.counters.push(OwnedCounter {
            registration_id: correlation_id,
            counter_id,
        });
        self.cx.events.counter_ready(correlation_id, counter_id);
        Ok(())
    }

    pub(crate) fn remove_counter(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
    ) -> Result<(), CommandError> {
        let Some(counter) = self.clients.remove_counter(registration_id) else {
            return Err(CommandError::new(
                ErrorCode::UnknownCounter,
                format!("registrationId={registration_id}"),
            ));
        };
        self.cx.events.operation_success(correlation_id);
        self.cx
            .events
            .unavailable_counter(registration_id, counter.counter_id);
        self.cx.counters.free(counter.counter_id);
        Ok(())
    }

    pub(crate) fn add_static_counter(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<(), CommandError> {
        let counter_id = match self.cx.counters.find(type_id, registration_id) {
            Some(found) if found.owner_id == STATIC_OWNER_ID => found.counter_id,
            Some(found) => {
                return Err(CommandError::generic(format!(
                    "cannot add static counter, because a non-static counter exists (counterId={}) for \
                     typeId={type_id} and registrationId={registration_id}",
                    found.counter_id
                )));
            }
            None => {
                let (key, label) = fitted(key, label);
                let counter =
                    self.cx
                        .counters
                        .allocate(type_id, key, label, registration_id, STATIC_OWNER_ID)?;
                counter.id()
            }
        };
        self.client(client_id)?;
        self.cx.events.static_counter(correlation_id, counter_id);
        Ok(())
    }
}

/// Clients check the lengths; a text that is too long is shortened.
fn fitted<'a>(key: &'a [u8], label: &'a str) -> (&'a [u8], &'a str) {
    let key = &key[..key.len().min(COUNTER_KEY_LENGTH_MAX)];
    (key, truncated(label, LABEL_LENGTH_MAX))
}
