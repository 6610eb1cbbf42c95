//! The counters that a client has asked the driver for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::callbacks::Callbacks;
use crate::counter::CounterShared;

/// By registration id.
#[derive(Default)]
pub(crate) struct Counters {
    shared: BTreeMap<i64, Arc<CounterShared>>,
}

impl Counters {
    pub(crate) fn add(&mut self, counter: Arc<CounterShared>) {
        self.shared.insert(counter.registration_id, counter);
    }

    pub(crate) fn remove(&mut self, registration_id: i64) {
        self.shared.remove(&registration_id);
    }

    /// The driver has freed it: its word may soon be another counter's.
    pub(crate) fn close(&mut self, registration_id: i64) {
        if let Some(counter) = self.shared.remove(&registration_id) {
            counter.mark_closed();
        }
    }

    pub(crate) fn close_all(&mut self, callbacks: &mut Callbacks) {
        for counter in std::mem::take(&mut self.shared).into_values() {
            counter.mark_closed();
            callbacks.queue_unavailable_counter(counter.registration_id, counter.counter_id);
        }
    }
}
