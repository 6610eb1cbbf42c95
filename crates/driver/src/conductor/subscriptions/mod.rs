//! The room of subscriptions: what clients subscribed to, and the links that tie a subscription to the streams it
//! reads. The links themselves stand with their stream.

pub(crate) mod links;
pub(crate) mod readers;
mod subscription;

use headrace_protocol::channel::SubscriptionParams;

pub(crate) use subscription::{SpiedChannel, Subscription, SubscriptionKind, SubscriptionState};

use crate::endpoint::EndpointId;
use crate::event_recorder::EventRecorder;

/// All subscriptions, in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    subscriptions: Vec<Subscription>,
}

impl Subscriptions {
    pub(crate) fn add(&mut self, recorder: &EventRecorder, subscription: Subscription) {
        recorder.begin::<SubscriptionState>("added by its client", &subscription.subject());
        self.subscriptions.push(subscription);
    }

    /// Takes one out: it is closed.
    pub(crate) fn take(&mut self, recorder: &EventRecorder, registration_id: i64) -> Option<Subscription> {
        let index = self
            .subscriptions
            .iter()
            .position(|subscription| subscription.registration_id == registration_id)?;
        let subscription = self.subscriptions.remove(index);
        let mut state = SubscriptionState::Active;
        let reason = "closed by its client, or its client is gone";
        recorder.change(
            &mut state,
            SubscriptionState::Closed,
            reason,
            &subscription.subject(),
        );
        Some(subscription)
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.iter()
            .any(|subscription| subscription.registration_id == registration_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.iter()
    }

    /// The registration ids of a client's subscriptions.
    pub(crate) fn ids_of(&self, client_id: i64) -> Vec<i64> {
        self.iter()
            .filter(|subscription| subscription.client_id == client_id)
            .map(|subscription| subscription.registration_id)
            .collect()
    }

    /// The oldest subscription that wants a stream of a channel; an image takes over its parameters.
    pub(crate) fn first_matching(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: i32,
    ) -> Option<(&Subscription, &SubscriptionParams)> {
        self.iter()
            .filter(|subscription| subscription.matches_stream(stream_id, session_id))
            .filter_map(|subscription| {
                let (own, params) = subscription.network()?;
                (own == endpoint).then_some((subscription, params))
            })
            .min_by_key(|(subscription, _)| subscription.registration_id)
    }
}
