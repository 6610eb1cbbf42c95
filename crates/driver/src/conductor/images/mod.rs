//! The room of images: streams of remote publishers, as far as they have arrived.

mod budget;
mod image;
mod intake;
mod loss_log;
mod making;

use std::sync::Arc;

use headrace_buffers::doorbell::Doorbell;
use headrace_buffers::log::LogBuffers;
use headrace_buffers::loss_report::LossReport;

pub(crate) use intake::IntakeState;
pub(crate) use making::Arrival;

use super::channels::ReceiveChannels;
use super::context::Context;
use super::subscriptions::readers::{announce_end, announce_untethered, attach};
use super::subscriptions::{Subscription, Subscriptions};
use crate::config::ImageLimits;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::proxy::{ReceiverCommand, SessionName};
use crate::shared::ImageState;
use budget::ImageBudget;
use image::{Image, Rebuild};
use making::Making;

/// All images.
pub(crate) struct Images {
    images: Vec<Image>,
    /// Those on their way.
    pub(crate) making: Making,
    loss_report: LossReport,
    receiver_doorbell: Doorbell,
}

impl Images {
    pub(crate) fn new(limits: ImageLimits, loss_report: LossReport, receiver_doorbell: Doorbell) -> Self {
        Self {
            images: Vec::new(),
            making: Making::new(ImageBudget::new(limits)),
            loss_report,
            receiver_doorbell,
        }
    }

    /// True when there are none, and none are on their way.
    pub(crate) fn is_empty(&self) -> bool {
        self.images.is_empty() && self.making.is_empty()
    }

    /// The receiver saw the SETUP of a stream: makes its image, unless it exists or is being made. The receiver asks
    /// again if another subscription has replaced its own before it got the image, which then serves both.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut ReceiveChannels,
        arrival: Arrival,
        next_id: impl FnOnce() -> i64,
    ) {
        let is_there = self
            .images
            .iter()
            .any(|image| image.is_read(arrival.endpoint, arrival.stream()));
        if !is_there && !self.making.is_under_way(&arrival) {
            self.making.begin(cx, subscriptions, channels, arrival, next_id);
        }
    }

    /// The log of an image was made, or could not be.
    pub(crate) fn on_log(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut ReceiveChannels,
        correlation_id: i64,
        result: Result<LogBuffers, CommandError>,
    ) {
        let made = self
            .making
            .finish(cx, subscriptions, channels, correlation_id, result);
        let Some(mut image) = made else {
            return;
        };
        let join_position = image.spec().shared.join_position;
        for subscription in subscriptions.iter() {
            if image.is_wanted_by(subscription) {
                link(cx, &mut image, subscription, join_position);
            }
        }
        cx.receiver.send(ReceiverCommand::AddImage {
            endpoint: image.spec().endpoint,
            image: Arc::clone(&image.spec().shared),
        });
        self.images.push(image);
    }

    /// Links a new subscription to the images it wants.
    pub(crate) fn link(&mut self, cx: &mut Context, subscription: &Subscription) {
        for image in &mut self.images {
            if image.is_wanted_by(subscription) && image.accepts_links() {
                let join_position = image.join_position();
                link(cx, image, subscription, join_position);
            }
        }
    }

    /// Lets go of what a subscription reads.
    pub(crate) fn unlink(&mut self, cx: &mut Context, subscription_id: i64) {
        for image in &mut self.images {
            if let Some(link) = image.links.remove(subscription_id) {
                cx.counters.free(link.position.id());
            }
        }
    }

    /// The channel of an image whose publisher wants responses.
    pub(crate) fn endpoint_of_asking(&self, correlation_id: i64) -> Result<EndpointId, CommandError> {
        let fault = |what| CommandError::generic(format!("image.correlationId={correlation_id} {what}"));
        let mut images = self.images.iter();
        let image = images
            .find(|image| image.correlation_id() == correlation_id)
            .ok_or_else(|| fault("not found"))?;
        if !image.spec().asks_for_responses {
            return Err(fault("did not request a response channel"));
        }
        Ok(image.spec().endpoint)
    }

    /// True while a subscription reads a stream whose packets are still taken.
    pub(crate) fn brings_live_stream_to(&self, subscription_id: i64) -> bool {
        self.images
            .iter()
            .any(|image| image.state() <= ImageState::Active && image.links.contains(subscription_id))
    }

    /// A subscriber refuses an image. False when there is no such image.
    pub(crate) fn reject(&mut self, cx: &mut Context, correlation_id: i64, reason: &str) -> bool {
        let found = self
            .images
            .iter()
            .find(|image| image.correlation_id() == correlation_id);
        let Some(image) = found else {
            return false;
        };
        cx.receiver.send(ReceiverCommand::RejectImage {
            endpoint: image.spec().endpoint,
            correlation_id,
            reason: reason.to_owned(),
        });
        true
    }

    /// Looks at what has arrived; returns the work done.
    pub(crate) fn rebuild(&mut self, cx: &mut Context) -> usize {
        let mut turn = Rebuild {
            now_ns: cx.now_ns,
            now_ms: cx.now_ms,
            random: &mut cx.random,
            loss_report: &mut self.loss_report,
        };
        let mut work_count = 0;
        for image in &mut self.images {
            work_count += image.rebuild(&mut turn);
        }
        if work_count > 0 {
            self.receiver_doorbell.ring();
        }
        work_count
    }

    /// When the first of the gaps that are watched is to be looked at again, if that is after `now_ns`.
    pub(crate) fn next_loss_deadline_ns(&self, now_ns: i64) -> Option<i64> {
        let deadlines = self.images.iter().filter_map(Image::loss_deadline_ns);
        deadlines.filter(|deadline_ns| *deadline_ns > now_ns).min()
    }

    /// The timer's step of all images.
    pub(crate) fn tick(&mut self, cx: &mut Context, channels: &mut ReceiveChannels) {
        for image in &mut self.images {
            let config = &cx.config;
            let tick = image.on_tick(
                cx.now_ns,
                config.receiver_status_message_timeout_ns,
                config.image_liveness_timeout_ns,
            );
            announce_untethered(cx, &tick.untethered, image.describe_stream());
            image.note_troubles(cx);
            if tick.has_ended {
                end(cx, channels, image);
            }
        }
        self.free_finished(cx);
        self.receiver_doorbell.ring();
    }

    /// The receiver no longer touches an image.
    pub(crate) fn on_released(&mut self, cx: &mut Context, correlation_id: i64) {
        let found = self
            .images
            .iter_mut()
            .find(|image| image.correlation_id() == correlation_id);
        if let Some(image) = found {
            image.on_released();
            cx.end_log(&image.spec().log_file_name, 0);
        }
        self.free_finished(cx);
    }

    fn free_finished(&mut self, cx: &mut Context) {
        for image in self.images.extract_if(.., |image| image.is_finished()) {
            self.making.release(cx, image.spec().shared.log.term_length());
            image.free(cx);
        }
    }
}

/// Tells the readers of an image that it is gone, and takes it from the receiver.
fn end(cx: &mut Context, channels: &mut ReceiveChannels, image: &Image) {
    let (correlation_id, endpoint) = (image.correlation_id(), image.spec().endpoint);
    announce_end(cx, correlation_id, image.links.iter());
    cx.receiver.send(ReceiverCommand::RemoveImage {
        endpoint,
        correlation_id,
    });
    if image.may_be_joined_again() {
        let shared = &image.spec().shared;
        cx.receiver.send(ReceiverCommand::EndCoolDown(SessionName {
            endpoint,
            stream_id: shared.stream_id,
            session_id: shared.session_id,
        }));
    }
    channels.detach_image(cx, endpoint);
}

fn link(cx: &mut Context, image: &mut Image, subscription: &Subscription, join_position: i64) {
    let (spec, links) = image.for_linking();
    attach(cx, links, subscription, spec.describe_stream(), join_position);
}
