"""What holds in a cluster whatever happens, looked at after each step. Cluster specification 11.1."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header

if TYPE_CHECKING:
    from headrace.cluster import ConsensusModule
    from headrace.testing.cluster.member import ClusterMember

__all__ = ["ClusterRuleError", "ClusterRules", "LoggedMessage"]

_FRAME_HEADER = 32
_FRAME_ALIGNMENT = 32
# Length, version, flags, type.
_FRAME = struct.Struct("<iBBH")
_PADDING = 0
_BEGIN, _END = 0x80, 0x40


class ClusterRuleError(AssertionError):
    """A rule was broken. The text has the rule and the values."""


class LoggedMessage(NamedTuple):
    """A client's or a service's message in the log that is agreed upon."""

    position: int
    """Of the log after the message, as services see it."""
    session_id: int
    """The client's session; negative for a message of a service."""
    leadership_term_id: int
    timestamp: int
    payload: bytes


class _Frame(NamedTuple):
    end: int
    flags: int
    payload: bytes


class ClusterRules:
    """What was agreed upon, and who led.

    Args:
        state_of: Gives what two services have in common that have read the log up to the same position; ``None`` to
            compare nothing.
    """

    def __init__(self, state_of: Callable[[Any], object] | None) -> None:
        self._state_of = state_of
        # Frame by frame what is agreed upon, by the position at which each begins.
        self._frames: dict[int, _Frame] = {}
        self.committed_position = 0
        """Up to where the log is known to be agreed upon."""
        self.has_lost = False
        """Something that was agreed upon may be gone."""
        self.leader_count = 0
        """How many terms were led."""
        self._leaders: dict[int, ConsensusModule] = {}
        self._term_bases: dict[int, int] = {}
        self._states: dict[int, object] = {}
        # Of each member, for its present life: the module, its commit position, up to where its log was compared.
        self._seen: dict[str, tuple[ConsensusModule, int, int]] = {}
        self._told: dict[int, tuple[Any, ...]] = {}
        # Of each member, the life and the position of its service whose state was compared last.
        self._compared: dict[int, tuple[object, int]] = {}

    def forget(self) -> None:
        """A power cut may have taken what was agreed upon from a member that forced nothing to its disks."""
        self._frames.clear()
        self._leaders.clear()
        self._term_bases.clear()
        self._states.clear()
        self._seen.clear()
        self.committed_position = 0
        self.has_lost = True

    # --- each step -------------------------------------------------------------------------------------------------

    def check(self, member: ClusterMember) -> None:
        """Look at one member.

        Raises:
            ClusterRuleError: A rule is broken.
        """
        module = member.module
        if module is None or not module._election.has_started:
            return
        core = module._election.core
        told = module, core.role, core.state, core.leadership_term_id, module.commit_position
        if told != self._told.get(member.member_id):
            self._told[member.member_id] = told
            self._check_leader(member, module)
            self._check_commit(member, module)
            self._check_terms(member, module)
        if self._state_of is not None:
            self._check_state(member)

    def _check_leader(self, member: ClusterMember, module: ConsensusModule) -> None:
        core = module._election.core
        if core.role is not Role.LEADER:
            return
        term_id = core.leadership_term_id
        if term_id not in self._leaders:
            self.leader_count += 1
        known = self._leaders.setdefault(term_id, module)
        if known is not module:
            raise ClusterRuleError(
                f"two members, or two lives of one, lead term {term_id}: {known}, {module}"
            )
        position = core._standing.append_position
        if position < self.committed_position:
            raise ClusterRuleError(
                f"member {member.member_id} leads term {term_id} with a log up to {position}, and up to "
                f"{self.committed_position} was agreed upon"
            )

    def _check_commit(self, member: ClusterMember, module: ConsensusModule) -> None:
        commit = module.commit_position
        seen = self._seen.get(member.node.name)
        compared = 0
        if seen is not None and seen[0] is module:
            before, compared = seen[1], seen[2]
            if commit < before:
                raise ClusterRuleError(
                    f"the commit position of member {member.member_id} goes back from {before} to {commit}"
                )
        recording_id = module._term_log.recording.recording_id
        # The id is not known while a member leaves its first log; the next look finds it.
        if commit > compared and recording_id is not None:
            compared = self._compare(member, recording_id, compared, commit)
        self._seen[member.node.name] = module, commit, compared

    def _compare(self, member: ClusterMember, recording_id: int, begin: int, end: int) -> int:
        """Hold what a member takes for agreed upon against what others do; returns where the next frame begins."""
        for at, frame in _frames(member, recording_id, begin, end):
            known = self._frames.setdefault(at, frame)
            if known != frame:
                raise ClusterRuleError(
                    f"member {member.member_id} has another log at position {at}: {_shown(frame)}, where "
                    f"{_shown(known)} was agreed upon"
                )
            begin = frame.end
        if begin < end:
            raise ClusterRuleError(
                f"member {member.member_id} takes the log up to {end} for agreed upon, and has it up to {begin}"
            )
        self.committed_position = max(self.committed_position, begin)
        return begin

    def _check_terms(self, member: ClusterMember, module: ConsensusModule) -> None:
        """Terms begin at the same positions in all recording logs, as far as the log is agreed upon."""
        commit = module.commit_position
        for entry in module._context.recording_log:
            if not entry.is_term or not entry.is_valid or entry.term_base_log_position >= commit:
                continue
            term_id, base = entry.leadership_term_id, entry.term_base_log_position
            known = self._term_bases.setdefault(term_id, base)
            if known != base:
                raise ClusterRuleError(
                    f"term {term_id} begins at {base} in the recording log of member {member.member_id}, and at "
                    f"{known} in another"
                )

    def _check_state(self, member: ClusterMember) -> None:
        container, module = member.container, member.module
        if container is None or module is None or not container._has_started:
            return
        position = container._state.position
        compared = container, position
        if compared == self._compared.get(member.member_id) or container.is_closed:
            return
        if not container._running.is_idle:
            return
        self._compared[member.member_id] = compared
        commit = module.commit_position
        if position > commit:
            raise ClusterRuleError(
                f"the service of member {member.member_id} has read up to {position}, and {commit} is agreed upon"
            )
        assert self._state_of is not None, "looked at before"
        state = self._state_of(member.service)
        known = self._states.setdefault(position, state)
        if known != state:
            raise ClusterRuleError(
                f"member {member.member_id} has the state {state!r} at position {position}, where another, or an "
                f"earlier life, had {known!r}"
            )

    # --- what is agreed upon -----------------------------------------------------------------------------------------

    def messages(self) -> Iterator[LoggedMessage]:
        """The messages of clients and services in the log that is agreed upon, in order."""
        parts: list[bytes] = []
        for _, frame in sorted(self._frames.items()):
            if frame.flags & _BEGIN:
                parts = []
            parts.append(frame.payload)
            if not frame.flags & _END:
                continue
            data = b"".join(parts)
            if template_of(data) == SESSION_MESSAGE:
                term_id, session_id, timestamp = unpack_header(data)
                yield LoggedMessage(frame.end, session_id, term_id, timestamp, data[HEADER_LENGTH:])


def _frames(member: ClusterMember, recording_id: int, begin: int, end: int) -> Iterator[tuple[int, _Frame]]:
    """The frames of a member's log from one position up to another, with where each begins."""
    length, files = member.segment_length, member.node.disk("archive").files
    while begin < end:
        name = f"{recording_id}-{begin // length * length}.rec"
        if name not in files:
            return
        data, offset = files[name], begin % length
        frame_length, _, flags, kind = _FRAME.unpack_from(data, offset)
        if frame_length <= 0:
            return
        is_padding = kind == _PADDING
        payload = b"" if is_padding else bytes(data[offset + _FRAME_HEADER : offset + frame_length])
        at, begin = begin, begin + -(-frame_length // _FRAME_ALIGNMENT) * _FRAME_ALIGNMENT
        # The stream and the session are those of the stream in which a member got the frame.
        yield at, _Frame(begin, 0 if is_padding else flags, payload)


def _shown(frame: _Frame) -> str:
    return f"{frame.payload[:80]!r} up to {frame.end}"
