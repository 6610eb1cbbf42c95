//! Mutual liveness of client and driver.
//!
//! A driver that stops says so, and the kernel shows when Headrace's driver ends otherwise; the next turn of the
//! conductor notices both. For other drivers the age of the heartbeat counts.
//!
//! The driver writes its heartbeat into the command ring. The client writes its own into a counter that the driver
//! allocates with the client's first resource; until then there is nothing to keep alive.

use headrace_buffers::counters::{Counter, type_ids};
use headrace_buffers::liveness::Liveness as LivenessFile;
use headrace_buffers::pulse::Pulse;

use super::context::{Services, counter};
use crate::error::ClientError;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Driver heartbeat of a driver that has stopped in good order.
const HEARTBEAT_STOPPED: i64 = -1;

/// This client's heartbeat counter.
struct Heartbeat {
    counter_id: i32,
    value: Counter,
}

/// What shows that this client lives, and whether the driver does.
pub(crate) struct Liveness {
    // None with a driver that has no such file.
    file: Option<LivenessFile>,
    // Whether the driver goes on.
    driver_pulse: Pulse,
    heartbeat: Option<Heartbeat>,
    last_keepalive_ns: i64,
}

impl Liveness {
    pub(crate) fn new(file: Option<LivenessFile>, driver_heartbeat_ms: i64, now_ns: i64) -> Self {
        Self {
            file,
            driver_pulse: Pulse::new(driver_heartbeat_ms, now_ns),
            heartbeat: None,
            last_keepalive_ns: now_ns,
        }
    }

    /// Lets go of what shows that this client lives.
    pub(crate) fn let_go(&mut self) {
        self.file = None;
    }

    /// Notices a driver that has stopped, or whose process has ended.
    pub(crate) fn check_driver(&self, services: &Services) -> Result<(), ClientError> {
        let directory = services.config.directory.display();
        // First whether it has ended: one that stops says so before it lets go, and is then not taken for killed.
        let is_alive = self
            .file
            .as_ref()
            .is_none_or(|file| file.is_driver_alive().unwrap_or(true));
        let reason = if services.driver.heartbeat_ms() == HEARTBEAT_STOPPED {
            format!("the driver has stopped: directory={directory}")
        } else if !is_alive {
            format!("the driver's process has ended without stopping: directory={directory}")
        } else {
            return Ok(());
        };
        Err(ClientError::DriverEnded { reason })
    }

    /// Watches the driver's heartbeat and shows that this client lives. True when there was something to do.
    pub(crate) fn keep_alive(&mut self, services: &Services, now_ns: i64) -> Result<bool, ClientError> {
        if now_ns - self.last_keepalive_ns <= services.config.keepalive_interval_ns {
            return Ok(false);
        }
        let now_ms = services.config.clock.epoch_ms();
        self.check_heartbeat(services, now_ms, now_ns)?;
        let is_shown = self.show_heartbeat(services, now_ms)?;
        if is_shown {
            self.last_keepalive_ns = now_ns;
        }
        Ok(is_shown)
    }

    fn check_heartbeat(&mut self, services: &Services, now_ms: i64, now_ns: i64) -> Result<(), ClientError> {
        let config = &services.config;
        let heartbeat_ms = services.driver.heartbeat_ms();
        let age_ms = now_ms.saturating_sub(heartbeat_ms);
        let driver_timeout_ms = config.driver_timeout_ms;
        // Old by the wall clock alone: that was set forwards. Unchanged by the other alone: this client has a clock that
        // a test moves, and the driver has not.
        let is_silent = self.driver_pulse.look(heartbeat_ms, now_ms, now_ns) > config.driver_timeout_ns();
        if !is_silent || age_ms <= driver_timeout_ms {
            return Ok(());
        }
        let reason = format!(
            "the driver's heartbeat is too old: age_ms={age_ms} driver_timeout_ms={driver_timeout_ms} directory={}",
            config.directory.display()
        );
        Err(ClientError::DriverTimeout { reason })
    }

    /// Shows this client's heartbeat. False before the driver has made the counter: then the next turn looks again.
    fn show_heartbeat(&mut self, services: &Services, now_ms: i64) -> Result<bool, ClientError> {
        if let Some(heartbeat) = &self.heartbeat {
            let counter_id = heartbeat.counter_id;
            if !is_own_heartbeat(services, counter_id) {
                let reason = format!("unexpected close of heartbeat counter: counter_id={counter_id}");
                return Err(ClientError::ClientTimeout { reason });
            }
            heartbeat.value.set_release(now_ms);
            return Ok(true);
        }
        let Some(counter_id) = find_heartbeat(services) else {
            return Ok(false);
        };
        let value = counter(&services.counters, counter_id)?;
        value.set_release(now_ms);
        services
            .counters
            .append_to_label(counter_id, &label_suffix(services));
        self.heartbeat = Some(Heartbeat { counter_id, value });
        Ok(true)
    }
}

fn label_suffix(services: &Services) -> String {
    format!(
        " name={} version={VERSION} commit={}",
        services.config.client_name, services.config.commit
    )
}

fn find_heartbeat(services: &Services) -> Option<i32> {
    let client_id = services.driver.client_id();
    let counter_id = services.counters.find(type_ids::CLIENT_HEARTBEAT, client_id)?;
    is_own_heartbeat(services, counter_id).then_some(counter_id)
}

fn is_own_heartbeat(services: &Services, counter_id: i32) -> bool {
    services.counters.record(counter_id).is_some_and(|record| {
        record.type_id == type_ids::CLIENT_HEARTBEAT
            && record.key[..8] == services.driver.client_id().to_le_bytes()
    })
}
