"""Derives the channels of requests and responses from the one channel that both sides name."""

from __future__ import annotations

import ipaddress
import re

from headrace._base.checks import wrong

__all__ = ["prototype_of", "response_channel", "response_stream", "with_params"]

_IPC = "aeron:ipc"
_UDP = "aeron:udp"
_HOST_PORT = re.compile(r"[^|?=\s]+:(\d{1,5})")
_PORT_MAX = (1 << 16) - 1
_STREAM_ID_MAX = (1 << 31) - 1


def response_stream(stream_id: int, response_stream_id: int | None) -> int:
    """The stream id of the responses: the one after that of the requests, unless the program names one.

    Raises:
        ConfigError: No stream comes after that of the requests.
    """
    if response_stream_id is not None:
        return response_stream_id
    if stream_id == _STREAM_ID_MAX:
        raise wrong(
            "stream_id", stream_id, "must have a stream after it for the answers; or set response_stream_id"
        )
    return stream_id + 1


def with_params(channel: str, *params: str) -> str:
    """A channel with further parameters."""
    return f"{channel}{'|' if '?' in channel else '?'}{'|'.join(params)}"


def response_channel(channel: str, control: str | None) -> str:
    """The response channel for a channel of requests, with the same term length.

    Raises:
        ConfigError: The channel cannot carry responses, so that a server would wait in vain; or the address that they
            come from is missing, malformed or unusable.
    """
    media, _, params = channel.partition("?")
    if media not in (_IPC, _UDP):
        raise wrong("channel", channel, f"must be {_IPC}, or {_UDP} with response_control")
    for mode in ("response", "manual"):
        if f"control-mode={mode}" in params.split("|"):
            rule = f"must not have control-mode={mode}: requests go straight to the server's channel"
            raise wrong("channel", channel, rule)
    kept = [param for param in params.split("|") if param.startswith("term-length=")]
    if media == _IPC:
        if control is not None:
            raise wrong("response_control", control, f"is for channels of {_UDP}: {_IPC} needs no address")
        return with_params(media, "control-mode=response", *kept)
    if control is None:
        rule = (
            f"must be the host:port that the server sends answers from, the same at server and requester, for "
            f"channel={channel}"
        )
        raise wrong("response_control", control, rule)
    matched = _HOST_PORT.fullmatch(control)
    if matched is None or not 0 < int(matched[1]) <= _PORT_MAX:
        raise wrong("response_control", control, f"must be host:port, with a port from 1 to {_PORT_MAX}")
    if _is_group(control):
        raise wrong(
            "response_control", control, "must be an address of the server's host, not a multicast group"
        )
    if f"endpoint={control}" in params.split("|"):
        raise wrong(
            "response_control", control, "must have another port than the endpoint, where requests arrive"
        )
    return with_params(media, "control-mode=response", f"control={control}", *kept)


def _is_group(control: str) -> bool:
    host, _, _ = control.rpartition(":")
    try:
        return ipaddress.ip_address(host.strip("[]")).is_multicast
    except ValueError:
        return False


def prototype_of(responses: str) -> str | None:
    """The channel of a publication that keeps the response socket open; ``None`` for IPC, which has no socket."""
    if responses.startswith(_IPC):
        return None
    # Nothing of it can be missing at a receiver, so it need not linger.
    return with_params(responses, "response-correlation-id=prototype", "linger=0")
