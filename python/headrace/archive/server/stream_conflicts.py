"""Ensures that only one archive takes requests on a stream: two would answer each client and share its requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from headrace._base.exceptions import ConfigError
from headrace.archive.protocol.counters import (
    CLIENT_HEARTBEAT,
    ERRORS,
    SUBSCRIBER_POSITION,
    archive_id_of_errors,
    session_id_of,
)
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from headrace.client import Client, CounterRecord

__all__ = ["RequestStream", "check_stream_conflicts"]

# The driver links streams of one machine at once; a stream of the network first asks who is there.
_CONNECT_TIMEOUT_S = 0.5
# A client says every half second that it lives; one that was killed is a subscriber until the driver gives it up.
_HEARTBEAT_TIMEOUT_S = 2.0
_LOOK_INTERVAL_S = 0.01


class RequestStream(NamedTuple):
    """A stream of requests, and its setting."""

    setting: str
    channel: str
    stream_id: int


def check_stream_conflicts(client: Client, streams: Iterable[RequestStream]) -> None:
    """Refuse to run beside an archive of the same driver that takes requests on one of these streams.

    Called when the archive itself has subscribed: of two that start at once, one sees the other. If other archives are
    on the driver, waits until they were checked.

    Raises:
        ConfigError: There is one. An archive that was killed does not count.
    """
    errors = (one for one in client.counters if one.type_id == ERRORS)
    others = {one.owner_id: archive_id_of_errors(one.key) for one in errors}
    others.pop(client.client_id, None)
    if not others:
        return
    for stream in streams:
        for owner_id in _listeners(client, stream) & others.keys():
            if _is_alive(client, owner_id):
                rule = (
                    f"archive {others[owner_id]} takes requests there, on the same driver: "
                    "give this archive another stream id or another driver"
                )
                text = f"{stream.setting}={stream.stream_id} on {stream.channel}: {rule}"
                raise ConfigError(text, stream.setting, str(stream.stream_id), rule)


def _listeners(client: Client, stream: RequestStream) -> set[int]:
    """The clients that subscribe to a stream, as a publication of it shows; this one is among them."""
    with client.add_exclusive_publication(stream.channel, stream.stream_id) as probe:
        timeout_s = 0.0 if ChannelUri(stream.channel).media == "ipc" else _CONNECT_TIMEOUT_S
        deadline = client.clock.deadline(timeout_s)
        while True:
            found = {one.owner_id for one in client.counters if _is_reader(one, probe.session_id)}
            # The driver connects all its subscriptions of a stream in one step.
            if found or deadline.is_over:
                return found
            client.clock.sleep(_LOOK_INTERVAL_S)


def _is_reader(counter: CounterRecord, session_id: int) -> bool:
    return counter.type_id == SUBSCRIBER_POSITION and session_id_of(counter.key) == session_id


def _is_alive(client: Client, client_id: int) -> bool:
    deadline = client.clock.deadline(_HEARTBEAT_TIMEOUT_S)
    first = last = _heartbeat(client, client_id)
    while last is not None and last == first and not deadline.is_over:
        client.clock.sleep(_LOOK_INTERVAL_S)
        last = _heartbeat(client, client_id)
    return last is not None and last != first


def _heartbeat(client: Client, client_id: int) -> int | None:
    beats = (one for one in client.counters if one.type_id == CLIENT_HEARTBEAT)
    return next((one.value for one in beats if one.owner_id == client_id), None)
