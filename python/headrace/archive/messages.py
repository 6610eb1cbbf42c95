"""The messages of the archive's control protocol and events: their layouts as a table, and one codec for all.

A message is a header (u16 block length, template, schema, version), a block of numbers and, behind it, texts with
their lengths. A sender of another version may have a shorter block, whose missing fields read as null, or a longer
one, whose end is skipped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from headrace.archive.positions import NULL_VALUE

__all__ = ["Message", "MessageError", "decode", "encode"]

SCHEMA_ID = 101
SCHEMA_VERSION = 14
PROTOCOL_VERSION = 1 << 16 | 12 << 8
"""Semantic version 1.12.0 of the protocol."""

_HEADER = struct.Struct("<HHHH")
_LENGTH = struct.Struct("<I")
_SIZES = {"q": 8, "i": 4}
_NULLS = {"q": -(1 << 63), "i": -(1 << 31)}

_CC = "q controlSessionId, q correlationId"
_ID = f"{_CC}, q recordingId"
# Template: name; block of i (32 bits) and q (64 bits), with @ and the version since which a field exists; texts, where
# * marks bytes.
_TABLE: dict[int, tuple[str, str, str]] = {
    1: ("ControlResponse", f"{_CC}, q relevantId, i code, i version@4", "errorMessage"),
    3: ("CloseSessionRequest", "q controlSessionId", ""),
    4: ("StartRecordingRequest", f"{_CC}, i streamId, i sourceLocation", "channel"),
    5: ("StopRecordingRequest", f"{_CC}, i streamId", "channel"),
    6: (
        "ReplayRequest",
        f"{_ID}, q position, q length, i replayStreamId, i fileIoMaxLength@7, q replayToken@10",
        "replayChannel",
    ),
    7: ("StopReplayRequest", f"{_CC}, q replaySessionId", ""),
    8: ("ListRecordingsRequest", f"{_CC}, q fromRecordingId, i recordCount", ""),
    9: ("ListRecordingsForUriRequest", f"{_CC}, q fromRecordingId, i recordCount, i streamId", "channel"),
    10: ("ListRecordingRequest", _ID, ""),
    11: ("ExtendRecordingRequest", f"{_ID}, i streamId, i sourceLocation", "channel"),
    12: ("RecordingPositionRequest", _ID, ""),
    13: ("TruncateRecordingRequest", f"{_ID}, q position", ""),
    14: ("StopRecordingSubscriptionRequest", f"{_CC}, q subscriptionId", ""),
    15: ("StopPositionRequest", _ID, ""),
    16: ("FindLastMatchingRecordingRequest", f"{_CC}, q minRecordingId, i sessionId, i streamId", "channel"),
    17: (
        "ListRecordingSubscriptionsRequest",
        f"{_CC}, i pseudoIndex, i subscriptionCount, i applyStreamId, i streamId",
        "channel",
    ),
    18: (
        "BoundedReplayRequest",
        f"{_ID}, q position, q length, i limitCounterId, i replayStreamId, i fileIoMaxLength@7, q replayToken@10",
        "replayChannel",
    ),
    19: ("StopAllReplaysRequest", _ID, ""),
    22: (
        "RecordingDescriptor",
        f"{_ID}, q startTimestamp, q stopTimestamp, q startPosition, q stopPosition, i initialTermId,"
        " i segmentFileLength, i termBufferLength, i mtuLength, i sessionId, i streamId",
        "strippedChannel, originalChannel, sourceIdentity",
    ),
    23: ("RecordingSubscriptionDescriptor", f"{_CC}, q subscriptionId, i streamId", "strippedChannel"),
    24: ("RecordingSignalEvent", f"{_ID}, q subscriptionId, q position, i signal", ""),
    50: (
        "ReplicateRequest",
        f"{_CC}, q srcRecordingId, q dstRecordingId, i srcControlStreamId",
        "srcControlChannel, liveDestination",
    ),
    51: ("StopReplicationRequest", f"{_CC}, q replicationId", ""),
    52: ("StartPositionRequest", _ID, ""),
    53: ("DetachSegmentsRequest", f"{_ID}, q newStartPosition", ""),
    54: ("DeleteDetachedSegmentsRequest", _ID, ""),
    55: ("PurgeSegmentsRequest", f"{_ID}, q newStartPosition", ""),
    56: ("AttachSegmentsRequest", _ID, ""),
    57: ("MigrateSegmentsRequest", f"{_CC}, q srcRecordingId, q dstRecordingId", ""),
    58: (
        "AuthConnectRequest",
        "q correlationId, i responseStreamId, i version",
        "responseChannel, *encodedCredentials, clientInfo@12",
    ),
    59: ("Challenge", f"{_CC}, i version", "*encodedChallenge"),
    60: ("ChallengeResponse", _CC, "*encodedCredentials"),
    61: ("KeepAliveRequest", _CC, ""),
    62: (
        "TaggedReplicateRequest",
        f"{_CC}, q srcRecordingId, q dstRecordingId, q channelTagId, q subscriptionTagId, i srcControlStreamId",
        "srcControlChannel, liveDestination",
    ),
    63: ("StartRecordingRequest2", f"{_CC}, i streamId, i sourceLocation, i autoStop", "channel"),
    64: ("ExtendRecordingRequest2", f"{_ID}, i streamId, i sourceLocation, i autoStop", "channel"),
    65: ("StopRecordingByIdentityRequest", _ID, ""),
    66: (
        "ReplicateRequest2",
        f"{_CC}, q srcRecordingId, q dstRecordingId, q stopPosition, q channelTagId, q subscriptionTagId,"
        " i srcControlStreamId, i fileIoMaxLength@7, i replicationSessionId@8",
        "srcControlChannel, liveDestination, replicationChannel, *encodedCredentials@8, srcResponseChannel@10",
    ),
    67: ("MaxRecordedPositionRequest", _ID, ""),
    68: ("ArchiveIdRequest", _CC, ""),
    101: (
        "RecordingStarted",
        "q recordingId, q startPosition, i sessionId, i streamId",
        "channel, sourceIdentity",
    ),
    102: ("RecordingProgress", "q recordingId, q startPosition, q position", ""),
    103: ("RecordingStopped", "q recordingId, q startPosition, q stopPosition", ""),
    104: ("PurgeRecordingRequest", _ID, ""),
    105: ("ReplayTokenRequest", _ID, ""),
    106: ("Ping", "q controlSessionId", ""),
    107: ("UpdateChannelRequest", _ID, "channel"),
}
# What a server takes for "not given" in requests older than a field.
_DEFAULTS = {
    "fileIoMaxLength": NULL_VALUE,
    "replicationSessionId": NULL_VALUE,
    "replayToken": NULL_VALUE,
    "version": 0,
}


class MessageError(ValueError):
    """Bytes that are no message of the protocol; the text says why."""


class Message:
    """A decoded message: its name, and its fields as attributes."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.name} has no field {name}") from None

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.name}({values})"


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    code: str
    offset: int
    since: int
    null: int


@dataclass(frozen=True, slots=True)
class _Text:
    name: str
    since: int
    is_bytes: bool


class _Layout:
    """How one message lies in memory."""

    def __init__(self, template_id: int, name: str, block: str, texts: str) -> None:
        self.template_id = template_id
        self.name = name
        fields, offset = [], 0
        for part in block.split(", "):
            code, _, rest = part.strip().partition(" ")
            field, _, since = rest.partition("@")
            null = _DEFAULTS.get(field, _NULLS[code])
            fields.append(_Field(field, code, offset, int(since or 0), null))
            offset += _SIZES[code]
        self.fields = tuple(fields)
        self.names = tuple(field.name for field in fields)
        self.texts = tuple(_text(part.strip()) for part in texts.split(",") if part)
        self.block = struct.Struct("<" + "".join(field.code for field in fields))
        self.header = _HEADER.pack(self.block.size, template_id, SCHEMA_ID, SCHEMA_VERSION)
        self.newest = max((field.since for field in fields), default=0)

    def encode(self, values: dict[str, Any]) -> bytes:
        parts = [self.header, self.block.pack(*[values[name] for name in self.names])]
        for text in self.texts:
            value = values.get(text.name, b"")
            data = value if isinstance(value, bytes) else value.encode("ascii", "replace")
            parts += _LENGTH.pack(len(data)), data
        return b"".join(parts)

    def decode(self, data: bytes, block_length: int, version: int) -> Message:
        offset = _HEADER.size + block_length
        if len(data) < offset:
            raise MessageError(f"{self.name}: length={len(data)} is below its block_length={block_length}")
        if block_length >= self.block.size and version >= self.newest:
            fields: dict[str, Any] = dict(
                zip(self.names, self.block.unpack_from(data, _HEADER.size), strict=True)
            )
        else:
            fields = {field.name: _old_value(data, field, block_length, version) for field in self.fields}
        for text in self.texts:
            value = b""
            if version >= text.since:
                if offset + _LENGTH.size > len(data):
                    raise MessageError(f"{self.name}: {text.name} is missing")
                (length,) = _LENGTH.unpack_from(data, offset)
                offset += _LENGTH.size
                if length > len(data) - offset:
                    raise MessageError(
                        f"{self.name}: {text.name} of length={length} ends outside the message"
                    )
                value = data[offset : offset + length]
                offset += length
            fields[text.name] = value if text.is_bytes else value.decode("ascii", "replace")
        return Message(self.name, fields)


def _text(part: str) -> _Text:
    name, _, since = part.partition("@")
    return _Text(name.lstrip("*"), int(since or 0), name.startswith("*"))


def _old_value(data: bytes, field: _Field, block_length: int, version: int) -> int:
    if version < field.since or field.offset + _SIZES[field.code] > block_length:
        return field.null
    value: int = struct.unpack_from("<" + field.code, data, _HEADER.size + field.offset)[0]
    return value


_BY_ID = {number: _Layout(number, *layout) for number, layout in _TABLE.items()}
_BY_NAME = {layout.name: layout for layout in _BY_ID.values()}


def encode(name: str, **values: Any) -> bytes:
    """The bytes of a message."""
    return _BY_NAME[name].encode(values)


def header_of(name: str) -> bytes:
    """The header of a message whose block and texts are already bytes."""
    return _BY_NAME[name].header


def decode(data: bytes) -> Message | None:
    """The message that some bytes are; ``None`` for a template nobody here knows, which is to be ignored.

    Raises:
        MessageError: They are of another schema, or are cut off.
    """
    if len(data) < _HEADER.size:
        raise MessageError(f"length={len(data)} is below the 8 bytes of a message header")
    block_length, template_id, schema_id, version = _HEADER.unpack_from(data)
    if schema_id != SCHEMA_ID:
        raise MessageError(f"schema_id={schema_id} where {SCHEMA_ID} is expected")
    layout = _BY_ID.get(template_id)
    return layout.decode(data, block_length, version) if layout is not None else None
