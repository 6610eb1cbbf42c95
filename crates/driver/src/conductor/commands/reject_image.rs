//! A subscriber refuses an image.

use headrace_buffers::counters::system_counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::command::REJECTION_REASON_LENGTH_MAX;

use crate::conductor::context::Context;
use crate::conductor::publications::{Publication, PublicationState, Publications};
use crate::conductor::rooms::Rooms;
use crate::conductor::subscriptions::readers::announce_end;
use crate::errors::{CommandError, ErrorGroup};

/// Has the publisher told, or the readers of an IPC publication turned away for a while.
pub(crate) fn reject(
    correlation_id: i64,
    image_correlation_id: i64,
    reason: &str,
    rooms: &mut Rooms,
) -> Result<(), CommandError> {
    if reason.len() > REJECTION_REASON_LENGTH_MAX {
        return Err(CommandError::generic(format!(
            "Invalidation reason must be {REJECTION_REASON_LENGTH_MAX} bytes or less, length={}",
            reason.len()
        )));
    }
    if rooms.publications.network.contains(image_correlation_id) {
        return Err(CommandError::generic(format!(
            "spies may not reject images, correlationId={image_correlation_id}"
        )));
    }
    if !reject_local(
        &mut rooms.cx,
        &mut rooms.publications,
        image_correlation_id,
        reason,
    ) && !rooms.images.reject(&mut rooms.cx, image_correlation_id, reason)
    {
        return Err(CommandError::generic(format!(
            "Unable to resolve image for correlationId={image_correlation_id}"
        )));
    }
    rooms.cx.count(system_counter::IMAGES_REJECTED);
    rooms.cx.events.operation_success(correlation_id);
    Ok(())
}

/// False when the image is not an IPC publication's.
fn reject_local(
    cx: &mut Context,
    publications: &mut Publications,
    image_correlation_id: i64,
    reason: &str,
) -> bool {
    let found = publications
        .ipc
        .find(image_correlation_id)
        .filter(|publication| publication.stream().state() == PublicationState::Active);
    let Some(publication) = found else {
        return false;
    };
    let spec = &publication.stream().spec;
    let (session_id, stream_id) = (spec.session_id, spec.stream_id);
    let text = format!(
        "WARN - onPublicationError: image rejected by a subscriber of this driver: sessionId={session_id} \
         streamId={stream_id}: {reason}"
    );
    // First: a publisher that is told finds itself without readers.
    let until_ns = cx.now_ns.saturating_add(cx.config.image_liveness_timeout_ns);
    let links = publication.reject(until_ns);
    let code = ErrorCode::ImageRejected.value();
    cx.errors
        .record_in(ErrorGroup::Rejections, code, &text, cx.now_ms);
    cx.events
        .local_rejection(image_correlation_id, session_id, stream_id, reason);
    announce_end(cx, image_correlation_id, &links);
    cx.counters.free_all(links.iter().map(|link| &link.position));
    true
}
