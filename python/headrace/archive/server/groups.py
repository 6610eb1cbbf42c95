"""Groups of readers of named streams: who reads what, and how far each group is.

A group has members, a generation, and a place for each lane. A member that joins, leaves or is not heard any more
begins a generation: all members hand over what they have read, say so by joining again, and only then does anyone read
on. A member commits in its own generation alone, so that one that is late cannot move what another reads now.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._agent.storage_space import is_out_of_space
from headrace._base.exceptions import ConfigError
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files.group_places import GroupPlaces, groups_in
from headrace.archive.protocol.answers import GroupAssignment, GroupDescriptor
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.messages import encode
from headrace.archive.protocol.named_stream import check_stream_name
from headrace.archive.protocol.place import Place
from headrace.archive.server.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.archive.protocol.requests import CommitPlaceRequest, JoinGroupRequest, LeaveGroupRequest
    from headrace.archive.server.context import Context
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.named_streams import NamedStreams

__all__ = ["Groups"]

MEMBER_TIMEOUT_NS = 10_000_000_000
"""A member that has not been heard for this long reads no longer."""
_LANES_MAX = 1024
_LOOK_NS = 100_000_000


@dataclass(slots=True)
class _Member:
    name: str
    heard_ns: int
    generation: int = -1
    """The last one that it has entered: it reads and commits in this one alone."""


@dataclass(slots=True)
class _Group:
    name: str
    group: str
    places: GroupPlaces
    generation: int = 0
    members: dict[str, _Member] = field(default_factory=dict)
    is_dirty: bool = False
    waiting: list[tuple[ControlSession, int]] = field(default_factory=list)
    """Who awaits that the places are stored."""

    def begin_generation(self, now_ms: int) -> None:
        # Never that of an archive before this one, of which a member may still be.
        self.generation = max(self.generation + 1, now_ms)

    @property
    def is_settled(self) -> bool:
        """Whether every member has entered the generation, so that they may read."""
        return all(member.generation == self.generation for member in self.members.values())


class Groups:
    """The groups of an archive's streams."""

    def __init__(self, context: Context, streams: NamedStreams) -> None:
        self._context = context
        self._streams = streams
        self._groups: dict[tuple[str, str], _Group] = {}
        self._next_look_ns = 0

    # --- requests --------------------------------------------------------------------------------------------------

    def join(self, session: ControlSession, request: JoinGroupRequest) -> None:
        """Take a member, or hear that it lives, and answer what it is to read.

        Raises:
            RequestError: The stream is unknown, a name is wrong, or the group shares its stream in another way.
        """
        group = self._group(request.name, request.group)
        if not 1 <= request.lane_count <= _LANES_MAX:
            text = f"laneCount={request.lane_count} must be from 1 to {_LANES_MAX}"
            raise RequestError(ErrorCode.GENERIC, text)
        if not group.places.lanes:
            group.places.lanes = [Place()] * request.lane_count
        if len(group.places.lanes) != request.lane_count:
            kinds = [_shared(count) for count in (len(group.places.lanes), request.lane_count)]
            text = f"group {request.group} of {request.name} shares {kinds[0]}, and member {request.member} {kinds[1]}"
            raise RequestError(ErrorCode.GENERIC, text)
        now_ns = self._context.clock.monotonic_ns()
        member = group.members.get(request.member)
        if member is None:
            member = group.members[request.member] = _Member(request.member, now_ns)
            group.begin_generation(self._context.clock.epoch_ms())
        member.heard_ns = now_ns
        if request.generation == group.generation:
            member.generation = group.generation
        count = len(group.members) if group.is_settled else 0
        answer = GroupAssignment(
            control_session_id=session.session_id,
            correlation_id=request.correlation_id,
            generation=group.generation,
            member_index=sorted(group.members).index(request.member),
            member_count=count,
            places=json.dumps([place.to_value() for place in group.places.lanes]),
        )
        session.send(encode(answer))

    def commit(self, session: ControlSession, request: CommitPlaceRequest) -> None:
        """Keep how far a member has read; answered when the disk has it.

        Raises:
            RequestError: The member is not one of this generation any more: what it has read is read again.
        """
        group = self._group(request.name, request.group)
        member = group.members.get(request.member)
        if member is None or member.generation != request.generation:
            text = (
                f"member {request.member} of group {request.group} is late: its part of {request.name} has been given "
                "to others, who read again what it has not committed"
            )
            raise RequestError(ErrorCode.GENERIC, text)
        member.heard_ns = self._context.clock.monotonic_ns()
        try:
            places = json.loads(request.places)
            lanes = [int(lane) for lane in places["lanes"]]
            read = {int(one): int(end) for one, end in places["positions"].items()}
            for lane in lanes:
                group.places.lanes[lane] = group.places.lanes[lane].advanced(read)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise RequestError(ErrorCode.GENERIC, f"places={request.places[:200]} are none") from None
        group.is_dirty = True
        group.waiting.append((session, request.correlation_id))

    def leave(self, request: LeaveGroupRequest) -> None:
        """Give the part of a member to others."""
        group = self._group(request.name, request.group)
        if group.members.pop(request.member, None) is not None:
            group.begin_generation(self._context.clock.epoch_ms())

    def described(self, name: str) -> list[GroupDescriptor]:
        """The groups of a stream, with the bytes that they have not read.

        Raises:
            RequestError: The stream is unknown.
        """
        self._check_declared(name)
        found = []
        for stream, group_name in sorted({*groups_in(self._context.storage), *self._groups}):
            if stream != name:
                continue
            group = self._group(name, group_name)
            found.append(
                GroupDescriptor(
                    control_session_id=-1,
                    correlation_id=-1,
                    lag=self._lag(group),
                    generation=group.generation,
                    name=name,
                    group=group_name,
                    members="\n".join(sorted(group.members)),
                )
            )
        return found

    def _check_declared(self, name: str) -> None:
        if not self._streams.has(name):
            raise RequestError(ErrorCode.GENERIC, f"no stream is declared as {name}")

    def _group(self, name: str, group_name: str) -> _Group:
        self._check_declared(name)
        group = self._groups.get((name, group_name))
        if group is None:
            try:
                check_stream_name(group_name)
                level = self._context.config.catalog_file_sync_level
                places = GroupPlaces(self._context.storage, name, group_name, level)
            except (ConfigError, ArchiveFileError) as wrong:
                raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
            group = self._groups[name, group_name] = _Group(name, group_name, places)
        return group

    def _lag(self, group: _Group) -> int:
        lag = 0
        for entry in self._streams.recordings(group.name, 0, 0):
            one = entry.descriptor
            end = self._streams.end(one)
            for place in group.places.lanes or (Place(),):
                if place.has(one.recording_id, end):
                    continue
                lag += end - place.positions.get(one.recording_id, one.start_position)
        return lag // max(1, len(group.places.lanes))

    # --- turns -----------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """Store what was committed in this turn, and drop members that are not heard; returns the work count."""
        work_count = sum(self._store(group) for group in self._groups.values() if group.is_dirty)
        now_ns = self._context.clock.monotonic_ns()
        if now_ns >= self._next_look_ns:
            self._next_look_ns = now_ns + _LOOK_NS
            for group in self._groups.values():
                self._drop_unheard(group, now_ns)
        return work_count

    def _store(self, group: _Group) -> int:
        group.is_dirty = False
        waiting, group.waiting = group.waiting, []
        try:
            self._compact(group)
            group.places.store()
        except (OSError, RequestError) as refusal:
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(refusal) else ErrorCode.GENERIC
            for session, correlation_id in waiting:
                session.send_error(correlation_id, code, f"the place is not kept: {refusal}")
        else:
            for session, correlation_id in waiting:
                session.send_ok(correlation_id)
        return 1

    def _compact(self, group: _Group) -> None:
        lanes = group.places.lanes
        first_id = min(place.read_up_to for place in lanes) + 1
        since_ms = min(place.as_of_ms for place in lanes)
        entries = self._streams.recordings(group.name, first_id, since_ms)
        recordings = [entry.descriptor for entry in entries]
        for lane, place in enumerate(lanes):
            unread = {
                one.recording_id
                for one in recordings
                if one.is_active
                or not (
                    one.stop_position == one.start_position or place.has(one.recording_id, one.stop_position)
                )
            }
            whole = [one for one in recordings if one.recording_id not in unread]
            lanes[lane] = place.noting(whole).compact(unread)

    def _drop_unheard(self, group: _Group, now_ns: int) -> None:
        for member in list(group.members.values()):
            if now_ns - member.heard_ns > MEMBER_TIMEOUT_NS:
                del group.members[member.name]
                group.begin_generation(self._context.clock.epoch_ms())
                self._context.log.info(
                    f"member {member.name} of group {group.group} of {group.name} is not heard any more"
                )


def _shared(lane_count: int) -> str:
    return "recordings" if lane_count == 1 else f"keys in {lane_count} lanes"


def addressed(found: Iterable[GroupDescriptor], session_id: int, correlation_id: int) -> list[bytes]:
    """Descriptors as answers to a request."""
    return [
        encode(dataclasses.replace(one, control_session_id=session_id, correlation_id=correlation_id))
        for one in found
    ]
