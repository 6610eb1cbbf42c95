//! Everything that no lock guards: settings, time, the ring to the driver, its counters and doorbells. It has no
//! tables.

use std::sync::Weak;

use headrace_buffers::counters::{Counter, CountersReader, system_counter, type_ids};
use headrace_buffers::doorbell::Doorbells;

use super::driver_proxy::DriverProxy;
use crate::conductor_proxy::ConductorProxy;
use crate::config::ClientConfig;
use crate::error::ClientError;

/// Control protocol version from which a driver hands out session ids.
const SESSION_ID_PROTOCOL_VERSION: i64 = 1 << 16;

/// What any thread may use at any time.
pub(crate) struct Services {
    pub(crate) config: ClientConfig,
    pub(crate) driver: DriverProxy,
    pub(crate) counters: CountersReader,
    pub(crate) doorbells: Doorbells,
    /// The client as its resources know it. They do not keep it alive.
    pub(crate) proxy: Weak<dyn ConductorProxy>,
}

impl Services {
    pub(crate) fn now_ns(&self) -> i64 {
        self.config.clock.nano_time()
    }

    /// What the rooms work with, as of now.
    pub(crate) fn context(&self) -> Context<'_> {
        self.context_at(self.now_ns())
    }

    pub(crate) fn context_at(&self, now_ns: i64) -> Context<'_> {
        Context {
            now_ns,
            pre_touches_logs: self.config.pre_touch_mapped_memory,
            resource_linger_ns: self.config.resource_linger_ns,
            driver_timeout_ms: self.config.driver_timeout_ms,
            driver: &self.driver,
            counters: &self.counters,
            proxy: &self.proxy,
        }
    }
}

/// What the rooms work with while they are locked. The time is read before that, since the clock may be the program's; so
/// there is no clock here, and no handler.
pub(crate) struct Context<'a> {
    pub(crate) now_ns: i64,
    pub(crate) pre_touches_logs: bool,
    pub(crate) resource_linger_ns: i64,
    pub(crate) driver_timeout_ms: i64,
    pub(crate) driver: &'a DriverProxy,
    pub(crate) counters: &'a CountersReader,
    pub(crate) proxy: &'a Weak<dyn ConductorProxy>,
}

impl Context<'_> {
    /// One counter's value, after checking an id that came from the driver.
    pub(crate) fn counter(&self, counter_id: i32) -> Result<Counter, ClientError> {
        counter(self.counters, counter_id)
    }

    /// True for a driver that hands out session ids.
    pub(crate) fn driver_knows_session_ids(&self) -> bool {
        let id = system_counter::CONTROL_PROTOCOL_VERSION;
        self.counters.record(id).is_some_and(|record| {
            record.type_id == type_ids::SYSTEM_COUNTER
                && record.registration_id == i64::from(id)
                && record.value >= SESSION_ID_PROTOCOL_VERSION
        })
    }
}

pub(super) fn counter(counters: &CountersReader, counter_id: i32) -> Result<Counter, ClientError> {
    counters
        .counter(counter_id)
        .ok_or_else(|| ClientError::InvalidEvent {
            reason: format!("counter_id={counter_id} is outside the counters file"),
        })
}
