//! Settings of Aeron's drivers that have no effect here, each with the reason and with what to do instead.
//!
//! What would change a stream or the driver is refused, so that no user believes that it works. What a debugger, a logger or
//! a test harness sets is noted in the error log: the driver does all that was asked for but that.

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
const FALSE: &[&str] = &["false", "off", "0"];

const SOCKETS: &str = "the driver has the sockets of the system, and no others can be loaded into it";

pub(super) static WITHOUT_EFFECT: &[WithoutEffect] = &[
    // Directory, life cycle, storage.
    refused(
        "aeron.enable.experimental.features",
        BOTH,
        "no feature waits for this switch, in Aeron's drivers neither",
    ),
    refused(
        "aeron.driver.dynamic.libraries",
        &[],
        "the driver loads no libraries; name resolvers, flow control, congestion control and interceptors are built in, and \
         the settings of those names choose among them",
    ),
    refused(
        "aeron.agent.on.start.function",
        &[],
        "the driver calls no functions of libraries; to bind or name its threads set aeron.sender.cpu.affinity and its \
         like, and aeron.thread.naming",
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
    noted(
        "aeron.use.windows.high.res.timer",
        FALSE,
        "the driver runs on Linux, whose timers are as fine as they can be",
    ),
    // Logging and debugging.
    noted(
        "aeron.event.log.reader.classname",
        &[],
        "it names a Java class, and the driver runs no Java; `headrace events --json` gives events to programs",
    ),
];
