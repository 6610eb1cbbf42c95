//! Subscriptions to streams that come over the network, or that this driver sends over it.

use std::sync::Arc;

use headrace_protocol::channel::{ChannelRole, ChannelUri, SubscriptionParams, UdpChannel};

use super::Conductor;
use super::pending::{Pending, Step};
use super::subscriptions::{Subscription, SubscriptionKind};
use crate::errors::CommandError;
use crate::proxy::EndpointId;
use crate::resource_agent::{FindAddresses, ResourceTask};

/// A subscription whose addresses are being looked up.
pub(crate) struct SubscriptionRequest {
    pub(super) stream_id: i32,
    pub(super) channel: Arc<str>,
    pub(super) params: SubscriptionParams,
}

impl Conductor {
    pub(crate) fn add_network_subscription(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        uri: ChannelUri,
        channel: &str,
    ) -> Result<(), CommandError> {
        let request = Box::new(SubscriptionRequest {
            stream_id,
            channel: channel.into(),
            params: SubscriptionParams::from_uri(&uri, &self.defaults)?,
        });
        // A spy reads what a publication on its channel sends.
        let (role, step) = if uri.is_spy() {
            (ChannelRole::Publication, Step::SpyAddresses(request))
        } else {
            (ChannelRole::Subscription, Step::SubscriptionAddresses(request))
        };
        self.cx
            .tasks
            .send(ResourceTask::FindAddresses(Box::new(FindAddresses {
                correlation_id,
                uri,
                role,
            })));
        self.pending = Some(Pending {
            client_id,
            correlation_id,
            step,
        });
        Ok(())
    }

    pub(crate) fn on_subscription_addresses(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        request: SubscriptionRequest,
        udp: UdpChannel,
    ) -> Result<(), CommandError> {
        self.client(client_id)?;
        let SubscriptionRequest {
            stream_id,
            channel,
            params,
        } = request;
        let endpoint = match self.find_receive_channel(&udp)? {
            Some(endpoint) => {
                self.check_open_channel(endpoint, stream_id, &channel, &params, &udp)?;
                endpoint
            }
            None => {
                let group_tag = self.cx.config.receiver_group_tag;
                self.open_receive_channel(correlation_id, udp, params.receiver_window_length, group_tag)?
            }
        };
        self.add_interest(endpoint, stream_id, params.session_id);
        let status_counter_id = self
            .receive_channel(endpoint)
            .map_or(-1, |receive| receive.endpoint.counters.status.id());
        self.cx
            .events
            .subscription_ready(correlation_id, status_counter_id);
        let subscription = Subscription {
            registration_id: correlation_id,
            client_id,
            stream_id,
            session_id: params.session_id,
            channel,
            is_tethered: params.is_tethered,
            may_rejoin: params.is_rejoin,
            kind: SubscriptionKind::Network {
                endpoint,
                params: Box::new(params),
            },
        };
        self.link_images(&subscription);
        self.subscriptions.push(subscription);
        Ok(())
    }

    /// What a subscription must have in common with the channel it joins and the subscriptions already there.
    fn check_open_channel(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        channel: &str,
        params: &SubscriptionParams,
        udp: &UdpChannel,
    ) -> Result<(), CommandError> {
        let open = self
            .receive_channels
            .iter()
            .find(|receive| receive.endpoint.id == endpoint);
        if let Some(receive) = open {
            udp.check_socket_buffers(&receive.endpoint.channel, &self.defaults)?;
            udp.check_receiver_window(params.receiver_window_length, receive.receive_buffer_length)?;
        }
        for subscription in &self.subscriptions {
            let Some((other_endpoint, other)) = subscription.network() else {
                continue;
            };
            if other_endpoint == endpoint
                && subscription.stream_id == stream_id
                && subscription.session_id == params.session_id
            {
                params.check_matches(channel, other, &subscription.channel)?;
            }
        }
        Ok(())
    }
}
