//! Every setting that has an effect, declared once: see [`headrace_protocol::settings`].
//!
//! A row of this file becomes a field here, and a keyword, a field and a line of the reference in Python. After a
//! change run `scripts/settings.py`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use headrace_protocol::channel::{CongestionControlKind, FlowControlStrategy, GroupConsideration};
use headrace_protocol::settings::{
    Bool, CountOrNone, Directory, Duration, FlooredDuration, Int, Milliseconds, Mtu, Named, Optional,
    OptionalDuration, OptionalInt64, OptionalText, PowerOfTwo, RingLength, Size,
};
use headrace_sys::idle::IdleStrategy;

use super::choices::{
    CONGESTION_CONTROL, FALLBACK_LOGGER, Group, MULTICAST_FLOW_CONTROL, NAME_RESOLVER, RECEIVE_ENDPOINTS,
    SEND_ENDPOINTS, TERMINATION, THREAD_NAMING, THREADING_MODES, UNICAST_FLOW_CONTROL,
};
use super::default_directory::default_directory;
use super::modes::{
    ChannelEndpoints, FallbackLogger, NameResolver, TerminationValidator, ThreadNaming, ThreadingMode,
    UnicastFlowControl,
};
use super::ports::{PortRange, Ports};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const GIB: usize = 1024 * MIB;
const I32_MAX: usize = i32::MAX as usize;
pub(super) const MICROSECOND: i64 = 1_000;
pub(super) const MILLISECOND: i64 = 1_000 * MICROSECOND;
pub(super) const SECOND: i64 = 1_000 * MILLISECOND;

/// Bytes after the power-of-two capacity of the to-driver ring.
const RING_TRAILER_LENGTH: usize = 768;
/// Bytes after the power-of-two capacity of the to-clients broadcast.
const BROADCAST_TRAILER_LENGTH: usize = 128;
/// Idle strategy of every thread.
const BLOCKING: &str = "blocking";

/// Three terms of 64 KiB and their metadata: with less memory for images there would be none.
const SMALLEST_LOG_LENGTH: usize = 3 * 64 * KIB + 4 * KIB;

const TIMEOUT: FlooredDuration = FlooredDuration {
    floor_ns: MICROSECOND,
};
const INTERVAL: Duration = Duration::ANY;
const GOSSIP_INTERVAL: FlooredDuration = FlooredDuration {
    floor_ns: MILLISECOND,
};
const TERM_LENGTH: PowerOfTwo = PowerOfTwo(Size {
    min: 64 * KIB,
    max: GIB,
});
const WINDOW: Size = Size { min: 0, max: GIB };
pub(super) const ANY_SIZE: Size = Size {
    min: 0,
    max: usize::MAX >> 1,
};
const SOCKET_BUFFER: Size = Size { min: 0, max: I32_MAX };
const VECTOR: Int<usize> = Int { min: 1, max: 16 };
const COUNT: Int<usize> = Int { min: 1, max: I32_MAX };
pub(super) const EVENT_LIMIT_MAX: usize = 1 << 20;
const EVENTS: Int<usize> = Int {
    min: 0,
    max: EVENT_LIMIT_MAX,
};
const CPU: Int<i32> = Int { min: -1, max: 255 };
const ANY_I32: Int<i32> = Int {
    min: i32::MIN,
    max: i32::MAX,
};
const ANY_I64: Int<i64> = Int {
    min: i64::MIN,
    max: i64::MAX,
};
/// Checked together with its arguments, when all settings are known.
const STRATEGY: Named = Named {
    rule: || {
        format!(
            "must be one of {}, controllable, or a name that Aeron has for it",
            IdleStrategy::NAMES.join(", ")
        )
    },
};

const fn ring_length(trailer: usize) -> RingLength {
    RingLength {
        trailer,
        min: MIB + trailer,
    }
}

headrace_protocol::settings! {
    /// Every setting of the driver. Lengths are bytes; the unit of a duration is in its name.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DriverConfig, table SETTINGS;

    // Directory, life cycle, storage.
    /// The directory that the driver shares with its clients.
    "aeron.dir" => directory: PathBuf = default_directory(), Directory;
    /// Delete the directory, and every file in it, at the start without a check: even if another driver runs there, or
    /// the files are not a driver's. Without this setting the driver deletes only the directory of a dead driver.
    "aeron.dir.delete.on.start" => dir_delete_on_start: bool = false, Bool;
    /// Delete the directory, and every file in it, when the driver stops in order.
    "aeron.dir.delete.on.shutdown" => dir_delete_on_shutdown: bool = false, Bool;
    /// Print a warning at the start if the directory exists.
    "aeron.dir.warn.if.exists" => dir_warn_if_exists: bool = false, Bool;
    /// Another driver in the directory counts as dead when its heartbeat is older than this; one of Headrace that was
    /// killed, at once.
    "aeron.driver.timeout" => driver_timeout_ms: i64 = 10_000, Milliseconds { min: 0, max: i64::MAX / 1_000_000 };
    /// Whether a client may ask the driver to stop.
    "aeron.driver.termination.validator" =>
        termination_validator: TerminationValidator = TerminationValidator::Deny, TERMINATION;
    /// Print every setting at the start (`headraced` only).
    "aeron.print.configuration" => print_configuration: bool = false, Bool;
    /// Where the driver writes the first error that the error log has no room for; it only counts later ones.
    "aeron.fallback.logger" => fallback_logger: FallbackLogger = FallbackLogger::Stderr, FALLBACK_LOGGER;
    /// Replaces the liveness time-outs of clients and images, and the connection and unblock time-outs of publications,
    /// if a debugger is attached when the driver starts.
    "aeron.debug.timeout" => debug_timeout_ns: Option<i64> = None, OptionalDuration;
    /// Refuse to create a log for which the file system has no room.
    "aeron.perform.storage.checks" => perform_storage_checks: bool = true, Bool;
    /// With less free space for logs than this, the driver warns in the error log and allocates sparse logs in full.
    "aeron.low.file.store.warning.threshold" =>
        low_file_store_warning_threshold_bytes: usize = 160 * MIB, ANY_SIZE;
    /// The length of each file is a multiple of this.
    "aeron.file.page.size" =>
        file_page_size_bytes: usize = 4 * KIB, PowerOfTwo(Size { min: 4 * KIB, max: GIB });
    /// How many logs the driver deletes in one turn.
    "aeron.driver.resource.free.limit" => resource_free_limit: usize = 1, COUNT;

    // Command, counter and report buffers.
    /// Size of the ring for commands of clients.
    "aeron.conductor.buffer.length" =>
        conductor_buffer_length: usize = MIB + RING_TRAILER_LENGTH, ring_length(RING_TRAILER_LENGTH);
    /// Size of the buffer for answers to clients.
    "aeron.clients.buffer.length" =>
        clients_buffer_length: usize = MIB + BROADCAST_TRAILER_LENGTH, ring_length(BROADCAST_TRAILER_LENGTH);
    /// Room for counter values, 128 bytes each; labels take four times as much besides.
    "aeron.counters.buffer.length" =>
        counters_buffer_length: usize = 8 * MIB, Size { min: MIB, max: 500 * MIB };
    /// Room for distinct errors in the error log.
    "aeron.error.buffer.length" => error_buffer_length: usize = 4 * MIB, Size { min: 4 * MIB, max: I32_MAX };
    /// Room for the entries of `headrace loss`.
    "aeron.loss.report.buffer.length" =>
        loss_report_buffer_length: usize = MIB, Size { min: KIB, max: I32_MAX };
    /// How long the driver leaves a freed counter unused, so that readers do not confuse it with the next one.
    "aeron.counters.free.to.reuse.timeout" => counters_free_to_reuse_timeout_ns: i64 = SECOND, INTERVAL;

    // Terms, MTU, windows.
    /// Length of a term of a UDP stream; a log holds three. The longest message is an eighth of it, and 16 MiB at most.
    "aeron.term.buffer.length" => term_buffer_length: usize = 16 * MIB, TERM_LENGTH;
    /// As `aeron.term.buffer.length`, for IPC.
    "aeron.ipc.term.buffer.length" => ipc_term_buffer_length: usize = 64 * MIB, TERM_LENGTH;
    /// Whether log files take memory only as they are written.
    "aeron.term.buffer.sparse.file" => term_buffer_sparse_file: bool = true, Bool;
    /// Longest datagram without its UDP header, at most the network's MTU less 28; longer messages become several.
    "aeron.mtu.length" => mtu_length: usize = 1408, Mtu;
    /// Longest frame over IPC, header included; longer messages become several.
    "aeron.ipc.mtu.length" => ipc_mtu_length: usize = 1408, Mtu;
    /// How far a publisher may be ahead of the sender; 0: half a term.
    "aeron.publication.term.window.length" => publication_term_window_length: usize = 0, WINDOW;
    /// How far an IPC publisher may be ahead of its slowest subscriber; 0: half a term.
    "aeron.ipc.publication.term.window.length" => ipc_publication_term_window_length: usize = 0, WINDOW;
    /// Most bytes that a sender may have on the way to a receiver.
    "aeron.rcv.initial.window.length" =>
        receiver_initial_window_length: usize = 128 * KIB, Size { min: 256, max: I32_MAX };
    /// As `aeron.rcv.initial.window.length`, for a sender on the receiver's host: up to half the receive buffer granted
    /// and half a term, and in groups only for senders of Headrace with flow control min or tagged. `rcv-wnd`, or that
    /// setting if given, replaces it; 0 turns it off.
    "aeron.headrace.rcv.local.window.length" =>
        receiver_local_window_length: usize = 2 * MIB, Size { min: 0, max: I32_MAX };

    // Sockets and transport.
    /// Receive buffer of each socket, not less than the receiver's window; 0: the kernel's default. If it is not set,
    /// sockets also ask for room for the window of senders on this host.
    "aeron.socket.so_rcvbuf" => socket_receive_buffer_length: usize = 128 * KIB, SOCKET_BUFFER;
    /// Send buffer of each socket; 0: the kernel's default.
    "aeron.socket.so_sndbuf" => socket_send_buffer_length: usize = 0, SOCKET_BUFFER;
    /// Time to live of datagrams to groups whose channel has no `ttl`; 0: the kernel's default, 1, with which they pass
    /// no router.
    "aeron.socket.multicast.ttl" => socket_multicast_ttl: u8 = 0, Int { min: 0, max: u8::MAX };
    /// First and last port for publications whose `control` address has port 0; `0 0` lets the kernel choose. The
    /// driver skips ports that other programs hold, at most 1,000 for one channel.
    "aeron.sender.wildcard.port.range" => sender_wildcard_port_range: PortRange = PortRange::default(), Ports;
    /// As `aeron.sender.wildcard.port.range`, for subscriptions whose `endpoint` has port 0; a port in both ranges
    /// serves only one of them.
    "aeron.receiver.wildcard.port.range" =>
        receiver_wildcard_port_range: PortRange = PortRange::default(), Ports;
    /// Whether the socket of a publication with one endpoint takes status messages from that address alone, not from
    /// others of the same machine.
    "aeron.driver.connect" => connects_sockets: bool = true, Bool;
    /// Most datagrams in one receive call, where the kernel does not join them.
    "aeron.receiver.io.vector.capacity" => receiver_io_vector_capacity: usize = 16, VECTOR;
    /// Most datagrams in one send call; unset: as many as are ready.
    "aeron.sender.io.vector.capacity" => sender_io_vector_capacity: Option<usize> = None, Optional(VECTOR);
    /// Most datagrams of a publication before the next one has its turn; unset: 128 KiB.
    "aeron.network.publication.max.messages.per.send" =>
        max_messages_per_send: Option<usize> = None, Optional(VECTOR);

    /// While it sends, the sender reads status messages once in this number of turns.
    "aeron.send.to.status.poll.ratio" => send_to_status_poll_ratio: usize = 6, Int { min: 1, max: 255 };

    // Loss on purpose, for tests.
    /// For tests: a list with commas of `loss`, `fixed-loss` and `multi-gap-loss`, which drop datagrams that arrive.
    "aeron.udp.channel.incoming.interceptors" => incoming_interceptors: Option<String> = None, OptionalText;
    /// Takes the same names and has no effect: interceptors drop only datagrams that arrive.
    "aeron.udp.channel.outgoing.interceptors" => outgoing_interceptors: Option<String> = None, OptionalText;
    /// For `loss`, separated by bars: `rate=` from 0 to 1, `seed=`, and `recv-msg-mask=`, a hexadecimal bit for each
    /// type of frame.
    "aeron.udp.channel.transport.bindings.loss.args" => loss_args: Option<String> = None, OptionalText;
    /// For `fixed-loss`, separated by bars: `term-id=`, `term-offset=` and `length=` of the bytes to drop when they
    /// first arrive.
    "aeron.udp.channel.transport.bindings.fixed.loss.args" =>
        fixed_loss_args: Option<String> = None, OptionalText;
    /// For `multi-gap-loss`, separated by bars: `term-id=`, `gap-radix=`, `gap-length=` and `total-gaps=` of the bytes
    /// to drop when they first arrive.
    "aeron.udp.channel.transport.bindings.multi.gap.loss.args" =>
        multi_gap_loss_args: Option<String> = None, OptionalText;
    /// For tests: the `Debug` supplier applies the `aeron.debug.send` loss rates.
    "aeron.SendChannelEndpoint.supplier" =>
        send_channel_endpoints: ChannelEndpoints = ChannelEndpoints::Default, SEND_ENDPOINTS;
    /// For tests: the `Debug` supplier applies the `aeron.debug.receive` loss rates.
    "aeron.ReceiveChannelEndpoint.supplier" =>
        receive_channel_endpoints: ChannelEndpoints = ChannelEndpoints::Default, RECEIVE_ENDPOINTS;
    /// For tests, with the `Debug` supplier: part of the data, SETUPs and heartbeats that the driver drops as
    /// publications send them, 0.0 to 1.0.
    "aeron.debug.send.data.loss.rate" => debug_send_data_loss_rate: Option<String> = None, OptionalText;
    /// The same seed drops the same frames; -1: others each time.
    "aeron.debug.send.data.loss.seed" => debug_send_data_loss_seed: i64 = -1, ANY_I64;
    /// As `aeron.debug.send.data.loss.rate`, for status messages, NAKs and error frames that publications receive.
    "aeron.debug.send.control.loss.rate" => debug_send_control_loss_rate: Option<String> = None, OptionalText;
    /// As `aeron.debug.send.data.loss.seed`.
    "aeron.debug.send.control.loss.seed" => debug_send_control_loss_seed: i64 = -1, ANY_I64;
    /// As `aeron.debug.send.data.loss.rate`, for data, SETUPs and heartbeats that subscriptions receive.
    "aeron.debug.receive.data.loss.rate" => debug_receive_data_loss_rate: Option<String> = None, OptionalText;
    /// As `aeron.debug.send.data.loss.seed`.
    "aeron.debug.receive.data.loss.seed" => debug_receive_data_loss_seed: i64 = -1, ANY_I64;
    /// As `aeron.debug.send.data.loss.rate`, for status messages, NAKs and error frames that subscriptions send.
    "aeron.debug.receive.control.loss.rate" => debug_receive_control_loss_rate: Option<String> = None, OptionalText;
    /// As `aeron.debug.send.data.loss.seed`.
    "aeron.debug.receive.control.loss.seed" => debug_receive_control_loss_seed: i64 = -1, ANY_I64;

    // Liveness and timers.
    /// How often the driver checks time-outs.
    "aeron.timer.interval" => timer_interval_ns: i64 = SECOND, TIMEOUT;
    /// A client without a heartbeat for this time is dead; the driver releases its publications, subscriptions and
    /// counters.
    "aeron.client.liveness.timeout" => client_liveness_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// An image that receives nothing for this time ends.
    "aeron.image.liveness.timeout" => image_liveness_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// A claim that its publisher does not finish in this time becomes padding.
    "aeron.publication.unblock.timeout" => publication_unblock_timeout_ns: i64 = 15 * SECOND, TIMEOUT;
    /// A publication that no receiver answers for this time is no longer connected.
    "aeron.publication.connection.timeout" => publication_connection_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// How long the driver keeps the log of a closed publication, for receivers that ask for lost data.
    "aeron.publication.linger.timeout" => publication_linger_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// An untethered subscriber that is slower than another reader and holds the publisher back for this time loses its
    /// image.
    "aeron.untethered.window.limit.timeout" => untethered_window_limit_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// How long an untethered subscriber that lost its image may still read the rest; -1: as long as
    /// `aeron.untethered.window.limit.timeout`.
    "aeron.untethered.linger.timeout" => untethered_linger_timeout_ns: Option<i64> = None, OptionalDuration;
    /// How long such a subscriber then waits for its next image.
    "aeron.untethered.resting.timeout" => untethered_resting_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// A receiver reports its position at least this often.
    "aeron.rcv.status.message.timeout" =>
        receiver_status_message_timeout_ns: i64 = 200 * MILLISECOND, TIMEOUT;

    // Loss handling.
    /// How long a receiver waits before it asks for lost data; set it higher where the network reorders.
    "aeron.nak.unicast.delay" => nak_unicast_delay_ns: i64 = MICROSECOND, TIMEOUT;
    /// A receiver asks again after `aeron.nak.unicast.delay` times this number.
    "aeron.nak.unicast.retry.delay.ratio" =>
        nak_unicast_retry_delay_ratio: i64 = 100, Int { min: 1, max: i32::MAX as i64 };
    /// Expected number of receivers in a group, for the random delay of their NAKs.
    "aeron.nak.multicast.group.size" => nak_multicast_group_size: usize = 10, COUNT;
    /// Longest random delay of a NAK in a group.
    "aeron.nak.multicast.max.backoff" => nak_multicast_max_backoff_ns: i64 = 10 * MILLISECOND, TIMEOUT;
    /// How long the sender waits before it sends lost data again.
    "aeron.retransmit.unicast.delay" => retransmit_unicast_delay_ns: i64 = 0, INTERVAL;
    /// How long the sender then ignores further requests for the same data.
    "aeron.retransmit.unicast.linger" => retransmit_unicast_linger_ns: i64 = 10 * MILLISECOND, TIMEOUT;
    /// Whether NAKs and repairs follow the measured round trip and the number of receivers. Delays that are set, also
    /// by `nak-delay`, stay fixed.
    "aeron.headrace.loss.adaptive" => adaptive_loss: bool = true, Bool;
    /// How many repairs the sender does at a time for a stream whose receivers form a group; for others it does one.
    "aeron.max.resend" => resend_max: usize = 16, Int { min: 1, max: 256 };

    // Stream policy defaults.
    /// Whether receivers ask for lost data (true) or skip it (false), so that messages are missing.
    "aeron.reliable.stream" => reliable_stream: bool = true, Bool;
    /// Whether a slow subscriber holds its publisher back (true) or loses its image (false).
    "aeron.tether.subscriptions" => tether_subscriptions: bool = true, Bool;
    /// Whether a subscription accepts a stream again after its image ended.
    "aeron.rejoin.stream" => rejoin_stream: bool = true, Bool;
    /// Whether a spy alone keeps a publication connected.
    "aeron.spies.simulate.connection" => spies_simulate_connection: bool = false, Bool;
    /// Whether a stream's receivers behave as a group; `infer`: as the channel suggests.
    "aeron.receiver.group.consideration" =>
        receiver_group_consideration: GroupConsideration = GroupConsideration::Infer, Group;
    /// First of the session ids that the driver never chooses itself.
    "aeron.publication.reserved.session.id.low" => publication_reserved_session_id_low: i32 = -1, ANY_I32;
    /// Last of the session ids that the driver never chooses itself: at most half of all ids.
    "aeron.publication.reserved.session.id.high" => publication_reserved_session_id_high: i32 = 1000, ANY_I32;
    /// Most sessions of one stream at one endpoint.
    "aeron.driver.stream.session.limit" => stream_session_limit: usize = I32_MAX, COUNT;

    // Not of the reference driver: what strangers may cost.
    /// Most images of publishers on other hosts; the driver refuses a further SETUP, with an entry in the error log,
    /// and the publisher repeats it.
    "aeron.headrace.image.limit" => image_limit: usize = 1024, COUNT;
    /// Most bytes of the logs of these images; on a small `/dev/shm` set it lower, so that forged SETUPs leave room for
    /// your publications.
    "aeron.headrace.image.memory.limit" => image_memory_limit: usize = 4 * GIB, Size { min: SMALLEST_LOG_LENGTH, max: usize::MAX >> 1 };
    /// Bytes a second that a channel with `control-mode=dynamic` may send to each address that asks for its streams, beyond
    /// three times what came from it, until it has one. 4k tells a receiver of 131 streams at once.
    "aeron.headrace.newcomer.allowance" => newcomer_allowance: usize = 4 * KIB, Size { min: 0, max: MIB };

    /// How many of the newest changes of state the event log keeps, 256 bytes each; 0: no event log.
    "aeron.headrace.event.limit" => event_limit: usize = 1024, EVENTS;

    // Flow and congestion control.
    /// For one request the sender repeats at most this number times 128 KiB, or times half a term if that is less.
    "aeron.unicast.flow.control.rrwm" => unicast_flow_control_rrwm: usize = 16, COUNT;
    /// The receiver that a publication to a group without `fc` keeps pace with: the fastest (multicast_max), the
    /// slowest (multicast_min), or the slowest with the group's tag (multicast_tagged).
    "aeron.multicast.FlowControl.supplier" =>
        multicast_flow_control: FlowControlStrategy = FlowControlStrategy::Max, MULTICAST_FLOW_CONTROL;
    /// How far a publication to one receiver may go: as that receiver has room (unicast_max), or as if it were in a
    /// group.
    "aeron.unicast.FlowControl.supplier" =>
        unicast_flow_control: UnicastFlowControl = UnicastFlowControl::Unicast, UNICAST_FLOW_CONTROL;
    /// As `aeron.unicast.flow.control.rrwm`, for groups.
    "aeron.multicast.flow.control.rrwm" => multicast_flow_control_rrwm: usize = 4, COUNT;
    /// Tag of the receivers that count for tagged flow control.
    "aeron.flow.control.group.tag" => flow_control_group_tag: i64 = -1, ANY_I64;
    /// How many receivers min and tagged flow control need before the publication is connected.
    "aeron.flow.control.group.min.size" => flow_control_group_min_size: usize = 0, CountOrNone { max: I32_MAX };
    /// A receiver that is silent for this time no longer counts for min and tagged flow control.
    "aeron.flow.control.receiver.timeout" => flow_control_receiver_timeout_ns: i64 = 5 * SECOND, INTERVAL;
    /// Tag that this driver's receivers report, for tagged flow control.
    "aeron.receiver.group.tag" => receiver_group_tag: Option<i64> = None, OptionalInt64;

    /// How the window of a receiver changes: as the channel's `cc` says (default), or static or cubic for every image.
    "aeron.CongestionControl.supplier" =>
        congestion_control: Option<CongestionControlKind> = None, CONGESTION_CONTROL;
    /// Whether cubic congestion control measures the round trip.
    "aeron.CubicCongestionControl.measureRtt" => cubic_measure_rtt: bool = false, Bool;
    /// Round trip that cubic congestion control assumes until it has measured one.
    "aeron.CubicCongestionControl.initialRtt" => cubic_initial_rtt_ns: i64 = 100 * MICROSECOND, TIMEOUT;
    /// Whether cubic congestion control grows at least as fast as TCP's classic one.
    "aeron.CubicCongestionControl.tcpMode" => cubic_tcp_mode: bool = false, Bool;

    // Name resolution.
    /// Name by which channels of other drivers find this one.
    "aeron.driver.resolver.name" => resolver_name: Option<String> = None, OptionalText;
    /// `address[:port][/prefix]` or `{name}[:port]` of the socket through which drivers exchange names and addresses,
    /// so that channels may name drivers as hosts. Needs `aeron.driver.resolver.name`.
    "aeron.driver.resolver.interface" => resolver_interface: Option<String> = None, OptionalText;
    /// Drivers that this one announces itself to first: up to 20 of `host:port`, with commas.
    "aeron.driver.resolver.bootstrap.neighbor" =>
        resolver_bootstrap_neighbor: Option<String> = None, OptionalText;
    /// The driver forgets another driver, with its name, that is silent for this time.
    "aeron.driver.resolver.neighbor.timeout" =>
        resolver_neighbor_timeout_ns: i64 = 10 * SECOND, GOSSIP_INTERVAL;
    /// How often the driver announces its own name.
    "aeron.driver.resolver.self.resolution.interval" =>
        resolver_self_resolution_interval_ns: i64 = SECOND, GOSSIP_INTERVAL;
    /// How often the driver announces all names that it knows.
    "aeron.driver.resolver.neighbor.resolution.interval" =>
        resolver_neighbor_resolution_interval_ns: i64 = 2 * SECOND, GOSSIP_INTERVAL;
    /// How often the driver looks up silent bootstrap neighbors again.
    "aeron.driver.resolver.bootstrap.neighbor.resolution.interval" =>
        resolver_bootstrap_neighbor_resolution_interval_ns: i64 = 10 * SECOND, GOSSIP_INTERVAL;
    /// Where the driver looks up names before it asks name servers: at other drivers if it has a resolver interface
    /// (default), the same with the interface required (driver), or in a table for tests (csv_table).
    "aeron.name.resolver.supplier" =>
        name_resolver: NameResolver = NameResolver::Default, NAME_RESOLVER;
    /// The table for tests: rows of `name,host,other host` separated by bars; a counter of each row says which host it
    /// is.
    "aeron.name.resolver.init.args" => name_resolver_init_args: Option<String> = None, OptionalText;
    /// After half this time without an answer, 500 ms at least, the driver looks a name up again, and as often after
    /// that; 0: never.
    "aeron.driver.reresolution.check.interval" => reresolution_check_interval_ns: i64 = SECOND, INTERVAL;
    /// The driver counts and logs name lookups that take longer.
    "aeron.name.resolver.threshold" => name_resolver_threshold_ns: i64 = 5 * SECOND, INTERVAL;

    // Threads, idling, affinity.
    /// Threads of the driver: one each for conductor, sender and receiver (DEDICATED), one for sender and receiver
    /// (SHARED_NETWORK), one for all (SHARED), or the program's (INVOKER). Unset: DEDICATED; where a container or
    /// affinity mask leaves two processors SHARED_NETWORK, and with fewer SHARED.
    "aeron.threading.mode" => threading_mode: Option<ThreadingMode> = None, THREADING_MODES;
    /// Names of the driver's threads.
    "aeron.thread.naming" => thread_naming: ThreadNaming = ThreadNaming::Classic, THREAD_NAMING;
    /// How the conductor's thread waits for work.
    "aeron.conductor.idle.strategy" => conductor_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.conductor.idle.strategy.init.args" =>
        conductor_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// How the sender's thread waits for work.
    "aeron.sender.idle.strategy" => sender_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.sender.idle.strategy.init.args" =>
        sender_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// How the receiver's thread waits for work.
    "aeron.receiver.idle.strategy" => receiver_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.receiver.idle.strategy.init.args" =>
        receiver_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// How the thread of sender and receiver waits for work in mode SHARED_NETWORK.
    "aeron.sharednetwork.idle.strategy" =>
        shared_network_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.sharednetwork.idle.strategy.init.args" =>
        shared_network_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// How the only thread waits for work in mode SHARED.
    "aeron.shared.idle.strategy" => shared_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.shared.idle.strategy.init.args" =>
        shared_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// How the thread that creates and deletes logs waits for work.
    "aeron.driver.native.resource.agent.idle.strategy" =>
        resource_agent_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of that strategy.
    "aeron.driver.native.resource.agent.idle.strategy.init.args" =>
        resource_agent_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// Processor of the conductor's thread, in mode SHARED of the only one; -1: any.
    "aeron.conductor.cpu.affinity" => conductor_cpu_affinity: i32 = -1, CPU;
    /// Processor of the sender's thread, in mode SHARED_NETWORK of the receiver's too; -1: any.
    "aeron.sender.cpu.affinity" => sender_cpu_affinity: i32 = -1, CPU;
    /// Processor of the receiver's thread; -1: any.
    "aeron.receiver.cpu.affinity" => receiver_cpu_affinity: i32 = -1, CPU;
    /// Processor of the thread that creates and deletes logs; -1: any.
    "aeron.driver.native.resource.agent.cpu.affinity" => resource_agent_cpu_affinity: i32 = -1, CPU;
    /// Whether `aeron.sender.cpu.affinity` and its like count from 0 the processors that the driver may use, so that
    /// the same numbers work in each container, or those of the machine.
    "aeron.driver.cpuset.affinity" => cpuset_affinity: bool = false, Bool;
    /// Whether the driver refuses to start where `aeron.driver.cpuset.affinity` warns in the error log: of threads
    /// bound to processors that share no cache, or whose core other programs may use.
    "aeron.driver.cpuset.warnings_as_errors" => cpuset_warnings_as_errors: bool = false, Bool;
    /// The driver counts turns of the conductor that take longer.
    "aeron.driver.conductor.cycle.threshold" =>
        conductor_cycle_threshold_ns: i64 = 100 * MILLISECOND, INTERVAL;
    /// The driver counts turns of the sender that take longer.
    "aeron.driver.sender.cycle.threshold" => sender_cycle_threshold_ns: i64 = 100 * MILLISECOND, INTERVAL;
    /// The driver counts turns of the receiver that take longer.
    "aeron.driver.receiver.cycle.threshold" => receiver_cycle_threshold_ns: i64 = 100 * MILLISECOND, INTERVAL;

    beside {
        /// Commit that the program was built from, for the labels that say it. Not known here: a library is not built
        /// anew for a commit that leaves it as it was.
        commit: &'static str = "unknown";
        /// One sentence for each name of the environment or of a file that looks like a misspelt setting.
        misspelt: Vec<String> = Vec::new();
        /// One sentence for each setting of Aeron's drivers that was given and has no effect, by its property.
        noted: BTreeMap<&'static str, String> = BTreeMap::new();
    }
}
