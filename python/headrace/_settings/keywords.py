"""Settings as keywords; those of driver and client as frozen dataclasses, too.

Made by `scripts/settings.py` from the tables in Rust and the configs of archive and cluster; do not edit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from headrace._settings.config import ClientValues, DriverValues

if TYPE_CHECKING:
    from headrace.security import Authenticator, AuthorisationService
    from headrace.security.credentials import CredentialsSupplier

__all__ = [
    "ArchiveSettings",
    "ClientConfig",
    "ClientSettings",
    "ClusterBackupSettings",
    "ConsensusModuleSettings",
    "ContainerSettings",
    "DriverConfig",
    "DriverSettings",
]


def _setting(default: Any, kind: str, property_name: str | None = None) -> Any:
    return field(default=default, metadata={"kind": kind, "property": property_name})


class DriverSettings(TypedDict, total=False):
    """Keyword arguments of :class:`headrace.MediaDriver`; see :class:`headrace.DriverConfig` for what they mean."""

    directory: str | os.PathLike[str] | None
    dir_delete_on_start: bool | None
    dir_delete_on_shutdown: bool | None
    dir_warn_if_exists: bool | None
    driver_timeout_ms: int | None
    termination_validator: str | None
    print_configuration: bool | None
    fallback_logger: str | None
    debug_timeout_ns: int | None
    perform_storage_checks: bool | None
    low_file_store_warning_threshold_bytes: int | None
    file_page_size_bytes: int | None
    resource_free_limit: int | None
    conductor_buffer_length: int | None
    clients_buffer_length: int | None
    counters_buffer_length: int | None
    error_buffer_length: int | None
    loss_report_buffer_length: int | None
    counters_free_to_reuse_timeout_ns: int | None
    term_buffer_length: int | None
    ipc_term_buffer_length: int | None
    term_buffer_sparse_file: bool | None
    mtu_length: int | None
    ipc_mtu_length: int | None
    publication_term_window_length: int | None
    ipc_publication_term_window_length: int | None
    receiver_initial_window_length: int | None
    receiver_local_window_length: int | None
    socket_receive_buffer_length: int | None
    socket_send_buffer_length: int | None
    socket_multicast_ttl: int | None
    sender_wildcard_port_range: str | None
    receiver_wildcard_port_range: str | None
    connects_sockets: bool | None
    receiver_io_vector_capacity: int | None
    sender_io_vector_capacity: int | None
    max_messages_per_send: int | None
    send_to_status_poll_ratio: int | None
    incoming_interceptors: str | None
    outgoing_interceptors: str | None
    loss_args: str | None
    fixed_loss_args: str | None
    multi_gap_loss_args: str | None
    send_channel_endpoints: str | None
    receive_channel_endpoints: str | None
    debug_send_data_loss_rate: str | None
    debug_send_data_loss_seed: int | None
    debug_send_control_loss_rate: str | None
    debug_send_control_loss_seed: int | None
    debug_receive_data_loss_rate: str | None
    debug_receive_data_loss_seed: int | None
    debug_receive_control_loss_rate: str | None
    debug_receive_control_loss_seed: int | None
    timer_interval_ns: int | None
    client_liveness_timeout_ns: int | None
    image_liveness_timeout_ns: int | None
    publication_unblock_timeout_ns: int | None
    publication_connection_timeout_ns: int | None
    publication_linger_timeout_ns: int | None
    untethered_window_limit_timeout_ns: int | None
    untethered_linger_timeout_ns: int | None
    untethered_resting_timeout_ns: int | None
    receiver_status_message_timeout_ns: int | None
    nak_unicast_delay_ns: int | None
    nak_unicast_retry_delay_ratio: int | None
    nak_multicast_group_size: int | None
    nak_multicast_max_backoff_ns: int | None
    retransmit_unicast_delay_ns: int | None
    retransmit_unicast_linger_ns: int | None
    adaptive_loss: bool | None
    resend_max: int | None
    reliable_stream: bool | None
    tether_subscriptions: bool | None
    rejoin_stream: bool | None
    spies_simulate_connection: bool | None
    receiver_group_consideration: str | None
    publication_reserved_session_id_low: int | None
    publication_reserved_session_id_high: int | None
    stream_session_limit: int | None
    image_limit: int | None
    image_memory_limit: int | None
    newcomer_allowance: int | None
    event_limit: int | None
    unicast_flow_control_rrwm: int | None
    multicast_flow_control: str | None
    unicast_flow_control: str | None
    multicast_flow_control_rrwm: int | None
    flow_control_group_tag: int | None
    flow_control_group_min_size: int | None
    flow_control_receiver_timeout_ns: int | None
    receiver_group_tag: int | None
    congestion_control: str | None
    cubic_measure_rtt: bool | None
    cubic_initial_rtt_ns: int | None
    cubic_tcp_mode: bool | None
    resolver_name: str | None
    resolver_interface: str | None
    resolver_bootstrap_neighbor: str | None
    resolver_neighbor_timeout_ns: int | None
    resolver_self_resolution_interval_ns: int | None
    resolver_neighbor_resolution_interval_ns: int | None
    resolver_bootstrap_neighbor_resolution_interval_ns: int | None
    name_resolver: str | None
    name_resolver_init_args: str | None
    reresolution_check_interval_ns: int | None
    name_resolver_threshold_ns: int | None
    threading_mode: str | None
    thread_naming: str | None
    conductor_idle_strategy: str | None
    conductor_idle_strategy_init_args: str | None
    sender_idle_strategy: str | None
    sender_idle_strategy_init_args: str | None
    receiver_idle_strategy: str | None
    receiver_idle_strategy_init_args: str | None
    shared_network_idle_strategy: str | None
    shared_network_idle_strategy_init_args: str | None
    shared_idle_strategy: str | None
    shared_idle_strategy_init_args: str | None
    resource_agent_idle_strategy: str | None
    resource_agent_idle_strategy_init_args: str | None
    conductor_cpu_affinity: int | None
    sender_cpu_affinity: int | None
    receiver_cpu_affinity: int | None
    resource_agent_cpu_affinity: int | None
    cpuset_affinity: bool | None
    cpuset_warnings_as_errors: bool | None
    conductor_cycle_threshold_ns: int | None
    sender_cycle_threshold_ns: int | None
    receiver_cycle_threshold_ns: int | None


@dataclass(frozen=True, kw_only=True)
class DriverConfig(DriverValues):
    """Settings of a media driver.

    Each field stands for one property. ``None`` leaves the setting to the environment, and failing that to its
    default. Lengths are bytes, durations carry their unit in the name. Values are checked by the driver when it
    starts; a wrong one raises :class:`headrace.ConfigError` naming the setting, the value and the rule.
    """

    directory: str | os.PathLike[str] | None = _setting(None, "path", "aeron.dir")
    """The directory that the driver shares with its clients. Default: ``/dev/shm/aeron-USER``."""

    dir_delete_on_start: bool | None = _setting(None, "boolean", "aeron.dir.delete.on.start")
    """Delete the directory, and every file in it, at the start without a check: even if another driver runs
    there, or the files are not a driver's. Without this setting the driver deletes only the directory of a
    dead driver. Default: ``false``."""

    dir_delete_on_shutdown: bool | None = _setting(None, "boolean", "aeron.dir.delete.on.shutdown")
    """Delete the directory, and every file in it, when the driver stops in order. Default: ``false``."""

    dir_warn_if_exists: bool | None = _setting(None, "boolean", "aeron.dir.warn.if.exists")
    """Print a warning at the start if the directory exists. Default: ``false``."""

    driver_timeout_ms: int | None = _setting(None, "milliseconds", "aeron.driver.timeout")
    """Another driver in the directory counts as dead when its heartbeat is older than this; one of Headrace
    that was killed, at once. Default: ``10000``."""

    termination_validator: str | None = _setting(None, "text", "aeron.driver.termination.validator")
    """Whether a client may ask the driver to stop. Default: ``deny``."""

    print_configuration: bool | None = _setting(None, "boolean", "aeron.print.configuration")
    """Print every setting at the start (``headraced`` only). Default: ``false``."""

    fallback_logger: str | None = _setting(None, "text", "aeron.fallback.logger")
    """Where the driver writes the first error that the error log has no room for; it only counts later ones.
    Default: ``stderr``."""

    debug_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.debug.timeout")
    """Replaces the liveness time-outs of clients and images, and the connection and unblock time-outs of
    publications, if a debugger is attached when the driver starts. Default: ``-1``."""

    perform_storage_checks: bool | None = _setting(None, "boolean", "aeron.perform.storage.checks")
    """Refuse to create a log for which the file system has no room. Default: ``true``."""

    low_file_store_warning_threshold_bytes: int | None = _setting(
        None, "bytes", "aeron.low.file.store.warning.threshold"
    )
    """With less free space for logs than this, the driver warns in the error log and allocates sparse logs in
    full. Default: ``160m``."""

    file_page_size_bytes: int | None = _setting(None, "bytes", "aeron.file.page.size")
    """The length of each file is a multiple of this. Default: ``4k``."""

    resource_free_limit: int | None = _setting(None, "number", "aeron.driver.resource.free.limit")
    """How many logs the driver deletes in one turn. Default: ``1``."""

    conductor_buffer_length: int | None = _setting(None, "bytes", "aeron.conductor.buffer.length")
    """Size of the ring for commands of clients. Default: ``1049344``."""

    clients_buffer_length: int | None = _setting(None, "bytes", "aeron.clients.buffer.length")
    """Size of the buffer for answers to clients. Default: ``1048704``."""

    counters_buffer_length: int | None = _setting(None, "bytes", "aeron.counters.buffer.length")
    """Room for counter values, 128 bytes each; labels take four times as much besides. Default: ``8m``."""

    error_buffer_length: int | None = _setting(None, "bytes", "aeron.error.buffer.length")
    """Room for distinct errors in the error log. Default: ``4m``."""

    loss_report_buffer_length: int | None = _setting(None, "bytes", "aeron.loss.report.buffer.length")
    """Room for the entries of ``headrace loss``. Default: ``1m``."""

    counters_free_to_reuse_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.counters.free.to.reuse.timeout"
    )
    """How long the driver leaves a freed counter unused, so that readers do not confuse it with the next one.
    Default: ``1s``."""

    term_buffer_length: int | None = _setting(None, "bytes", "aeron.term.buffer.length")
    """Length of a term of a UDP stream; a log holds three. The longest message is an eighth of it, and 16 MiB
    at most. Default: ``16m``."""

    ipc_term_buffer_length: int | None = _setting(None, "bytes", "aeron.ipc.term.buffer.length")
    """As ``aeron.term.buffer.length``, for IPC. Default: ``64m``."""

    term_buffer_sparse_file: bool | None = _setting(None, "boolean", "aeron.term.buffer.sparse.file")
    """Whether log files take memory only as they are written. Default: ``true``."""

    mtu_length: int | None = _setting(None, "bytes", "aeron.mtu.length")
    """Longest datagram without its UDP header, at most the network's MTU less 28; longer messages become
    several. Default: ``1408``."""

    ipc_mtu_length: int | None = _setting(None, "bytes", "aeron.ipc.mtu.length")
    """Longest frame over IPC, header included; longer messages become several. Default: ``1408``."""

    publication_term_window_length: int | None = _setting(
        None, "bytes", "aeron.publication.term.window.length"
    )
    """How far a publisher may be ahead of the sender; 0: half a term. Default: ``0``."""

    ipc_publication_term_window_length: int | None = _setting(
        None, "bytes", "aeron.ipc.publication.term.window.length"
    )
    """How far an IPC publisher may be ahead of its slowest subscriber; 0: half a term. Default: ``0``."""

    receiver_initial_window_length: int | None = _setting(None, "bytes", "aeron.rcv.initial.window.length")
    """Most bytes that a sender may have on the way to a receiver. Default: ``128k``."""

    receiver_local_window_length: int | None = _setting(
        None, "bytes", "aeron.headrace.rcv.local.window.length"
    )
    """As ``aeron.rcv.initial.window.length``, for a sender on the receiver's host: up to half the receive
    buffer granted and half a term, and in groups only for senders of Headrace with flow control min or
    tagged. ``rcv-wnd``, or that setting if given, replaces it; 0 turns it off. Default: ``2m``."""

    socket_receive_buffer_length: int | None = _setting(None, "bytes", "aeron.socket.so_rcvbuf")
    """Receive buffer of each socket, not less than the receiver's window; 0: the kernel's default. If it is
    not set, sockets also ask for room for the window of senders on this host. Default: ``128k``."""

    socket_send_buffer_length: int | None = _setting(None, "bytes", "aeron.socket.so_sndbuf")
    """Send buffer of each socket; 0: the kernel's default. Default: ``0``."""

    socket_multicast_ttl: int | None = _setting(None, "number", "aeron.socket.multicast.ttl")
    """Time to live of datagrams to groups whose channel has no ``ttl``; 0: the kernel's default, 1, with
    which they pass no router. Default: ``0``."""

    sender_wildcard_port_range: str | None = _setting(None, "text", "aeron.sender.wildcard.port.range")
    """First and last port for publications whose ``control`` address has port 0; ``0 0`` lets the kernel
    choose. The driver skips ports that other programs hold, at most 1,000 for one channel. Default: ``0
    0``."""

    receiver_wildcard_port_range: str | None = _setting(None, "text", "aeron.receiver.wildcard.port.range")
    """As ``aeron.sender.wildcard.port.range``, for subscriptions whose ``endpoint`` has port 0; a port in
    both ranges serves only one of them. Default: ``0 0``."""

    connects_sockets: bool | None = _setting(None, "boolean", "aeron.driver.connect")
    """Whether the socket of a publication with one endpoint takes status messages from that address alone,
    not from others of the same machine. Default: ``true``."""

    receiver_io_vector_capacity: int | None = _setting(None, "number", "aeron.receiver.io.vector.capacity")
    """Most datagrams in one receive call, where the kernel does not join them. Default: ``16``."""

    sender_io_vector_capacity: int | None = _setting(None, "number", "aeron.sender.io.vector.capacity")
    """Most datagrams in one send call; unset: as many as are ready. Default: none."""

    max_messages_per_send: int | None = _setting(
        None, "number", "aeron.network.publication.max.messages.per.send"
    )
    """Most datagrams of a publication before the next one has its turn; unset: 128 KiB. Default: none."""

    send_to_status_poll_ratio: int | None = _setting(None, "number", "aeron.send.to.status.poll.ratio")
    """While it sends, the sender reads status messages once in this number of turns. Default: ``6``."""

    incoming_interceptors: str | None = _setting(None, "text", "aeron.udp.channel.incoming.interceptors")
    """For tests: a list with commas of ``loss``, ``fixed-loss`` and ``multi-gap-loss``, which drop datagrams
    that arrive. Default: none."""

    outgoing_interceptors: str | None = _setting(None, "text", "aeron.udp.channel.outgoing.interceptors")
    """Takes the same names and has no effect: interceptors drop only datagrams that arrive. Default: none."""

    loss_args: str | None = _setting(None, "text", "aeron.udp.channel.transport.bindings.loss.args")
    """For ``loss``, separated by bars: ``rate=`` from 0 to 1, ``seed=``, and ``recv-msg-mask=``, a
    hexadecimal bit for each type of frame. Default: none."""

    fixed_loss_args: str | None = _setting(
        None, "text", "aeron.udp.channel.transport.bindings.fixed.loss.args"
    )
    """For ``fixed-loss``, separated by bars: ``term-id=``, ``term-offset=`` and ``length=`` of the bytes to
    drop when they first arrive. Default: none."""

    multi_gap_loss_args: str | None = _setting(
        None, "text", "aeron.udp.channel.transport.bindings.multi.gap.loss.args"
    )
    """For ``multi-gap-loss``, separated by bars: ``term-id=``, ``gap-radix=``, ``gap-length=`` and ``total-
    gaps=`` of the bytes to drop when they first arrive. Default: none."""

    send_channel_endpoints: str | None = _setting(None, "text", "aeron.SendChannelEndpoint.supplier")
    """For tests: the ``Debug`` supplier applies the ``aeron.debug.send`` loss rates. Default:
    ``io.aeron.driver.DefaultSendChannelEndpointSupplier``."""

    receive_channel_endpoints: str | None = _setting(None, "text", "aeron.ReceiveChannelEndpoint.supplier")
    """For tests: the ``Debug`` supplier applies the ``aeron.debug.receive`` loss rates. Default:
    ``io.aeron.driver.DefaultReceiveChannelEndpointSupplier``."""

    debug_send_data_loss_rate: str | None = _setting(None, "text", "aeron.debug.send.data.loss.rate")
    """For tests, with the ``Debug`` supplier: part of the data, SETUPs and heartbeats that the driver drops
    as publications send them, 0.0 to 1.0. Default: none."""

    debug_send_data_loss_seed: int | None = _setting(None, "number", "aeron.debug.send.data.loss.seed")
    """The same seed drops the same frames; -1: others each time. Default: ``-1``."""

    debug_send_control_loss_rate: str | None = _setting(None, "text", "aeron.debug.send.control.loss.rate")
    """As ``aeron.debug.send.data.loss.rate``, for status messages, NAKs and error frames that publications
    receive. Default: none."""

    debug_send_control_loss_seed: int | None = _setting(None, "number", "aeron.debug.send.control.loss.seed")
    """As ``aeron.debug.send.data.loss.seed``. Default: ``-1``."""

    debug_receive_data_loss_rate: str | None = _setting(None, "text", "aeron.debug.receive.data.loss.rate")
    """As ``aeron.debug.send.data.loss.rate``, for data, SETUPs and heartbeats that subscriptions receive.
    Default: none."""

    debug_receive_data_loss_seed: int | None = _setting(None, "number", "aeron.debug.receive.data.loss.seed")
    """As ``aeron.debug.send.data.loss.seed``. Default: ``-1``."""

    debug_receive_control_loss_rate: str | None = _setting(
        None, "text", "aeron.debug.receive.control.loss.rate"
    )
    """As ``aeron.debug.send.data.loss.rate``, for status messages, NAKs and error frames that subscriptions
    send. Default: none."""

    debug_receive_control_loss_seed: int | None = _setting(
        None, "number", "aeron.debug.receive.control.loss.seed"
    )
    """As ``aeron.debug.send.data.loss.seed``. Default: ``-1``."""

    timer_interval_ns: int | None = _setting(None, "nanoseconds", "aeron.timer.interval")
    """How often the driver checks time-outs. Default: ``1s``."""

    client_liveness_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.client.liveness.timeout")
    """A client without a heartbeat for this time is dead; the driver releases its publications, subscriptions
    and counters. Default: ``10s``."""

    image_liveness_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.image.liveness.timeout")
    """An image that receives nothing for this time ends. Default: ``10s``."""

    publication_unblock_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.unblock.timeout"
    )
    """A claim that its publisher does not finish in this time becomes padding. Default: ``15s``."""

    publication_connection_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.connection.timeout"
    )
    """A publication that no receiver answers for this time is no longer connected. Default: ``5s``."""

    publication_linger_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.linger.timeout"
    )
    """How long the driver keeps the log of a closed publication, for receivers that ask for lost data.
    Default: ``5s``."""

    untethered_window_limit_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.window.limit.timeout"
    )
    """An untethered subscriber that is slower than another reader and holds the publisher back for this time
    loses its image. Default: ``5s``."""

    untethered_linger_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.linger.timeout"
    )
    """How long an untethered subscriber that lost its image may still read the rest; -1: as long as
    ``aeron.untethered.window.limit.timeout``. Default: ``-1``."""

    untethered_resting_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.resting.timeout"
    )
    """How long such a subscriber then waits for its next image. Default: ``10s``."""

    receiver_status_message_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.rcv.status.message.timeout"
    )
    """A receiver reports its position at least this often. Default: ``200ms``."""

    nak_unicast_delay_ns: int | None = _setting(None, "nanoseconds", "aeron.nak.unicast.delay")
    """How long a receiver waits before it asks for lost data; set it higher where the network reorders.
    Default: ``1us``."""

    nak_unicast_retry_delay_ratio: int | None = _setting(
        None, "number", "aeron.nak.unicast.retry.delay.ratio"
    )
    """A receiver asks again after ``aeron.nak.unicast.delay`` times this number. Default: ``100``."""

    nak_multicast_group_size: int | None = _setting(None, "number", "aeron.nak.multicast.group.size")
    """Expected number of receivers in a group, for the random delay of their NAKs. Default: ``10``."""

    nak_multicast_max_backoff_ns: int | None = _setting(
        None, "nanoseconds", "aeron.nak.multicast.max.backoff"
    )
    """Longest random delay of a NAK in a group. Default: ``10ms``."""

    retransmit_unicast_delay_ns: int | None = _setting(None, "nanoseconds", "aeron.retransmit.unicast.delay")
    """How long the sender waits before it sends lost data again. Default: ``0ns``."""

    retransmit_unicast_linger_ns: int | None = _setting(
        None, "nanoseconds", "aeron.retransmit.unicast.linger"
    )
    """How long the sender then ignores further requests for the same data. Default: ``10ms``."""

    adaptive_loss: bool | None = _setting(None, "boolean", "aeron.headrace.loss.adaptive")
    """Whether NAKs and repairs follow the measured round trip and the number of receivers. Delays that are
    set, also by ``nak-delay``, stay fixed. Default: ``true``."""

    resend_max: int | None = _setting(None, "number", "aeron.max.resend")
    """How many repairs the sender does at a time for a stream whose receivers form a group; for others it
    does one. Default: ``16``."""

    reliable_stream: bool | None = _setting(None, "boolean", "aeron.reliable.stream")
    """Whether receivers ask for lost data (true) or skip it (false), so that messages are missing. Default:
    ``true``."""

    tether_subscriptions: bool | None = _setting(None, "boolean", "aeron.tether.subscriptions")
    """Whether a slow subscriber holds its publisher back (true) or loses its image (false). Default:
    ``true``."""

    rejoin_stream: bool | None = _setting(None, "boolean", "aeron.rejoin.stream")
    """Whether a subscription accepts a stream again after its image ended. Default: ``true``."""

    spies_simulate_connection: bool | None = _setting(None, "boolean", "aeron.spies.simulate.connection")
    """Whether a spy alone keeps a publication connected. Default: ``false``."""

    receiver_group_consideration: str | None = _setting(None, "text", "aeron.receiver.group.consideration")
    """Whether a stream's receivers behave as a group; ``infer``: as the channel suggests. Default:
    ``infer``."""

    publication_reserved_session_id_low: int | None = _setting(
        None, "number", "aeron.publication.reserved.session.id.low"
    )
    """First of the session ids that the driver never chooses itself. Default: ``-1``."""

    publication_reserved_session_id_high: int | None = _setting(
        None, "number", "aeron.publication.reserved.session.id.high"
    )
    """Last of the session ids that the driver never chooses itself: at most half of all ids. Default:
    ``1000``."""

    stream_session_limit: int | None = _setting(None, "number", "aeron.driver.stream.session.limit")
    """Most sessions of one stream at one endpoint. Default: ``2147483647``."""

    image_limit: int | None = _setting(None, "number", "aeron.headrace.image.limit")
    """Most images of publishers on other hosts; the driver refuses a further SETUP, with an entry in the
    error log, and the publisher repeats it. Default: ``1024``."""

    image_memory_limit: int | None = _setting(None, "bytes", "aeron.headrace.image.memory.limit")
    """Most bytes of the logs of these images; on a small ``/dev/shm`` set it lower, so that forged SETUPs
    leave room for your publications. Default: ``4g``."""

    newcomer_allowance: int | None = _setting(None, "bytes", "aeron.headrace.newcomer.allowance")
    """Bytes a second that a channel with ``control-mode=dynamic`` may send to each address that asks for its
    streams, beyond three times what came from it, until it has one. 4k tells a receiver of 131 streams at
    once. Default: ``4k``."""

    event_limit: int | None = _setting(None, "number", "aeron.headrace.event.limit")
    """How many of the newest changes of state the event log keeps, 256 bytes each; 0: no event log. Default:
    ``1024``."""

    unicast_flow_control_rrwm: int | None = _setting(None, "number", "aeron.unicast.flow.control.rrwm")
    """For one request the sender repeats at most this number times 128 KiB, or times half a term if that is
    less. Default: ``16``."""

    multicast_flow_control: str | None = _setting(None, "text", "aeron.multicast.FlowControl.supplier")
    """The receiver that a publication to a group without ``fc`` keeps pace with: the fastest (multicast_max),
    the slowest (multicast_min), or the slowest with the group's tag (multicast_tagged). Default:
    ``multicast_max``."""

    unicast_flow_control: str | None = _setting(None, "text", "aeron.unicast.FlowControl.supplier")
    """How far a publication to one receiver may go: as that receiver has room (unicast_max), or as if it were
    in a group. Default: ``unicast_max``."""

    multicast_flow_control_rrwm: int | None = _setting(None, "number", "aeron.multicast.flow.control.rrwm")
    """As ``aeron.unicast.flow.control.rrwm``, for groups. Default: ``4``."""

    flow_control_group_tag: int | None = _setting(None, "number", "aeron.flow.control.group.tag")
    """Tag of the receivers that count for tagged flow control. Default: ``-1``."""

    flow_control_group_min_size: int | None = _setting(None, "number", "aeron.flow.control.group.min.size")
    """How many receivers min and tagged flow control need before the publication is connected. Default:
    ``0``."""

    flow_control_receiver_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.flow.control.receiver.timeout"
    )
    """A receiver that is silent for this time no longer counts for min and tagged flow control. Default:
    ``5s``."""

    receiver_group_tag: int | None = _setting(None, "number", "aeron.receiver.group.tag")
    """Tag that this driver's receivers report, for tagged flow control. Default: none."""

    congestion_control: str | None = _setting(None, "text", "aeron.CongestionControl.supplier")
    """How the window of a receiver changes: as the channel's ``cc`` says (default), or static or cubic for
    every image. Default: ``default``."""

    cubic_measure_rtt: bool | None = _setting(None, "boolean", "aeron.CubicCongestionControl.measureRtt")
    """Whether cubic congestion control measures the round trip. Default: ``false``."""

    cubic_initial_rtt_ns: int | None = _setting(
        None, "nanoseconds", "aeron.CubicCongestionControl.initialRtt"
    )
    """Round trip that cubic congestion control assumes until it has measured one. Default: ``100us``."""

    cubic_tcp_mode: bool | None = _setting(None, "boolean", "aeron.CubicCongestionControl.tcpMode")
    """Whether cubic congestion control grows at least as fast as TCP's classic one. Default: ``false``."""

    resolver_name: str | None = _setting(None, "text", "aeron.driver.resolver.name")
    """Name by which channels of other drivers find this one. Default: none."""

    resolver_interface: str | None = _setting(None, "text", "aeron.driver.resolver.interface")
    """``address[:port][/prefix]`` or ``{name}[:port]`` of the socket through which drivers exchange names and
    addresses, so that channels may name drivers as hosts. Needs ``aeron.driver.resolver.name``. Default:
    none."""

    resolver_bootstrap_neighbor: str | None = _setting(
        None, "text", "aeron.driver.resolver.bootstrap.neighbor"
    )
    """Drivers that this one announces itself to first: up to 20 of ``host:port``, with commas. Default:
    none."""

    resolver_neighbor_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.neighbor.timeout"
    )
    """The driver forgets another driver, with its name, that is silent for this time. Default: ``10s``."""

    resolver_self_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.self.resolution.interval"
    )
    """How often the driver announces its own name. Default: ``1s``."""

    resolver_neighbor_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.neighbor.resolution.interval"
    )
    """How often the driver announces all names that it knows. Default: ``2s``."""

    resolver_bootstrap_neighbor_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.bootstrap.neighbor.resolution.interval"
    )
    """How often the driver looks up silent bootstrap neighbors again. Default: ``10s``."""

    name_resolver: str | None = _setting(None, "text", "aeron.name.resolver.supplier")
    """Where the driver looks up names before it asks name servers: at other drivers if it has a resolver
    interface (default), the same with the interface required (driver), or in a table for tests (csv_table).
    Default: ``default``."""

    name_resolver_init_args: str | None = _setting(None, "text", "aeron.name.resolver.init.args")
    """The table for tests: rows of ``name,host,other host`` separated by bars; a counter of each row says
    which host it is. Default: none."""

    reresolution_check_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.reresolution.check.interval"
    )
    """After half this time without an answer, 500 ms at least, the driver looks a name up again, and as often
    after that; 0: never. Default: ``1s``."""

    name_resolver_threshold_ns: int | None = _setting(None, "nanoseconds", "aeron.name.resolver.threshold")
    """The driver counts and logs name lookups that take longer. Default: ``5s``."""

    threading_mode: str | None = _setting(None, "text", "aeron.threading.mode")
    """Threads of the driver: one each for conductor, sender and receiver (DEDICATED), one for sender and
    receiver (SHARED_NETWORK), one for all (SHARED), or the program's (INVOKER). Unset: DEDICATED; where a
    container or affinity mask leaves two processors SHARED_NETWORK, and with fewer SHARED. Default: none."""

    thread_naming: str | None = _setting(None, "text", "aeron.thread.naming")
    """Names of the driver's threads. Default: ``classic``."""

    conductor_idle_strategy: str | None = _setting(None, "text", "aeron.conductor.idle.strategy")
    """How the conductor's thread waits for work. Default: ``blocking``."""

    conductor_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.conductor.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    sender_idle_strategy: str | None = _setting(None, "text", "aeron.sender.idle.strategy")
    """How the sender's thread waits for work. Default: ``blocking``."""

    sender_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.sender.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    receiver_idle_strategy: str | None = _setting(None, "text", "aeron.receiver.idle.strategy")
    """How the receiver's thread waits for work. Default: ``blocking``."""

    receiver_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.receiver.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    shared_network_idle_strategy: str | None = _setting(None, "text", "aeron.sharednetwork.idle.strategy")
    """How the thread of sender and receiver waits for work in mode SHARED_NETWORK. Default: ``blocking``."""

    shared_network_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.sharednetwork.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    shared_idle_strategy: str | None = _setting(None, "text", "aeron.shared.idle.strategy")
    """How the only thread waits for work in mode SHARED. Default: ``blocking``."""

    shared_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.shared.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    resource_agent_idle_strategy: str | None = _setting(
        None, "text", "aeron.driver.native.resource.agent.idle.strategy"
    )
    """How the thread that creates and deletes logs waits for work. Default: ``blocking``."""

    resource_agent_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.driver.native.resource.agent.idle.strategy.init.args"
    )
    """Arguments of that strategy. Default: none."""

    conductor_cpu_affinity: int | None = _setting(None, "number", "aeron.conductor.cpu.affinity")
    """Processor of the conductor's thread, in mode SHARED of the only one; -1: any. Default: ``-1``."""

    sender_cpu_affinity: int | None = _setting(None, "number", "aeron.sender.cpu.affinity")
    """Processor of the sender's thread, in mode SHARED_NETWORK of the receiver's too; -1: any. Default:
    ``-1``."""

    receiver_cpu_affinity: int | None = _setting(None, "number", "aeron.receiver.cpu.affinity")
    """Processor of the receiver's thread; -1: any. Default: ``-1``."""

    resource_agent_cpu_affinity: int | None = _setting(
        None, "number", "aeron.driver.native.resource.agent.cpu.affinity"
    )
    """Processor of the thread that creates and deletes logs; -1: any. Default: ``-1``."""

    cpuset_affinity: bool | None = _setting(None, "boolean", "aeron.driver.cpuset.affinity")
    """Whether ``aeron.sender.cpu.affinity`` and its like count from 0 the processors that the driver may use,
    so that the same numbers work in each container, or those of the machine. Default: ``false``."""

    cpuset_warnings_as_errors: bool | None = _setting(
        None, "boolean", "aeron.driver.cpuset.warnings_as_errors"
    )
    """Whether the driver refuses to start where ``aeron.driver.cpuset.affinity`` warns in the error log: of
    threads bound to processors that share no cache, or whose core other programs may use. Default:
    ``false``."""

    conductor_cycle_threshold_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.conductor.cycle.threshold"
    )
    """The driver counts turns of the conductor that take longer. Default: ``100ms``."""

    sender_cycle_threshold_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.sender.cycle.threshold"
    )
    """The driver counts turns of the sender that take longer. Default: ``100ms``."""

    receiver_cycle_threshold_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.receiver.cycle.threshold"
    )
    """The driver counts turns of the receiver that take longer. Default: ``100ms``."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """Further settings by the specification's property names, with its value syntax (``"16m"``, ``"5s"``).

    A keyword above wins over the same setting here.
    """


class ClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Client.connect`; see :class:`headrace.ClientConfig` for what they mean."""

    driver_timeout_ms: int
    keepalive_interval_ns: int
    idle_sleep_ns: int
    resource_linger_ns: int
    client_name: str
    pre_touch_mapped_memory: bool


@dataclass(frozen=True, kw_only=True)
class ClientConfig(ClientValues):
    """Settings of a client. Durations carry their unit in the name."""

    directory: str | os.PathLike[str] | None = None
    """Directory of the driver; ``None`` for :func:`headrace.default_directory`."""

    driver_timeout_ms: int = _setting(10_000, "milliseconds")
    """How long to wait for the driver to appear or to answer, and how old its heartbeat may become."""

    keepalive_interval_ns: int = _setting(500_000_000, "nanoseconds")
    """Time between two heartbeats to the driver."""

    idle_sleep_ns: int = _setting(16_000_000, "nanoseconds")
    """How long the client's own thread sleeps between two turns."""

    resource_linger_ns: int = _setting(3_000_000_000, "nanoseconds")
    """How long a log stays mapped after its image or publication has ended."""

    client_name: str = _setting("", "text")
    """Name by which tools call the client; a Python client without one is called by its program and process,
    as in ``ticker.py pid=4711``."""

    pre_touch_mapped_memory: bool = _setting(False, "boolean")
    """Touch each page of a log when it is mapped, so that no message pays for the page fault."""


class ArchiveSettings(TypedDict, total=False):
    """Keyword arguments of an archive; see :class:`headrace.archive.ArchiveConfig` for what they mean.

    ``None`` is as good as not given.
    """

    archive_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    directory_delete_on_start: bool | None
    aeron_directory: str | os.PathLike[str] | None
    archive_id: int | None
    control_channel_enabled: bool | None
    control_channel: str | None
    control_stream_id: int | None
    local_control_channel: str | None
    local_control_stream_id: int | None
    control_term_buffer_sparse: bool | None
    control_term_buffer_length: int | None
    control_mtu_length: int | None
    recording_events_enabled: bool | None
    recording_events_channel: str | None
    recording_events_stream_id: int | None
    replication_channel: str | None
    segment_file_length: int | None
    file_io_max_length: int | None
    file_sync_level: int | None
    catalog_file_sync_level: int | None
    catalog_capacity: int | None
    low_storage_space_threshold: int | None
    max_concurrent_recordings: int | None
    max_concurrent_replays: int | None
    event_limit: int | None
    max_control_sessions: int | None
    authenticator: str | Authenticator | None
    authorisation: str | AuthorisationService | None
    connect_timeout_ns: int | None
    session_liveness_check_interval_ns: int | None
    replay_linger_timeout_ns: int | None
    conductor_cycle_threshold_ns: int | None
    threading_mode: str | None
    idle_strategy: str | None
    error_buffer_length: int | None
    record_checksum: str | None
    replay_checksum: str | None
    mark_file_liveness_timeout_ms: int | None


class ConsensusModuleSettings(TypedDict, total=False):
    """Keyword arguments of a consensus module; see :class:`headrace.cluster.ConsensusModuleConfig` for what they mean.

    ``None`` is as good as not given.
    """

    cluster_id: int | None
    cluster_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    aeron_directory: str | os.PathLike[str] | None
    archive_control_channel: str | None
    archive_control_stream_id: int | None
    archive_message_timeout_ns: int | None
    archive_term_buffer_length: int | None
    archive_mtu_length: int | None
    idle_strategy: str | None
    control_channel: str | None
    service_stream_id: int | None
    consensus_module_stream_id: int | None
    replay_channel: str | None
    replay_stream_id: int | None
    snapshot_channel: str | None
    archive_response_channel: str | None
    archive_response_stream_id: int | None
    archive_client_name: str | None
    log_fragment_limit: int | None
    app_version: int | None
    member_id: int | None
    members: str | os.PathLike[str] | None
    member_endpoints: str | None
    is_replacement: bool | None
    appointed_leader_id: int | None
    services_directory: str | os.PathLike[str] | None
    ingress_channel: str | None
    ingress_stream_id: int | None
    ingress_fragment_limit: int | None
    ingress_ipc_allowed: bool | None
    egress_channel: str | None
    log_channel: str | None
    log_stream_id: int | None
    log_control_enabled: bool | None
    consensus_channel: str | None
    consensus_stream_id: int | None
    consensus_control_enabled: bool | None
    replication_channel: str | None
    follower_catchup_channel: str | None
    leader_archive_control_channel: str | None
    snapshot_stream_id: int | None
    service_count: int | None
    max_sessions: int | None
    session_timeout_ns: int | None
    leader_heartbeat_timeout_ns: int | None
    leader_heartbeat_interval_ns: int | None
    startup_canvass_timeout_ns: int | None
    election_timeout_ns: int | None
    election_status_interval_ns: int | None
    termination_timeout_ns: int | None
    cluster_clock: str | None
    authenticator: str | Authenticator | None
    authorisation: str | AuthorisationService | None
    accept_standby_snapshots: bool | None
    standby_snapshot_delay_ns: int | None
    error_buffer_length: int | None
    cycle_threshold_ns: int | None
    snapshot_threshold_ns: int | None
    agent_role_name: str | None
    file_sync_level: int | None
    directory_delete_on_start: bool | None


class ContainerSettings(TypedDict, total=False):
    """Keyword arguments of a service's container; see :class:`headrace.cluster.ContainerConfig` for what they mean.

    ``None`` is as good as not given.
    """

    cluster_id: int | None
    cluster_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    aeron_directory: str | os.PathLike[str] | None
    archive_control_channel: str | None
    archive_control_stream_id: int | None
    archive_message_timeout_ns: int | None
    archive_term_buffer_length: int | None
    archive_mtu_length: int | None
    idle_strategy: str | None
    control_channel: str | None
    service_stream_id: int | None
    consensus_module_stream_id: int | None
    replay_channel: str | None
    replay_stream_id: int | None
    snapshot_channel: str | None
    archive_response_channel: str | None
    archive_response_stream_id: int | None
    archive_client_name: str | None
    log_fragment_limit: int | None
    app_version: int | None
    service_id: int | None
    service_name: str | None
    snapshot_stream_id: int | None
    is_responding: bool | None
    error_buffer_length: int | None
    cycle_threshold_ns: int | None
    snapshot_threshold_ns: int | None


class ClusterBackupSettings(TypedDict, total=False):
    """Keyword arguments of a cluster's backup; see :class:`headrace.cluster.ClusterBackupConfig` for what they mean.

    ``None`` is as good as not given.
    """

    cluster_id: int | None
    cluster_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    aeron_directory: str | os.PathLike[str] | None
    archive_control_channel: str | None
    archive_control_stream_id: int | None
    archive_message_timeout_ns: int | None
    archive_term_buffer_length: int | None
    archive_mtu_length: int | None
    idle_strategy: str | None
    members: str | os.PathLike[str] | None
    consensus_endpoints: str | None
    consensus_channel: str | None
    consensus_stream_id: int | None
    catchup_endpoint: str | None
    catchup_channel: str | None
    log_stream_id: int | None
    source_type: str | None
    initial_replay_start: str | None
    interval_ns: int | None
    response_timeout_ns: int | None
    progress_timeout_ns: int | None
    cool_down_interval_ns: int | None
    replication_progress_timeout_ns: int | None
    replication_progress_interval_ns: int | None
    source_control_channel: str | None
    source_control_stream_id: int | None
    source_response_channel: str | None
    source_response_stream_id: int | None
    error_buffer_length: int | None
    credentials: bytes | CredentialsSupplier | None
    archive_credentials: bytes | CredentialsSupplier | None
