//! Spies: subscriptions that read what network publications of this driver send, from the publications' own logs.

use headrace_protocol::channel::UdpChannel;

use super::Conductor;
use super::context::Context;
use super::network_publication::NetworkPublication;
use super::network_subscriptions::SubscriptionRequest;
use super::subscriptions::{SpiedChannel, Subscription, SubscriptionKind};
use crate::errors::CommandError;

/// Spies have no channel of their own, hence no status of one.
const NO_CHANNEL_STATUS: i32 = -1;

impl Conductor {
    pub(crate) fn on_spy_addresses(
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
        let subscription = Subscription {
            registration_id: correlation_id,
            client_id,
            stream_id,
            session_id: params.session_id,
            channel,
            is_tethered: params.is_tethered,
            may_rejoin: params.is_rejoin,
            kind: SubscriptionKind::Spy(SpiedChannel {
                channel_tag: udp.channel_tag,
                canonical_form: udp.canonical_form,
            }),
        };
        self.cx
            .events
            .subscription_ready(correlation_id, NO_CHANNEL_STATUS);
        for publication in &mut self.network_publications {
            link(&mut self.cx, publication, &subscription);
        }
        self.subscriptions.push(subscription);
        Ok(())
    }

    /// Links a new publication to the spies that wait for it.
    pub(crate) fn link_spies(&mut self, index: usize) {
        let publication = &mut self.network_publications[index];
        for subscription in &self.subscriptions {
            link(&mut self.cx, publication, subscription);
        }
    }

    pub(crate) fn unlink_spy(&mut self, registration_id: i64) {
        for publication in &mut self.network_publications {
            if let Some(link) = publication.unlink(registration_id) {
                self.cx.counters.free(link.position.id());
            }
        }
    }

    /// True when the image is that of a spy.
    pub(crate) fn is_spied(&self, image_correlation_id: i64) -> bool {
        self.network_publications
            .iter()
            .any(|publication| publication.registration_id() == image_correlation_id)
    }
}

/// Links a spy to a publication if it watches the stream, is not linked yet, and may be.
fn link(cx: &mut Context, publication: &mut NetworkPublication, subscription: &Subscription) {
    let spec = publication.spec();
    let (stream_id, session_id) = (spec.shared.stream_id, spec.shared.session_id);
    if !subscription.spies_on(&spec.channel, stream_id, session_id)
        || publication.links.contains(subscription.registration_id)
        || !publication.accepts_links()
    {
        return;
    }
    let join_position = publication.join_position();
    let Some(position) = cx.join(subscription, publication.describe_stream(), join_position) else {
        return;
    };
    let link = publication.links.add(subscription.link(position), cx.now_ns);
    cx.events.available_image(publication.describe_stream(), &link);
    publication.on_linked();
}
