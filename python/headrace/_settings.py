"""The settings of driver and client, as keywords and as frozen dataclasses.

Made by `scripts/settings.py` from the tables in Rust; do not edit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from headrace._config import ClientValues, DriverValues

__all__ = ["ClientConfig", "ClientSettings", "DriverConfig", "DriverSettings"]


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
    event_log: str | None
    event_log_disable: str | None
    event_log_filename: str | None
    event_log_file_max_length: int | None
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
    """Delete the directory, and every file in it, before starting, without a check: even if another driver
    runs there, or the files are not a driver's. Without this setting the driver deletes only the directory of
    a dead driver. Default: ``false``."""

    dir_delete_on_shutdown: bool | None = _setting(None, "boolean", "aeron.dir.delete.on.shutdown")
    """Delete the directory, and every file in it, when the driver stops in order. Default: ``false``."""

    dir_warn_if_exists: bool | None = _setting(None, "boolean", "aeron.dir.warn.if.exists")
    """Print a warning at the start if the directory exists. Default: ``false``."""

    driver_timeout_ms: int | None = _setting(None, "milliseconds", "aeron.driver.timeout")
    """How old the heartbeat of another driver in the directory may be before that driver counts as dead. A
    driver of Headrace that was killed counts as dead at once. Default: ``10000``."""

    termination_validator: str | None = _setting(None, "text", "aeron.driver.termination.validator")
    """Whether a client may ask the driver to stop: allow or deny. Default: ``deny``."""

    print_configuration: bool | None = _setting(None, "boolean", "aeron.print.configuration")
    """Print every setting at the start; only ``headraced`` does. Default: ``false``."""

    event_log: str | None = _setting(None, "text", "aeron.event.log")
    """Print each change of state of the driver and of what it has, while it runs: ``admin`` or ``all``, or a
    list of ``driver``, ``client``, ``publication``, ``connection``, ``subscription``, ``image``, ``link`` and
    ``channel``; unset or 0: none. The name of an event of Aeron's drivers stands for what it is about, and a
    number for all. A thread of its own prints, in a driver embedded in a program too. Default: none."""

    event_log_disable: str | None = _setting(None, "text", "aeron.event.log.disable")
    """Kinds of events that are not printed although ``aeron.event.log`` asks for them; written as for
    ``aeron.event.log``. Default: none."""

    event_log_filename: str | None = _setting(None, "text", "aeron.event.log.filename")
    """The file to which the driver appends the events of ``aeron.event.log``; unset: standard output.
    Default: none."""

    event_log_file_max_length: int | None = _setting(None, "bytes", "aeron.event.log.file.max.length")
    """When the file of ``aeron.event.log.filename`` reaches this length, the driver renames it to ``NAME.1``,
    **replaces an older ``NAME.1``**, and begins a new file. Default: ``9223372036854775807``."""

    fallback_logger: str | None = _setting(None, "text", "aeron.fallback.logger")
    """Where an error goes that the error log has no room for: stderr, stdout or no_op. Only the first goes
    there; later ones are counted. Default: ``stderr``."""

    debug_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.debug.timeout")
    """The liveness time-outs of clients and images, and the connection and unblock time-outs of publications,
    if a debugger is attached to the driver when it starts; unset: what their own settings say. The simulated
    world knows no debugger. Default: ``-1``."""

    perform_storage_checks: bool | None = _setting(None, "boolean", "aeron.perform.storage.checks")
    """Refuse to create a log for which the file system has no room. Default: ``true``."""

    low_file_store_warning_threshold_bytes: int | None = _setting(
        None, "bytes", "aeron.low.file.store.warning.threshold"
    )
    """With less free space than this where logs are made, the driver warns in the error log, and allocates
    sparse logs in full. Default: ``160m``."""

    file_page_size_bytes: int | None = _setting(None, "bytes", "aeron.file.page.size")
    """Files are as long as a multiple of this. Default: ``4k``."""

    resource_free_limit: int | None = _setting(None, "number", "aeron.driver.resource.free.limit")
    """How many logs the driver deletes in one turn. Default: ``1``."""

    conductor_buffer_length: int | None = _setting(None, "bytes", "aeron.conductor.buffer.length")
    """Size of the ring in which clients send their commands. Default: ``1049344``."""

    clients_buffer_length: int | None = _setting(None, "bytes", "aeron.clients.buffer.length")
    """Size of the broadcast buffer in which the driver answers its clients. Default: ``1048704``."""

    counters_buffer_length: int | None = _setting(None, "bytes", "aeron.counters.buffer.length")
    """Room for counter values, 128 bytes each; labels take four times as much beside it. Default: ``8m``."""

    error_buffer_length: int | None = _setting(None, "bytes", "aeron.error.buffer.length")
    """Room for distinct errors in the error log. Default: ``4m``."""

    loss_report_buffer_length: int | None = _setting(None, "bytes", "aeron.loss.report.buffer.length")
    """Room for the entries of ``headrace loss``. Default: ``1m``."""

    counters_free_to_reuse_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.counters.free.to.reuse.timeout"
    )
    """How long a freed counter is not used again, so that readers do not take the next counter for it.
    Default: ``1s``."""

    term_buffer_length: int | None = _setting(None, "bytes", "aeron.term.buffer.length")
    """Length of a term of a UDP stream; a log holds three. A message may be an eighth of it, at most 16 MiB.
    Default: ``16m``."""

    ipc_term_buffer_length: int | None = _setting(None, "bytes", "aeron.ipc.term.buffer.length")
    """Length of a term of an IPC stream; a log holds three. A message may be an eighth of it, at most 16 MiB.
    Default: ``64m``."""

    term_buffer_sparse_file: bool | None = _setting(None, "boolean", "aeron.term.buffer.sparse.file")
    """Whether logs take memory only as publishers and receivers write them. Default: ``true``."""

    mtu_length: int | None = _setting(None, "bytes", "aeron.mtu.length")
    """Longest datagram without its UDP header; longer messages become several. At most the network's MTU less
    28. Default: ``1408``."""

    ipc_mtu_length: int | None = _setting(None, "bytes", "aeron.ipc.mtu.length")
    """Longest frame, header included, over shared memory; longer messages become several frames. Default:
    ``1408``."""

    publication_term_window_length: int | None = _setting(
        None, "bytes", "aeron.publication.term.window.length"
    )
    """How far a publisher may be ahead of the sender; 0: half a term. Default: ``0``."""

    ipc_publication_term_window_length: int | None = _setting(
        None, "bytes", "aeron.ipc.publication.term.window.length"
    )
    """How far an IPC publisher may be ahead of its slowest subscriber; 0: half a term. Default: ``0``."""

    receiver_initial_window_length: int | None = _setting(None, "bytes", "aeron.rcv.initial.window.length")
    """How much a sender may have on the way to a receiver, at most. Default: ``128k``."""

    receiver_local_window_length: int | None = _setting(
        None, "bytes", "aeron.headrace.rcv.local.window.length"
    )
    """As ``aeron.rcv.initial.window.length``, for a sender on the receiver's own host, where no network can
    overflow: at most this, half of the receive buffer that the system grants, and half a term. In groups it
    applies only to senders whose driver is Headrace's and whose flow control is min or tagged. Where
    aeron.rcv.initial.window.length or rcv-wnd of the channel is set, that goes for all senders. 0: no sender
    is treated as being on this host. Default: ``2m``."""

    socket_receive_buffer_length: int | None = _setting(None, "bytes", "aeron.socket.so_rcvbuf")
    """Receive buffer of each socket; 0 keeps the kernel's default. Not less than the receiver's window. With
    the default, sockets also ask for room for the window of senders on this host, and take what the system
    grants. Default: ``128k``."""

    socket_send_buffer_length: int | None = _setting(None, "bytes", "aeron.socket.so_sndbuf")
    """Send buffer of each socket; 0 keeps the kernel's default. Default: ``0``."""

    socket_multicast_ttl: int | None = _setting(None, "number", "aeron.socket.multicast.ttl")
    """Time to live of datagrams to multicast groups whose channel gives none; 0 keeps the kernel's default,
    1, with which they pass no router. Default: ``0``."""

    sender_wildcard_port_range: str | None = _setting(None, "text", "aeron.sender.wildcard.port.range")
    """Ports for ``control`` addresses of publications with port 0: first and last; other publications have a
    port of the kernel's choice. 0 0 lets the kernel choose all. The driver passes over ports of the range
    that other programs hold, at most 1,000 for one channel. Default: ``0 0``."""

    receiver_wildcard_port_range: str | None = _setting(None, "text", "aeron.receiver.wildcard.port.range")
    """As ``aeron.sender.wildcard.port.range``, for the ``endpoint`` of subscriptions with port 0. A port that
    is in both ranges is free for one of them only. Default: ``0 0``."""

    connects_sockets: bool | None = _setting(None, "boolean", "aeron.driver.connect")
    """Whether the socket of a publication with one endpoint is connected to it. A connected socket takes
    status messages from that address alone; without a connection they may come from another address of the
    same machine. Default: ``true``."""

    receiver_io_vector_capacity: int | None = _setting(None, "number", "aeron.receiver.io.vector.capacity")
    """How many datagrams one system call may receive, where the kernel does not join them. Default:
    ``16``."""

    sender_io_vector_capacity: int | None = _setting(None, "number", "aeron.sender.io.vector.capacity")
    """How many datagrams one system call may send; unset: as many as are ready. Default: none."""

    max_messages_per_send: int | None = _setting(
        None, "number", "aeron.network.publication.max.messages.per.send"
    )
    """How many datagrams of a publication the sender sends before the next publication has its turn; unset:
    128 KiB. Default: none."""

    send_to_status_poll_ratio: int | None = _setting(None, "number", "aeron.send.to.status.poll.ratio")
    """While it sends, the sender looks for status messages once in this number of turns. Default: ``6``."""

    incoming_interceptors: str | None = _setting(None, "text", "aeron.udp.channel.incoming.interceptors")
    """What drops datagrams on purpose as they arrive, at every socket: loss, fixed-loss, multi-gap-loss,
    separated by commas. For tests. Default: none."""

    outgoing_interceptors: str | None = _setting(None, "text", "aeron.udp.channel.outgoing.interceptors")
    """As ``aeron.udp.channel.incoming.interceptors``, for datagrams that leave: those pass all of them.
    Default: none."""

    loss_args: str | None = _setting(None, "text", "aeron.udp.channel.transport.bindings.loss.args")
    """What loss drops: rate=, from 0 to 1, seed= and recv-msg-mask=, a hexadecimal bit for each type of
    frame, separated by bars. Default: none."""

    fixed_loss_args: str | None = _setting(
        None, "text", "aeron.udp.channel.transport.bindings.fixed.loss.args"
    )
    """What fixed-loss drops when it is sent first: term-id=, term-offset= and length=, separated by bars.
    Default: none."""

    multi_gap_loss_args: str | None = _setting(
        None, "text", "aeron.udp.channel.transport.bindings.multi.gap.loss.args"
    )
    """What multi-gap-loss drops when it is sent first: term-id=, gap-radix=, gap-length= and total-gaps=,
    separated by bars. Default: none."""

    send_channel_endpoints: str | None = _setting(None, "text", "aeron.SendChannelEndpoint.supplier")
    """``io.aeron.driver.ext.DebugSendChannelEndpointSupplier``: sockets lose what
    ``aeron.debug.send.data.loss.rate`` and ``aeron.debug.send.control.loss.rate`` say. Default:
    ``io.aeron.driver.DefaultSendChannelEndpointSupplier``."""

    receive_channel_endpoints: str | None = _setting(None, "text", "aeron.ReceiveChannelEndpoint.supplier")
    """``io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier``: sockets lose what
    ``aeron.debug.receive.data.loss.rate`` and ``aeron.debug.receive.control.loss.rate`` say. Default:
    ``io.aeron.driver.DefaultReceiveChannelEndpointSupplier``."""

    debug_send_data_loss_rate: str | None = _setting(None, "text", "aeron.debug.send.data.loss.rate")
    """Part of the data, SETUPs and heartbeats that publications send and that is lost on purpose, 0.0 to 1.0;
    for tests, and only with the supplier for debugging. Default: none."""

    debug_send_data_loss_seed: int | None = _setting(None, "number", "aeron.debug.send.data.loss.seed")
    """Which frames ``aeron.debug.send.data.loss.rate`` loses: the same seed loses the same ones; -1: other
    ones each time. Default: ``-1``."""

    debug_send_control_loss_rate: str | None = _setting(None, "text", "aeron.debug.send.control.loss.rate")
    """Part of the status messages, NAKs and error frames that publications receive, lost on purpose as with
    ``aeron.debug.send.data.loss.rate``. Default: none."""

    debug_send_control_loss_seed: int | None = _setting(None, "number", "aeron.debug.send.control.loss.seed")
    """Which frames ``aeron.debug.send.control.loss.rate`` loses, as ``aeron.debug.send.data.loss.seed`` says.
    Default: ``-1``."""

    debug_receive_data_loss_rate: str | None = _setting(None, "text", "aeron.debug.receive.data.loss.rate")
    """Part of the data, SETUPs and heartbeats that subscriptions receive, lost on purpose as with
    ``aeron.debug.send.data.loss.rate``. Default: none."""

    debug_receive_data_loss_seed: int | None = _setting(None, "number", "aeron.debug.receive.data.loss.seed")
    """Which frames ``aeron.debug.receive.data.loss.rate`` loses, as ``aeron.debug.send.data.loss.seed`` says.
    Default: ``-1``."""

    debug_receive_control_loss_rate: str | None = _setting(
        None, "text", "aeron.debug.receive.control.loss.rate"
    )
    """Part of the status messages, NAKs and error frames that subscriptions send, lost on purpose as with
    ``aeron.debug.send.data.loss.rate``. Default: none."""

    debug_receive_control_loss_seed: int | None = _setting(
        None, "number", "aeron.debug.receive.control.loss.seed"
    )
    """Which frames ``aeron.debug.receive.control.loss.rate`` loses, as ``aeron.debug.send.data.loss.seed``
    says. Default: ``-1``."""

    timer_interval_ns: int | None = _setting(None, "nanoseconds", "aeron.timer.interval")
    """How often the driver checks time-outs. Default: ``1s``."""

    client_liveness_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.client.liveness.timeout")
    """The driver treats a client without a heartbeat for this time as dead, and releases its publications,
    subscriptions and counters. Default: ``10s``."""

    image_liveness_timeout_ns: int | None = _setting(None, "nanoseconds", "aeron.image.liveness.timeout")
    """An image that receives nothing for this time ends. Default: ``10s``."""

    publication_unblock_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.unblock.timeout"
    )
    """A claim that its publisher does not finish within this time becomes padding. Default: ``15s``."""

    publication_connection_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.connection.timeout"
    )
    """A publication that no receiver has answered for this time is no longer connected. Default: ``5s``."""

    publication_linger_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.publication.linger.timeout"
    )
    """How long the log of a closed publication is kept, for receivers that ask for lost data. Default:
    ``5s``."""

    untethered_window_limit_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.window.limit.timeout"
    )
    """An untethered subscriber that stays behind another reader and holds its publisher back for this time
    loses its image. Default: ``5s``."""

    untethered_linger_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.linger.timeout"
    )
    """How long a dropped subscriber may still read the rest of its image; -1: the window limit's time-out.
    Default: ``-1``."""

    untethered_resting_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.untethered.resting.timeout"
    )
    """How long a dropped subscriber waits before it gets another image. Default: ``10s``."""

    receiver_status_message_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.rcv.status.message.timeout"
    )
    """How often a receiver sends its position to the sender, if no progress makes it send it sooner. Default:
    ``200ms``."""

    nak_unicast_delay_ns: int | None = _setting(None, "nanoseconds", "aeron.nak.unicast.delay")
    """How long a receiver waits before it asks for lost data: longer where the network reorders. Default:
    ``1us``."""

    nak_unicast_retry_delay_ratio: int | None = _setting(
        None, "number", "aeron.nak.unicast.retry.delay.ratio"
    )
    """A receiver asks again after ``aeron.nak.unicast.delay`` times this number. Default: ``100``."""

    nak_multicast_group_size: int | None = _setting(None, "number", "aeron.nak.multicast.group.size")
    """Expected number of receivers on multicast, for the random delay before they ask for lost data. Default:
    ``10``."""

    nak_multicast_max_backoff_ns: int | None = _setting(
        None, "nanoseconds", "aeron.nak.multicast.max.backoff"
    )
    """Longest random delay before a receiver on multicast asks for lost data. Default: ``10ms``."""

    retransmit_unicast_delay_ns: int | None = _setting(None, "nanoseconds", "aeron.retransmit.unicast.delay")
    """How long the sender waits before it sends lost data again. Default: ``0ns``."""

    retransmit_unicast_linger_ns: int | None = _setting(
        None, "nanoseconds", "aeron.retransmit.unicast.linger"
    )
    """How long the sender ignores further requests for data that it has just sent again. Default:
    ``10ms``."""

    adaptive_loss: bool | None = _setting(None, "boolean", "aeron.headrace.loss.adaptive")
    """Whether receivers ask for lost data, and the sender drops further requests for it, by the measured
    round trip and the number of receivers (true) or by the fixed delays of the specification (false). A delay
    of the specification that is set to another value than its default, and nak-delay of a channel, stay
    fixed. Default: ``true``."""

    resend_max: int | None = _setting(None, "number", "aeron.max.resend")
    """How many repairs the sender does at a time for a stream whose receivers form a group; for other streams
    it is one. Default: ``16``."""

    reliable_stream: bool | None = _setting(None, "boolean", "aeron.reliable.stream")
    """Whether receivers ask for lost data (true) or fill gaps with padding (false): then lost messages are
    missing. Default: ``true``."""

    tether_subscriptions: bool | None = _setting(None, "boolean", "aeron.tether.subscriptions")
    """Whether a slow subscriber holds its publisher back (true) or loses its image (false). Default:
    ``true``."""

    rejoin_stream: bool | None = _setting(None, "boolean", "aeron.rejoin.stream")
    """Whether a subscription accepts a stream again after its image ended. Default: ``true``."""

    spies_simulate_connection: bool | None = _setting(None, "boolean", "aeron.spies.simulate.connection")
    """Whether a spy alone keeps a publication connected. Default: ``false``."""

    receiver_group_consideration: str | None = _setting(None, "text", "aeron.receiver.group.consideration")
    """Whether receivers behave as several on one stream: true, false, or infer from the channel. Default:
    ``infer``."""

    publication_reserved_session_id_low: int | None = _setting(
        None, "number", "aeron.publication.reserved.session.id.low"
    )
    """Beginning of the range of session ids that the driver never chooses itself. Default: ``-1``."""

    publication_reserved_session_id_high: int | None = _setting(
        None, "number", "aeron.publication.reserved.session.id.high"
    )
    """End of the range of session ids that the driver never chooses itself. Default: ``1000``."""

    stream_session_limit: int | None = _setting(None, "number", "aeron.driver.stream.session.limit")
    """How many sessions one stream of one endpoint may have. Default: ``2147483647``."""

    image_limit: int | None = _setting(None, "number", "aeron.headrace.image.limit")
    """Most images of publishers on other hosts, of all streams. A SETUP beyond it is refused, with an entry
    in the error log; the publisher repeats it. Default: ``1024``."""

    image_memory_limit: int | None = _setting(None, "bytes", "aeron.headrace.image.memory.limit")
    """Most bytes of those images' logs, three terms each. On a small ``/dev/shm`` set it lower, so that
    forged SETUPs leave room for your own publications. Default: ``4g``."""

    newcomer_allowance: int | None = _setting(None, "bytes", "aeron.headrace.newcomer.allowance")
    """Bytes a second that a channel with ``control-mode=dynamic`` may send to addresses that ask for its
    streams, beyond as many as came from them. 0: none, since those addresses can be forged. A receiver of
    Aeron's cannot say which stream it wants, and is told of one a second: where such receivers join a channel
    of many streams, in a network that strangers cannot reach, 4k tells them of up to 97 at once. Default:
    ``0``."""

    event_limit: int | None = _setting(None, "number", "aeron.headrace.event.limit")
    """How many changes of state the event log keeps, the newest, for ``headrace events``: 256 bytes each. 0:
    no event log. Default: ``1024``."""

    unicast_flow_control_rrwm: int | None = _setting(None, "number", "aeron.unicast.flow.control.rrwm")
    """At one request the sender sends again at most this number times 128 KiB, or times half a term if that
    is less. Default: ``16``."""

    multicast_flow_control: str | None = _setting(None, "text", "aeron.multicast.FlowControl.supplier")
    """What decides how far a publication to a group of receivers may go, if its channel has no ``fc``:
    multicast_max, the fastest receiver; multicast_min, the slowest; multicast_tagged, the slowest of those
    with the group's tag. Default: ``multicast_max``."""

    unicast_flow_control: str | None = _setting(None, "text", "aeron.unicast.FlowControl.supplier")
    """How far a publication to one receiver may go: ``unicast_max``, as far as that receiver has room, or as
    if it were of a group: ``multicast_max``, ``multicast_min``, ``multicast_tagged``, with the group's time-
    out, tag and size. Default: ``unicast_max``."""

    multicast_flow_control_rrwm: int | None = _setting(None, "number", "aeron.multicast.flow.control.rrwm")
    """As ``aeron.unicast.flow.control.rrwm``, for a publication to a group of receivers. Default: ``4``."""

    flow_control_group_tag: int | None = _setting(None, "number", "aeron.flow.control.group.tag")
    """Group whose receivers count for tagged flow control. Default: ``-1``."""

    flow_control_group_min_size: int | None = _setting(None, "number", "aeron.flow.control.group.min.size")
    """How many receivers min and tagged flow control need before the publication is connected. Default:
    ``0``."""

    flow_control_receiver_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.flow.control.receiver.timeout"
    )
    """A receiver that is silent for this time no longer counts for min and tagged flow control. Default:
    ``5s``."""

    receiver_group_tag: int | None = _setting(None, "number", "aeron.receiver.group.tag")
    """Group that this driver's receivers say they belong to, for tagged flow control. Default: none."""

    congestion_control: str | None = _setting(None, "text", "aeron.CongestionControl.supplier")
    """How the window of a receiver changes: default as the channel's ``cc`` says; static or cubic for every
    image, whatever its channel says. Default: ``default``."""

    cubic_measure_rtt: bool | None = _setting(None, "boolean", "aeron.CubicCongestionControl.measureRtt")
    """Whether cubic congestion control measures the round trip to the publisher. Default: ``false``."""

    cubic_initial_rtt_ns: int | None = _setting(
        None, "nanoseconds", "aeron.CubicCongestionControl.initialRtt"
    )
    """The round trip that cubic congestion control assumes until it has measured one. Default: ``100us``."""

    cubic_tcp_mode: bool | None = _setting(None, "boolean", "aeron.CubicCongestionControl.tcpMode")
    """Whether cubic congestion control grows at least as fast as the classic one of TCP. Default:
    ``false``."""

    resolver_name: str | None = _setting(None, "text", "aeron.driver.resolver.name")
    """The name under which other drivers find this one, in channels and in the counter of resolution changes.
    Default: none."""

    resolver_interface: str | None = _setting(None, "text", "aeron.driver.resolver.interface")
    """With an interface, address[:port][/prefix] or {name}[:port], this driver and others tell each other
    their names and addresses through a socket bound there, and channels may have the names of drivers as
    hosts. Needs the name of this driver. Default: none."""

    resolver_bootstrap_neighbor: str | None = _setting(
        None, "text", "aeron.driver.resolver.bootstrap.neighbor"
    )
    """Drivers that this one tells its name first: at most 20 times host:port, separated by commas. The others
    follow from what those tell. Default: none."""

    resolver_neighbor_timeout_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.neighbor.timeout"
    )
    """A driver that was not heard for this time is forgotten, with its name. Default: ``10s``."""

    resolver_self_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.self.resolution.interval"
    )
    """How often the driver tells others its own name. Default: ``1s``."""

    resolver_neighbor_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.neighbor.resolution.interval"
    )
    """How often the driver tells others all names that it knows. Default: ``2s``."""

    resolver_bootstrap_neighbor_resolution_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.resolver.bootstrap.neighbor.resolution.interval"
    )
    """How often the driver looks up again the bootstrap neighbors that it hears nothing from. Default:
    ``10s``."""

    name_resolver: str | None = _setting(None, "text", "aeron.name.resolver.supplier")
    """Who is asked for a name before the name servers: default, other drivers if there is a resolver
    interface; driver, the same, and the interface must be given; csv_table, a table for tests. Default:
    ``default``."""

    name_resolver_init_args: str | None = _setting(None, "text", "aeron.name.resolver.init.args")
    """The table for tests: rows of name,host,other host separated by bars. A counter of each row says which
    host it is. Default: none."""

    reresolution_check_interval_ns: int | None = _setting(
        None, "nanoseconds", "aeron.driver.reresolution.check.interval"
    )
    """How soon the driver follows a name whose address changes: it looks up again the names that it hears
    nothing from for half of this time, 500 ms at least, and as often after that; 0: never. Default:
    ``1s``."""

    name_resolver_threshold_ns: int | None = _setting(None, "nanoseconds", "aeron.name.resolver.threshold")
    """The driver counts name lookups that take longer, and notes them in the error log. Default: ``5s``."""

    threading_mode: str | None = _setting(None, "text", "aeron.threading.mode")
    """How many threads the driver's work is done on. DEDICATED: the conductor, the sender and the receiver
    have a thread each. SHARED_NETWORK: the sender and the receiver share a thread. SHARED: all three share
    one thread. INVOKER: they have no thread, and work when the program calls the driver. Unset: DEDICATED;
    where a container or an affinity mask leaves the driver only some of the machine's processors,
    SHARED_NETWORK with two of them and SHARED with fewer than two. Default: none."""

    thread_naming: str | None = _setting(None, "text", "aeron.thread.naming")
    """The names of the driver's threads: classic or new. Default: ``classic``."""

    conductor_idle_strategy: str | None = _setting(None, "text", "aeron.conductor.idle.strategy")
    """What the conductor's thread does when a turn found no work. Default: ``blocking``."""

    conductor_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.conductor.idle.strategy.init.args"
    )
    """Arguments of the conductor's idle strategy. Default: none."""

    sender_idle_strategy: str | None = _setting(None, "text", "aeron.sender.idle.strategy")
    """What the sender's thread does when a turn found no work. Default: ``blocking``."""

    sender_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.sender.idle.strategy.init.args"
    )
    """Arguments of the sender's idle strategy. Default: none."""

    receiver_idle_strategy: str | None = _setting(None, "text", "aeron.receiver.idle.strategy")
    """What the receiver's thread does when a turn found no work. Default: ``blocking``."""

    receiver_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.receiver.idle.strategy.init.args"
    )
    """Arguments of the receiver's idle strategy. Default: none."""

    shared_network_idle_strategy: str | None = _setting(None, "text", "aeron.sharednetwork.idle.strategy")
    """What the thread of sender and receiver in mode SHARED_NETWORK does when a turn found no work. Default:
    ``blocking``."""

    shared_network_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.sharednetwork.idle.strategy.init.args"
    )
    """Arguments of the idle strategy of sender and receiver in mode SHARED_NETWORK. Default: none."""

    shared_idle_strategy: str | None = _setting(None, "text", "aeron.shared.idle.strategy")
    """What the thread of conductor, sender and receiver in mode SHARED does when a turn found no work.
    Default: ``blocking``."""

    shared_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.shared.idle.strategy.init.args"
    )
    """Arguments of the idle strategy of mode SHARED. Default: none."""

    resource_agent_idle_strategy: str | None = _setting(
        None, "text", "aeron.driver.native.resource.agent.idle.strategy"
    )
    """What the thread that creates and deletes logs does when a turn found no work. Default: ``blocking``."""

    resource_agent_idle_strategy_init_args: str | None = _setting(
        None, "text", "aeron.driver.native.resource.agent.idle.strategy.init.args"
    )
    """Arguments of the idle strategy of the thread that creates and deletes logs. Default: none."""

    conductor_cpu_affinity: int | None = _setting(None, "number", "aeron.conductor.cpu.affinity")
    """The processor on which the conductor's thread runs; in mode SHARED, the one that all agents share. -1
    leaves the choice to the kernel. Default: ``-1``."""

    sender_cpu_affinity: int | None = _setting(None, "number", "aeron.sender.cpu.affinity")
    """Processor of the sender's thread, in mode SHARED_NETWORK of the thread of sender and receiver; -1
    leaves it to the kernel. Default: ``-1``."""

    receiver_cpu_affinity: int | None = _setting(None, "number", "aeron.receiver.cpu.affinity")
    """Processor of the receiver's thread; -1 leaves it to the kernel. Default: ``-1``."""

    resource_agent_cpu_affinity: int | None = _setting(
        None, "number", "aeron.driver.native.resource.agent.cpu.affinity"
    )
    """Processor of the thread that creates and deletes logs; -1 leaves it to the kernel. Default: ``-1``."""

    cpuset_affinity: bool | None = _setting(None, "boolean", "aeron.driver.cpuset.affinity")
    """Whether the numbers in ``aeron.sender.cpu.affinity`` and its like count the processors that the driver
    may use, from 0 (true), or those of the machine (false). With true the same numbers work in each
    container, whatever processors it was given. Default: ``false``."""

    cpuset_warnings_as_errors: bool | None = _setting(
        None, "boolean", "aeron.driver.cpuset.warnings_as_errors"
    )
    """With ``aeron.driver.cpuset.affinity``, the driver warns in the error log of bound threads on processors
    that share no cache, and of processors that other programs may share a core with. With this setting it
    does not start then. Default: ``false``."""

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
    """Sleep of the client's own thread between two turns."""

    resource_linger_ns: int = _setting(3_000_000_000, "nanoseconds")
    """How long a log stays mapped after its image or publication went away."""

    client_name: str = _setting("", "text")
    """Name in the label of the client's heartbeat counter, by which tools call the client. A Python client
    without one is called by its program and process, as in ``ticker.py pid=4711``; not so on a clock of the
    program or of a simulated world."""

    pre_touch_mapped_memory: bool = _setting(False, "boolean")
    """Touch each page of a log when it is mapped, so that no message pays for the page fault."""
