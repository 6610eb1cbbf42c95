"""Follows a named stream: its recordings one after the other, those of several publishers side by side.

Each recording has a follower of its own, which goes from history to live (``machine.py``). A look at the archive, from
time to time, finds recordings that began meanwhile, and stopped ones that were extended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headrace._base.exceptions import ArchiveError, AuthenticationError, HeadraceError
from headrace._base.logging import ARCHIVE
from headrace.archive.client import calls
from headrace.archive.client.following.machine import Followed, Follower
from headrace.archive.client.following.states import FollowState
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.place import Place

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.following.sources import Address, Source
    from headrace.archive.client.session_link import ArchiveLink
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.client import Client
    from headrace.clock import Clock

__all__ = ["StreamFollowed", "StreamFollower"]

_LOOK_INTERVAL_S = 0.1
# Of recordings that have stopped so many are read side by side, of those that go on all.
_STOPPED_MAX = 1
_REFUSALS = (ErrorCode.GENERIC, ErrorCode.UNAUTHORISED_ACTION)


@dataclass(frozen=True, slots=True)
class StreamFollowed:
    """What to follow, from where.

    Attributes:
        name: The stream.
        start: Where to begin; ``None`` for what is recorded from now on.
        live: Where its publishers send; ``None`` for the recorded channel.
        replay: Where the archive is to replay to.
        takes: Says of a recording whether it is followed.
    """

    name: str
    start: Place | None
    live: Address | None
    replay: Address
    takes: Callable[[int], bool] = lambda recording_id: True


class _SharedLink:
    """A link that another steps and closes."""

    def __init__(self, link: ArchiveLink) -> None:
        self._link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def step(self) -> None:
        """The owner does it."""

    def close(self) -> None:
        """The owner does it."""


def _looked(name: str, place: Place | None) -> Steps[tuple[list[RecordingDescriptor], Place]]:
    """What a stream has at a place, and the place; without one, after all that is recorded now."""
    if place is not None:
        first_id = place.read_up_to + 1
        return (yield from calls.stream_recordings(name, first_id, place.as_of_ms)), place
    found, ends = (yield from calls.stream_recordings(name)), []
    for one in found:
        end = one.stop_position
        if one.is_active:
            end = yield from calls.max_recorded_position(one.recording_id)
        ends.append((one, end))
    return found, Place.after(ends)


class StreamFollower:
    """Moves along the recordings of a stream. Used by one thread at a time."""

    def __init__(self, client: Client, link: ArchiveLink, what: StreamFollowed) -> None:
        self._client = client
        self._clock = client.clock
        self._link = link
        self._what = what
        self._place = what.start
        # Recordings with more to read, as the archive described them last.
        self._unread: dict[int, RecordingDescriptor] = {}
        self._followers: dict[int, Follower] = {}
        self._current: tuple[int, Follower] | None = None
        self._question: Exchange[tuple[list[RecordingDescriptor], Place]] | None = None
        self._next_look = self._clock.deadline(0)
        self._has_looked = False
        self._is_closed = False
        self.error: HeadraceError | None = None
        """Why nothing more comes."""
        self.ends: dict[int, int] = {}
        """Where recordings that are read whole ended, since they were taken from here."""

    # --- what a Follow needs ---------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._clock

    @property
    def state(self) -> FollowState:
        """That of the recording that is read now; ``WAITING`` while there is none."""
        if self._is_closed:
            return FollowState.CLOSED
        if self.error is not None:
            return FollowState.FAILED
        if self._current is not None:
            return self._current[1].state
        return FollowState.WAITING if self._has_looked else FollowState.CONNECTING

    @property
    def recording_id(self) -> int | None:
        """The recording that is read now."""
        return None if self._current is None else self._current[0]

    @property
    def position(self) -> int | None:
        """How far the recording that is read now is delivered."""
        return None if self._current is None else self._current[1].position

    @property
    def source(self) -> Source | None:
        """The source to take messages from now."""
        return None if self._current is None else self._current[1].source

    def delivered(self, position: int) -> None:
        """Note that the program has all messages of the current recording up to a position."""
        assert self._current is not None, "messages come from it"
        self._current[1].delivered(position)

    # --- for people, and for the next start ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The stream."""
        return self._what.name

    @property
    def place(self) -> Place | None:
        """All that was delivered; ``None`` until the archive has said where the stream's end is."""
        if self._place is None or not self._has_looked:
            return self._place  # What there is between its positions is not known yet.
        read = {one: follower.position for one, follower in self._followers.items()}
        positions = {one: position for one, position in read.items() if position is not None}
        return self._place.having_read(positions).compact(set(self._unread))

    @property
    def is_live(self) -> bool:
        """Whether all that comes now comes from publishers."""
        states = [follower.state for follower in self._followers.values()]
        return bool(states) and all(state is FollowState.LIVE for state in states)

    @property
    def is_alone(self) -> bool:
        """Whether messages of one recording alone can come now."""
        return len(self._followers) == 1

    @property
    def waiting_for(self) -> str | None:
        """What is waited for, in words; ``None`` while messages come."""
        if self._is_closed or self.error is not None or self.is_live:
            return None
        if not self._link.is_ready:
            failure = self._link.failure
            return "an archive that answers" + ("" if failure is None else f": {failure}")
        if not self._has_looked:
            return "the archive to list the recordings of the stream"
        if not self._followers:
            return f"a publisher: all recordings of {self.name} are read to their end"
        return None

    # --- turns -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do all work that needs no waiting, and turn to the next recording."""
        if self._is_closed or self.error is not None:
            return
        self._link.step()
        if not self._link.is_ready and isinstance(self._link.failure, AuthenticationError):
            self._fail(self._link.failure)
            return
        self._look()
        for recording_id, follower in list(self._followers.items()):
            follower.step()
            self._look_after(recording_id, follower)
        self._turn()

    def close(self) -> None:
        """Leave the streams and the archive."""
        if not self._is_closed:
            self._is_closed = True
            self._leave()

    def _look(self) -> None:
        """Ask the archive from time to time what there is to read, and take its answer."""
        if self._question is None:
            if self._link.is_ready and self._next_look.is_over:
                self._question = self._link.ask(_looked(self.name, self.place))
            return
        if not self._question.is_done:
            return
        question, self._question = self._question, None
        self._next_look = self._clock.deadline(_LOOK_INTERVAL_S)
        try:
            found, place = self._link.answer(question)
        except ArchiveError as refusal:
            if refusal.code in _REFUSALS:
                self._fail(refusal)
        else:
            self._found(found, place if self._place is None else self._place)

    def _found(self, found: list[RecordingDescriptor], place: Place) -> None:
        self._has_looked = True
        found = [one for one in found if self._what.takes(one.recording_id)]
        for one in found:
            try:
                if one.recording_id in self._followers or place.is_unread(one):
                    self._unread[one.recording_id] = one
            except ArchiveError as unknown:
                self._fail(unknown)
                return
        self._place = place.noting(found)
        self._begin()

    def _begin(self) -> None:
        """Follow what may be read now; of one publisher a recording after the other."""
        busy = {self._unread[one].session_id for one in self._followers}
        stopped_count = sum(not self._unread[one].is_active for one in self._followers)
        for recording_id, one in sorted(self._unread.items()):
            if recording_id in self._followers or one.session_id in busy:
                continue
            busy.add(one.session_id)
            if not one.is_active:
                stopped_count += 1
                if stopped_count > _STOPPED_MAX:
                    continue
            assert self._place is not None, "looked for"
            begin: int | Literal["start"] = self._place.positions.get(recording_id, "start")
            what = Followed(recording_id, begin, self._what.live, self._what.replay, None)
            link: Any = _SharedLink(self._link)
            self._followers[recording_id] = Follower(self._client, link, what)

    def _look_after(self, recording_id: int, follower: Follower) -> None:
        """Finish with a recording that is read to its end, or is gone; fail with one that cannot be read."""
        if follower.state is FollowState.WAITING:
            self._end(recording_id, follower)
        elif follower.state is FollowState.FAILED:
            error = follower.error
            assert error is not None, "failed"
            is_gone = isinstance(error, ArchiveError) and error.code == ErrorCode.UNKNOWN_RECORDING
            if is_gone and follower.position is None:
                # Nothing of it was delivered: what its retention has deleted is not a part of the stream any more.
                ARCHIVE.info("stream %s: recording %d is deleted", self.name, recording_id)
                self._end(recording_id, follower)
            else:
                self._fail(error)

    def _end(self, recording_id: int, follower: Follower) -> None:
        assert self._place is not None, "followed"
        end = follower.position
        follower.close()
        del self._followers[recording_id], self._unread[recording_id]
        if end is not None:
            self.ends[recording_id] = end
            self._place = self._place.having_read({recording_id: end})
        self._place = self._place.compact(set(self._unread))
        if self._current is not None and self._current[0] == recording_id:
            self._current = None
        self._begin()

    def _turn(self) -> None:
        """Go on with the next recording that has messages; in the order of their ids, round and round."""
        last = -1 if self._current is None else self._current[0]
        ids = sorted(self._followers)
        order = [*(one for one in ids if one > last), *(one for one in ids if one <= last)]
        ready = [one for one in order if self._followers[one].source is not None]
        chosen = next(iter(ready or order), None)
        self._current = None if chosen is None else (chosen, self._followers[chosen])

    def _fail(self, error: HeadraceError) -> None:
        self.error = error
        self._leave()

    def _leave(self) -> None:
        for follower in self._followers.values():
            follower.close()
        if self._question is not None:
            self._link.forget(self._question)
            self._question = None
        self._link.close()
