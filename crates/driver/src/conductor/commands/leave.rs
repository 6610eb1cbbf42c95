//! Clients that close, die or fall silent: frees their resources.

use headrace_buffers::counters::system_counter;

use super::progress::Progress;
use super::remove::release_subscription;
use crate::conductor::clients::{Client, ClientState, Look};
use crate::conductor::context::Context;
use crate::conductor::rooms::Rooms;

/// A client says that it is done. The next check of clients frees its resources.
pub(crate) fn close(client_id: i64, rooms: &mut Rooms, progress: &mut Progress) {
    progress.cancel_all_of(client_id);
    rooms.clients.close(&rooms.cx.recorder, client_id);
}

/// Frees what clients held that closed, whose process ended, or that were not heard from. `read` is how far their
/// commands were read.
pub(crate) fn free_gone(rooms: &mut Rooms, progress: &mut Progress, read: i64) {
    let look = Look {
        now_ns: rooms.cx.now_ns,
        now_ms: rooms.cx.now_ms,
        timeout_ns: rooms.cx.config.client_liveness_timeout_ns,
        read,
    };
    for mut client in rooms.clients.take_gone(look, progress.waiting_client_id()) {
        progress.cancel_all_of(client.id);
        if client.state() != ClientState::Closed {
            note_death(&mut rooms.cx, &client, read);
        }
        rooms
            .cx
            .events
            .unavailable_counter(client.id, client.heartbeat.id());
        let label = rooms.cx.counters.label(client.heartbeat.id());
        rooms.cx.counters.free(client.heartbeat.id());
        free(rooms, &client);
        client.leave(&rooms.cx.recorder, name_in(&label.unwrap_or_default()));
    }
}

fn note_death(cx: &mut Context, client: &Client, read: i64) {
    cx.count(system_counter::CLIENT_TIMEOUTS);
    cx.events.client_timeout(client.id);
    if client.is_over(read) {
        cx.warn(
            "a client's process ended without closing the client: \
             the driver closes its publications, subscriptions and counters; `headrace events` names it",
        );
    }
}

/// What a client added to the label of its heartbeat: ` name=<name> version=<version> ...`. Not of programs that say
/// nothing.
fn name_in(label: &str) -> &str {
    let (_, added) = label.split_once(" name=").unwrap_or_default();
    added.split_once(" version=").map_or(added, |(name, _)| name)
}

fn free(rooms: &mut Rooms, client: &Client) {
    for handle in &client.publications {
        rooms
            .publications
            .release(&mut rooms.cx, handle.publication_id, false);
    }
    for registration_id in rooms.subscriptions.ids_of(client.id) {
        release_subscription(rooms, registration_id);
    }
    for counter in &client.counters {
        rooms
            .cx
            .events
            .unavailable_counter(counter.registration_id, counter.counter_id);
        rooms.cx.counters.free(counter.counter_id);
    }
}
