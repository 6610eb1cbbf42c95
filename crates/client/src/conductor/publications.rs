//! The publications of a client that are open.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::publication::PublicationHandle;

/// By registration id, in order, so that what is done for each is done in the order of their making.
#[derive(Default)]
pub(crate) struct Publications {
    handles: BTreeMap<i64, Arc<PublicationHandle>>,
}

impl Publications {
    pub(crate) fn add(&mut self, handle: Arc<PublicationHandle>) {
        self.handles.insert(handle.registration_id(), handle);
    }

    /// False when it is not there.
    pub(crate) fn remove(&mut self, registration_id: i64) -> bool {
        self.handles.remove(&registration_id).is_some()
    }

    /// Registration ids of the handles of one log.
    pub(crate) fn of_log(&self, original_registration_id: i64) -> Vec<i64> {
        self.handles
            .values()
            .filter(|handle| handle.original_registration_id() == original_registration_id)
            .map(|handle| handle.registration_id())
            .collect()
    }

    /// True when the channel of one has this status counter.
    pub(crate) fn use_channel(&self, status_id: i32) -> bool {
        self.handles
            .values()
            .any(|handle| handle.channel_status_id == status_id)
    }

    pub(crate) fn close_all(&mut self) {
        for handle in std::mem::take(&mut self.handles).into_values() {
            handle.mark_closed();
        }
    }
}
