//! Mutual liveness of client and driver.
//!
//! A driver that stops says so, and of one that ends otherwise the kernel tells, if it is Headrace's; both are
//! noticed on the next turn of the conductor. Of other drivers the age of the heartbeat tells.
//!
//! The driver stamps its heartbeat into the command ring. The client stamps its own into a counter that the
//! driver allocates for it with its first resource; until that exists there is nothing to keep alive.

use headrace_buffers::counters::type_ids;
use headrace_buffers::pulse::Pulse;

use crate::core::Core;
use crate::error::ClientError;
use crate::service::{Heartbeat, Service};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Driver heartbeat of a driver that has stopped in good order.
const HEARTBEAT_STOPPED: i64 = -1;

impl Core {
    /// Notices a driver that has stopped, or whose process has ended.
    pub(crate) fn check_driver(&self, service: &Service) -> Result<(), ClientError> {
        let directory = self.config.directory.display();
        // First whether it has ended: one that stops says so before it lets go, and is then not taken for killed.
        let is_alive = service
            .liveness
            .as_ref()
            .is_none_or(|liveness| liveness.is_driver_alive().unwrap_or(true));
        let reason = if self.to_driver.consumer_heartbeat_ms() == HEARTBEAT_STOPPED {
            format!("the driver has stopped: directory={directory}")
        } else if !is_alive {
            format!("the driver's process has ended without stopping: directory={directory}")
        } else {
            return Ok(());
        };
        Err(ClientError::DriverEnded { reason })
    }

    /// Watches the driver's heartbeat and shows that this client lives. True when there was something to do.
    pub(crate) fn check_liveness(&self, service: &mut Service, now_ns: i64) -> Result<bool, ClientError> {
        if now_ns - service.last_keepalive_ns <= self.config.keepalive_interval_ns {
            return Ok(false);
        }
        let now_ms = self.config.clock.epoch_ms();
        self.check_driver_heartbeat(&mut service.driver_pulse, now_ms, now_ns)?;
        let is_shown = self.show_heartbeat(&mut service.heartbeat, now_ms)?;
        if is_shown {
            service.last_keepalive_ns = now_ns;
        }
        Ok(is_shown)
    }

    fn check_driver_heartbeat(&self, pulse: &mut Pulse, now_ms: i64, now_ns: i64) -> Result<(), ClientError> {
        let heartbeat_ms = self.to_driver.consumer_heartbeat_ms();
        let age_ms = now_ms.saturating_sub(heartbeat_ms);
        let driver_timeout_ms = self.config.driver_timeout_ms;
        // Old by the wall clock alone: that was set forwards. Unchanged by the other alone: this client has a clock that
        // a test moves, and the driver has not.
        let is_silent = pulse.look(heartbeat_ms, now_ms, now_ns) > self.config.driver_timeout_ns();
        if !is_silent || age_ms <= driver_timeout_ms {
            return Ok(());
        }
        let reason = format!(
            "the driver's heartbeat is too old: age_ms={age_ms} driver_timeout_ms={driver_timeout_ms} directory={}",
            self.config.directory.display()
        );
        Err(ClientError::DriverTimeout { reason })
    }

    /// Shows this client's heartbeat. False before the driver has made the counter: then the next turn looks again.
    fn show_heartbeat(&self, shown: &mut Option<Heartbeat>, now_ms: i64) -> Result<bool, ClientError> {
        if let Some(heartbeat) = shown {
            let counter_id = heartbeat.counter_id;
            if !self.is_own_heartbeat(counter_id) {
                let reason = format!("unexpected close of heartbeat counter: counter_id={counter_id}");
                return Err(ClientError::ClientTimeout { reason });
            }
            heartbeat.value.set_release(now_ms);
            return Ok(true);
        }
        let Some(counter_id) = self.find_heartbeat() else {
            return Ok(false);
        };
        let value = self.counter_value(counter_id)?;
        value.set_release(now_ms);
        self.counters().append_to_label(counter_id, &self.label_suffix());
        *shown = Some(Heartbeat { counter_id, value });
        Ok(true)
    }

    fn label_suffix(&self) -> String {
        format!(
            " name={} version={VERSION} commit={}",
            self.config.client_name, self.config.commit
        )
    }

    fn find_heartbeat(&self) -> Option<i32> {
        let counter_id = self.counters().find(type_ids::CLIENT_HEARTBEAT, self.client_id)?;
        self.is_own_heartbeat(counter_id).then_some(counter_id)
    }

    fn is_own_heartbeat(&self, counter_id: i32) -> bool {
        self.counters().record(counter_id).is_some_and(|record| {
            record.type_id == type_ids::CLIENT_HEARTBEAT && record.key[..8] == self.client_id.to_le_bytes()
        })
    }
}
