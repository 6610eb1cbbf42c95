//! Polls of a subscription: of its images, in turn.
//!
//! A poller keeps the list of images it saw last, together with its version; while the version is the same, polling
//! takes no contended lock and shares no reference counts.

use std::sync::{Arc, MutexGuard};

use headrace_buffers::log::{Action, Header};

use super::images::ImageList;
use super::shared::SubscriptionShared;
use crate::error::PollError;
use crate::image::{Block, HandlerResult, Image};

/// What the polling thread keeps between polls.
pub(super) struct PollState {
    pub(super) images: ImageList,
    version: u64,
    round_robin: usize,
}

impl PollState {
    pub(super) fn new() -> Self {
        Self {
            images: Arc::from([]),
            version: 0,
            round_robin: 0,
        }
    }
}

/// The right to poll a subscription, held by one thread at a time.
pub struct PollGuard<'a> {
    pub(super) shared: &'a SubscriptionShared,
    pub(super) state: MutexGuard<'a, PollState>,
}

impl PollGuard<'_> {
    /// See [`super::Subscription::poll`].
    #[inline]
    pub fn poll<F, R>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value: Into<Action>>,
    {
        self.each_in_turn(fragment_limit, |image, limit| image.poll(&mut handler, limit))
    }

    /// See [`super::Subscription::poll_while`].
    #[inline]
    pub fn poll_while<F, R>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(&[u8], &Header<'_>) -> R,
        R: HandlerResult<Value = bool>,
    {
        let mut goes_on = true;
        self.each_in_turn(fragment_limit, |image, limit| {
            if !goes_on {
                return Ok(0);
            }
            let mut poll = || -> Result<usize, R::Error> {
                image.poll(
                    |payload, header| -> Result<Action, R::Error> {
                        goes_on = handler(payload, header).into_result()?;
                        Ok(if goes_on { Action::Continue } else { Action::Break })
                    },
                    limit,
                )
            };
            let position = image.position();
            match poll()? {
                // Only the padding that ends a term was there: what follows it may wait in the next term.
                0 if image.position() != position => poll(),
                count => Ok(count),
            }
        })
    }

    /// See [`super::Subscription::block_poll`].
    pub fn block_poll<F, R>(&mut self, mut handler: F, block_length_limit: usize) -> Result<usize, R::Error>
    where
        F: FnMut(Block<'_>) -> R,
        R: HandlerResult<Value = ()>,
    {
        self.refresh()?;
        let mut bytes = 0;
        for image in self.state.images.iter() {
            bytes += image.block_poll(&mut handler, block_length_limit)?;
        }
        Ok(bytes)
    }

    /// Polls images from where the last poll left off, around the list, until the limit is used up.
    #[inline]
    fn each_in_turn<E: From<PollError>>(
        &mut self,
        fragment_limit: usize,
        mut poll: impl FnMut(&Image, usize) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.refresh()?;
        let state = &mut *self.state;
        let length = state.images.len();
        let mut start = state.round_robin;
        state.round_robin += 1;
        if start >= length {
            start = 0;
            state.round_robin = 1;
        }
        let (before, after) = state.images.split_at(start.min(length));
        let mut count = 0;
        for image in after.iter().chain(before) {
            if count >= fragment_limit {
                break;
            }
            count += poll(image, fragment_limit - count)?;
        }
        Ok(count)
    }

    /// Takes over a newer image list, if there is one.
    #[inline]
    fn refresh(&mut self) -> Result<(), PollError> {
        if self.shared.images.version() != self.state.version {
            self.take_over_images();
        }
        if self.shared.is_closed() {
            return Err(PollError::Closed);
        }
        Ok(())
    }

    #[cold]
    fn take_over_images(&mut self) {
        (self.state.images, self.state.version) = self.shared.images.list_and_version();
    }
}
