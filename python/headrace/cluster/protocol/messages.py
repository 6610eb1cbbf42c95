"""The messages of a cluster: bytes to values and back, by the schema beside this file.

A sender of another version may have a shorter block, whose missing fields have the defaults of their class, or a longer
one, whose end is skipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from headrace._exceptions import HeadraceError
from headrace.cluster.protocol.codes import (
    AdminRequestType,
    AdminResponseCode,
    ChangeType,
    CloseReason,
    ClusterAction,
    ClusterTimeUnit,
    EventCode,
    SnapshotMark,
)
from headrace.cluster.protocol.consensus import CONSENSUS, SnapshotRecording, StandbySnapshotRecording
from headrace.cluster.protocol.control import CONTROL, ClusterMember
from headrace.cluster.protocol.log import LOG
from headrace.cluster.protocol.session import SESSION
from headrace.cluster.protocol.snapshots import SNAPSHOTS
from headrace.sbe import DecodeError, Schema

__all__ = ["SCHEMA_ID", "MessageError", "decode", "encode", "schema"]

SCHEMA_ID = 111
_HEADER_LENGTH = 8
_CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (*SESSION, *LOG, *CONTROL, *CONSENSUS, *SNAPSHOTS)
}
_ENTRIES: dict[str, dict[str, type[Any]]] = {
    "ClusterMembersExtendedResponse": {"active_members": ClusterMember, "passive_members": ClusterMember},
    "SnapshotRecordings": {"snapshots": SnapshotRecording},
    "BackupResponse": {"snapshots": SnapshotRecording},
    "StandbySnapshot": {"snapshots": StandbySnapshotRecording},
}
# Fields of each class, which each message of it asks for; and those without a default.
_NAMES: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(field.name for field in dataclasses.fields(kind))
    for kind in (*_CLASSES.values(), *(entry for group in _ENTRIES.values() for entry in group.values()))
}
_NEEDED: dict[type[Any], frozenset[str]] = {
    kind: frozenset(field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING)
    for kind in _NAMES
}
_ENUMS: dict[str, dict[str, Callable[[Any], object]]] = {
    "SessionEvent": {"code": EventCode},
    "SessionCloseEvent": {"close_reason": CloseReason},
    "ClusterSession": {"close_reason": CloseReason},
    "ClusterActionRequest": {"action": ClusterAction},
    "NewLeadershipTermEvent": {"time_unit": ClusterTimeUnit},
    "MembershipChangeEvent": {"change_type": ChangeType},
    "AdminRequest": {"request_type": AdminRequestType},
    "AdminResponse": {"request_type": AdminRequestType, "response_code": AdminResponseCode},
    "SnapshotMarker": {"mark": SnapshotMark, "time_unit": ClusterTimeUnit},
    "ClusterMembersQuery": {"extended": bool},
    "RemoveMember": {"is_passive": bool},
    "JoinLog": {"is_startup": bool, "is_standby": bool},
    "ServiceTerminationPosition": {"ack_required": bool},
    "Vote": {"vote": bool},
    "NewLeadershipTerm": {"is_startup": bool},
}


class MessageError(HeadraceError):
    """Bytes that are no message of a cluster; the text says why."""


@cache
def schema() -> Schema:
    """The schema, with the fields' names in snake case."""
    with resources.as_file(resources.files("headrace.cluster.protocol") / "schemas" / "cluster.xml") as path:
        return Schema.from_file(path, snake_case=True)


def encode(message: Any) -> bytes:
    """The bytes of a message of the classes beside this file."""
    kind = type(message).__name__
    values = {name: _plain(getattr(message, name)) for name in _NAMES[type(message)]}
    data: bytes = schema()[kind].encode(**values)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [dataclasses.asdict(entry) for entry in value]
    return int(value) if isinstance(value, int) else value


def decode(data: bytes | memoryview) -> Any:
    """The message that some bytes begin with; ``None`` for a template that the schema does not have, which is ignored.

    Application data follows a :class:`SessionMessageHeader`, which is 32 bytes long, and is not looked at.

    Raises:
        MessageError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
    """
    if len(data) < _HEADER_LENGTH:
        raise MessageError(f"length={len(data)} is below the 8 bytes of a message header")
    schema_id = int.from_bytes(data[4:6], "little")
    if schema_id != SCHEMA_ID:
        raise MessageError(f"schema_id={schema_id} where {SCHEMA_ID} is expected")
    codec = schema().template(int.from_bytes(data[2:4], "little"))
    if codec is None:
        return None
    try:
        record = codec.decode(data)
    except DecodeError as wrong:
        raise MessageError(str(wrong)) from None
    kind = _CLASSES[codec.name]
    values = _values(kind, record, _ENUMS.get(codec.name, {}), _ENTRIES.get(codec.name, {}))
    for name in sorted(_NEEDED[kind] - values.keys()):
        raise MessageError(f"{codec.name}.{name} is not given")
    return kind(**values)


def _values(
    kind: type[Any],
    record: Any,
    conversions: dict[str, Callable[[Any], object]],
    entries: dict[str, type[Any]],
) -> dict[str, Any]:
    """What a record gives; fields without a value are left to their defaults."""
    values: dict[str, Any] = {}
    for name in _NAMES[kind]:
        value = getattr(record, name)
        if name in entries:
            entry = entries[name]
            value = tuple(entry(**_values(entry, one, {}, {})) for one in value)
        elif value is not None and name in conversions:
            value = conversions[name](value)
        if value is not None:
            values[name] = value
    return values
