//! The images of a subscription.
//!
//! The conductor replaces the list, never changes it, and raises its version. A poller that finds the version
//! unchanged needs no lock to use the list that it saw last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use headrace_buffers::doorbell::Doorbell;

use crate::image::Image;
use crate::lock::lock;

pub(super) type ImageList = Arc<[Arc<Image>]>;

pub(crate) struct Images {
    list: Mutex<ImageList>,
    // Grows with each new list; stored with release while `list` is locked.
    version: AtomicU64,
    // Rung when the list changes, and when the subscription is closed, which empties it.
    pub(super) doorbell: Doorbell,
}

impl Images {
    pub(super) fn new(doorbell: Doorbell) -> Self {
        Self {
            list: Mutex::new(Arc::from([])),
            version: AtomicU64::new(0),
            doorbell,
        }
    }

    pub(crate) fn list(&self) -> ImageList {
        Arc::clone(&lock(&self.list))
    }

    #[inline]
    pub(super) fn version(&self) -> u64 {
        // Pairs with the release in `replace`.
        self.version.load(Ordering::Acquire)
    }

    /// The list with its version.
    pub(super) fn list_and_version(&self) -> (ImageList, u64) {
        let list = lock(&self.list);
        (Arc::clone(&list), self.version())
    }

    pub(crate) fn has(&self, correlation_id: i64) -> bool {
        self.list()
            .iter()
            .any(|image| image.correlation_id() == correlation_id)
    }

    pub(crate) fn add(&self, image: Arc<Image>) {
        self.replace(|images| images.iter().cloned().chain([image]).collect());
    }

    pub(crate) fn remove(&self, correlation_id: i64) -> Option<Arc<Image>> {
        let removed = self
            .list()
            .iter()
            .find(|image| image.correlation_id() == correlation_id)
            .cloned()?;
        self.replace(|images| {
            images
                .iter()
                .filter(|image| image.correlation_id() != correlation_id)
                .cloned()
                .collect()
        });
        Some(removed)
    }

    pub(crate) fn take(&self) -> Vec<Arc<Image>> {
        let images = self.list();
        self.replace(|_| Arc::from([]));
        images.to_vec()
    }

    fn replace(&self, with: impl FnOnce(&ImageList) -> ImageList) {
        let mut images = lock(&self.list);
        *images = with(&images);
        // A poller that sees the new version finds the new list under the lock.
        self.version.fetch_add(1, Ordering::Release);
        self.doorbell.ring();
    }
}
