//! Settings of a client.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_sys::idle::IdleStrategy;
use headrace_sys::{Clock, SystemClock};

use crate::error::ClientError;
use crate::handlers::{CloseHandler, CounterHandler, ErrorHandler, ImageHandler, PublicationErrorHandler};

/// Longest client name, in characters.
pub const CLIENT_NAME_LENGTH_MAX: usize = 100;

const NS_PER_MS: i64 = 1_000_000;
const NS_PER_S: i64 = 1_000_000_000;

/// Everything a client can be told when it connects. `Default` gives the settings of the specification for the
/// default driver directory.
#[derive(Clone)]
pub struct ClientConfig {
    /// Directory of the driver.
    pub directory: PathBuf,
    /// Deadline for connecting and for each blocking request, and the age of the driver's heartbeat beyond which
    /// it counts as dead, in milliseconds.
    pub driver_timeout_ms: i64,
    /// Time between two heartbeats of this client, in nanoseconds.
    pub keepalive_interval_ns: i64,
    /// How long the conductor's thread sleeps when there is nothing to do, in nanoseconds.
    pub idle_sleep_ns: i64,
    /// How long a log stays mapped after its last image or publication went by itself, in nanoseconds.
    pub resource_linger_ns: i64,
    /// How long closing the client waits before the driver is told, in nanoseconds.
    pub close_linger_ns: i64,
    /// Touch every page of a log when it is mapped.
    pub pre_touch_mapped_memory: bool,
    /// Shown in the label of this client's heartbeat counter.
    pub client_name: String,
    /// No thread of its own: the program calls [`crate::Client::invoke`].
    pub use_invoker: bool,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// How a blocking request waits between two looks.
    pub awaiting_idle: IdleStrategy,
    /// Run on each turn of a waiting request: the way to drive an embedded driver that has no thread either.
    pub driver_invoker: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Told of faults that no caller is waiting for. By default they are written to standard error.
    pub error_handler: ErrorHandler,
    /// For subscriptions that are added without their own.
    pub available_image_handler: Option<ImageHandler>,
    /// For subscriptions that are added without their own.
    pub unavailable_image_handler: Option<ImageHandler>,
    /// First of the available-counter handlers.
    pub available_counter_handler: Option<CounterHandler>,
    /// First of the unavailable-counter handlers.
    pub unavailable_counter_handler: Option<CounterHandler>,
    /// First of the close handlers.
    pub close_handler: Option<CloseHandler>,
    /// Told of errors raised against this client's publications.
    pub publication_error_handler: Option<PublicationErrorHandler>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            directory: default_directory(|name| std::env::var(name).ok()),
            driver_timeout_ms: 10_000,
            keepalive_interval_ns: 500 * NS_PER_MS,
            idle_sleep_ns: 16 * NS_PER_MS,
            resource_linger_ns: 3 * NS_PER_S,
            close_linger_ns: 0,
            pre_touch_mapped_memory: false,
            client_name: String::new(),
            use_invoker: false,
            clock: Arc::new(SystemClock::new()),
            awaiting_idle: IdleStrategy::default(),
            driver_invoker: None,
            error_handler: Arc::new(|error| eprintln!("headrace client: {error}")),
            available_image_handler: None,
            unavailable_image_handler: None,
            available_counter_handler: None,
            unavailable_counter_handler: None,
            close_handler: None,
            publication_error_handler: None,
        }
    }
}

impl ClientConfig {
    /// Checks what can be checked without a driver.
    pub fn validate(&self) -> Result<(), ClientError> {
        if self.driver_timeout_ms <= 0 {
            let rule = "must be greater than 0 milliseconds";
            return Err(ClientError::argument(
                "driver_timeout_ms",
                self.driver_timeout_ms,
                rule,
            ));
        }
        if self.keepalive_interval_ns <= 0 {
            let rule = "must be greater than 0 nanoseconds";
            return Err(ClientError::argument(
                "keepalive_interval_ns",
                self.keepalive_interval_ns,
                rule,
            ));
        }
        if !(0..=NS_PER_S).contains(&self.idle_sleep_ns) {
            let rule = "must be between 0 and 1 second, in nanoseconds";
            return Err(ClientError::argument("idle_sleep_ns", self.idle_sleep_ns, rule));
        }
        for (name, value) in [
            ("resource_linger_ns", self.resource_linger_ns),
            ("close_linger_ns", self.close_linger_ns),
        ] {
            if value < 0 {
                return Err(ClientError::argument(name, value, "must not be negative"));
            }
        }
        if self.client_name.chars().count() > CLIENT_NAME_LENGTH_MAX || !self.client_name.is_ascii() {
            let rule = format!("must be ASCII of at most {CLIENT_NAME_LENGTH_MAX} characters");
            return Err(ClientError::argument("client_name", &self.client_name, rule));
        }
        Ok(())
    }

    pub(crate) fn driver_timeout_ns(&self) -> i64 {
        self.driver_timeout_ms.saturating_mul(NS_PER_MS)
    }
}

/// `AERON_DIR`, or the place where a driver of the same user puts its files.
fn default_directory(lookup: impl Fn(&str) -> Option<String>) -> PathBuf {
    if let Some(directory) = lookup("AERON_DIR").filter(|text| !text.is_empty()) {
        return PathBuf::from(directory);
    }
    let user = lookup("USER").filter(|text| !text.is_empty());
    let name = format!("aeron-{}", user.as_deref().unwrap_or("default"));
    let shared_memory = PathBuf::from("/dev/shm");
    if shared_memory.is_dir() {
        shared_memory.join(name)
    } else {
        std::env::temp_dir().join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_follows_the_user() {
        let directory = default_directory(|name| (name == "USER").then(|| "ada".into()));
        assert!(directory.ends_with("aeron-ada"), "{directory:?}");
    }
}
