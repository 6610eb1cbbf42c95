//! What adding a publication means whatever its kind: the client's hold on it.

use super::step::Origin;
use crate::conductor::clients::{Clients, PublicationHandle};
use crate::conductor::context::Context;
use crate::conductor::publications::Stream;
use crate::errors::CommandError;

/// Gives a client a hold on a publication that another add made, and tells the client.
pub(crate) fn share(
    cx: &mut Context,
    clients: &mut Clients,
    origin: Origin,
    stream: &mut Stream,
) -> Result<(), CommandError> {
    hold(cx, clients, origin, stream.spec.registration_id)?;
    cx.note_publisher(origin.client_id, &stream.spec.log);
    stream.add_handle();
    cx.events
        .publication_ready(origin.correlation_id, stream.spec.describe_publication());
    Ok(())
}

/// Notes that a client holds a publication.
pub(crate) fn hold(
    cx: &mut Context,
    clients: &mut Clients,
    origin: Origin,
    publication_id: i64,
) -> Result<(), CommandError> {
    clients
        .known(cx, origin.client_id)?
        .publications
        .push(PublicationHandle {
            registration_id: origin.correlation_id,
            publication_id,
        });
    Ok(())
}
