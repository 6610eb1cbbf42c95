//! Adding a subscription: to IPC at once, to the network or as a spy once the addresses of the channel are known.

use std::sync::Arc;

use headrace_protocol::channel::{ChannelRole, ChannelUri, SubscriptionParams, UdpChannel};

use super::step::{AddressesWanted, Adds, Next, Step};
use crate::conductor::channels::{ReceiveChannels, ReceiveRequest};
use crate::conductor::context::Context;
use crate::conductor::origin::Origin;
use crate::conductor::rooms::Rooms;
use crate::conductor::subscriptions::{SpiedChannel, Subscription, SubscriptionKind, Subscriptions};
use crate::endpoint::EndpointId;
use crate::errors::CommandError;

/// IPC subscriptions and spies have no channel of their own, hence no status of one.
const NO_CHANNEL_STATUS: i32 = -1;

/// An add, taken apart and checked.
pub(crate) struct SubscriptionRequest {
    stream_id: i32,
    channel: Arc<str>,
    params: SubscriptionParams,
}

impl SubscriptionRequest {
    pub(crate) fn new(
        uri: &ChannelUri,
        channel: &str,
        stream_id: i32,
        cx: &Context,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            stream_id,
            channel: channel.into(),
            params: SubscriptionParams::from_uri(uri, &cx.defaults)?,
        })
    }

    fn into_subscription(self, origin: Origin, kind: SubscriptionKind) -> Subscription {
        Subscription {
            registration_id: origin.correlation_id,
            destination_id: None,
            client_id: origin.client_id,
            stream_id: self.stream_id,
            session_id: self.params.session_id,
            is_response: self.params.is_response,
            channel: self.channel,
            is_tethered: self.params.is_tethered,
            may_rejoin: self.params.is_rejoin,
            kind,
        }
    }
}

/// A subscription to what clients of this driver publish: IPC publications or, for a spy, those of a channel.
pub(crate) fn add_local(
    origin: Origin,
    request: SubscriptionRequest,
    kind: SubscriptionKind,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let cx = &mut rooms.cx;
    rooms.clients.known(cx, origin)?;
    let subscription = request.into_subscription(origin, kind);
    cx.events
        .subscription_ready(origin.correlation_id, NO_CHANNEL_STATUS);
    rooms.publications.link(cx, &subscription);
    rooms.subscriptions.add(&cx.recorder, subscription);
    Ok(Next::Done)
}

/// A subscription to a channel with names.
pub(crate) fn begin(uri: ChannelUri, request: SubscriptionRequest) -> Next {
    // A spy reads what a publication on its channel sends.
    let (role, step): (_, Box<dyn Step<UdpChannel>>) = if uri.is_spy() {
        (ChannelRole::Publication, Box::new(Spy(request)))
    } else {
        (ChannelRole::Subscription, Box::new(Receive(request)))
    };
    let adds = Adds::Subscription;
    Next::Addresses(AddressesWanted { uri, role, adds }, step)
}

/// The addresses are known: read what this driver sends there.
struct Spy(SubscriptionRequest);

impl Step<UdpChannel> for Spy {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let kind = SubscriptionKind::Spy(SpiedChannel::from(&udp));
        add_local(origin, self.0, kind, rooms)
    }
}

/// The addresses are known: open the channel, or join it.
struct Receive(SubscriptionRequest);

impl Step<UdpChannel> for Receive {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        rooms.clients.known(&mut rooms.cx, origin)?;
        let Self(request) = *self;
        let joined = join(
            &rooms.cx,
            &rooms.channels.receive,
            &rooms.subscriptions,
            &request,
            &udp,
        )?;
        let endpoint = match joined {
            Some(endpoint) => {
                rooms.channels.receive.take_tag_of(endpoint, &udp);
                endpoint
            }
            None => {
                let wanted = ReceiveRequest {
                    registration_id: origin.correlation_id,
                    channel: udp,
                    window_length: request.params.receiver_window_length,
                    group_tag: request.params.group_tag,
                    timestamps: request.params.receive_timestamps,
                };
                rooms.channels.open_receive(&mut rooms.cx, wanted)?
            }
        };
        let params = Box::new(request.params.clone());
        let subscription = request.into_subscription(origin, SubscriptionKind::Network { endpoint, params });
        let receive = &mut rooms.channels.receive;
        let status_id = receive.add_interest(&mut rooms.cx, endpoint, subscription.interest());
        rooms
            .cx
            .events
            .subscription_ready(origin.correlation_id, status_id);
        rooms.images.link(&mut rooms.cx, &subscription);
        rooms.subscriptions.add(&rooms.cx.recorder, subscription);
        Ok(Next::Done)
    }
}

/// The open channel that the request means, which must agree with it and with the subscriptions already there.
fn join(
    cx: &Context,
    channels: &ReceiveChannels,
    subscriptions: &Subscriptions,
    request: &SubscriptionRequest,
    udp: &UdpChannel,
) -> Result<Option<EndpointId>, CommandError> {
    let Some(receive) = channels.find(udp)? else {
        return Ok(None);
    };
    let params = &request.params;
    let existing = &receive.endpoint.channel;
    params
        .receive_timestamps
        .check_matches(&request.channel, receive.timestamps, &existing.uri)?;
    udp.check_socket_buffers(existing, &cx.defaults)?;
    udp.check_receiver_window(params.receiver_window_length, receive.receive_buffer_length)?;
    let alike = || {
        subscriptions.iter().filter_map(|subscription| {
            let (endpoint, other) = subscription.network()?;
            let is_alike = endpoint == receive.endpoint.id
                && subscription.stream_id == request.stream_id
                && subscription.session_id == params.session_id;
            is_alike.then_some((subscription, other))
        })
    };
    for (subscription, other) in alike() {
        params.check_matches(&request.channel, other, &subscription.channel)?;
    }
    if let Some(text) = params.group_tag_without_effect(receive.group_tag) {
        cx.doubt(&format!("{text}, channel={}", request.channel));
    }
    if let Some((shown, first)) = alike().min_by_key(|(subscription, _)| subscription.registration_id) {
        let (uri, first_uri) = (
            ChannelUri::parse(&request.channel)?,
            ChannelUri::parse(&shown.channel)?,
        );
        for text in params.without_effect(&uri, first, &first_uri) {
            cx.doubt(&format!("{text}, channel={}", request.channel));
        }
    }
    Ok(Some(receive.endpoint.id))
}
