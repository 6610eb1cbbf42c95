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
const NO_LOSS: &[&str] = &["0", "0.0"];
const NO_SEED: &[&str] = &["-1"];

const SOCKETS: &str = "the driver has the sockets of the system, and no others can be loaded into it";
const ENDPOINTS: &str = "it names a Java class, and the driver runs no Java; to drop datagrams on purpose set \
    aeron.udp.channel.incoming.interceptors";
const ONE_RECEIVER: &str = "a publication to one receiver always goes as far as that receiver has room; for groups of \
    receivers set aeron.multicast.FlowControl.supplier";
const LOSS: &str = "it has none in Aeron's drivers without their classes for debugging either; to drop datagrams on purpose set aeron.udp.channel.incoming.interceptors=loss and \
    aeron.udp.channel.transport.bindings.loss.args";

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
    refused(
        "aeron.SendChannelEndpoint.supplier",
        &["io.aeron.driver.DefaultSendChannelEndpointSupplier"],
        ENDPOINTS,
    ),
    refused(
        "aeron.ReceiveChannelEndpoint.supplier",
        &["io.aeron.driver.DefaultReceiveChannelEndpointSupplier"],
        ENDPOINTS,
    ),
    // Flow control.
    refused(
        "aeron.unicast.FlowControl.supplier",
        &[
            "unicast_max",
            "aeron_unicast_flow_control_strategy_supplier",
            "io.aeron.driver.DefaultUnicastFlowControlSupplier",
        ],
        ONE_RECEIVER,
    ),
    refused(
        "aeron.unicast.flow.control.strategy",
        &["io.aeron.driver.UnicastFlowControl"],
        ONE_RECEIVER,
    ),
    // Threads.
    noted(
        "aeron.use.windows.high.res.timer",
        FALSE,
        "the driver runs on Linux, whose timers are as fine as they can be",
    ),
    // Logging and debugging.
    noted(
        "aeron.event.log.disable",
        &[],
        "each change of state is printed, or none is; what a person wants to see of them `headrace events` chooses",
    ),
    noted(
        "aeron.event.log.file.max.length",
        &[],
        "the file of aeron.event.log.filename grows; it is only appended to, so that logrotate can copy and truncate it",
    ),
    noted(
        "aeron.event.log.reader.classname",
        &[],
        "it names a Java class, and the driver runs no Java; `headrace events --json` gives events to programs",
    ),
    noted(
        "aeron.debug.timeout",
        &[],
        "it is for a debugger of Java; for another debugger set aeron.client.liveness.timeout and its like",
    ),
    noted(
        "aeron.fallback.logger",
        &["stderr"],
        "errors are in the error log, which `headrace errors` shows; those of the start are printed",
    ),
    noted("aeron.debug.receive.data.loss.rate", NO_LOSS, LOSS),
    noted("aeron.debug.receive.data.loss.seed", NO_SEED, LOSS),
    noted("aeron.debug.receive.control.loss.rate", NO_LOSS, LOSS),
    noted("aeron.debug.receive.control.loss.seed", NO_SEED, LOSS),
    noted("aeron.debug.send.data.loss.rate", NO_LOSS, LOSS),
    noted("aeron.debug.send.data.loss.seed", NO_SEED, LOSS),
    noted("aeron.debug.send.control.loss.rate", NO_LOSS, LOSS),
    noted("aeron.debug.send.control.loss.seed", NO_SEED, LOSS),
];
