//! Settings of a client.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_protocol::channel::units;
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
    /// Source of time, also of the time that is slept away.
    pub clock: Arc<dyn Clock>,
    /// Source of session ids, where the driver leaves them to chance.
    pub random: fastrand::Rng,
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
            random: fastrand::Rng::new(),
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
    /// The defaults, changed by the environment variables of the specification that `lookup` finds.
    ///
    /// A value that cannot be read is an error naming the variable.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ClientError> {
        let mut config = Self {
            directory: default_directory(&lookup),
            ..Self::default()
        };
        if let Some(text) = lookup("AERON_DRIVER_TIMEOUT") {
            config.driver_timeout_ms = text.trim().parse().map_err(|_| {
                ClientError::argument(
                    "AERON_DRIVER_TIMEOUT",
                    &text,
                    "must be a whole number of milliseconds",
                )
            })?;
        }
        let duration = |name, into: &mut i64| match lookup(name) {
            Some(text) => {
                *into = units::parse_duration_ns(&text)
                    .map_err(|error| ClientError::argument(name, &text, error.to_string()))?;
                Ok(())
            }
            None => Ok(()),
        };
        duration("AERON_CLIENT_IDLE_SLEEP_DURATION", &mut config.idle_sleep_ns)?;
        duration(
            "AERON_CLIENT_RESOURCE_LINGER_DURATION",
            &mut config.resource_linger_ns,
        )?;
        if let Some(text) = lookup("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY") {
            config.pre_touch_mapped_memory = match text.as_str() {
                "true" | "on" | "1" => true,
                "false" | "off" | "0" => false,
                _ => {
                    let name = "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY";
                    return Err(ClientError::argument(name, &text, "must be true or false"));
                }
            };
        }
        if let Some(text) = lookup("AERON_CLIENT_NAME") {
            config.client_name = text;
        }
        config.validate()?;
        Ok(config)
    }

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
        if !is_label(&self.client_name, CLIENT_NAME_LENGTH_MAX) {
            let (rule, value) = (
                label_rule(CLIENT_NAME_LENGTH_MAX),
                format!("{:?}", self.client_name),
            );
            return Err(ClientError::argument("client_name", value, rule));
        }
        Ok(())
    }

    pub(crate) fn driver_timeout_ns(&self) -> i64 {
        self.driver_timeout_ms.saturating_mul(NS_PER_MS)
    }
}

/// Whether a text can stand in a counter's label, where tools print it on one line.
pub(crate) fn is_label(text: &str, length_max: usize) -> bool {
    text.len() <= length_max && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

pub(crate) fn label_rule(length_max: usize) -> String {
    format!("must be printable ASCII of at most {length_max} characters")
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

    fn from(pairs: &[(&str, &str)]) -> Result<ClientConfig, ClientError> {
        ClientConfig::from_variables(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn variables_override_the_defaults() {
        let config = from(&[
            ("AERON_DIR", "/tmp/somewhere"),
            ("AERON_DRIVER_TIMEOUT", "2500"),
            ("AERON_CLIENT_IDLE_SLEEP_DURATION", "2ms"),
            ("AERON_CLIENT_NAME", "ticker"),
            ("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", "true"),
        ])
        .unwrap();
        assert_eq!(config.directory, PathBuf::from("/tmp/somewhere"));
        assert_eq!(
            (config.driver_timeout_ms, config.idle_sleep_ns),
            (2_500, 2_000_000)
        );
        assert!(config.pre_touch_mapped_memory);
        assert_eq!(config.client_name, "ticker");
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        let text = from(&[("AERON_DRIVER_TIMEOUT", "10s")])
            .err()
            .unwrap()
            .to_string();
        assert!(text.contains("AERON_DRIVER_TIMEOUT=10s"), "{text}");
        let text = from(&[("AERON_CLIENT_IDLE_SLEEP_DURATION", "2s")])
            .err()
            .unwrap()
            .to_string();
        assert!(
            text.contains("idle_sleep_ns=2000000000") && text.contains("1 second"),
            "{text}"
        );
        let long = "x".repeat(CLIENT_NAME_LENGTH_MAX + 1);
        assert!(from(&[("AERON_CLIENT_NAME", &long)]).is_err());
    }

    #[test]
    fn the_directory_follows_the_user() {
        let directory = default_directory(|name| (name == "USER").then(|| "ada".into()));
        assert!(directory.ends_with("aeron-ada"), "{directory:?}");
    }
}
