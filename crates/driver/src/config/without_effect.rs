//! Settings of Aeron's drivers that have no effect here, each with the reason and with what to do instead.
//!
//! Settings that would change a stream or the driver are refused, so that no user believes that they work. Those for
//! debuggers, loggers or test harnesses are noted in the error log: the driver does everything else that was asked for.

use headrace_protocol::text::excerpt;

use super::{ConfigError, DriverConfig};

/// A setting without effect.
pub(super) struct WithoutEffect {
    /// Name of the property.
    pub(super) property: &'static str,
    /// Values that ask for what this driver does anyway.
    pub(super) accepted: &'static [&'static str],
    /// Another value is refused; else it is noted.
    pub(super) is_refused: bool,
    /// Why, and what to do instead.
    pub(super) reason: &'static str,
}

impl WithoutEffect {
    pub(super) fn apply(&self, config: &mut DriverConfig, value: &str) -> Result<(), ConfigError> {
        config.noted.remove(self.property);
        if self.accepted.contains(&value) {
            return Ok(());
        }
        if self.is_refused {
            return Err(ConfigError::new(self.property, value, self.rule()));
        }
        let Self { property, reason, .. } = self;
        let note = format!("{property}={} has no effect: {reason}", excerpt(value));
        config.noted.insert(property, note);
        Ok(())
    }

    /// What a value must be.
    fn rule(&self) -> String {
        let Self { accepted, reason, .. } = self;
        match accepted {
            [] => format!("must be left out: {reason}"),
            _ => format!("must be {} or left out: {reason}", accepted.join(", ")),
        }
    }
}

const fn refused(
    property: &'static str,
    accepted: &'static [&'static str],
    reason: &'static str,
) -> WithoutEffect {
    WithoutEffect {
        property,
        accepted,
        is_refused: true,
        reason,
    }
}

const fn noted(
    property: &'static str,
    accepted: &'static [&'static str],
    reason: &'static str,
) -> WithoutEffect {
    WithoutEffect {
        property,
        accepted,
        is_refused: false,
        reason,
    }
}

const BOTH: &[&str] = &["true", "on", "1", "false", "off", "0"];
const NOTHING: &[&str] = &["", "0"];
const EVENTS: &str = "the driver prints no events: use `headrace events --follow`";
const FALSE: &[&str] = &["false", "off", "0"];

const SOCKETS: &str = "the driver uses the sockets of the system";

pub(super) static WITHOUT_EFFECT: &[WithoutEffect] = &[
    // Directory, life cycle, storage.
    refused(
        "aeron.enable.experimental.features",
        BOTH,
        "no feature depends on it, in Aeron's drivers either",
    ),
    refused(
        "aeron.driver.dynamic.libraries",
        &[],
        "the driver loads no libraries: set its name resolver, flow control, congestion control and interceptors by name",
    ),
    refused(
        "aeron.agent.on.start.function",
        &[],
        "the driver calls no functions of libraries: set aeron.sender.cpu.affinity and its like to bind its threads, and \
         aeron.thread.naming to name them",
    ),
    // Sockets and transport.
    refused(
        "aeron.udp.channel.transport.bindings.media",
        &["default"],
        SOCKETS,
    ),
    refused(
        "aeron.conductor.udp.channel.transport.bindings.media",
        &["default"],
        SOCKETS,
    ),
    // Threads.
    noted("aeron.use.windows.high.res.timer", FALSE, "it is for Windows"),
    // Logging and debugging.
    noted("aeron.event.log", NOTHING, EVENTS),
    noted("aeron.event.log.disable", NOTHING, EVENTS),
    noted("aeron.event.log.filename", NOTHING, EVENTS),
    noted("aeron.event.log.file.max.length", NOTHING, EVENTS),
    noted("aeron.event.log.reader.classname", NOTHING, EVENTS),
];
