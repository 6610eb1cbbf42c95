//! The settings themselves, one row each, grouped as users look for them.

use super::table::{Effect, Setting, built, inert, unbuilt};
use super::values::{
    Bool, Choice, Codec, Directory, Duration, FlooredDuration, Int, Mtu, OptionalDuration, OptionalInt64,
    OptionalText, Ports, PowerOfTwo, RingLength, Size, Text,
};
use super::{
    BROADCAST_TRAILER_LENGTH, IdleSetting, KIB, MIB, RING_TRAILER_LENGTH, TerminationValidator, ThreadNaming,
    ThreadingMode,
};
use headrace_protocol::channel::GroupConsideration;

const I32_MAX: usize = i32::MAX as usize;
const GIB: usize = 1024 * MIB;
/// Three terms of 64 KiB and their metadata: with less memory for images there would be none.
const SMALLEST_LOG_LENGTH: usize = 3 * 64 * KIB + 4 * KIB;
const MICROSECOND: i64 = super::MICROSECOND;

const TIMEOUT: FlooredDuration = FlooredDuration {
    floor_ns: MICROSECOND,
};
const INTERVAL: Duration = Duration { min_ns: 0 };
const TERM_LENGTH: PowerOfTwo = PowerOfTwo(Size {
    min: 64 * KIB,
    max: GIB,
});
const WINDOW: Size = Size { min: 0, max: GIB };
const VECTOR: Int<usize> = Int { min: 1, max: 16 };
const CPU: Int<i32> = Int { min: -1, max: 255 };
const ANY_I32: Int<i32> = Int {
    min: i32::MIN,
    max: i32::MAX,
};

const THREADING_MODES: Choice<ThreadingMode> = Choice {
    names: &[
        ("DEDICATED", ThreadingMode::Dedicated),
        ("SHARED_NETWORK", ThreadingMode::SharedNetwork),
        ("SHARED", ThreadingMode::Shared),
        ("INVOKER", ThreadingMode::Invoker),
    ],
};

const THREAD_NAMING: Choice<ThreadNaming> = Choice {
    names: &[("classic", ThreadNaming::Classic), ("new", ThreadNaming::New)],
};

const TERMINATION: Choice<TerminationValidator> = Choice {
    names: &[
        ("allow", TerminationValidator::Allow),
        ("deny", TerminationValidator::Deny),
        (
            "aeron_driver_termination_validator_default_allow",
            TerminationValidator::Allow,
        ),
        (
            "aeron_driver_termination_validator_default_deny",
            TerminationValidator::Deny,
        ),
    ],
};

/// `true`, `infer`, and any other text for "never", as every driver reads it.
struct Group;

impl Codec for Group {
    type Value = GroupConsideration;

    fn parse(&self, text: &str) -> Result<GroupConsideration, String> {
        Ok(GroupConsideration::parse(text))
    }

    fn format(&self, value: &GroupConsideration) -> String {
        match value {
            GroupConsideration::ForceTrue => "true",
            GroupConsideration::Infer => "infer",
            GroupConsideration::ForceFalse => "false",
        }
        .to_owned()
    }
}

const UNICAST_FLOW_CONTROL: &[&str] = &["unicast_max", "aeron_unicast_flow_control_strategy_supplier"];
const MULTICAST_FLOW_CONTROL: &[&str] = &[
    "multicast_max",
    "aeron_max_multicast_flow_control_strategy_supplier",
];
const STATIC_CONGESTION_CONTROL: &[&str] = &[
    "default",
    "static",
    "aeron_congestion_control_default_strategy_supplier",
    "aeron_static_window_congestion_control_strategy_supplier",
];
const DEFAULT_RESOLVER: &[&str] = &["default", "aeron_default_name_resolver_supplier"];

pub(super) static SETTINGS: &[Setting] = &[
    // Directory, life cycle, storage.
    built!("aeron.dir", directory, Directory),
    built!("aeron.dir.delete.on.start", dir_delete_on_start, Bool),
    built!("aeron.dir.delete.on.shutdown", dir_delete_on_shutdown, Bool),
    built!("aeron.dir.warn.if.exists", dir_warn_if_exists, Bool),
    built!(
        "aeron.driver.timeout",
        driver_timeout_ms,
        Int {
            min: 0,
            max: i64::MAX / 1_000_000
        }
    ),
    built!(
        "aeron.driver.termination.validator",
        termination_validator,
        TERMINATION
    ),
    built!("aeron.print.configuration", print_configuration, Bool),
    inert("aeron.enable.experimental.features"),
    built!("aeron.perform.storage.checks", perform_storage_checks, Bool),
    built!(
        "aeron.low.file.store.warning.threshold",
        low_storage_warning_threshold,
        Size {
            min: 0,
            max: usize::MAX >> 1
        }
    ),
    built!(
        "aeron.file.page.size",
        file_page_size,
        PowerOfTwo(Size {
            min: 4 * KIB,
            max: GIB
        })
    ),
    built!(
        "aeron.driver.resource.free.limit",
        resource_free_limit,
        Int { min: 1, max: I32_MAX }
    ),
    unbuilt("aeron.driver.dynamic.libraries", &[], "loading foreign libraries"),
    unbuilt("aeron.agent.on.start.function", &[], "loading foreign functions"),
    // Command, counter and report buffers.
    built!(
        "aeron.conductor.buffer.length",
        conductor_buffer_length,
        RingLength {
            trailer: RING_TRAILER_LENGTH,
            min: MIB + RING_TRAILER_LENGTH
        }
    ),
    built!(
        "aeron.clients.buffer.length",
        clients_buffer_length,
        RingLength {
            trailer: BROADCAST_TRAILER_LENGTH,
            min: MIB + BROADCAST_TRAILER_LENGTH
        }
    ),
    built!(
        "aeron.counters.buffer.length",
        counters_buffer_length,
        Size {
            min: MIB,
            max: 500 * MIB
        }
    ),
    built!(
        "aeron.error.buffer.length",
        error_buffer_length,
        Size {
            min: 4 * MIB,
            max: I32_MAX
        }
    ),
    built!(
        "aeron.loss.report.buffer.length",
        loss_report_buffer_length,
        Size {
            min: KIB,
            max: I32_MAX
        }
    ),
    built!(
        "aeron.counters.free.to.reuse.timeout",
        counter_free_to_reuse_timeout_ns,
        INTERVAL
    ),
    // Terms, MTU, windows.
    built!("aeron.term.buffer.length", term_buffer_length, TERM_LENGTH),
    built!(
        "aeron.ipc.term.buffer.length",
        ipc_term_buffer_length,
        TERM_LENGTH
    ),
    built!("aeron.term.buffer.sparse.file", term_buffer_sparse_file, Bool),
    built!("aeron.mtu.length", mtu_length, Mtu),
    built!("aeron.ipc.mtu.length", ipc_mtu_length, Mtu),
    built!(
        "aeron.publication.term.window.length",
        publication_term_window_length,
        WINDOW
    ),
    built!(
        "aeron.ipc.publication.term.window.length",
        ipc_publication_term_window_length,
        WINDOW
    ),
    built!(
        "aeron.rcv.initial.window.length",
        initial_window_length,
        Size {
            min: 256,
            max: I32_MAX
        }
    ),
    // Sockets and transport.
    built!(
        "aeron.socket.so_rcvbuf",
        socket_receive_buffer_length,
        Size { min: 0, max: I32_MAX }
    ),
    built!(
        "aeron.socket.so_sndbuf",
        socket_send_buffer_length,
        Size { min: 0, max: I32_MAX }
    ),
    unbuilt("aeron.socket.multicast.ttl", &["0"], "multicast"),
    unbuilt(
        "aeron.driver.connect",
        &["true", "on", "1"],
        "sending through unconnected sockets",
    ),
    built!(
        "aeron.sender.wildcard.port.range",
        sender_wildcard_port_range,
        Ports
    ),
    built!(
        "aeron.receiver.wildcard.port.range",
        receiver_wildcard_port_range,
        Ports
    ),
    built!(
        "aeron.receiver.io.vector.capacity",
        receiver_io_vector_capacity,
        VECTOR
    ),
    // How much the sender hands to the kernel at once follows from the offload in use, not from these.
    inert("aeron.sender.io.vector.capacity"),
    inert("aeron.network.publication.max.messages.per.send"),
    built!(
        "aeron.send.to.status.poll.ratio",
        send_to_status_poll_ratio,
        Int { min: 1, max: 255 }
    ),
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
    unbuilt(
        "aeron.udp.channel.outgoing.interceptors",
        &[],
        "intercepting datagrams",
    ),
    unbuilt(
        "aeron.udp.channel.incoming.interceptors",
        &[],
        "intercepting datagrams",
    ),
    unbuilt("aeron.SendChannelEndpoint.supplier", &[], "loading Java classes"),
    unbuilt(
        "aeron.ReceiveChannelEndpoint.supplier",
        &[],
        "loading Java classes",
    ),
    // Liveness and timers.
    built!("aeron.timer.interval", timer_interval_ns, TIMEOUT),
    built!(
        "aeron.client.liveness.timeout",
        client_liveness_timeout_ns,
        TIMEOUT
    ),
    built!("aeron.image.liveness.timeout", image_liveness_timeout_ns, TIMEOUT),
    built!(
        "aeron.publication.unblock.timeout",
        publication_unblock_timeout_ns,
        TIMEOUT
    ),
    built!(
        "aeron.publication.connection.timeout",
        publication_connection_timeout_ns,
        TIMEOUT
    ),
    built!(
        "aeron.publication.linger.timeout",
        publication_linger_timeout_ns,
        TIMEOUT
    ),
    built!(
        "aeron.untethered.window.limit.timeout",
        untethered_window_limit_timeout_ns,
        TIMEOUT
    ),
    built!(
        "aeron.untethered.linger.timeout",
        untethered_linger_timeout_ns,
        OptionalDuration
    ),
    built!(
        "aeron.untethered.resting.timeout",
        untethered_resting_timeout_ns,
        TIMEOUT
    ),
    built!(
        "aeron.rcv.status.message.timeout",
        status_message_timeout_ns,
        TIMEOUT
    ),
    // Loss handling.
    built!("aeron.nak.unicast.delay", nak_unicast_delay_ns, TIMEOUT),
    built!(
        "aeron.nak.unicast.retry.delay.ratio",
        nak_unicast_retry_delay_ratio,
        Int {
            min: 1,
            max: i32::MAX as i64
        }
    ),
    built!(
        "aeron.nak.multicast.group.size",
        nak_multicast_group_size,
        Int { min: 1, max: I32_MAX }
    ),
    built!(
        "aeron.nak.multicast.max.backoff",
        nak_multicast_max_backoff_ns,
        TIMEOUT
    ),
    built!(
        "aeron.retransmit.unicast.delay",
        retransmit_unicast_delay_ns,
        INTERVAL
    ),
    built!(
        "aeron.retransmit.unicast.linger",
        retransmit_unicast_linger_ns,
        TIMEOUT
    ),
    built!("aeron.max.resend", max_resend, Int { min: 1, max: 256 }),
    // Stream policy defaults.
    built!("aeron.reliable.stream", reliable_stream, Bool),
    built!("aeron.tether.subscriptions", tether_subscriptions, Bool),
    built!("aeron.rejoin.stream", rejoin_stream, Bool),
    built!("aeron.spies.simulate.connection", spies_simulate_connection, Bool),
    built!(
        "aeron.receiver.group.consideration",
        receiver_group_consideration,
        Group
    ),
    built!(
        "aeron.publication.reserved.session.id.low",
        reserved_session_id_low,
        ANY_I32
    ),
    built!(
        "aeron.publication.reserved.session.id.high",
        reserved_session_id_high,
        ANY_I32
    ),
    built!(
        "aeron.driver.stream.session.limit",
        stream_session_limit,
        Int { min: 1, max: I32_MAX }
    ),
    // Not of the reference driver: what strangers may cost.
    built!(
        "aeron.headrace.image.limit",
        image_limits.count,
        Int { min: 1, max: I32_MAX }
    ),
    built!(
        "aeron.headrace.image.memory.limit",
        image_limits.bytes,
        Size {
            min: SMALLEST_LOG_LENGTH,
            max: usize::MAX >> 1
        }
    ),
    // Flow and congestion control.
    unbuilt(
        "aeron.unicast.FlowControl.supplier",
        UNICAST_FLOW_CONTROL,
        "another unicast flow control",
    ),
    unbuilt(
        "aeron.multicast.FlowControl.supplier",
        MULTICAST_FLOW_CONTROL,
        "multicast flow control",
    ),
    unbuilt(
        "aeron.unicast.flow.control.strategy",
        &["io.aeron.driver.UnicastFlowControl"],
        "loading Java classes",
    ),
    unbuilt(
        "aeron.multicast.flow.control.strategy",
        &["io.aeron.driver.MaxMulticastFlowControl"],
        "loading Java classes",
    ),
    built!(
        "aeron.unicast.flow.control.rrwm",
        unicast_flow_control_rrwm,
        Int { min: 1, max: I32_MAX }
    ),
    unbuilt(
        "aeron.multicast.flow.control.rrwm",
        &["4"],
        "multicast flow control",
    ),
    unbuilt("aeron.flow.control.group.tag", &["-1"], "tagged flow control"),
    unbuilt(
        "aeron.flow.control.group.min.size",
        &["0"],
        "min and tagged flow control",
    ),
    unbuilt(
        "aeron.flow.control.receiver.timeout",
        &["5s", "5000ms", "5000000000"],
        "min and tagged flow control",
    ),
    built!("aeron.receiver.group.tag", receiver_group_tag, OptionalInt64),
    unbuilt(
        "aeron.PreferredMulticastFlowControl.asf",
        &["FFFFFFFFFFFFFFFF"],
        "tagged flow control",
    ),
    unbuilt(
        "aeron.flow.control.sm.applicationSpecificFeedback",
        &[],
        "the legacy form of aeron.receiver.group.tag",
    ),
    unbuilt(
        "aeron.CongestionControl.supplier",
        STATIC_CONGESTION_CONTROL,
        "cubic congestion control",
    ),
    unbuilt(
        "aeron.CubicCongestionControl.measureRtt",
        &["false", "off", "0"],
        "cubic congestion control",
    ),
    unbuilt(
        "aeron.CubicCongestionControl.initialRtt",
        &["100us", "100000"],
        "cubic congestion control",
    ),
    unbuilt(
        "aeron.CubicCongestionControl.tcpMode",
        &["false", "off", "0"],
        "cubic congestion control",
    ),
    // Name resolution.
    unbuilt(
        "aeron.name.resolver.supplier",
        DEFAULT_RESOLVER,
        "another name resolver",
    ),
    unbuilt("aeron.name.resolver.init.args", &[], "another name resolver"),
    unbuilt("aeron.driver.resolver.name", &[], "the driver name resolver"),
    unbuilt("aeron.driver.resolver.interface", &[], "the driver name resolver"),
    unbuilt(
        "aeron.driver.resolver.bootstrap.neighbor",
        &[],
        "the driver name resolver",
    ),
    inert("aeron.driver.resolver.neighbor.timeout"),
    inert("aeron.driver.resolver.self.resolution.interval"),
    inert("aeron.driver.resolver.neighbor.resolution.interval"),
    inert("aeron.driver.resolver.bootstrap.neighbor.resolution.interval"),
    built!(
        "aeron.driver.reresolution.check.interval",
        reresolution_check_interval_ns,
        INTERVAL
    ),
    built!(
        "aeron.name.resolver.threshold",
        name_resolver_threshold_ns,
        INTERVAL
    ),
    // Threads, idling, affinity.
    built!("aeron.threading.mode", threading_mode, THREADING_MODES),
    built!("aeron.thread.naming", thread_naming, THREAD_NAMING),
    built!("aeron.conductor.idle.strategy", conductor_idle.name, Text),
    built!(
        "aeron.conductor.idle.strategy.init.args",
        conductor_idle.init_args,
        OptionalText
    ),
    built!("aeron.sender.idle.strategy", sender_idle.name, Text),
    built!(
        "aeron.sender.idle.strategy.init.args",
        sender_idle.init_args,
        OptionalText
    ),
    built!("aeron.receiver.idle.strategy", receiver_idle.name, Text),
    built!(
        "aeron.receiver.idle.strategy.init.args",
        receiver_idle.init_args,
        OptionalText
    ),
    built!(
        "aeron.sharednetwork.idle.strategy",
        shared_network_idle.name,
        Text
    ),
    built!(
        "aeron.sharednetwork.idle.strategy.init.args",
        shared_network_idle.init_args,
        OptionalText
    ),
    built!("aeron.shared.idle.strategy", shared_idle.name, Text),
    built!(
        "aeron.shared.idle.strategy.init.args",
        shared_idle.init_args,
        OptionalText
    ),
    Setting {
        property: "aeron.driver.native.resource.agent.idle.strategy",
        effect: Effect::Built {
            // The default's argument belongs to the default strategy only.
            apply: |config, value| {
                config.resource_agent_idle = IdleSetting::new(value, None);
                Ok(())
            },
            show: |config| config.resource_agent_idle.name.clone(),
        },
    },
    built!(
        "aeron.driver.native.resource.agent.idle.strategy.init.args",
        resource_agent_idle.init_args,
        OptionalText
    ),
    built!("aeron.conductor.cpu.affinity", conductor_cpu_affinity, CPU),
    built!("aeron.sender.cpu.affinity", sender_cpu_affinity, CPU),
    built!("aeron.receiver.cpu.affinity", receiver_cpu_affinity, CPU),
    built!(
        "aeron.driver.native.resource.agent.cpu.affinity",
        resource_agent_cpu_affinity,
        CPU
    ),
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
    built!(
        "aeron.driver.conductor.cycle.threshold",
        conductor_cycle_threshold_ns,
        INTERVAL
    ),
    built!(
        "aeron.driver.sender.cycle.threshold",
        sender_cycle_threshold_ns,
        INTERVAL
    ),
    built!(
        "aeron.driver.receiver.cycle.threshold",
        receiver_cycle_threshold_ns,
        INTERVAL
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
