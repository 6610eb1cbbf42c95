"""A member that runs, ours or Aeron's, as an operator sees it: counters, membership, and what it is asked to do.

The mark file says on which driver it runs, which cluster it belongs to, and on which streams it hears questions.
Cluster specification 8.1, 8.3, 8.4.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.exceptions import DriverTimeoutError
from headrace._base.named_number import NamedNumber
from headrace.archive import Archive
from headrace.archive.files import ArchiveDirectory
from headrace.client import Client, RecordedFrames, RecordingReader
from headrace.client._reserved import reserved_streams
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.backup.states import BackupState
from headrace.cluster.common.counters import ClusterCounter, cluster_id_of
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.errors import ClusterError
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.files.mark_file import LIVENESS_TIMEOUT_MS
from headrace.cluster.member.states import SUCCESSOR_SHIFT, Command, ModuleState, Toggle
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import (
    ClusterMembersExtendedResponse,
    ClusterMembersQuery,
    OperatorRequest,
    OperatorResponse,
)
from headrace.cluster.protocol.header import SESSION_MESSAGE, template_of
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cnc.cnc_file import CncFile
from headrace.cnc.faults import DriverFileMissingError, DriverGoneError, DriverNotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headrace._base.counter_record import CounterRecord
    from headrace.clock import Clock

__all__ = [
    "NO_DRIVER",
    "Command",
    "MemberStatus",
    "NotRunningError",
    "RunningMember",
    "Toggle",
    "stored_messages",
]

_LOOK_S = 0.01
# The driver showed life a moment ago: this is for one that was killed since.
_DRIVER_TIMEOUT_MS = 2_000
_BATCH_COUNT = 256
NO_DRIVER = (DriverFileMissingError, DriverNotReadyError, DriverGoneError)
"""A driver that has ended, or that the next start of the node has not made yet."""
# Of the member, and of each of its services.
_ERRORS = (ClusterCounter.MODULE_ERRORS, ClusterCounter.CONTAINER_ERRORS)
_TYPES = frozenset(ClusterCounter)
# What an operator waits for, in seconds: until the toggle is neutral again.
_WAITS_S = {Toggle.SNAPSHOT: 30.0, Toggle.RESUME: 1.0, Toggle.TRANSFER_LEADERSHIP: 30.0}


A = TypeVar("A", ClusterMembersExtendedResponse, OperatorResponse)


class NotRunningError(ClusterError):
    """The driver of the member does not run."""


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A member at one moment; without its driver, or its counters, there are no numbers."""

    directory: str
    cluster_id: int
    member_id: int
    role: str = ""
    state: str = "no driver"
    election: str = ""
    term: int | None = None
    commit_position: int | None = None
    sessions: int | None = None
    snapshots: int | None = None
    elections: int | None = None
    errors: int | None = None


class RunningMember:
    """The member of a directory.

    Args:
        path: The directory.
        clock: Time.

    Raises:
        ClusterFileError: There is no mark file, or it is damaged.
    """

    def __init__(self, path: str | Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self.mark = ClusterDirectory(path, clock=clock).mark()
        self._clock = clock

    @property
    def name(self) -> str:
        """The member, as answers name it."""
        return f"Member [{self.mark.member_id}]"

    def counters(self) -> list[CounterRecord]:
        """The counters of the cluster on the member's driver.

        Raises:
            DriverFileMissingError: There is no driver's file.
            DriverNotReadyError: The driver has not finished writing it.
            DriverGoneError: The driver has stopped or died.
        """
        with CncFile.open(self.mark.aeron_directory) as cnc:
            age_ms = cnc.heartbeat_age_ms(self._clock.epoch_ms())
            if (
                age_ms is None
                or cnc.has_dead_process
                or age_ms > cnc.header.client_liveness_timeout_ns // 1_000_000
            ):
                raise DriverGoneError(cnc.path, cnc.header.pid, age_ms)
            return [one for one in cnc.counters if one.type_id in _TYPES and self._is_ours(one)]

    def _is_ours(self, record: CounterRecord) -> bool:
        return cluster_id_of(record) == self.mark.cluster_id

    def _counter(self, counter: ClusterCounter) -> CounterRecord | None:
        return next((one for one in self.counters() if one.type_id == counter), None)

    @property
    def has_driver(self) -> bool:
        """Whether the member's driver runs."""
        try:
            self.counters()
        except NO_DRIVER:
            return False
        return True

    def _connected(self) -> Client:
        """A client of the member's driver.

        Raises:
            ClusterError: The driver does not run.
        """
        directory = self.mark.aeron_directory
        try:
            self.counters()
            return Client.connect(directory, client_name="cluster-tool", driver_timeout_ms=_DRIVER_TIMEOUT_MS)
        except (*NO_DRIVER, DriverTimeoutError):
            raise NotRunningError(
                f"{self.name} does not run: its driver in {directory} has ended; start its node first"
            ) from None

    def snapshot_messages(self, recording_id: int) -> Iterator[tuple[int, bytes]]:
        """The messages of a snapshot, each with the position after it, from the archive of the member's node.

        Raises:
            ArchiveError: The archive does not have the recording, or does not answer.
            ClusterError: The driver does not run.
        """
        with (
            self._connected() as client,
            Archive.connect(
                client, control_channel="aeron:ipc", control_stream_id=self.mark.archive_stream_id
            ) as archive,
            archive.replay(recording_id) as replay,
        ):
            for message in replay:
                yield message.position, bytes(message.payload)

    @property
    def is_leader(self) -> bool:
        """Whether the member leads, and its election is over."""
        values = {one.type_id: one.value for one in self.counters()}
        return (
            values.get(ClusterCounter.NODE_ROLE) == Role.LEADER
            and values.get(ClusterCounter.ELECTION_STATE) == ElectionState.CLOSED
        )

    def status(self) -> MemberStatus:
        """What its counters say; also of a member that does not run."""
        status = MemberStatus(os.fspath(self._path), self.mark.cluster_id, self.mark.member_id)
        try:
            counters = self.counters()
        except NO_DRIVER:
            return status
        values = {record.type_id: record.value for record in counters}
        state = values.get(ClusterCounter.MODULE_STATE)
        kind = ClusterCounter
        if kind.BACKUP_STATE in values:
            return dataclasses.replace(
                status,
                role="backup",
                state=_named(BackupState, values[kind.BACKUP_STATE]).lower(),
                commit_position=values.get(kind.BACKUP_LIVE_POSITION),
                snapshots=values.get(kind.BACKUP_SNAPSHOTS),
                errors=values.get(kind.BACKUP_ERRORS),
            )
        if state is None:
            return dataclasses.replace(status, state="stopped")
        return dataclasses.replace(
            status,
            role=_named(Role, values.get(kind.NODE_ROLE)).lower(),
            state=_named(ModuleState, state).lower(),
            election=_named(ElectionState, values.get(kind.ELECTION_STATE)).lower(),
            term=values.get(kind.LEADERSHIP_TERM_ID),
            commit_position=values.get(kind.COMMIT_POSITION),
            sessions=sum(record.type_id == kind.SESSION for record in counters),
            snapshots=values.get(kind.SNAPSHOT_COUNT),
            elections=values.get(kind.ELECTION_COUNT),
            errors=sum(one.value for one in counters if one.type_id in _ERRORS),
        )

    def members(self, timeout_s: float) -> ClusterMembersExtendedResponse:
        """Who is in the cluster, as the member sees it.

        Raises:
            ClusterError: It does not answer in time, or its driver does not run.
        """
        return self._asked(
            lambda one: ClusterMembersQuery(correlation_id=one, extended=True),
            ClusterMembersExtendedResponse,
            timeout_s,
        )

    def command(self, command: Command, member_id: int, text: str, timeout_s: float) -> str:
        """Have the leader carry out a command, and wait for its end; returns what it says.

        Raises:
            ClusterError: It refuses, with the reason; it does not answer in time, or its driver does not run.
        """
        self._check_shows_life()
        answer = self._asked(
            lambda one: OperatorRequest(
                correlation_id=one, kind=int(command), member_id=member_id, text=text
            ),
            OperatorResponse,
            timeout_s,
        )
        if not answer.is_done:
            raise ClusterError(f"{self.name}: {answer.text}")
        return answer.text

    def _asked(self, make: Callable[[int], Any], kind: type[A], timeout_s: float) -> A:
        """The answer of the member to a request, which is made with its correlation id."""
        mark = self.mark
        deadline = self._clock.deadline(timeout_s)
        found: list[A] = []
        with (
            self._connected() as client,
            reserved_streams(),
            client.add_subscription(mark.control_channel, mark.service_stream_id) as answers,
            client.add_publication(mark.control_channel, mark.consensus_module_stream_id) as queries,
        ):
            correlation_id = client.next_correlation_id()
            query = make(correlation_id)

            def take(data: bytes) -> None:
                answer = _decoded(data)
                if isinstance(answer, kind) and answer.correlation_id == correlation_id:
                    found.append(answer)

            is_sent = False
            while not deadline.is_over:
                # Only once the answer can be heard.
                if not is_sent and answers.is_connected:
                    is_sent = queries.offer(encode(query)) > 0
                answers.poll(lambda data, _: take(data))
                if found:
                    return found[0]
                self._clock.sleep(_LOOK_S)
        raise ClusterError("timeout waiting for response from node")

    def check_can(self, toggle: Toggle, timeout_s: float) -> None:
        """Look whether the member does what an operator wants.

        Raises:
            ClusterError: It does not lead, its state is another one, it does not answer, or a member of another
                directory answers.
        """
        try:
            leader_id = self.members(timeout_s).leader_member_id
        except NotRunningError:
            raise
        except ClusterError:
            raise ClusterError("Timed out querying cluster.") from None
        self._check_shows_life()
        if leader_id != self.mark.member_id:
            raise ClusterError(
                f"{self.name}: Current node is not the leader (leaderMemberId = {leader_id}), "
                f"unable to {toggle.name}"
            )
        record = self._counter(ClusterCounter.MODULE_STATE)
        if record is None:
            raise ClusterError(f"{self.name}: Unable to resolve state of consensus module.")
        needed = ModuleState.SUSPENDED if toggle is Toggle.RESUME else ModuleState.ACTIVE
        if record.value != needed:
            raise ClusterError(
                f"{self.name}: Unable to {toggle.name} as the state of the consensus module is "
                f"{_named(ModuleState, record.value)}, but needs to be {needed.name}"
            )

    def _check_shows_life(self) -> None:
        """Refuse to have a member do what an operator asked of a copy of its directory.

        The mark file names the driver, and the copy the same: the member that runs there may be of another directory.
        """
        age_ms = self._clock.epoch_ms() - self.mark.activity_timestamp
        if age_ms > LIVENESS_TIMEOUT_MS:
            raise ClusterError(
                f"{self.name}: the mark file in {os.fspath(self._path)} shows no life, while a member answers on the "
                f"driver in {self.mark.aeron_directory}: it runs on another directory, of which this one may be a "
                "copy; name that one"
            )

    def ask(self, toggle: Toggle, successor_id: int | None = None, *, wait_s: float | None = None) -> None:
        """Set the control toggle, and wait for the end of what has one.

        Args:
            toggle: What is wanted.
            successor_id: The member that is to lead, of a transfer; by default any.
            wait_s: How long it may take, in seconds; by default as long as Aeron's tool waits.

        Raises:
            ClusterError: Something else was asked meanwhile, or it does not end in time.
        """
        record = self._counter(ClusterCounter.CONTROL_TOGGLE)
        if record is None:
            raise ClusterError(f"{self.name}: Failed to find control toggle")
        free = (Toggle.NEUTRAL, Toggle.SUSPEND) if toggle is Toggle.RESUME else (Toggle.NEUTRAL,)
        value = toggle if successor_id is None else toggle | (successor_id + 1) << SUCCESSOR_SHIFT
        if record.value not in free or not self._is_set(record, value):
            raise ClusterError(
                f"{self.name}: Failed to apply {toggle.name}, current toggle value = "
                f"{_named(Toggle, self._value(record))}"
            )
        wait_s = _WAITS_S.get(toggle) if wait_s is None else wait_s
        if wait_s is None:
            return
        deadline = self._clock.deadline(wait_s)
        while self._value(record) not in (Toggle.NEUTRAL, Toggle.INACTIVE):
            if deadline.is_over:
                raise ClusterError(
                    f"{self.name}: Timed out after {wait_s * 1000:.0f}ms waiting for {toggle.name} to complete."
                )
            self._clock.sleep(_LOOK_S)
        if toggle is Toggle.TRANSFER_LEADERSHIP and self._value(record) == Toggle.NEUTRAL:
            raise ClusterError(
                f"{self.name}: still leads: {'no follower' if successor_id is None else f'member {successor_id}'} "
                "has had the whole log in time; `headrace cluster list-members` shows how far they are"
            )

    def _value(self, record: CounterRecord) -> int:
        now = next((one for one in self.counters() if one.registration_id == record.registration_id), None)
        if now is None:
            raise ClusterError(f"{self.name}: Failed to find control toggle")
        return now.value

    def _is_set(self, record: CounterRecord, value: int) -> bool:
        """Set the toggle, if nothing has changed it since it was read: of two operators one is refused."""
        with self._connected() as client:
            try:
                return client.counters.compare_and_set(record, value)
            except KeyError:
                raise ClusterError(f"{self.name}: Failed to find control toggle") from None


def stored_messages(archive_directory: Path, recording_id: int) -> Iterator[tuple[int, bytes]]:
    """The messages of a snapshot, each with the position after it, from the files of an archive.

    Raises:
        ArchiveError: The directory has no catalog or not the recording, or its files are damaged.
    """
    with ArchiveDirectory(archive_directory) as archive:
        end = archive.end(recording_id)
        descriptor = archive.find(recording_id)
        assert descriptor is not None, "it has an end"
    frames = RecordedFrames(
        recording_id,
        start_position=descriptor.start_position,
        initial_term_id=descriptor.initial_term_id,
        term_length=descriptor.term_buffer_length,
        segment_length=descriptor.segment_file_length,
        stream_id=descriptor.stream_id,
    )
    start = descriptor.start_position
    reader = RecordingReader(
        archive_directory, frames, start=start, stop=end, limit=end, is_frame_at_start=True
    )
    while not reader.is_at_end:
        batch = reader.read_batch(_BATCH_COUNT)
        for position, payload in zip(batch.positions, batch, strict=True):
            yield int(position), bytes(payload)


def _named(kind: type[NamedNumber], value: int | None) -> str:
    """The name of a value; the value itself, if a later version has it."""
    if value is None:
        return ""
    return kind(value).name if value in set(kind) else str(value)


def _decoded(data: bytes) -> object:
    """A message of the member; ``None`` for what is for its services alone."""
    if template_of(data) == SESSION_MESSAGE:
        return None
    try:
        return decode(data)
    except MessageError:
        return None
