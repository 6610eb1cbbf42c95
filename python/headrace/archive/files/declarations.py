"""The declarations of an archive's named streams: one small file beside the catalog, which other archives ignore.

It is written whole under another name, forced to the medium, and given its own name then, so that a kill leaves the
file before or the file after.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import ConfigError
from headrace.archive.errors import ArchiveFileError
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.named_stream import NamedStream, StreamAddress
from headrace.archive.protocol.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace._agent.storage import Storage

__all__ = ["STREAMS_NAME", "declared_streams", "store_streams"]

STREAMS_NAME = "streams.json"
_UPDATED_NAME = "streams.json.updated"
_VERSION = 1
_FULL_SYNC = 2


def declared_streams(storage: Storage) -> dict[str, NamedStream]:
    """The streams that are declared, by name; none without the file.

    Raises:
        ArchiveFileError: The file is damaged, or of a later version.
    """
    length = storage.length(STREAMS_NAME)
    if length is None:
        return {}
    file = storage.open(STREAMS_NAME, read_only=True)
    try:
        data = file.read(0, length)
    finally:
        file.close()
    path = storage.describe(STREAMS_NAME)
    try:
        found = json.loads(data)
        version, streams = found["version"], found["streams"]
    except (ValueError, KeyError, TypeError) as damage:
        raise ArchiveFileError(
            f"{path} is damaged: {damage}; restore it, or delete it and declare the streams again"
        ) from None
    if version != _VERSION:
        raise ArchiveFileError(f"{path} has version={version}, and this archive reads {_VERSION}")
    try:
        return {one["name"]: _stream(one) for one in streams}
    except (KeyError, TypeError, ValueError, ConfigError) as damage:
        raise ArchiveFileError(f"{path} has a stream that cannot be read: {damage!r}") from None


def _stream(one: dict[str, Any]) -> NamedStream:
    return NamedStream(
        name=one["name"],
        channel=one["channel"],
        stream_id=one["stream_id"],
        location=SourceLocation[one["location"]],
        retention=None if one["retention"] is None else Retention(**one["retention"]),
        keys=one["keys"],
        former=tuple(StreamAddress(channel, stream_id) for channel, stream_id in one["former"]),
    )


def store_streams(storage: Storage, streams: Iterable[NamedStream]) -> None:
    """Replace the file.

    Raises:
        OSError: The disk refuses; the file is as it was.
    """
    values = [
        {
            "name": one.name,
            "channel": one.channel,
            "stream_id": one.stream_id,
            "location": one.location.name,
            "retention": None
            if one.retention is None
            else {name: getattr(one.retention, name) for name in ("hours", "bytes", "ended_hours")},
            "keys": one.keys,
            "former": [[address.channel, address.stream_id] for address in one.former],
        }
        for one in streams
    ]
    data = json.dumps({"version": _VERSION, "streams": values}, indent=1).encode() + b"\n"
    file = storage.create(_UPDATED_NAME, 0, may_exist=True)
    try:
        file.write(0, data)
        file.sync(_FULL_SYNC)
    finally:
        file.close()
    storage.rename(_UPDATED_NAME, STREAMS_NAME)
    storage.sync()
