//! Removing publications and subscriptions.

use headrace_protocol::ErrorCode;

use super::progress::Progress;
use super::step::Adds;
use crate::conductor::rooms::Rooms;
use crate::errors::CommandError;

/// Drops a client's hold on a publication, or gives up the add that waits for a name.
pub(crate) fn publication(
    correlation_id: i64,
    registration_id: i64,
    revoke: bool,
    rooms: &mut Rooms,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    if !progress.cancel(registration_id, Adds::Publication) {
        let Some(handle) = rooms.clients.remove_publication(registration_id) else {
            return Err(unknown_publication(registration_id));
        };
        rooms
            .publications
            .release(&mut rooms.cx, handle.publication_id, revoke);
    }
    rooms.cx.events.operation_success(correlation_id);
    Ok(())
}

/// Ends a subscription, or gives up the add that waits for a name.
pub(crate) fn subscription(
    correlation_id: i64,
    registration_id: i64,
    rooms: &mut Rooms,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    let is_gone =
        progress.cancel(registration_id, Adds::Subscription) || release_subscription(rooms, registration_id);
    if !is_gone {
        return Err(unknown_subscription(registration_id));
    }
    rooms.cx.events.operation_success(correlation_id);
    Ok(())
}

/// Removes a subscription with its destinations and all their links. The reader is not told: it asked, or it is dead. False when there is no
/// such subscription.
pub(crate) fn release_subscription(rooms: &mut Rooms, registration_id: i64) -> bool {
    let taken = rooms.subscriptions.take(&rooms.cx.recorder, registration_id);
    let is_known = !taken.is_empty();
    for subscription in taken {
        match subscription.network() {
            None => {
                rooms.publications.unlink(&mut rooms.cx, registration_id);
            }
            Some((endpoint, _)) => {
                rooms.images.unlink(&mut rooms.cx, registration_id);
                let receive = &mut rooms.channels.receive;
                receive.remove_interest(&mut rooms.cx, endpoint, subscription.interest());
            }
        }
    }
    is_known
}

/// There is no publication of this id that could be meant.
fn unknown_publication(registration_id: i64) -> CommandError {
    let text = format!("registrationId={registration_id}");
    CommandError::new(ErrorCode::UnknownPublication, text)
}

fn unknown_subscription(registration_id: i64) -> CommandError {
    let text = format!("registrationId={registration_id}");
    CommandError::new(ErrorCode::UnknownSubscription, text)
}
