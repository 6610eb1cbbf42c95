//! Publications that the driver has made.

use std::sync::Arc;

use headrace_protocol::event::PublicationReady;

use crate::conductor::context::Context;
use crate::conductor::driver_proxy::Removal;
use crate::conductor::log_mappings::unusable_log;
use crate::conductor::requests::{Kind, Outcome};
use crate::conductor::rooms::Rooms;
use crate::error::ClientError;
use crate::publication::{ExclusivePublication, HandleParts, Publication, PublicationHandle};

pub(super) fn on_ready(ready: &PublicationReady<'_>, rooms: &mut Rooms, cx: &Context<'_>) {
    let Some(Kind::Publication { channel }) = rooms.requests.awaited(ready.correlation_id) else {
        return;
    };
    let channel = Arc::clone(channel);
    let made = make_handle(ready, channel, rooms, cx).map(|handle| {
        rooms.publications.add(Arc::clone(&handle));
        Outcome::Publication(Publication::new(handle))
    });
    answer(ready, made, rooms, cx);
}

pub(super) fn on_exclusive_ready(ready: &PublicationReady<'_>, rooms: &mut Rooms, cx: &Context<'_>) {
    let Some(Kind::ExclusivePublication { channel }) = rooms.requests.awaited(ready.correlation_id) else {
        return;
    };
    let channel = Arc::clone(channel);
    let made = make_exclusive(ready, channel, rooms, cx);
    answer(ready, made, rooms, cx);
}

/// One that could not be made here is removed at the driver.
fn answer(
    ready: &PublicationReady<'_>,
    made: Result<Outcome, ClientError>,
    rooms: &mut Rooms,
    cx: &Context<'_>,
) {
    if made.is_err() {
        let removal = Removal::Publication { revoke: false };
        rooms.remove_at_driver(cx, ready.correlation_id, removal);
    }
    rooms.requests.answer(ready.correlation_id, |_| Some(made));
}

fn make_exclusive(
    ready: &PublicationReady<'_>,
    channel: Arc<str>,
    rooms: &mut Rooms,
    cx: &Context<'_>,
) -> Result<Outcome, ClientError> {
    let (id, log_id) = (ready.correlation_id, ready.original_registration_id);
    if id != log_id {
        let reason = format!(
            "an exclusive publication has its own log: correlation_id={id} original_registration_id={log_id}"
        );
        return Err(ClientError::InvalidEvent { reason });
    }
    let handle = make_handle(ready, channel, rooms, cx)?;
    match ExclusivePublication::new(Arc::clone(&handle)) {
        Ok(publication) => {
            rooms.publications.add(handle);
            Ok(Outcome::ExclusivePublication(publication))
        }
        Err(error) => {
            rooms.mappings.release(log_id, cx.now_ns, 0);
            Err(unusable_log(&ready.log_file_name, &error))
        }
    }
}

fn make_handle(
    ready: &PublicationReady<'_>,
    channel: Arc<str>,
    rooms: &mut Rooms,
    cx: &Context<'_>,
) -> Result<Arc<PublicationHandle>, ClientError> {
    let original_registration_id = ready.original_registration_id;
    let limit = cx.counter(ready.publisher_limit_counter_id)?;
    let log = rooms.mappings.acquire(
        original_registration_id,
        &ready.log_file_name,
        cx.pre_touches_logs,
    )?;
    Ok(Arc::new(PublicationHandle::new(HandleParts {
        conductor: cx.proxy.clone(),
        registration_id: ready.correlation_id,
        original_registration_id,
        channel,
        stream_id: ready.stream_id,
        session_id: ready.session_id,
        channel_status_id: ready.channel_status_counter_id,
        limit,
        log,
        driver_doorbell: cx.driver.doorbell().clone(),
    })))
}
