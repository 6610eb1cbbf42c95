"""Settings of the media driver and the client, as frozen dataclasses.

Each field of :class:`DriverConfig` stands for one property of the Aeron specification. ``None`` leaves the
setting to the environment variable of the specification, and failing that to the default.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from headrace._checks import wrong

__all__ = [
    "ClientConfig",
    "ClientSettings",
    "DriverConfig",
    "DriverSettings",
    "default_directory",
    "directory_text",
]


def default_directory() -> str:
    """The directory a driver and its clients use when none is given.

    ``AERON_DIR`` if set, else ``/dev/shm/aeron-<user>``, or the same in the temporary directory where there is
    no ``/dev/shm``.
    """
    directory = os.environ.get("AERON_DIR")
    if directory:
        return directory
    import getpass
    import tempfile
    from pathlib import Path

    user = os.environ.get("USER") or getpass.getuser()
    base = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    return f"{base}/aeron-{user}"


class DriverSettings(TypedDict, total=False):
    """Keyword arguments of :class:`headrace.MediaDriver`; see :class:`DriverConfig` for what they mean."""

    directory: str | os.PathLike[str] | None
    dir_delete_on_start: bool | None
    dir_delete_on_shutdown: bool | None
    dir_warn_if_exists: bool | None
    threading_mode: str | None
    driver_timeout_ms: int | None
    termination_validator: str | None
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
    socket_receive_buffer_length: int | None
    socket_send_buffer_length: int | None
    sender_wildcard_port_range: str | None
    receiver_wildcard_port_range: str | None
    receiver_io_vector_capacity: int | None
    sender_io_vector_capacity: int | None
    network_publication_messages_per_send_max: int | None
    send_to_status_poll_ratio: int | None
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
    retransmit_unicast_delay_ns: int | None
    retransmit_unicast_linger_ns: int | None
    resend_max: int | None
    reliable_stream: bool | None
    tether_subscriptions: bool | None
    rejoin_stream: bool | None
    spies_simulate_connection: bool | None
    publication_reserved_session_id_low: int | None
    publication_reserved_session_id_high: int | None
    stream_session_limit: int | None
    image_limit: int | None
    image_memory_limit: int | None
    conductor_idle_strategy: str | None
    sender_idle_strategy: str | None
    receiver_idle_strategy: str | None
    shared_network_idle_strategy: str | None
    shared_idle_strategy: str | None
    conductor_cpu_affinity: int | None
    sender_cpu_affinity: int | None
    receiver_cpu_affinity: int | None
    conductor_cycle_threshold_ns: int | None
    sender_cycle_threshold_ns: int | None
    receiver_cycle_threshold_ns: int | None


def _setting(name: str) -> Any:
    return field(default=None, metadata={"property": name})


@dataclass(frozen=True, kw_only=True)
class DriverConfig:
    """Settings of a media driver.

    Lengths are bytes, durations carry their unit in the name. Values are checked by the driver when it starts;
    a wrong one raises :class:`headrace.ConfigError` naming the setting, the value and the rule.
    ``sender_io_vector_capacity`` and ``network_publication_messages_per_send_max`` have no effect on this driver. The
    page ``docs/reference/settings.md`` says what each setting means.
    """

    directory: str | os.PathLike[str] | None = _setting("aeron.dir")
    dir_delete_on_start: bool | None = _setting("aeron.dir.delete.on.start")
    dir_delete_on_shutdown: bool | None = _setting("aeron.dir.delete.on.shutdown")
    dir_warn_if_exists: bool | None = _setting("aeron.dir.warn.if.exists")
    threading_mode: str | None = _setting("aeron.threading.mode")
    driver_timeout_ms: int | None = _setting("aeron.driver.timeout")
    termination_validator: str | None = _setting("aeron.driver.termination.validator")
    perform_storage_checks: bool | None = _setting("aeron.perform.storage.checks")
    low_file_store_warning_threshold_bytes: int | None = _setting("aeron.low.file.store.warning.threshold")
    file_page_size_bytes: int | None = _setting("aeron.file.page.size")
    resource_free_limit: int | None = _setting("aeron.driver.resource.free.limit")
    conductor_buffer_length: int | None = _setting("aeron.conductor.buffer.length")
    clients_buffer_length: int | None = _setting("aeron.clients.buffer.length")
    counters_buffer_length: int | None = _setting("aeron.counters.buffer.length")
    error_buffer_length: int | None = _setting("aeron.error.buffer.length")
    loss_report_buffer_length: int | None = _setting("aeron.loss.report.buffer.length")
    counters_free_to_reuse_timeout_ns: int | None = _setting("aeron.counters.free.to.reuse.timeout")
    term_buffer_length: int | None = _setting("aeron.term.buffer.length")
    ipc_term_buffer_length: int | None = _setting("aeron.ipc.term.buffer.length")
    term_buffer_sparse_file: bool | None = _setting("aeron.term.buffer.sparse.file")
    mtu_length: int | None = _setting("aeron.mtu.length")
    ipc_mtu_length: int | None = _setting("aeron.ipc.mtu.length")
    publication_term_window_length: int | None = _setting("aeron.publication.term.window.length")
    ipc_publication_term_window_length: int | None = _setting("aeron.ipc.publication.term.window.length")
    receiver_initial_window_length: int | None = _setting("aeron.rcv.initial.window.length")
    socket_receive_buffer_length: int | None = _setting("aeron.socket.so_rcvbuf")
    socket_send_buffer_length: int | None = _setting("aeron.socket.so_sndbuf")
    sender_wildcard_port_range: str | None = _setting("aeron.sender.wildcard.port.range")
    receiver_wildcard_port_range: str | None = _setting("aeron.receiver.wildcard.port.range")
    receiver_io_vector_capacity: int | None = _setting("aeron.receiver.io.vector.capacity")
    sender_io_vector_capacity: int | None = _setting("aeron.sender.io.vector.capacity")
    network_publication_messages_per_send_max: int | None = _setting(
        "aeron.network.publication.max.messages.per.send"
    )
    send_to_status_poll_ratio: int | None = _setting("aeron.send.to.status.poll.ratio")
    timer_interval_ns: int | None = _setting("aeron.timer.interval")
    client_liveness_timeout_ns: int | None = _setting("aeron.client.liveness.timeout")
    image_liveness_timeout_ns: int | None = _setting("aeron.image.liveness.timeout")
    publication_unblock_timeout_ns: int | None = _setting("aeron.publication.unblock.timeout")
    publication_connection_timeout_ns: int | None = _setting("aeron.publication.connection.timeout")
    publication_linger_timeout_ns: int | None = _setting("aeron.publication.linger.timeout")
    untethered_window_limit_timeout_ns: int | None = _setting("aeron.untethered.window.limit.timeout")
    untethered_linger_timeout_ns: int | None = _setting("aeron.untethered.linger.timeout")
    untethered_resting_timeout_ns: int | None = _setting("aeron.untethered.resting.timeout")
    receiver_status_message_timeout_ns: int | None = _setting("aeron.rcv.status.message.timeout")
    nak_unicast_delay_ns: int | None = _setting("aeron.nak.unicast.delay")
    nak_unicast_retry_delay_ratio: int | None = _setting("aeron.nak.unicast.retry.delay.ratio")
    retransmit_unicast_delay_ns: int | None = _setting("aeron.retransmit.unicast.delay")
    retransmit_unicast_linger_ns: int | None = _setting("aeron.retransmit.unicast.linger")
    resend_max: int | None = _setting("aeron.max.resend")
    reliable_stream: bool | None = _setting("aeron.reliable.stream")
    tether_subscriptions: bool | None = _setting("aeron.tether.subscriptions")
    rejoin_stream: bool | None = _setting("aeron.rejoin.stream")
    spies_simulate_connection: bool | None = _setting("aeron.spies.simulate.connection")
    publication_reserved_session_id_low: int | None = _setting("aeron.publication.reserved.session.id.low")
    publication_reserved_session_id_high: int | None = _setting("aeron.publication.reserved.session.id.high")
    stream_session_limit: int | None = _setting("aeron.driver.stream.session.limit")
    image_limit: int | None = _setting("aeron.headrace.image.limit")
    image_memory_limit: int | None = _setting("aeron.headrace.image.memory.limit")
    conductor_idle_strategy: str | None = _setting("aeron.conductor.idle.strategy")
    sender_idle_strategy: str | None = _setting("aeron.sender.idle.strategy")
    receiver_idle_strategy: str | None = _setting("aeron.receiver.idle.strategy")
    shared_network_idle_strategy: str | None = _setting("aeron.sharednetwork.idle.strategy")
    shared_idle_strategy: str | None = _setting("aeron.shared.idle.strategy")
    conductor_cpu_affinity: int | None = _setting("aeron.conductor.cpu.affinity")
    sender_cpu_affinity: int | None = _setting("aeron.sender.cpu.affinity")
    receiver_cpu_affinity: int | None = _setting("aeron.receiver.cpu.affinity")
    conductor_cycle_threshold_ns: int | None = _setting("aeron.driver.conductor.cycle.threshold")
    sender_cycle_threshold_ns: int | None = _setting("aeron.driver.sender.cycle.threshold")
    receiver_cycle_threshold_ns: int | None = _setting("aeron.driver.receiver.cycle.threshold")
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further settings by the specification's property names, with its value syntax (``"16m"``, ``"5s"``).

    A keyword above wins over the same setting here.
    """

    def to_properties(self) -> dict[str, str]:
        """Every setting given, by property name, as text."""
        result = dict(self.properties)
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if value is not None and "property" in setting.metadata:
                result[setting.metadata["property"]] = _text(setting.name, value)
        return result


def directory_text(directory: object) -> str:
    """A driver's directory as text.

    Raises:
        ConfigError: It is no path.
    """
    text = os.fspath(directory) if isinstance(directory, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise wrong("directory", directory, "must be a path, as text or a pathlib.Path")
    return text


# The core holds times as 64-bit numbers.
_TIME_MAX = 2**63 - 1


def _text(name: str, value: object) -> str:
    if name == "directory":
        return directory_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str):
            return text.upper() if name == "threading_mode" else text
    raise wrong(name, value, "must be text, a whole number or a boolean")


class ClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Client.connect`; see :class:`ClientConfig` for what they mean."""

    driver_timeout_ms: int
    keepalive_interval_ns: int
    idle_sleep_ns: int
    resource_linger_ns: int
    client_name: str
    pre_touch_mapped_memory: bool


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """Settings of a client. Durations carry their unit in the name."""

    directory: str | os.PathLike[str] | None = None
    """Directory of the driver; ``None`` for :func:`headrace.default_directory`."""

    driver_timeout_ms: int = 10_000
    """How long to wait for the driver to appear or to answer, and how old its heartbeat may grow."""

    keepalive_interval_ns: int = 500_000_000
    """Time between two signs of life to the driver."""

    idle_sleep_ns: int = 16_000_000
    """Sleep of the client's own thread between two turns."""

    resource_linger_ns: int = 3_000_000_000
    """How long a log stays mapped after its image went away."""

    client_name: str = ""
    """Shown in the label of the client's heartbeat counter; at most 100 characters."""

    pre_touch_mapped_memory: bool = False
    """Touch each page of a log when it is mapped, so that no message pays for the page fault."""

    def __post_init__(self) -> None:
        for name in ("driver_timeout_ms", "keepalive_interval_ns", "idle_sleep_ns", "resource_linger_ns"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _TIME_MAX:
                raise wrong(name, value, f"must be a whole number from 0 to {_TIME_MAX}")
