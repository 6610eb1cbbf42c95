//! Shows operators the destinations of subscriptions with `control-mode=manual`, and which of them receive data.
//!
//! The room of channels has the sockets, and that of subscriptions the local destinations; only the publications know
//! whether such a stream exists. So this module combines them: when a client has changed something, and at every tick.

use super::rooms::Rooms;
use crate::endpoint::{EndpointId, ShownDestination};

/// Brings the counters of all such channels up to date.
pub(crate) fn show(rooms: &mut Rooms) {
    for endpoint in rooms.channels.receive.manual() {
        let local = local_destinations(rooms, endpoint);
        let receive = &mut rooms.channels.receive;
        receive.show_destinations(&mut rooms.cx, endpoint, local);
    }
}

/// Those that are published on this host. One brings something while a publication is there that it wants.
fn local_destinations(rooms: &Rooms, endpoint: EndpointId) -> Vec<(ShownDestination, bool)> {
    let subscriptions = &rooms.subscriptions;
    let is_of_channel = |registration_id| {
        let owner = subscriptions.get(registration_id);
        owner
            .and_then(|owner| owner.network())
            .is_some_and(|(own, _)| own == endpoint)
    };
    let destinations = subscriptions.iter().filter(|destination| {
        destination.destination_id.is_some() && is_of_channel(destination.registration_id)
    });
    destinations
        .map(|destination| {
            let shown = ShownDestination {
                registration_id: destination.destination_id,
                name: destination.channel.to_string(),
                address: None,
            };
            (shown, rooms.publications.has_for(destination))
        })
        .collect()
}
