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
    /// Delete the directory, and every file in it, before starting, without a check: even if another driver runs
    /// there, or the files are not a driver's. Without this setting the driver deletes only the directory of a dead
    /// driver.
    "aeron.dir.delete.on.start" => dir_delete_on_start: bool = false, Bool;
    /// Delete the directory, and every file in it, when the driver stops in order.
    "aeron.dir.delete.on.shutdown" => dir_delete_on_shutdown: bool = false, Bool;
    /// Print a warning at the start if the directory exists.
    "aeron.dir.warn.if.exists" => dir_warn_if_exists: bool = false, Bool;
    /// How old the heartbeat of another driver in the directory may be before that driver counts as dead. A
    /// driver of Headrace that was killed counts as dead at once.
    "aeron.driver.timeout" => driver_timeout_ms: i64 = 10_000, Milliseconds { min: 0, max: i64::MAX / 1_000_000 };
    /// Whether a client may ask the driver to stop: allow or deny.
    "aeron.driver.termination.validator" =>
        termination_validator: TerminationValidator = TerminationValidator::Deny, TERMINATION;
    /// Print every setting at the start; only `headraced` does.
    "aeron.print.configuration" => print_configuration: bool = false, Bool;
    /// Print each change of state of the driver and of what it has, while it runs: `admin` or `all`, or a list of `driver`,
    /// `client`, `publication`, `connection`, `subscription`, `image`, `link` and `channel`; unset or 0: none. The name of an event
    /// of Aeron's drivers stands for what it is about, and a number for all. A thread of its own prints, in a driver embedded in
    /// a program too.
    "aeron.event.log" => event_log: Option<String> = None, OptionalText;
    /// Kinds of events that are not printed although `aeron.event.log` asks for them; written as for `aeron.event.log`.
    "aeron.event.log.disable" => event_log_disable: Option<String> = None, OptionalText;
    /// The file to which the driver appends the events of `aeron.event.log`; unset: standard output.
    "aeron.event.log.filename" => event_log_filename: Option<String> = None, OptionalText;
    /// When the file of `aeron.event.log.filename` reaches this length, the driver renames it to `NAME.1`, **replaces an older `NAME.1`**, and begins a new file.
    "aeron.event.log.file.max.length" => event_log_file_max_length: usize = ANY_SIZE.max, ANY_SIZE;
    /// Where an error goes that the error log has no room for: stderr, stdout or no_op. Only the first goes there; later ones
    /// are counted.
    "aeron.fallback.logger" => fallback_logger: FallbackLogger = FallbackLogger::Stderr, FALLBACK_LOGGER;
    /// The liveness time-outs of clients and images, and the connection and unblock time-outs of publications, if a debugger is
    /// attached to the driver when it starts; unset: what their own settings say. The simulated world knows no debugger.
    "aeron.debug.timeout" => debug_timeout_ns: Option<i64> = None, OptionalDuration;
    /// Refuse to create a log for which the file system has no room.
    "aeron.perform.storage.checks" => perform_storage_checks: bool = true, Bool;
    /// With less free space than this where logs are made, the driver warns in the error log, and allocates
    /// sparse logs in full.
    "aeron.low.file.store.warning.threshold" =>
        low_file_store_warning_threshold_bytes: usize = 160 * MIB, ANY_SIZE;
    /// Files are as long as a multiple of this.
    "aeron.file.page.size" =>
        file_page_size_bytes: usize = 4 * KIB, PowerOfTwo(Size { min: 4 * KIB, max: GIB });
    /// How many logs the driver deletes in one turn.
    "aeron.driver.resource.free.limit" => resource_free_limit: usize = 1, COUNT;

    // Command, counter and report buffers.
    /// Size of the ring in which clients send their commands.
    "aeron.conductor.buffer.length" =>
        conductor_buffer_length: usize = MIB + RING_TRAILER_LENGTH, ring_length(RING_TRAILER_LENGTH);
    /// Size of the broadcast buffer in which the driver answers its clients.
    "aeron.clients.buffer.length" =>
        clients_buffer_length: usize = MIB + BROADCAST_TRAILER_LENGTH, ring_length(BROADCAST_TRAILER_LENGTH);
    /// Room for counter values, 128 bytes each; labels take four times as much beside it.
    "aeron.counters.buffer.length" =>
        counters_buffer_length: usize = 8 * MIB, Size { min: MIB, max: 500 * MIB };
    /// Room for distinct errors in the error log.
    "aeron.error.buffer.length" => error_buffer_length: usize = 4 * MIB, Size { min: 4 * MIB, max: I32_MAX };
    /// Room for the entries of `headrace loss`.
    "aeron.loss.report.buffer.length" =>
        loss_report_buffer_length: usize = MIB, Size { min: KIB, max: I32_MAX };
    /// How long a freed counter is not used again, so that readers do not take the next counter for it.
    "aeron.counters.free.to.reuse.timeout" => counters_free_to_reuse_timeout_ns: i64 = SECOND, INTERVAL;

    // Terms, MTU, windows.
    /// Length of a term of a UDP stream; a log holds three. A message may be an eighth of it, at most 16 MiB.
    "aeron.term.buffer.length" => term_buffer_length: usize = 16 * MIB, TERM_LENGTH;
    /// Length of a term of an IPC stream; a log holds three. A message may be an eighth of it, at most 16 MiB.
    "aeron.ipc.term.buffer.length" => ipc_term_buffer_length: usize = 64 * MIB, TERM_LENGTH;
    /// Whether logs take memory only as publishers and receivers write them.
    "aeron.term.buffer.sparse.file" => term_buffer_sparse_file: bool = true, Bool;
    /// Longest datagram without its UDP header; longer messages become several. At most the network's MTU less 28.
    "aeron.mtu.length" => mtu_length: usize = 1408, Mtu;
    /// Longest frame, header included, over shared memory; longer messages become several frames.
    "aeron.ipc.mtu.length" => ipc_mtu_length: usize = 1408, Mtu;
    /// How far a publisher may be ahead of the sender; 0: half a term.
    "aeron.publication.term.window.length" => publication_term_window_length: usize = 0, WINDOW;
    /// How far an IPC publisher may be ahead of its slowest subscriber; 0: half a term.
    "aeron.ipc.publication.term.window.length" => ipc_publication_term_window_length: usize = 0, WINDOW;
    /// How much a sender may have on the way to a receiver, at most.
    "aeron.rcv.initial.window.length" =>
        receiver_initial_window_length: usize = 128 * KIB, Size { min: 256, max: I32_MAX };
    /// As `aeron.rcv.initial.window.length`, for a sender on the receiver's own host, where no network can overflow: at most this, half of
    /// the receive buffer that the system grants, and half a term. In groups it applies only to senders whose driver is Headrace's and whose
    /// flow control is min or tagged.
    /// Where aeron.rcv.initial.window.length or rcv-wnd of the channel is set, that goes for all senders. 0: no sender is treated
    /// as being on this host.
    "aeron.headrace.rcv.local.window.length" =>
        receiver_local_window_length: usize = 2 * MIB, Size { min: 0, max: I32_MAX };

    // Sockets and transport.
    /// Receive buffer of each socket; 0 keeps the kernel's default. Not less than the receiver's window. With the default, sockets
    /// also ask for room for the window of senders on this host, and take what the system grants.
    "aeron.socket.so_rcvbuf" => socket_receive_buffer_length: usize = 128 * KIB, SOCKET_BUFFER;
    /// Send buffer of each socket; 0 keeps the kernel's default.
    "aeron.socket.so_sndbuf" => socket_send_buffer_length: usize = 0, SOCKET_BUFFER;
    /// Time to live of datagrams to multicast groups whose channel gives none; 0 keeps the kernel's default, 1, with which
    /// they pass no router.
    "aeron.socket.multicast.ttl" => socket_multicast_ttl: u8 = 0, Int { min: 0, max: u8::MAX };
    /// Ports for `control` addresses of publications with port 0: first and last; other publications have a port of the kernel's choice. 0 0 lets
    /// the kernel choose all. The driver passes over ports of the range that other programs hold, at most 1,000 for one channel.
    "aeron.sender.wildcard.port.range" => sender_wildcard_port_range: PortRange = PortRange::default(), Ports;
    /// As `aeron.sender.wildcard.port.range`, for the `endpoint` of subscriptions with port 0. A port that is in both ranges is free for one of them only.
    "aeron.receiver.wildcard.port.range" =>
        receiver_wildcard_port_range: PortRange = PortRange::default(), Ports;
    /// Whether the socket of a publication with one endpoint is connected to it. A connected socket takes status messages
    /// from that address alone; without a connection they may come from another address of the same machine.
    "aeron.driver.connect" => connects_sockets: bool = true, Bool;
    /// How many datagrams one system call may receive, where the kernel does not join them.
    "aeron.receiver.io.vector.capacity" => receiver_io_vector_capacity: usize = 16, VECTOR;
    /// How many datagrams one system call may send; unset: as many as are ready.
    "aeron.sender.io.vector.capacity" => sender_io_vector_capacity: Option<usize> = None, Optional(VECTOR);
    /// How many datagrams of a publication the sender sends before the next publication has its turn; unset: 128 KiB.
    "aeron.network.publication.max.messages.per.send" =>
        max_messages_per_send: Option<usize> = None, Optional(VECTOR);

    /// While it sends, the sender looks for status messages once in this number of turns.
    "aeron.send.to.status.poll.ratio" => send_to_status_poll_ratio: usize = 6, Int { min: 1, max: 255 };

    // Loss on purpose, for tests.
    /// What drops datagrams on purpose as they arrive, at every socket: loss, fixed-loss, multi-gap-loss, separated by
    /// commas. For tests.
    "aeron.udp.channel.incoming.interceptors" => incoming_interceptors: Option<String> = None, OptionalText;
    /// As `aeron.udp.channel.incoming.interceptors`, for datagrams that leave: those pass all of them.
    "aeron.udp.channel.outgoing.interceptors" => outgoing_interceptors: Option<String> = None, OptionalText;
    /// What loss drops: rate=, from 0 to 1, seed= and recv-msg-mask=, a hexadecimal bit for each type of frame, separated by
    /// bars.
    "aeron.udp.channel.transport.bindings.loss.args" => loss_args: Option<String> = None, OptionalText;
    /// What fixed-loss drops when it is sent first: term-id=, term-offset= and length=, separated by bars.
    "aeron.udp.channel.transport.bindings.fixed.loss.args" =>
        fixed_loss_args: Option<String> = None, OptionalText;
    /// What multi-gap-loss drops when it is sent first: term-id=, gap-radix=, gap-length= and total-gaps=, separated by bars.
    "aeron.udp.channel.transport.bindings.multi.gap.loss.args" =>
        multi_gap_loss_args: Option<String> = None, OptionalText;
    /// `io.aeron.driver.ext.DebugSendChannelEndpointSupplier`: sockets lose what `aeron.debug.send.data.loss.rate` and
    /// `aeron.debug.send.control.loss.rate` say.
    "aeron.SendChannelEndpoint.supplier" =>
        send_channel_endpoints: ChannelEndpoints = ChannelEndpoints::Default, SEND_ENDPOINTS;
    /// `io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier`: sockets lose what `aeron.debug.receive.data.loss.rate` and
    /// `aeron.debug.receive.control.loss.rate` say.
    "aeron.ReceiveChannelEndpoint.supplier" =>
        receive_channel_endpoints: ChannelEndpoints = ChannelEndpoints::Default, RECEIVE_ENDPOINTS;
    /// Part of the data, SETUPs and heartbeats that publications send and that is lost on purpose, 0.0 to 1.0; for tests, and only with
    /// the supplier for debugging.
    "aeron.debug.send.data.loss.rate" => debug_send_data_loss_rate: Option<String> = None, OptionalText;
    /// Which frames `aeron.debug.send.data.loss.rate` loses: the same seed loses the same ones; -1: other ones each time.
    "aeron.debug.send.data.loss.seed" => debug_send_data_loss_seed: i64 = -1, ANY_I64;
    /// Part of the status messages, NAKs and error frames that publications receive, lost on purpose as with `aeron.debug.send.data.loss.rate`.
    "aeron.debug.send.control.loss.rate" => debug_send_control_loss_rate: Option<String> = None, OptionalText;
    /// Which frames `aeron.debug.send.control.loss.rate` loses, as `aeron.debug.send.data.loss.seed` says.
    "aeron.debug.send.control.loss.seed" => debug_send_control_loss_seed: i64 = -1, ANY_I64;
    /// Part of the data, SETUPs and heartbeats that subscriptions receive, lost on purpose as with `aeron.debug.send.data.loss.rate`.
    "aeron.debug.receive.data.loss.rate" => debug_receive_data_loss_rate: Option<String> = None, OptionalText;
    /// Which frames `aeron.debug.receive.data.loss.rate` loses, as `aeron.debug.send.data.loss.seed` says.
    "aeron.debug.receive.data.loss.seed" => debug_receive_data_loss_seed: i64 = -1, ANY_I64;
    /// Part of the status messages, NAKs and error frames that subscriptions send, lost on purpose as with `aeron.debug.send.data.loss.rate`.
    "aeron.debug.receive.control.loss.rate" => debug_receive_control_loss_rate: Option<String> = None, OptionalText;
    /// Which frames `aeron.debug.receive.control.loss.rate` loses, as `aeron.debug.send.data.loss.seed` says.
    "aeron.debug.receive.control.loss.seed" => debug_receive_control_loss_seed: i64 = -1, ANY_I64;

    // Liveness and timers.
    /// How often the driver checks time-outs.
    "aeron.timer.interval" => timer_interval_ns: i64 = SECOND, TIMEOUT;
    /// The driver treats a client without a heartbeat for this time as dead, and releases its publications,
    /// subscriptions and counters.
    "aeron.client.liveness.timeout" => client_liveness_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// An image that receives nothing for this time ends.
    "aeron.image.liveness.timeout" => image_liveness_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// A claim that its publisher does not finish within this time becomes padding.
    "aeron.publication.unblock.timeout" => publication_unblock_timeout_ns: i64 = 15 * SECOND, TIMEOUT;
    /// A publication that no receiver has answered for this time is no longer connected.
    "aeron.publication.connection.timeout" => publication_connection_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// How long the log of a closed publication is kept, for receivers that ask for lost data.
    "aeron.publication.linger.timeout" => publication_linger_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// An untethered subscriber that stays behind another reader and holds its publisher back for this time loses its image.
    "aeron.untethered.window.limit.timeout" => untethered_window_limit_timeout_ns: i64 = 5 * SECOND, TIMEOUT;
    /// How long a dropped subscriber may still read the rest of its image; -1: the window limit's time-out.
    "aeron.untethered.linger.timeout" => untethered_linger_timeout_ns: Option<i64> = None, OptionalDuration;
    /// How long a dropped subscriber waits before it gets another image.
    "aeron.untethered.resting.timeout" => untethered_resting_timeout_ns: i64 = 10 * SECOND, TIMEOUT;
    /// How often a receiver sends its position to the sender, if no progress makes it send it sooner.
    "aeron.rcv.status.message.timeout" =>
        receiver_status_message_timeout_ns: i64 = 200 * MILLISECOND, TIMEOUT;

    // Loss handling.
    /// How long a receiver waits before it asks for lost data: longer where the network reorders.
    "aeron.nak.unicast.delay" => nak_unicast_delay_ns: i64 = MICROSECOND, TIMEOUT;
    /// A receiver asks again after `aeron.nak.unicast.delay` times this number.
    "aeron.nak.unicast.retry.delay.ratio" =>
        nak_unicast_retry_delay_ratio: i64 = 100, Int { min: 1, max: i32::MAX as i64 };
    /// Expected number of receivers on multicast, for the random delay before they ask for lost data.
    "aeron.nak.multicast.group.size" => nak_multicast_group_size: usize = 10, COUNT;
    /// Longest random delay before a receiver on multicast asks for lost data.
    "aeron.nak.multicast.max.backoff" => nak_multicast_max_backoff_ns: i64 = 10 * MILLISECOND, TIMEOUT;
    /// How long the sender waits before it sends lost data again.
    "aeron.retransmit.unicast.delay" => retransmit_unicast_delay_ns: i64 = 0, INTERVAL;
    /// How long the sender ignores further requests for data that it has just sent again.
    "aeron.retransmit.unicast.linger" => retransmit_unicast_linger_ns: i64 = 10 * MILLISECOND, TIMEOUT;
    /// Whether receivers ask for lost data, and the sender drops further requests for it, by the measured round trip and the
    /// number of receivers (true) or by the fixed delays of the specification (false). A delay of the specification that
    /// is set to another value than its default, and nak-delay of a channel, stay fixed.
    "aeron.headrace.loss.adaptive" => adaptive_loss: bool = true, Bool;
    /// How many repairs the sender does at a time for a stream whose receivers form a group; for other streams it is
    /// one.
    "aeron.max.resend" => resend_max: usize = 16, Int { min: 1, max: 256 };

    // Stream policy defaults.
    /// Whether receivers ask for lost data (true) or fill gaps with padding (false): then lost messages are missing.
    "aeron.reliable.stream" => reliable_stream: bool = true, Bool;
    /// Whether a slow subscriber holds its publisher back (true) or loses its image (false).
    "aeron.tether.subscriptions" => tether_subscriptions: bool = true, Bool;
    /// Whether a subscription accepts a stream again after its image ended.
    "aeron.rejoin.stream" => rejoin_stream: bool = true, Bool;
    /// Whether a spy alone keeps a publication connected.
    "aeron.spies.simulate.connection" => spies_simulate_connection: bool = false, Bool;
    /// Whether receivers behave as several on one stream: true, false, or infer from the channel.
    "aeron.receiver.group.consideration" =>
        receiver_group_consideration: GroupConsideration = GroupConsideration::Infer, Group;
    /// Beginning of the range of session ids that the driver never chooses itself.
    "aeron.publication.reserved.session.id.low" => publication_reserved_session_id_low: i32 = -1, ANY_I32;
    /// End of the range of session ids that the driver never chooses itself.
    "aeron.publication.reserved.session.id.high" => publication_reserved_session_id_high: i32 = 1000, ANY_I32;
    /// How many sessions one stream of one endpoint may have.
    "aeron.driver.stream.session.limit" => stream_session_limit: usize = I32_MAX, COUNT;

    // Not of the reference driver: what strangers may cost.
    /// Most images of publishers on other hosts, of all streams. A SETUP beyond it is refused, with an entry in the
    /// error log; the publisher repeats it.
    "aeron.headrace.image.limit" => image_limit: usize = 1024, COUNT;
    /// Most bytes of those images' logs, three terms each. On a small `/dev/shm` set it lower, so that forged SETUPs
    /// leave room for your own publications.
    "aeron.headrace.image.memory.limit" => image_memory_limit: usize = 4 * GIB, Size { min: SMALLEST_LOG_LENGTH, max: usize::MAX >> 1 };
    /// Bytes a second that a channel with `control-mode=dynamic` may send to addresses that ask for its streams, beyond as many
    /// as came from them. 0: none, since those addresses can be forged. A receiver of Aeron's cannot say which stream it wants, and
    /// is told of one a second: where such receivers join a channel of many streams, in a network that strangers cannot reach, 4k
    /// tells them of up to 97 at once.
    "aeron.headrace.newcomer.allowance" => newcomer_allowance: usize = 0, Size { min: 0, max: MIB };

    /// How many changes of state the event log keeps, the newest, for `headrace events`: 256 bytes each. 0: no event log.
    "aeron.headrace.event.limit" => event_limit: usize = 1024, EVENTS;

    // Flow and congestion control.
    /// At one request the sender sends again at most this number times 128 KiB, or times half a term if that is less.
    "aeron.unicast.flow.control.rrwm" => unicast_flow_control_rrwm: usize = 16, COUNT;
    /// What decides how far a publication to a group of receivers may go, if its channel has no `fc`: multicast_max, the
    /// fastest receiver; multicast_min, the slowest; multicast_tagged, the slowest of those with the group's tag.
    "aeron.multicast.FlowControl.supplier" =>
        multicast_flow_control: FlowControlStrategy = FlowControlStrategy::Max, MULTICAST_FLOW_CONTROL;
    /// How far a publication to one receiver may go: `unicast_max`, as far as that receiver has room, or as if it were of a group:
    /// `multicast_max`, `multicast_min`, `multicast_tagged`, with the group's time-out, tag and size.
    "aeron.unicast.FlowControl.supplier" =>
        unicast_flow_control: UnicastFlowControl = UnicastFlowControl::Unicast, UNICAST_FLOW_CONTROL;
    /// As `aeron.unicast.flow.control.rrwm`, for a publication to a group of receivers.
    "aeron.multicast.flow.control.rrwm" => multicast_flow_control_rrwm: usize = 4, COUNT;
    /// Group whose receivers count for tagged flow control.
    "aeron.flow.control.group.tag" => flow_control_group_tag: i64 = -1, ANY_I64;
    /// How many receivers min and tagged flow control need before the publication is connected.
    "aeron.flow.control.group.min.size" => flow_control_group_min_size: usize = 0, CountOrNone { max: I32_MAX };
    /// A receiver that is silent for this time no longer counts for min and tagged flow control.
    "aeron.flow.control.receiver.timeout" => flow_control_receiver_timeout_ns: i64 = 5 * SECOND, INTERVAL;
    /// Group that this driver's receivers say they belong to, for tagged flow control.
    "aeron.receiver.group.tag" => receiver_group_tag: Option<i64> = None, OptionalInt64;

    /// How the window of a receiver changes: default as the channel's `cc` says; static or cubic for every image,
    /// whatever its channel says.
    "aeron.CongestionControl.supplier" =>
        congestion_control: Option<CongestionControlKind> = None, CONGESTION_CONTROL;
    /// Whether cubic congestion control measures the round trip to the publisher.
    "aeron.CubicCongestionControl.measureRtt" => cubic_measure_rtt: bool = false, Bool;
    /// The round trip that cubic congestion control assumes until it has measured one.
    "aeron.CubicCongestionControl.initialRtt" => cubic_initial_rtt_ns: i64 = 100 * MICROSECOND, TIMEOUT;
    /// Whether cubic congestion control grows at least as fast as the classic one of TCP.
    "aeron.CubicCongestionControl.tcpMode" => cubic_tcp_mode: bool = false, Bool;

    // Name resolution.
    /// The name under which other drivers find this one, in channels and in the counter of resolution changes.
    "aeron.driver.resolver.name" => resolver_name: Option<String> = None, OptionalText;
    /// With an interface, address[:port][/prefix] or {name}[:port], this driver and others tell each other their names and
    /// addresses through a socket bound there, and channels may have the names of drivers as hosts. Needs the name of
    /// this driver.
    "aeron.driver.resolver.interface" => resolver_interface: Option<String> = None, OptionalText;
    /// Drivers that this one tells its name first: at most 20 times host:port, separated by commas. The others follow
    /// from what those tell.
    "aeron.driver.resolver.bootstrap.neighbor" =>
        resolver_bootstrap_neighbor: Option<String> = None, OptionalText;
    /// A driver that was not heard for this time is forgotten, with its name.
    "aeron.driver.resolver.neighbor.timeout" =>
        resolver_neighbor_timeout_ns: i64 = 10 * SECOND, GOSSIP_INTERVAL;
    /// How often the driver tells others its own name.
    "aeron.driver.resolver.self.resolution.interval" =>
        resolver_self_resolution_interval_ns: i64 = SECOND, GOSSIP_INTERVAL;
    /// How often the driver tells others all names that it knows.
    "aeron.driver.resolver.neighbor.resolution.interval" =>
        resolver_neighbor_resolution_interval_ns: i64 = 2 * SECOND, GOSSIP_INTERVAL;
    /// How often the driver looks up again the bootstrap neighbors that it hears nothing from.
    "aeron.driver.resolver.bootstrap.neighbor.resolution.interval" =>
        resolver_bootstrap_neighbor_resolution_interval_ns: i64 = 10 * SECOND, GOSSIP_INTERVAL;
    /// Who is asked for a name before the name servers: default, other drivers if there is a resolver interface; driver, the
    /// same, and the interface must be given; csv_table, a table for tests.
    "aeron.name.resolver.supplier" =>
        name_resolver: NameResolver = NameResolver::Default, NAME_RESOLVER;
    /// The table for tests: rows of name,host,other host separated by bars. A counter of each row says which host it is.
    "aeron.name.resolver.init.args" => name_resolver_init_args: Option<String> = None, OptionalText;
    /// How soon the driver follows a name whose address changes: it looks up again the names that it hears nothing from for
    /// half of this time, 500 ms at least, and as often after that; 0: never.
    "aeron.driver.reresolution.check.interval" => reresolution_check_interval_ns: i64 = SECOND, INTERVAL;
    /// The driver counts name lookups that take longer, and notes them in the error log.
    "aeron.name.resolver.threshold" => name_resolver_threshold_ns: i64 = 5 * SECOND, INTERVAL;

    // Threads, idling, affinity.
    /// How many threads the driver's work is done on. DEDICATED: the conductor, the sender and the receiver have a thread
    /// each. SHARED_NETWORK: the sender and the receiver share a thread. SHARED: all three share one thread. INVOKER: they have
    /// no thread, and work when the program calls the driver. Unset: DEDICATED; where a container or an affinity mask leaves
    /// the driver only some of the machine's processors, SHARED_NETWORK with two of them and SHARED with fewer than two.
    "aeron.threading.mode" => threading_mode: Option<ThreadingMode> = None, THREADING_MODES;
    /// The names of the driver's threads: classic or new.
    "aeron.thread.naming" => thread_naming: ThreadNaming = ThreadNaming::Classic, THREAD_NAMING;
    /// What the conductor's thread does when a turn found no work.
    "aeron.conductor.idle.strategy" => conductor_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the conductor's idle strategy.
    "aeron.conductor.idle.strategy.init.args" =>
        conductor_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// What the sender's thread does when a turn found no work.
    "aeron.sender.idle.strategy" => sender_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the sender's idle strategy.
    "aeron.sender.idle.strategy.init.args" =>
        sender_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// What the receiver's thread does when a turn found no work.
    "aeron.receiver.idle.strategy" => receiver_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the receiver's idle strategy.
    "aeron.receiver.idle.strategy.init.args" =>
        receiver_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// What the thread of sender and receiver in mode SHARED_NETWORK does when a turn found no work.
    "aeron.sharednetwork.idle.strategy" =>
        shared_network_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the idle strategy of sender and receiver in mode SHARED_NETWORK.
    "aeron.sharednetwork.idle.strategy.init.args" =>
        shared_network_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// What the thread of conductor, sender and receiver in mode SHARED does when a turn found no work.
    "aeron.shared.idle.strategy" => shared_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the idle strategy of mode SHARED.
    "aeron.shared.idle.strategy.init.args" =>
        shared_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// What the thread that creates and deletes logs does when a turn found no work.
    "aeron.driver.native.resource.agent.idle.strategy" =>
        resource_agent_idle_strategy: String = BLOCKING.to_owned(), STRATEGY;
    /// Arguments of the idle strategy of the thread that creates and deletes logs.
    "aeron.driver.native.resource.agent.idle.strategy.init.args" =>
        resource_agent_idle_strategy_init_args: Option<String> = None, OptionalText;
    /// The processor on which the conductor's thread runs; in mode SHARED, the one that all agents share. -1 leaves the choice to the kernel.
    "aeron.conductor.cpu.affinity" => conductor_cpu_affinity: i32 = -1, CPU;
    /// Processor of the sender's thread, in mode SHARED_NETWORK of the thread of sender and receiver; -1 leaves it to the
    /// kernel.
    "aeron.sender.cpu.affinity" => sender_cpu_affinity: i32 = -1, CPU;
    /// Processor of the receiver's thread; -1 leaves it to the kernel.
    "aeron.receiver.cpu.affinity" => receiver_cpu_affinity: i32 = -1, CPU;
    /// Processor of the thread that creates and deletes logs; -1 leaves it to the kernel.
    "aeron.driver.native.resource.agent.cpu.affinity" => resource_agent_cpu_affinity: i32 = -1, CPU;
    /// Whether the numbers in `aeron.sender.cpu.affinity` and its like count the processors that the driver may use, from 0
    /// (true), or those of the machine (false). With true the same numbers work in each container, whatever processors it
    /// was given.
    "aeron.driver.cpuset.affinity" => cpuset_affinity: bool = false, Bool;
    /// With `aeron.driver.cpuset.affinity`, the driver warns in the error log of bound threads on processors that share no
    /// cache, and of processors that other programs may share a core with. With this setting it does not start then.
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
