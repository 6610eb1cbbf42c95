//! The open and requested subscriptions of a client, and the ends of their images.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::callbacks::Callbacks;
use super::log_mappings::LogMappings;
use crate::image::Image;
use crate::subscription::SubscriptionShared;

/// By registration id.
#[derive(Default)]
pub(crate) struct Subscriptions {
    shared: BTreeMap<i64, Arc<SubscriptionShared>>,
    // The one from which the program took a destination, if the last event said so or told of one of the images that went
    // with it: the driver tells of them right after it.
    left: Option<i64>,
}

impl Subscriptions {
    pub(crate) fn add(&mut self, subscription: Arc<SubscriptionShared>) {
        self.shared.insert(subscription.registration_id, subscription);
    }

    pub(crate) fn get(&self, registration_id: i64) -> Option<Arc<SubscriptionShared>> {
        self.shared.get(&registration_id).cloned()
    }

    /// True when the channel of one has this status counter.
    pub(crate) fn use_channel(&self, status_id: i32) -> bool {
        self.shared
            .values()
            .any(|subscription| subscription.channel_status_id() == status_id)
    }

    /// The driver took a destination from a subscription because the program wants it so. An image that has no other one
    /// goes later, when nothing has come for a while.
    pub(crate) fn leave(&mut self, registration_id: i64) {
        self.left = Some(registration_id);
        if let Some(subscription) = self.shared.get(&registration_id) {
            for image in subscription.images.list().iter() {
                image.note_destination_removed();
            }
        }
    }

    /// The subscription that the last event left; none from now on.
    pub(crate) fn take_left(&mut self) -> Option<i64> {
        self.left.take()
    }

    /// The event was about an image that went with the destination: the next one may be too.
    pub(crate) fn put_back_left(&mut self, registration_id: i64) {
        self.left = Some(registration_id);
    }

    /// Forgets a subscription and closes it with its images. False when it is not there.
    pub(crate) fn close(&mut self, registration_id: i64, ending: &mut Ending<'_>) -> bool {
        let subscription = self.shared.remove(&registration_id);
        if let Some(subscription) = &subscription {
            ending.close(subscription);
        }
        subscription.is_some()
    }

    pub(crate) fn close_all(&mut self, ending: &mut Ending<'_>) {
        for subscription in std::mem::take(&mut self.shared).into_values() {
            ending.close(&subscription);
        }
    }
}

/// The rooms that the end of an image concerns.
pub(crate) struct Ending<'a> {
    pub(crate) mappings: &'a mut LogMappings,
    pub(crate) callbacks: &'a mut Callbacks,
    pub(crate) now_ns: i64,
    /// How long the logs stay mapped.
    pub(crate) linger_ns: i64,
}

impl Ending<'_> {
    fn close(&mut self, subscription: &SubscriptionShared) {
        subscription.mark_closed();
        for image in subscription.images.take() {
            self.close_image(subscription, image);
        }
        self.callbacks.let_go(subscription.take_handlers());
    }

    /// Closes an image that has left its subscription's list, and tells the subscription's handler.
    pub(crate) fn close_image(&mut self, subscription: &SubscriptionShared, image: Arc<Image>) {
        image.reader.close();
        self.mappings
            .release(image.correlation_id(), self.now_ns, self.linger_ns);
        self.callbacks
            .queue_image(subscription.handlers().unavailable_image, image);
    }
}
