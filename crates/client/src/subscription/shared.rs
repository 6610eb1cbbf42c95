//! The state that a subscription's handle and the conductor share.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use headrace_buffers::doorbell::{Bell, Doorbells};

use super::images::Images;
use crate::channel_status::NO_STATUS_COUNTER;
use crate::handlers::SubscriptionHandlers;
use crate::lock::lock;

/// How the channels of shared memory begin.
const IPC_CHANNEL: &str = "aeron:ipc";

/// Where a subscription begins to read the publishers that are connected when it is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Where the driver links it, which may be before messages that no other reader has taken yet.
    #[default]
    Joined,
    /// After everything published by then.
    Now,
}

pub(crate) struct SubscriptionShared {
    pub(crate) registration_id: i64,
    pub(crate) channel: Arc<str>,
    pub(crate) images: Images,
    pub(super) stream_id: i32,
    pub(super) is_ipc: bool,
    pub(super) doorbells: Doorbells,
    start: Start,
    closed: AtomicBool,
    // Empty once the subscription is closed: a handler may hold what holds the subscription.
    handlers: Mutex<SubscriptionHandlers>,
    channel_status_id: AtomicI32,
}

impl SubscriptionShared {
    pub(crate) fn new(
        registration_id: i64,
        channel: Arc<str>,
        stream_id: i32,
        start: Start,
        handlers: SubscriptionHandlers,
        doorbells: &Doorbells,
    ) -> Self {
        Self {
            registration_id,
            is_ipc: channel.starts_with(IPC_CHANNEL),
            channel,
            images: Images::new(doorbells.bell(Bell::Images(registration_id))),
            stream_id,
            doorbells: doorbells.clone(),
            start,
            closed: AtomicBool::new(false),
            handlers: Mutex::new(handlers),
            channel_status_id: AtomicI32::new(NO_STATUS_COUNTER),
        }
    }

    pub(crate) fn starts_now(&self) -> bool {
        self.start == Start::Now
    }

    /// True for the stream of a publisher that was there first, of which the subscription wants the news only. The ids
    /// of streams and subscriptions come from one sequence.
    pub(crate) fn passes_over(&self, image_correlation_id: i64) -> bool {
        self.starts_now() && image_correlation_id < self.registration_id
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// True for the call that closed it.
    pub(crate) fn mark_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn channel_status_id(&self) -> i32 {
        self.channel_status_id.load(Ordering::Acquire)
    }

    pub(crate) fn set_channel_status_id(&self, status_id: i32) {
        self.channel_status_id.store(status_id, Ordering::Release);
    }

    pub(crate) fn handlers(&self) -> SubscriptionHandlers {
        lock(&self.handlers).clone()
    }

    pub(crate) fn take_handlers(&self) -> SubscriptionHandlers {
        std::mem::take(&mut lock(&self.handlers))
    }
}
