//! Settings of Aeron's drivers that have no effect here.
//!
//! Those of features this release does not have are refused when they ask for anything but what it does, so that no
//! user believes that a setting works when it does not.

/// A setting without effect.
pub(super) struct WithoutEffect {
    /// Name of the property.
    pub(super) property: &'static str,
    /// The feature it belongs to; none if any value may be given.
    pub(super) unbuilt: Option<Unbuilt>,
}

/// A feature that this release does not have.
pub(super) struct Unbuilt {
    /// What it is.
    pub(super) feature: &'static str,
    /// Values that ask for what this release does.
    pub(super) accepted: &'static [&'static str],
}

impl Unbuilt {
    /// What a value must be.
    pub(super) fn rule(&self) -> String {
        format!(
            "{} is not supported in this release, leave the setting out",
            self.feature
        )
    }
}

const fn unbuilt(
    property: &'static str,
    accepted: &'static [&'static str],
    feature: &'static str,
) -> WithoutEffect {
    WithoutEffect {
        property,
        unbuilt: Some(Unbuilt { feature, accepted }),
    }
}

/// Known to other drivers or to test harnesses.
const fn inert(property: &'static str) -> WithoutEffect {
    WithoutEffect {
        property,
        unbuilt: None,
    }
}

const UNICAST_FLOW_CONTROL: &[&str] = &["unicast_max", "aeron_unicast_flow_control_strategy_supplier"];

pub(super) static WITHOUT_EFFECT: &[WithoutEffect] = &[
    // Directory, life cycle, storage.
    inert("aeron.enable.experimental.features"),
    unbuilt("aeron.driver.dynamic.libraries", &[], "loading foreign libraries"),
    unbuilt("aeron.agent.on.start.function", &[], "loading foreign functions"),
    // Sockets and transport.
    unbuilt(
        "aeron.driver.connect",
        &["true", "on", "1"],
        "sending through unconnected sockets",
    ),
    // How much the sender hands to the kernel at once follows from the offload in use, not from these.
    inert("aeron.sender.io.vector.capacity"),
    inert("aeron.network.publication.max.messages.per.send"),
    unbuilt(
        "aeron.udp.channel.transport.bindings.media",
        &["default"],
        "choosing transport bindings",
    ),
    unbuilt(
        "aeron.conductor.udp.channel.transport.bindings.media",
        &["default"],
        "choosing transport bindings",
    ),
    unbuilt("aeron.SendChannelEndpoint.supplier", &[], "loading Java classes"),
    unbuilt(
        "aeron.ReceiveChannelEndpoint.supplier",
        &[],
        "loading Java classes",
    ),
    // Flow and congestion control.
    unbuilt(
        "aeron.unicast.FlowControl.supplier",
        UNICAST_FLOW_CONTROL,
        "another unicast flow control",
    ),
    unbuilt(
        "aeron.unicast.flow.control.strategy",
        &["io.aeron.driver.UnicastFlowControl"],
        "loading Java classes",
    ),
    unbuilt(
        "aeron.multicast.flow.control.strategy",
        &["io.aeron.driver.MaxMulticastFlowControl"],
        "a Java class (aeron.multicast.FlowControl.supplier takes the strategy's name)",
    ),
    unbuilt(
        "aeron.PreferredMulticastFlowControl.asf",
        &["FFFFFFFFFFFFFFFF"],
        "the legacy form of aeron.flow.control.group.tag",
    ),
    unbuilt(
        "aeron.flow.control.sm.applicationSpecificFeedback",
        &[],
        "the legacy form of aeron.receiver.group.tag",
    ),
    // Threads, idling, affinity.
    unbuilt(
        "aeron.driver.cpuset.affinity",
        &["false", "off", "0"],
        "affinity by cpuset index",
    ),
    unbuilt(
        "aeron.driver.cpuset.warnings_as_errors",
        &["false", "off", "0"],
        "affinity by cpuset index",
    ),
    inert("aeron.use.windows.high.res.timer"),
    // Logging and debugging. Test harnesses set the event log by default and expect silence.
    inert("aeron.event.log"),
    inert("aeron.event.log.disable"),
    inert("aeron.event.log.filename"),
    inert("aeron.event.log.file.max.length"),
    inert("aeron.event.buffer.length"),
    inert("aeron.event.log.reader.classname"),
    inert("aeron.debug.timeout"),
    inert("aeron.fallback.logger"),
    inert("aeron.debug.receive.data.loss.rate"),
    inert("aeron.debug.receive.data.loss.seed"),
    inert("aeron.debug.receive.control.loss.rate"),
    inert("aeron.debug.receive.control.loss.seed"),
    inert("aeron.debug.send.data.loss.rate"),
    inert("aeron.debug.send.data.loss.seed"),
    inert("aeron.debug.send.control.loss.rate"),
    inert("aeron.debug.send.control.loss.seed"),
];
