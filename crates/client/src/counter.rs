//! Counters that this client has asked the driver for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use headrace_buffers::counters::Counter as CounterValue;

use crate::conductor_proxy::ConductorProxy;
use crate::config::{is_label, label_rule};
use crate::error::ClientError;

/// Longest counter key, in bytes.
pub const COUNTER_KEY_LENGTH_MAX: usize = 112;
/// Longest counter label, in bytes.
pub const COUNTER_LABEL_LENGTH_MAX: usize = 380;

/// The part of a counter that the client's tables share with its handle.
pub(crate) struct CounterShared {
    pub(crate) registration_id: i64,
    pub(crate) counter_id: i32,
    closed: AtomicBool,
}

impl CounterShared {
    pub(crate) fn new(registration_id: i64, counter_id: i32) -> Arc<Self> {
        Arc::new(Self {
            registration_id,
            counter_id,
            closed: AtomicBool::new(false),
        })
    }

    /// True for the call that closed it.
    pub(crate) fn mark_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }
}

/// A counter owned by this client: visible to every process on the driver, freed when closed or dropped.
///
/// Usable from any thread; the value is one 64-bit word. Stores after closing are ignored, because the driver may have
/// reused the word for another counter.
pub struct Counter {
    conductor: Weak<dyn ConductorProxy>,
    shared: Arc<CounterShared>,
    value: CounterValue,
}

impl Counter {
    pub(crate) fn new(
        conductor: Weak<dyn ConductorProxy>,
        shared: Arc<CounterShared>,
        value: CounterValue,
    ) -> Self {
        Self {
            conductor,
            shared,
            value,
        }
    }

    /// Registration id, which identifies this counter in commands and events.
    pub fn registration_id(&self) -> i64 {
        self.shared.registration_id
    }

    /// Index in the counters file.
    pub fn counter_id(&self) -> i32 {
        self.shared.counter_id
    }

    /// The value, ordered after earlier stores of its writer; `None` once closed.
    pub fn get(&self) -> Option<i64> {
        self.is_open().then(|| self.value.get_acquire())
    }

    /// Publishes a value. False once closed.
    pub fn set(&self, value: i64) -> bool {
        let open = self.is_open();
        if open {
            self.value.set_release(value);
        }
        open
    }

    /// Adds atomically and returns the value before; `None` once closed.
    pub fn get_and_add(&self, delta: i64) -> Option<i64> {
        self.is_open().then(|| self.value.get_and_add(delta))
    }

    /// Sets what this counter refers to, for tools; the meaning depends on the type. False once closed.
    pub fn set_reference_id(&self, reference_id: i64) -> bool {
        let open = self.is_open();
        if open {
            self.value.set_reference_id(reference_id);
        }
        open
    }

    /// Whether the word still belongs to this counter. The driver may have reused it if the process was paused for
    /// long.
    fn is_open(&self) -> bool {
        !self.is_closed() && self.value.registration_id() == self.shared.registration_id
    }

    /// True once closed, by this program or with the client.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Returns the counter to the driver. Does not wait; closing again does nothing.
    pub fn close(&self) {
        if self.shared.mark_closed()
            && let Some(conductor) = self.conductor.upgrade()
        {
            conductor.forget_counter(self.shared.registration_id);
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.close();
    }
}

/// A counter that lives as long as the driver. Several clients may hold it; dropping a handle frees nothing.
#[derive(Clone)]
pub struct StaticCounter {
    registration_id: i64,
    value: CounterValue,
}

impl StaticCounter {
    pub(crate) fn new(registration_id: i64, value: CounterValue) -> Self {
        Self {
            registration_id,
            value,
        }
    }

    /// Registration id chosen by the program.
    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Index in the counters file.
    pub fn counter_id(&self) -> i32 {
        self.value.id()
    }

    /// The value, ordered after earlier stores of its writer.
    pub fn get(&self) -> i64 {
        self.value.get_acquire()
    }

    /// Publishes a value.
    pub fn set(&self, value: i64) {
        self.value.set_release(value);
    }

    /// Adds atomically and returns the value before.
    pub fn get_and_add(&self, delta: i64) -> i64 {
        self.value.get_and_add(delta)
    }
}

pub(crate) fn check_counter(key: &[u8], label: &str) -> Result<(), ClientError> {
    if key.len() > COUNTER_KEY_LENGTH_MAX {
        let rule = format!("must be at most {COUNTER_KEY_LENGTH_MAX} bytes");
        return Err(ClientError::argument("key_length", key.len(), rule));
    }
    if !is_label(label, COUNTER_LABEL_LENGTH_MAX) {
        let (rule, value) = (label_rule(COUNTER_LABEL_LENGTH_MAX), format!("{label:?}"));
        return Err(ClientError::argument("label", value, rule));
    }
    Ok(())
}
