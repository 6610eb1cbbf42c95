//! Settings of a client.

// The defaults ask the machine for time and chance: a program or a test hands in others.
#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;
use std::sync::Arc;

use headrace_protocol::settings::{self, Bool, Codec, Declaration, Duration, Kind, Milliseconds};
use headrace_sys::idle::IdleStrategy;
use headrace_sys::{Clock, SystemClock};

use crate::error::ClientError;
use crate::handlers::{
    CloseHandler, CounterHandler, ErrorHandler, Handlers, ImageHandler, PublicationErrorHandler,
    SubscriptionHandlers,
};

/// Longest client name, in characters.
pub const CLIENT_NAME_LENGTH_MAX: usize = 100;

const NS_PER_MS: i64 = 1_000_000;
const NS_PER_S: i64 = 1_000_000_000;

headrace_protocol::settings! {
    /// All settings of a client. `Default` returns those of the specification, with the default driver directory.
    #[derive(Clone)]
    pub struct ClientConfig, table SETTINGS;

    /// How long to wait for the driver to appear or to answer, and how old its heartbeat may become.
    "aeron.driver.timeout" => driver_timeout_ms: i64 = 10_000, Milliseconds { min: 1, max: i64::MAX };
    /// Time between two heartbeats to the driver.
    keepalive_interval_ns: i64 = 500 * NS_PER_MS, Duration { min_ns: 1, max_ns: i64::MAX };
    /// How long the client's own thread sleeps between two turns.
    "aeron.client.idle.sleep.duration" => idle_sleep_ns: i64 = 16 * NS_PER_MS, Duration { min_ns: 0, max_ns: NS_PER_S };
    /// How long a log stays mapped after its image or publication has ended.
    "aeron.client.resource.linger.duration" => resource_linger_ns: i64 = 3 * NS_PER_S, Duration::ANY;
    /// Name by which tools call the client; a Python client without one is called by its program and process, as in
    /// `ticker.py pid=4711`.
    "aeron.client.name" => client_name: String = String::new(), ClientName;
    /// Touch each page of a log when it is mapped, so that no message pays for the page fault.
    "aeron.client.pre.touch.mapped.memory" => pre_touch_mapped_memory: bool = false, Bool;

    beside {
        /// Commit that the program was built from, for the label of the client's heartbeat counter.
        commit: &'static str = "unknown";
        /// Directory of the driver.
        directory: PathBuf = default_directory(|name| std::env::var(name).ok());
        /// How long closing the client waits before it informs the driver, in nanoseconds.
        close_linger_ns: i64 = 0;
        /// Start no conductor thread: the program calls [`crate::Client::invoke`].
        use_invoker: bool = false;
        /// Source of time, also for sleeps.
        clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        /// Source of random session ids, for drivers that cannot choose one.
        random: fastrand::Rng = fastrand::Rng::new();
        /// How a blocking request waits between two looks.
        awaiting_idle: IdleStrategy = IdleStrategy::default();
        /// Called on each turn of a waiting request, to run an embedded driver without threads.
        driver_invoker: Option<Arc<dyn Fn() + Send + Sync>> = None;
        /// Called once, by the thread that connects, when it has found no driver for a second.
        no_driver_handler: Option<Arc<dyn Fn() + Send + Sync>> = None;
        /// Called with each failure that no caller waits for. By default they are written to standard error.
        error_handler: ErrorHandler = Handlers::default().error;
        /// Default handler for subscriptions that are added without one.
        available_image_handler: Option<ImageHandler> = None;
        /// Default handler for subscriptions that are added without one.
        unavailable_image_handler: Option<ImageHandler> = None;
        /// Called, before the other handlers, with each image that ended before its stream although its subscription is
        /// open: because of a time-out, a rejection, or a reader that was too slow.
        lost_image_handler: Option<ImageHandler> = None;
        /// First of the available-counter handlers.
        available_counter_handler: Option<CounterHandler> = None;
        /// First of the unavailable-counter handlers.
        unavailable_counter_handler: Option<CounterHandler> = None;
        /// First of the close handlers.
        close_handler: Option<CloseHandler> = None;
        /// Called with errors raised against this client's publications.
        publication_error_handler: Option<PublicationErrorHandler> = None;
    }
}

/// A label of a counter has room for it.
struct ClientName;

impl Codec for ClientName {
    type Value = String;

    fn parse(&self, text: &str) -> Option<String> {
        is_label(text, CLIENT_NAME_LENGTH_MAX).then(|| text.to_owned())
    }

    fn format(&self, value: &String) -> String {
        value.clone()
    }

    fn rule(&self) -> String {
        label_rule(CLIENT_NAME_LENGTH_MAX)
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}

/// Declares the settings of a client, for documentation and for other languages.
pub fn declarations() -> Vec<Declaration> {
    settings::declarations(SETTINGS, &ClientConfig::default())
}

impl ClientConfig {
    /// The defaults, changed by the environment variables of the specification that `lookup` finds.
    ///
    /// A value that breaks its rule is an error naming the variable.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ClientError> {
        let mut config = Self {
            directory: default_directory(&lookup),
            ..Self::default()
        };
        for setting in SETTINGS {
            let Some(property) = setting.property else {
                continue;
            };
            let name = settings::environment_name(property);
            if let Some(text) = lookup(&name) {
                let text = text.trim();
                (setting.set)(&mut config, text).map_err(|rule| ClientError::argument(name, text, rule))?;
            }
        }
        Ok(config)
    }

    /// Takes the handlers out of the configuration, which lives as long as any part of the client.
    pub(crate) fn take_handlers(&mut self, mut next_id: impl FnMut() -> i64) -> Handlers {
        let mut handlers = Handlers {
            publication_error: self.publication_error_handler.take(),
            image: SubscriptionHandlers {
                available_image: self.available_image_handler.take(),
                unavailable_image: self.unavailable_image_handler.take(),
            },
            lost_image: self.lost_image_handler.take(),
            ..Handlers::default()
        };
        std::mem::swap(&mut handlers.error, &mut self.error_handler);
        if let Some(handler) = self.available_counter_handler.take() {
            handlers.available_counter.add(next_id(), handler);
        }
        if let Some(handler) = self.unavailable_counter_handler.take() {
            handlers.unavailable_counter.add(next_id(), handler);
        }
        if let Some(handler) = self.close_handler.take() {
            handlers.close.add(next_id(), handler);
        }
        handlers
    }

    /// Changes one setting, by the name of its field.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ClientError> {
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.field == name)
            .ok_or_else(|| ClientError::argument(name, text, "is not a client setting"))?;
        (setting.set)(self, text).map_err(|rule| ClientError::argument(name, text.escape_debug(), rule))
    }

    /// Checks what can be checked without a driver: that each value, as text, keeps its rule.
    pub fn validate(&self) -> Result<(), ClientError> {
        let mut checked = self.clone();
        for setting in SETTINGS {
            checked.set(setting.field, &(setting.show)(self))?;
        }
        if self.close_linger_ns < 0 {
            let rule = "must not be negative";
            return Err(ClientError::argument(
                "close_linger_ns",
                self.close_linger_ns,
                rule,
            ));
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

/// `AERON_DIR`, or the default directory of the user's driver.
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
            text.contains("AERON_CLIENT_IDLE_SLEEP_DURATION=2s") && text.contains("from 0ns to 1s"),
            "{text}"
        );
        let config = ClientConfig {
            idle_sleep_ns: 2 * NS_PER_S,
            ..ClientConfig::default()
        };
        let text = config.validate().unwrap_err().to_string();
        assert!(
            text.contains("idle_sleep_ns=2s") && text.contains("from 0ns to 1s"),
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
