//! What only the thread touches that services a client.

use headrace_buffers::broadcast::Receiver;
use headrace_buffers::counters::Counter;
use headrace_buffers::liveness::Liveness;
use headrace_buffers::pulse::Pulse;

/// This client's heartbeat counter.
pub(crate) struct Heartbeat {
    pub(crate) counter_id: i32,
    pub(crate) value: Counter,
}

/// What only the servicing thread touches.
pub(crate) struct Service {
    pub(crate) receiver: Receiver,
    pub(crate) scratch: Vec<u8>,
    pub(crate) last_service_ns: i64,
    pub(crate) last_keepalive_ns: i64,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Whether the driver goes on.
    pub(crate) driver_pulse: Pulse,
    /// Shows that this client lives, and whether the driver does; none with a driver that does not.
    pub(crate) liveness: Option<Liveness>,
}

impl Service {
    pub(crate) fn new(
        receiver: Receiver,
        liveness: Option<Liveness>,
        driver_pulse: Pulse,
        now_ns: i64,
    ) -> Self {
        Self {
            receiver,
            scratch: Vec::with_capacity(4096),
            last_service_ns: now_ns,
            last_keepalive_ns: now_ns,
            heartbeat: None,
            driver_pulse,
            liveness,
        }
    }
}
