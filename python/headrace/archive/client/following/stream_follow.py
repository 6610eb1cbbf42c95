"""A named stream as one endless stream of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from headrace._base.checks import check_names, wrong
from headrace.archive.client.following.follow import Follow
from headrace.archive.client.following.settings import live_address, replay_address
from headrace.archive.client.following.stream_follower import StreamFollowed, StreamFollower
from headrace.archive.client.session_link import ArchiveLink
from headrace.archive.protocol.named_stream import check_stream_name
from headrace.archive.protocol.place import Place

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.archive.client.session import ArchiveSession

__all__ = ["StreamFollow", "StreamFollowSettings", "follow_stream"]

_CHANGE_WAIT_S = 0.001
_NAMES = ("live_channel", "live_stream_id", "replay_channel", "replay_stream_id")
_RULE = "is not an argument of follow with a stream's name, see headrace.Archive.follow"


class StreamFollowSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Archive.follow` with a name."""

    live_channel: str
    live_stream_id: int
    replay_channel: str
    replay_stream_id: int


class StreamFollow(Follow):
    """The messages of a named stream, each once, those of each publisher in order, endlessly.

    Made with :meth:`headrace.Archive.follow`. An iterator, also with ``async for``, and a context manager. Reads what
    is recorded, then what publishers send. Goes on when a publisher or the archive ends and comes back, however long
    that takes: :attr:`waiting_for` says for what it waits. Used by one thread at a time, or by the coroutines of one
    event loop; any thread may close it, which ends the iteration.
    """

    _follower: StreamFollower  # type: ignore[assignment]

    @property
    def place(self) -> Place | None:
        """All that was delivered: following from there again misses nothing, and repeats nothing.

        ``None`` only after ``start="latest"``, until the archive has said where the stream's end is.
        """
        return self._follower.place

    @property
    def waiting_for(self) -> str | None:
        """What the stream waits for, for people; ``None`` while messages come or publishers may send some."""
        return self._follower.waiting_for

    @property
    def recording_id(self) -> int | None:
        """The recording of the last message."""
        return self._follower.recording_id

    @property
    def is_live(self) -> bool:
        """Whether all messages come from publishers now, and none from the archive."""
        return self._follower.is_live

    @property
    def position(self) -> int | None:
        """The end of the last delivered message in its recording; :attr:`place` has those of all recordings."""
        return self._follower.position

    @property
    def _wait_s(self) -> float:
        # Messages of another publisher must not wait for one of this.
        return super()._wait_s if self._follower.is_alone else _CHANGE_WAIT_S

    def __repr__(self) -> str:
        return f"StreamFollow({self._follower.name!r}, state={self.state.name}, place={self.place})"


def follow_stream(
    session: ArchiveSession, name: str, start: Place | str, **settings: Unpack[StreamFollowSettings]
) -> StreamFollow:
    """Begin to follow a stream by its name; sends no request yet.

    Raises:
        ConfigError: An argument is unknown or wrong.
    """
    check_names(settings, _NAMES, _RULE, others=("recording_id", "start"))
    check_stream_name(name)
    what = StreamFollowed(
        name,
        _place_at(start),
        live_address(settings.get("live_channel"), settings.get("live_stream_id")),
        replay_address(session._config, settings.get("replay_channel"), settings.get("replay_stream_id")),
    )
    return StreamFollow(StreamFollower(session.client, ArchiveLink(session.client, session._config), what))  # type: ignore[arg-type]


def _place_at(start: Place | str) -> Place | None:
    if start == "earliest":
        return Place()
    if start == "latest":
        return None
    if isinstance(start, Place):
        return start
    raise wrong("start", start, 'must be "earliest", "latest" or a Place')
