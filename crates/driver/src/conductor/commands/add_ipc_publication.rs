//! Adding an IPC publication: share one, or have a log created and make one.

use headrace_buffers::log::LogBuffers;

use super::add_publication::{hold, share};
use super::step::{Next, Step};
use crate::conductor::origin::Origin;
use crate::conductor::publications::{IpcPublication, PublicationPlan, PublicationRequest, StreamCounters};
use crate::conductor::rooms::Rooms;
use crate::errors::CommandError;

/// IPC publications have no channel of their own, hence no status of one.
const NO_CHANNEL_STATUS: i32 = -1;

/// The first step: everything that needs no log.
pub(crate) fn begin(
    origin: Origin,
    mut request: PublicationRequest,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let publications = &mut rooms.publications;
    publications.ipc.adopt_tag(&rooms.cx, &mut request)?;
    publications.check_entity_tag(&request.params, &request.channel)?;
    if let Some(stream) = publications.ipc.shareable(&request, |_| true) {
        share(&mut rooms.cx, &mut rooms.clients, origin, &request, stream)?;
        return Ok(Next::Done);
    }
    let session_id = publications
        .ipc
        .session_id(&mut publications.session_ids, &request, "", |_| true)?;
    let start = request.start(&mut rooms.cx.random);
    let directory = &rooms.cx.config.directory;
    let plan = PublicationPlan::new(request, origin.correlation_id, session_id, start, directory)?;
    let task = plan.create_log(plan.log_spec(&rooms.cx.config));
    Ok(Next::Log(task, Box::new(Make(plan))))
}

/// The log is there: make the publication.
struct Make(PublicationPlan);

impl Step<LogBuffers> for Make {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        log: LogBuffers,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let Self(plan) = *self;
        rooms.clients.known(&mut rooms.cx, origin)?;
        let [publisher_position, publisher_limit] = rooms
            .cx
            .counters
            .stream_set(plan.key(origin.client_id), plan.counter_rows())?;
        let counters = StreamCounters {
            publisher_position,
            publisher_limit,
            further: Vec::new(),
        };
        hold(&mut rooms.cx, &mut rooms.clients, origin, origin.correlation_id)?;
        let stream = plan.into_stream(log, counters, NO_CHANNEL_STATUS);
        let Rooms {
            cx,
            publications,
            subscriptions,
            ..
        } = rooms;
        publications.ipc.bring_responses(cx, &stream, subscriptions);
        let publication = IpcPublication::new(stream, &cx.recorder, cx.now_ns);
        publications.ipc.add(cx, publication, subscriptions);
        Ok(Next::Done)
    }
}
