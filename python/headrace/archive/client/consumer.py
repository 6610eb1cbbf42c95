"""Reads a named stream as a member of a group, whose place the archive keeps."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from headrace._base.checks import wrong
from headrace._base.closing import Closing
from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, ClosedError
from headrace._base.fork import is_own
from headrace._base.logging import ARCHIVE
from headrace.archive.client import steps
from headrace.archive.client.following.settings import replay_address
from headrace.archive.client.following.stream_follow import StreamFollow
from headrace.archive.client.following.stream_follower import StreamFollowed, StreamFollower
from headrace.archive.client.session_link import ArchiveLink
from headrace.archive.client.waits import POLL_INTERVAL_S
from headrace.archive.envelope import Envelope
from headrace.archive.protocol.named_stream import check_stream_name
from headrace.archive.protocol.place import Place
from headrace.archive.protocol.requests import CommitPlaceRequest, JoinGroupRequest, LeaveGroupRequest
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange
    from headrace.archive.client.session import ArchiveSession
    from headrace.archive.protocol.answers import GroupAssignment
    from headrace.archive.protocol.named_stream import NamedStream
    from headrace.client import Message
    from headrace.clock import Deadline

__all__ = ["Consumer", "ConsumerState", "Record", "Share"]

Share = Literal["recordings", "keys"]

_KEY_LANES = 64
_HEARTBEAT_S = 1.0
_JOINING_S = 0.05
# A look at the group costs as much as several messages, and it changes seldom.
_STEP_S = 0.01


class ConsumerState(Enum):
    """What a consumer does."""

    JOINING = "joining"
    """It has no part yet: the archive does not answer, or other members hand theirs over."""
    READING = "reading"
    """It reads its part of the stream."""
    CLOSED = "closed"
    """The program has closed it."""


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a named stream.

    Attributes:
        payload: The message, without its envelope.
        recording_id: The recording that has it.
        position: Where it ends in the recording.
        session_id: The session of its publisher.
        reserved_value: The reserved value of its first frame.
        key: Its key; empty without an envelope.
        number: Its number; -1 without one.
        headers: Names and values of its envelope.
    """

    payload: bytes
    recording_id: int
    position: int
    session_id: int
    reserved_value: int
    key: bytes = b""
    number: int = -1
    headers: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Part:
    """What a member reads in one generation."""

    generation: int
    index: int
    count: int
    lanes: tuple[Place, ...]

    @property
    def own_lanes(self) -> list[int]:
        if len(self.lanes) == 1:
            return [0]
        return [lane for lane in range(len(self.lanes)) if lane % self.count == self.index]

    def takes(self, recording_id: int) -> bool:
        return len(self.lanes) > 1 or recording_id % self.count == self.index

    def has(self, key: bytes, recording_id: int, position: int) -> bool:
        """Whether a message is another member's, or was read before."""
        if len(self.lanes) == 1:
            return False
        lane = zlib.crc32(key) % len(self.lanes)
        return lane % self.count != self.index or self.lanes[lane].has(recording_id, position)


class Consumer(Closing):
    """A member of a group that reads a named stream; the members share it, and the archive keeps how far they are.

    Made with :meth:`headrace.Archive.consumer`. An iterator and a context manager. A record counts as done when the
    next one is asked for, or with :meth:`commit`. What is done and not committed when a member ends is read again by
    another: each message at least once, and once if nothing dies. Goes on when the archive restarts. Used by one thread
    at a time.

    Attributes:
        member: Its name in the group.
        duplicate_count: Messages passed over because one of their number had come before.
        missing_count: Numbers that no message had.
    """

    def __init__(
        self,
        session: ArchiveSession,
        stream: NamedStream,
        group: str,
        member: str | None,
        share: Share,
        commit_interval_s: float | None,
    ) -> None:
        """Called by :meth:`headrace.Archive.consumer`."""
        check_stream_name(group)
        if share not in ("recordings", "keys"):
            raise wrong("share", share, 'must be "recordings" or "keys"')
        if share == "keys" and not stream.keys:
            raise wrong("share", share, f"needs keys: declare {stream.name} with keys=True")
        self._session = session
        self._client = session.client
        self._clock = session.clock
        self._stream = stream
        self._group = group
        self.member = member or f"{os.uname().nodename}-{os.getpid()}-{self._client.next_correlation_id()}"
        self._lane_count = 1 if share == "recordings" else _KEY_LANES
        self._interval_s = commit_interval_s
        self._link = ArchiveLink(self._client, session._config)
        self._question: Exchange[GroupAssignment] | None = None
        self._next_heartbeat = self._clock.deadline(0)
        self._next_commit = self._clock.deadline(commit_interval_s)
        self._next_step = self._clock.deadline(0)
        self._committing: tuple[Exchange[None], dict[int, int]] | None = None
        # The generation that the member has entered, and what it reads there.
        self._generation = -1
        self._part: _Part | None = None
        self._follow: StreamFollow | None = None
        # Another generation has begun: nothing more is read until what is done is committed.
        self._is_handing_over = False
        self._follower: StreamFollower | None = None
        self._given: tuple[int, int] | None = None
        self._done: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._is_closed = False
        self._pid = os.getpid()
        self.duplicate_count = self.missing_count = 0

    @property
    def state(self) -> ConsumerState:
        """What it does."""
        if self._is_closed:
            return ConsumerState.CLOSED
        return ConsumerState.JOINING if self._follow is None else ConsumerState.READING

    @property
    def waiting_for(self) -> str | None:
        """What it waits for, for people; ``None`` while messages come or publishers may send some."""
        if self._is_closed:
            return None
        if self._follow is not None:
            return self._follow.waiting_for
        if not self._link.is_ready:
            failure = self._link.failure
            return "an archive that answers" + ("" if failure is None else f": {failure}")
        return "the other members of the group to hand over their parts"

    # --- reading ---------------------------------------------------------------------------------------------------

    def poll_record(self) -> Record | None:
        """Take one record; ``None`` if none has arrived. Never blocks.

        Raises:
            ArchiveError: The stream cannot be read; the text says why.
            EnvelopeError: A message of a stream with keys has no envelope.
            ClosedError: This, or its client, is closed.
        """
        if self._is_closed:
            raise ClosedError(f"{self!r} is closed")
        self._note_given()
        if self._next_step.is_over:
            self._next_step = self._clock.deadline(_STEP_S)
            self._step()
        follow, follower = self._follow, self._follower
        if follow is None or follower is None or self._is_handing_over:
            return None
        while (message := follow.poll_message()) is not None:
            recording_id = follower.recording_id
            assert recording_id is not None, "a message has come"
            record = self._record(message, recording_id)
            self._given = recording_id, message.position
            if record is not None:
                return record
            self._note_given()
        self._done.update(follower.ends)
        follower.ends.clear()
        return None

    def receive(self, timeout_s: float | None = None) -> Record | None:
        """Wait for one record, without the GIL.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Returns:
            The record; ``None`` when the time is over.

        Raises:
            ArchiveError: As :meth:`poll_record`, which also raises others.
        """
        deadline = self._clock.deadline(timeout_s)
        while (record := self.poll_record()) is None and not deadline.is_over:
            self._clock.sleep(POLL_INTERVAL_S)
        return record

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        """Wait for the next record; the iteration ends when the program closes the consumer."""
        try:
            record = self.receive()
        except ClosedError:
            if self._is_closed:
                raise StopIteration from None
            raise
        assert record is not None, "it waits without end"
        return record

    def _record(self, message: Message, recording_id: int) -> Record | None:
        """The record of a message; ``None`` if another member reads it, or it was read."""
        assert self._part is not None, "reading"
        payload, envelope = message.payload, None
        if self._stream.keys:
            envelope = Envelope.decode(payload)
            if self._part.has(envelope.key, recording_id, message.position):
                return None
            if not self._is_new(message.session_id, envelope.number):
                return None
        return Record(
            payload if envelope is None else envelope.payload,
            recording_id,
            message.position,
            message.session_id,
            message.reserved_value,
            *(() if envelope is None else (envelope.key, envelope.number, envelope.headers)),
        )

    def _is_new(self, session_id: int, number: int) -> bool:
        """Check the number of a message, where members read whole recordings: with keys others have those between."""
        if number < 0 or self._lane_count > 1:
            return True
        last = self._numbers.get(session_id)
        if last is not None and number <= last:
            self.duplicate_count += 1
            return False
        if last is not None and number > last + 1:
            self.missing_count += number - last - 1
            ARCHIVE.warning(
                "stream %s: numbers %d to %d are missing", self._stream.name, last + 1, number - 1
            )
        self._numbers[session_id] = number
        return True

    def _note_given(self) -> None:
        """Count what the program was given as done, because it asks for more."""
        if self._given is not None:
            recording_id, position = self._given
            self._done[recording_id] = position
            self._given = None

    # --- committing ------------------------------------------------------------------------------------------------

    def commit(self, timeout_s: float | None = 10.0) -> None:
        """Have the archive keep that all records so far are done. Blocks until its disk has it.

        Raises:
            ArchiveError: The part was given to other members, who read again what was not committed.
            ArchiveTimeoutError: No answer came in time.
        """
        self._note_given()
        deadline = self._clock.deadline(timeout_s)
        while self._is_uncommitted:
            self._step_link()
            self._begin_commit()
            if self._take_commit():
                raise ArchiveError(
                    f"member {self.member} is late: its part of {self._stream.name} was given to others, who read "
                    "again what it has not committed"
                )
            if self._is_uncommitted:
                self._pause(deadline, "the commit was not confirmed")

    @property
    def _is_uncommitted(self) -> bool:
        return bool(self._done) or self._committing is not None

    def _begin_commit(self) -> None:
        part = self._part
        if self._committing is not None or not self._done or part is None or not self._link.is_ready:
            return
        done, self._done = self._done, {}
        places = {"lanes": part.own_lanes, "positions": done}
        request = CommitPlaceRequest(
            generation=part.generation,
            name=self._stream.name,
            group=self._group,
            member=self.member,
            places=json.dumps(places),
        )
        self._committing = self._link.ask(steps.done(request)), done

    def _take_commit(self) -> bool:
        """Take the outcome of a commit; true if it was refused. What one had that was lost is committed again."""
        if self._committing is None or not self._committing[0].is_done:
            return False
        (exchange, done), self._committing = self._committing, None
        try:
            self._link.answer(exchange)
        except ArchiveError as refusal:
            if refusal.code != NULL_VALUE:
                ARCHIVE.warning("%s", refusal)
                self._leave_part()
                return True
            self._done = {**done, **self._done}
        return False

    # --- the group -------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        self._step_link()
        if self._interval_s is not None and self._next_commit.is_over:
            self._next_commit = self._clock.deadline(self._interval_s)
            self._begin_commit()
        self._take_commit()

    def _step_link(self) -> None:
        self._link.step()
        if self._question is None:
            if self._link.is_ready and self._next_heartbeat.is_over:
                request = JoinGroupRequest(
                    generation=self._generation,
                    lane_count=self._lane_count,
                    name=self._stream.name,
                    group=self._group,
                    member=self.member,
                )
                self._question = self._link.ask(steps.group_joined(request))
        elif self._question.is_done:
            question, self._question = self._question, None
            try:
                self._assigned(self._link.answer(question))
            except ArchiveTimeoutError:
                pass  # It may be busy; the next heartbeat tells.
            except ArchiveError as refusal:
                if refusal.code != NULL_VALUE:
                    raise
            is_reading = self._follow is not None and not self._is_handing_over
            self._next_heartbeat = self._clock.deadline(_HEARTBEAT_S if is_reading else _JOINING_S)

    def _assigned(self, answer: GroupAssignment) -> None:
        """Read what the archive says. If it says something else than before, hand over first."""
        if answer.generation != self._generation:
            self._is_handing_over = True
            self._hand_over(answer.generation)
        elif self._follow is None and answer.member_count:
            lanes = tuple(Place.from_value(one) for one in json.loads(answer.places))
            self._begin_part(_Part(answer.generation, answer.member_index, answer.member_count, lanes))

    def _hand_over(self, generation: int) -> None:
        """Leave the part, once what is done is committed; the heartbeat after that enters the generation."""
        if self._interval_s is not None:
            self._note_given()
            self._begin_commit()
            if self._is_uncommitted:
                return
        self._leave_part()
        self._generation = generation

    def _begin_part(self, part: _Part) -> None:
        self._part = part
        start = Place.earliest([part.lanes[lane] for lane in part.own_lanes] or part.lanes)
        config = self._session._config
        what = StreamFollowed(self._stream.name, start, None, replay_address(config, None, None), part.takes)
        self._follower = StreamFollower(self._client, ArchiveLink(self._client, config), what)
        self._follow = StreamFollow(self._follower)  # type: ignore[arg-type]

    def _leave_part(self) -> None:
        if self._follow is not None:
            self._follow.close()
        self._follow = self._follower = self._part = self._given = None
        self._is_handing_over = False
        self._done.clear()
        self._numbers.clear()

    def _pause(self, deadline: Deadline, why: str) -> None:
        if deadline.is_over:
            raise ArchiveTimeoutError(f"member {self.member} of group {self._group}: {why}")
        self._clock.sleep(POLL_INTERVAL_S)

    def close(self, timeout_s: float = 1.0) -> None:
        """Leave the group, so that others read on at once. Closing again does nothing, nor does a forked child.

        With a commit interval, what is done is committed first; the last record that was given is not.

        Args:
            timeout_s: How long the commit may take, in seconds.
        """
        if self._is_closed or not is_own(self._pid):
            return
        try:
            if self._interval_s is not None and self._follow is not None:
                given, self._given = self._given, None
                self.commit(timeout_s)
                self._given = given
        except (ArchiveError, ClosedError) as failure:
            ARCHIVE.warning("consumer of %s: not committed at its end: %s", self._stream.name, failure)
        finally:
            self._is_closed = True
            self._leave_part()
            self._link.send(LeaveGroupRequest(name=self._stream.name, group=self._group, member=self.member))
            self._link.close()

    def __repr__(self) -> str:
        who = f"{self._stream.name!r}, group={self._group!r}, member={self.member!r}"
        return f"Consumer({who}, state={self.state.name})"
