//! The room of subscriptions of clients. The links that tie a subscription to the streams it reads are kept with the
//! streams.

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

    /// Takes one out, with its destinations: they are closed.
    pub(crate) fn take(&mut self, recorder: &EventRecorder, registration_id: i64) -> Vec<Subscription> {
        let reason = "closed by its client, or its client is gone";
        self.take_where(recorder, reason, |subscription| {
            subscription.registration_id == registration_id
        })
    }

    /// Takes out the first destination of a subscription that `is_meant`; false when there is none.
    pub(crate) fn take_destination(
        &mut self,
        recorder: &EventRecorder,
        registration_id: i64,
        is_meant: impl Fn(&Subscription) -> bool,
    ) -> bool {
        let id = self
            .iter()
            .filter(|subscription| subscription.registration_id == registration_id)
            .find(|subscription| subscription.destination_id.is_some() && is_meant(subscription))
            .and_then(|destination| destination.destination_id);
        let taken = self.take_where(recorder, "removed by its client", |subscription| {
            id.is_some() && subscription.destination_id == id
        });
        !taken.is_empty()
    }

    fn take_where(
        &mut self,
        recorder: &EventRecorder,
        reason: &'static str,
        is_meant: impl Fn(&Subscription) -> bool,
    ) -> Vec<Subscription> {
        let meant = self
            .subscriptions
            .extract_if(.., |subscription| is_meant(subscription));
        let taken: Vec<Subscription> = meant.collect();
        for subscription in &taken {
            let mut state = SubscriptionState::Active;
            recorder.change(
                &mut state,
                SubscriptionState::Closed,
                reason,
                &subscription.subject(),
            );
        }
        taken
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.get(registration_id).is_some()
    }

    /// The subscription itself, without its destinations.
    pub(crate) fn get(&self, registration_id: i64) -> Option<&Subscription> {
        self.iter().find(|subscription| {
            subscription.registration_id == registration_id && subscription.destination_id.is_none()
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.iter()
    }

    /// A subscription that reads responses over IPC.
    pub(crate) fn awaiting_ipc_responses(&mut self, registration_id: i64) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|subscription| {
            subscription.registration_id == registration_id
                && subscription.is_response
                && subscription.kind == SubscriptionKind::Ipc
        })
    }

    /// The same over the network.
    pub(crate) fn awaiting_network_responses(&mut self, registration_id: i64) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|subscription| {
            subscription.registration_id == registration_id
                && subscription.is_response
                && subscription.network().is_some()
        })
    }

    /// The registration ids of a client's subscriptions.
    pub(crate) fn ids_of(&self, client_id: i64) -> Vec<i64> {
        self.iter()
            .filter(|subscription| {
                subscription.client_id == client_id && subscription.destination_id.is_none()
            })
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
