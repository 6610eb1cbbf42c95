"""Warns programs that use a stream over ``aeron:ipc`` that belongs to an archive or a cluster's member.

A program that publishes there sends to the archive or the member, which counts as its subscriber; one that subscribes
reads their messages and holds the stream back. ``docs/reference/channels.md`` has the table.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace._base.logging import CLIENT
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from headrace._base.counter_record import CounterRecord

__all__ = ["STREAMS", "check_stream", "reserved_streams"]

# Types of counters that every archive and every consensus module has.
_ARCHIVE, _MODULE = 101, 200
STREAMS = {
    10: (_ARCHIVE, "an archive takes requests"),
    20: (_ARCHIVE, "an archive answers requests"),
    100: (_MODULE, "a cluster has its log"),
    101: (_MODULE, "a cluster takes messages of clients"),
    103: (_MODULE, "a cluster replays its log"),
    104: (_MODULE, "a cluster speaks to its services"),
    105: (_MODULE, "services speak to their cluster"),
    106: (_MODULE, "services store their state"),
    107: (_MODULE, "a cluster stores its state"),
    108: (_MODULE, "members of a cluster agree"),
}
"""By default stream id: the type of the owner's counter, and what the stream is for."""
# A stream with one of these parameters is a different one in spite of its id.
_APART = ("session-id", "response-correlation-id", "control-mode")
_is_meant: ContextVar[bool] = ContextVar("_is_meant", default=False)


@contextlib.contextmanager
def reserved_streams() -> Iterator[None]:
    """Suppress the warnings while this package adds a stream for an archive or a cluster."""
    token = _is_meant.set(True)
    try:
        yield
    finally:
        _is_meant.reset(token)


def check_stream(counters: Iterable[CounterRecord], channel: str, stream_id: int) -> None:
    """Log a warning if a program's stream has the id of a reserved one on the driver."""
    reserved = STREAMS.get(stream_id)
    if reserved is None or _is_meant.get() or not CLIENT.isEnabledFor(logging.WARNING):
        return
    try:
        uri = ChannelUri(channel)
    except (ConfigError, TypeError):
        # The core or the driver says so.
        return
    if uri.media != "ipc" or any(uri.get(name) is not None for name in _APART):
        return
    type_id, what = reserved
    if any(record.type_id == type_id for record in counters):
        CLIENT.warning(
            "headrace client: stream %d of aeron:ipc is where %s, and one runs on this driver: it may read this "
            "program's messages, or this program may read messages for it. Choose another stream id, such as %d; "
            "docs/reference/channels.md lists the reserved streams",
            stream_id,
            what,
            stream_id + 1000,
        )
