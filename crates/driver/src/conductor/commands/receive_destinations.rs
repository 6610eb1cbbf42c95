//! Destinations of a subscription with `control-mode=manual`: clients add and remove them.
//!
//! | destination | is | belongs to |
//! |---|---|---|
//! | `aeron:udp` | a socket of the channel, a path of its images | the channel: all subscriptions that share it read from it |
//! | `aeron:ipc`, `aeron-spy:` | links to what clients of this driver publish | the one subscription |
//!
//! A removed socket is closed before the client gets its answer, so that its port can be bound again at once.

use headrace_protocol::ErrorCode;
use headrace_protocol::channel::destination::check_receive_destination;
use headrace_protocol::channel::{ChannelRole, ChannelUri, Media, SubscriptionParams, UdpChannel};

use super::channel::parse_channel;
use super::step::{AddressesWanted, Adds, Next, Step};
use crate::conductor::channels::DestinationRequest;
use crate::conductor::origin::Origin;
use crate::conductor::rooms::Rooms;
use crate::conductor::shown_paths;
use crate::conductor::subscriptions::{SpiedChannel, Subscription, SubscriptionKind};
use crate::endpoint::EndpointId;
use crate::errors::CommandError;

/// Adds a destination: IPC at once, the others once their names have addresses.
pub(crate) fn add(
    origin: Origin,
    subscription_id: i64,
    channel: &str,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    manual(subscription_id, rooms)?;
    let uri = parse_destination(channel, rooms)?;
    if uri.media() == Media::Udp && !uri.is_spy() {
        let step = Box::new(AddSocket { subscription_id });
        return Ok(addresses(uri, ChannelRole::ReceiveDestination, step));
    }
    let local = Local {
        subscription_id,
        channel: channel.to_owned(),
        params: SubscriptionParams::from_uri(&uri, &rooms.cx.defaults)?,
    };
    match uri.media() {
        Media::Ipc => local.add(origin, SubscriptionKind::Ipc, rooms),
        Media::Udp => Ok(addresses(uri, ChannelRole::Publication, Box::new(AddSpy(local)))),
    }
}

/// Removes a destination by its channel. A socket is known by the channel it was added with, wherever its names lead now, or
/// else by its addresses; the others by their text.
pub(crate) fn remove(
    origin: Origin,
    subscription_id: i64,
    channel: &str,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let uri = parse_destination(channel, rooms)?;
    if uri.media() == Media::Udp && !uri.is_spy() {
        check_allows_removal(subscription_id, rooms)?;
        let endpoint = manual(subscription_id, rooms)?.endpoint;
        let receive = &rooms.channels.receive;
        let added = receive.find_destination(endpoint, |destination| destination.channel.uri == channel);
        if added.is_some() {
            return Ok(remove_socket(origin, endpoint, added, rooms));
        }
        let step = Box::new(RemoveSocket { subscription_id });
        return Ok(addresses(uri, ChannelRole::ReceiveDestination, step));
    }
    manual(subscription_id, rooms)?;
    if remove_local(origin, subscription_id, rooms, |destination| {
        *destination.channel == *channel
    }) {
        return Ok(Next::Done);
    }
    Err(CommandError::new(
        ErrorCode::UnknownSubscription,
        format!("no such destination, registrationId={subscription_id} channel={channel}"),
    ))
}

/// Removes a destination by the id of the command that added it; one that is not there is gone already. Other drivers
/// know this of publications only.
pub(crate) fn remove_by_id(
    origin: Origin,
    subscription_id: i64,
    destination_id: i64,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let endpoint = manual(subscription_id, rooms)?.endpoint;
    let is_meant = |destination: &Subscription| destination.destination_id == Some(destination_id);
    if remove_local(origin, subscription_id, rooms, is_meant) {
        return Ok(Next::Done);
    }
    let receive = &rooms.channels.receive;
    let path = receive.find_destination(endpoint, |destination| {
        destination.registration_id == destination_id
    });
    Ok(remove_socket(origin, endpoint, path, rooms))
}

/// A subscription whose destinations are what clients add.
struct Manual<'a> {
    subscription: &'a Subscription,
    endpoint: EndpointId,
    params: &'a SubscriptionParams,
}

fn manual(subscription_id: i64, rooms: &Rooms) -> Result<Manual<'_>, CommandError> {
    find_manual(subscription_id, rooms).ok_or_else(|| {
        CommandError::new(
            ErrorCode::UnknownSubscription,
            format!(
                "unknown MDS subscription: none with control-mode=manual, which alone has destinations to add and to \
                 remove, registrationId={subscription_id}"
            ),
        )
    })
}

fn find_manual(subscription_id: i64, rooms: &Rooms) -> Option<Manual<'_>> {
    let subscription = rooms.subscriptions.get(subscription_id)?;
    let (endpoint, params) = subscription.network()?;
    rooms.channels.receive.is_manual(endpoint).then_some(Manual {
        subscription,
        endpoint,
        params,
    })
}

/// A known subscription without destinations gets another code than an unknown one.
fn check_allows_removal(subscription_id: i64, rooms: &Rooms) -> Result<(), CommandError> {
    let own = rooms.subscriptions.get(subscription_id);
    let is_network = own.is_some_and(|subscription| subscription.network().is_some());
    if is_network && find_manual(subscription_id, rooms).is_none() {
        return Err(CommandError::new(
            ErrorCode::InvalidChannel,
            format!(
                "channel does not allow manual control: it must have control-mode=manual, \
                 registrationId={subscription_id}"
            ),
        ));
    }
    manual(subscription_id, rooms).map(|_| ())
}

fn parse_destination(channel: &str, rooms: &Rooms) -> Result<ChannelUri, CommandError> {
    let uri = parse_channel(&rooms.cx, channel, ChannelRole::ReceiveDestination)?;
    check_receive_destination(&uri)?;
    Ok(uri)
}

fn addresses(uri: ChannelUri, role: ChannelRole, step: Box<dyn Step<UdpChannel>>) -> Next {
    let adds = Adds::Destination;
    Next::Addresses(AddressesWanted { uri, role, adds }, step)
}

/// The addresses of a socket are known.
struct AddSocket {
    subscription_id: i64,
}

impl Step<UdpChannel> for AddSocket {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        // The subscription may have ended while the name was looked up.
        let manual = manual(self.subscription_id, rooms)?;
        let request = DestinationRequest {
            endpoint: manual.endpoint,
            owner_id: self.subscription_id,
            registration_id: origin.correlation_id,
            channel: udp,
            window_length: manual.params.receiver_window_length,
        };
        rooms.channels.add_receive_destination(&mut rooms.cx, request)?;
        shown_paths::show(rooms);
        rooms.cx.events.operation_success(origin.correlation_id);
        Ok(Next::Done)
    }
}

/// The addresses of a socket are known.
struct RemoveSocket {
    subscription_id: i64,
}

impl Step<UdpChannel> for RemoveSocket {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let endpoint = manual(self.subscription_id, rooms)?.endpoint;
        let receive = &rooms.channels.receive;
        let path = receive.find_destination(endpoint, |destination| {
            destination.channel.canonical_form == udp.canonical_form
        });
        Ok(remove_socket(origin, endpoint, path, rooms))
    }
}

/// Answers once the socket is closed, or at once if there is none.
fn remove_socket(origin: Origin, endpoint: EndpointId, path: Option<usize>, rooms: &mut Rooms) -> Next {
    let Some(path) = path else {
        rooms.cx.events.operation_success(origin.correlation_id);
        return Next::Done;
    };
    rooms
        .channels
        .receive
        .remove_destination(&mut rooms.cx, endpoint, path);
    shown_paths::show(rooms);
    Next::PathClosed { endpoint, path }
}

/// A destination that is published on this host.
struct Local {
    subscription_id: i64,
    channel: String,
    params: SubscriptionParams,
}

impl Local {
    fn add(self, origin: Origin, kind: SubscriptionKind, rooms: &mut Rooms) -> Result<Next, CommandError> {
        // The subscription may have ended while the name was looked up.
        let parent = manual(self.subscription_id, rooms)?.subscription;
        let destination = Subscription {
            destination_id: Some(origin.correlation_id),
            session_id: self.params.session_id,
            channel: self.channel.into(),
            is_tethered: self.params.is_tethered,
            may_rejoin: self.params.is_rejoin,
            kind,
            ..parent.clone()
        };
        let cx = &mut rooms.cx;
        cx.events.operation_success(origin.correlation_id);
        rooms.publications.link(cx, &destination);
        rooms.subscriptions.add(&cx.recorder, destination);
        shown_paths::show(rooms);
        Ok(Next::Done)
    }
}

/// The addresses of the publications to watch are known.
struct AddSpy(Local);

impl Step<UdpChannel> for AddSpy {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let kind = SubscriptionKind::Spy(SpiedChannel::from(&udp));
        self.0.add(origin, kind, rooms)
    }
}

/// Removes a destination that is published on this host. False when there is none that `is_meant`.
fn remove_local(
    origin: Origin,
    subscription_id: i64,
    rooms: &mut Rooms,
    is_meant: impl Fn(&Subscription) -> bool,
) -> bool {
    let Rooms {
        cx,
        subscriptions,
        publications,
        ..
    } = rooms;
    if !subscriptions.take_destination(&cx.recorder, subscription_id, is_meant) {
        return false;
    }
    cx.events.operation_success(origin.correlation_id);
    publications.unlink_unwanted(cx, subscription_id, subscriptions);
    shown_paths::show(rooms);
    true
}
