//! The part of adding a publication that all kinds share: the client's handle.

use headrace_protocol::channel::{ChannelUri, PublicationParams};

use crate::conductor::clients::{Clients, PublicationHandle};
use crate::conductor::context::Context;
use crate::conductor::origin::Origin;
use crate::conductor::publications::{PublicationRequest, Stream};
use crate::errors::CommandError;

/// Lets a client share a publication that another add made, and tells the client. What the channel asks for in vain
/// is noted.
pub(crate) fn share(
    cx: &mut Context,
    clients: &mut Clients,
    origin: Origin,
    request: &PublicationRequest,
    stream: &mut Stream,
) -> Result<(), CommandError> {
    request
        .params
        .check_matches(&stream.existing(), &request.channel)?;
    let first = ChannelUri::parse(&stream.spec.channel)?;
    let first_params = PublicationParams::from_uri(&first, &cx.defaults)?;
    hold(cx, clients, origin, stream.spec.registration_id)?;
    cx.note_publisher(origin.client_id, &stream.spec.log);
    stream.add_handle();
    for text in request.params.without_effect(&request.uri, &first_params, &first) {
        cx.doubt(&format!("{text}, channel={}", request.channel));
    }
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
    clients.known(cx, origin)?.publications.push(PublicationHandle {
        registration_id: origin.correlation_id,
        publication_id,
    });
    Ok(())
}
