//! Destinations of a publication with `control-mode=manual`: clients add and remove them, the sender sends to them.

use headrace_protocol::ErrorCode;
use headrace_protocol::channel::destination::{check_send_destination, group_address};
use headrace_protocol::channel::{ChannelRole, ChannelUri, UdpChannel, keys};

use super::channel::parse_channel;
use super::step::{AddressesWanted, Adds, Next, Step};
use crate::conductor::origin::Origin;
use crate::conductor::rooms::Rooms;
use crate::endpoint::{AddedDestination, DestinationChange, EndpointId};
use crate::errors::CommandError;
use crate::proxy::SenderCommand;

/// The first step of adding a destination: its channel has names.
pub(crate) fn add(registration_id: i64, channel: &str, rooms: &mut Rooms) -> Result<Next, CommandError> {
    let endpoint = endpoint_of(registration_id, rooms)?;
    let mut uri = parse_destination(channel, rooms)?;
    if let Some(group) = group_address(&uri) {
        rooms.channels.send.complete_group(endpoint, group, &mut uri)?;
    }
    Ok(addresses(uri, Box::new(Add { registration_id })))
}

/// The first step of removing a destination by its channel: as it was written, or by its address.
pub(crate) fn remove(registration_id: i64, channel: &str, rooms: &mut Rooms) -> Result<Next, CommandError> {
    endpoint_of(registration_id, rooms)?;
    let uri = parse_destination(channel, rooms)?;
    let names_interface = uri.contains(keys::INTERFACE);
    let step = Remove {
        registration_id,
        names_interface,
    };
    Ok(addresses(uri, Box::new(step)))
}

fn parse_destination(channel: &str, rooms: &Rooms) -> Result<ChannelUri, CommandError> {
    let uri = parse_channel(&rooms.cx, channel, ChannelRole::SendDestination)?;
    check_send_destination(&uri)?;
    Ok(uri)
}

fn addresses(uri: ChannelUri, step: Box<dyn Step<UdpChannel>>) -> Next {
    let wanted = AddressesWanted {
        uri,
        role: ChannelRole::SendDestination,
        adds: Adds::Destination,
    };
    Next::Addresses(wanted, step)
}

/// Removes a destination by the id of the command that added it; one that is not there is gone already.
pub(crate) fn remove_by_id(
    correlation_id: i64,
    registration_id: i64,
    destination_registration_id: i64,
    rooms: &mut Rooms,
) -> Result<(), CommandError> {
    let endpoint = endpoint_of(registration_id, rooms)?;
    rooms.cx.sender.send(SenderCommand::ChangeDestinations {
        endpoint,
        change: DestinationChange::RemoveById(destination_registration_id),
    });
    rooms.cx.events.operation_success(correlation_id);
    Ok(())
}

/// The channel of a publication whose clients say where it sends to.
fn endpoint_of(registration_id: i64, rooms: &mut Rooms) -> Result<EndpointId, CommandError> {
    let Some(publication) = rooms.publications.network.find(registration_id) else {
        return Err(CommandError::new(
            ErrorCode::UnknownPublication,
            format!(
                "no publication with control-mode=manual, which alone has destinations to add and to remove, \
                 registrationId={registration_id}"
            ),
        ));
    };
    let endpoint = publication.endpoint();
    if rooms.channels.send.is_manual(endpoint) {
        return Ok(endpoint);
    }
    Err(CommandError::new(
        ErrorCode::InvalidChannel,
        format!(
            "channel does not allow manual control of destinations: it must have control-mode=manual, \
             registrationId={registration_id}"
        ),
    ))
}

/// The address is known, or that the name has none yet.
struct Add {
    registration_id: i64,
}

impl Step<UdpChannel> for Add {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        // The publication may have ended while the name was looked up.
        let endpoint = endpoint_of(self.registration_id, rooms)?;
        let is_resolved = !udp.remote.ip().is_unspecified();
        let group = rooms.channels.open_send_group(&rooms.cx, endpoint, udp.clone())?;
        if is_resolved && group.is_none() {
            rooms.channels.send.check_reaches(endpoint, udp.remote)?;
        }
        let added = AddedDestination {
            registration_id: origin.correlation_id,
            name: udp.endpoint.unwrap_or_default(),
            address: is_resolved.then_some(udp.remote),
            group,
        };
        rooms.cx.sender.send(SenderCommand::ChangeDestinations {
            endpoint,
            change: DestinationChange::Add(added),
        });
        rooms.cx.events.operation_success(origin.correlation_id);
        Ok(Next::Done)
    }
}

/// The address is known.
struct Remove {
    registration_id: i64,
    // Of a group the client names one interface that it is reached through.
    names_interface: bool,
}

impl Step<UdpChannel> for Remove {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let endpoint = endpoint_of(self.registration_id, rooms)?;
        let group = udp.kind.group().filter(|_| self.names_interface);
        rooms.cx.sender.send(SenderCommand::ChangeDestinations {
            endpoint,
            change: DestinationChange::Remove {
                interface: group.map(|group| group.interface_address),
                name: udp.endpoint.unwrap_or_default(),
                address: udp.remote,
            },
        });
        rooms.cx.events.operation_success(origin.correlation_id);
        Ok(Next::Done)
    }
}
