"""What a client does with streams by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from headrace._base.checks import check_callable, wrong
from headrace._base.exceptions import ArchiveError
from headrace.archive.client import calls, steps
from headrace.archive.client.consumer import Consumer, Share
from headrace.archive.client.following.settings import follow
from headrace.archive.client.following.stream_follow import follow_stream
from headrace.archive.client.session import ArchiveSession
from headrace.archive.client.stream_data import StreamData, recorded_data
from headrace.archive.client.stream_publication import StreamPublication, published_to
from headrace.archive.client.table import Table, keyed_entry
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.requests import ListGroupsRequest

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.archive.client.exchange import Steps
    from headrace.archive.client.following.follow import Follow
    from headrace.archive.client.following.settings import Begin, FollowSettings
    from headrace.archive.client.following.stream_follow import StreamFollow, StreamFollowSettings
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.protocol.named_stream import NamedStream
    from headrace.archive.protocol.place import Place
    from headrace.archive.protocol.retention import Retention

__all__ = ["Group", "NamedStreamRequests"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Group:
    """A group that reads a named stream.

    Attributes:
        name: Its name.
        members: The members that read now.
        lag: Bytes of the stream that it has not committed.
    """

    name: str
    members: tuple[str, ...]
    lag: int


class NamedStreamRequests(ArchiveSession):
    """A session with what it does with streams by their names. Aeron's archive does not know these requests."""

    def _run(self, what: Steps[R]) -> R:
        raise NotImplementedError

    def declare(
        self,
        name: str,
        channel: str,
        stream_id: int,
        *,
        location: SourceLocation = SourceLocation.LOCAL,
        retention: Retention | None = None,
        keys: bool = False,
    ) -> None:
        """Have a stream recorded whenever the archive runs, from now on and after each restart.

        Recordings that the archive has of this channel and stream are its beginning. A publisher that goes on where its
        recording stopped extends that; any other begins the next one. Declaring a name again changes its channel
        and its retention; what was recorded before stays a part of the stream.

        Args:
            name: The name of the stream: letters, digits, dots, hyphens and underscores.
            channel: The channel of its publishers.
            stream_id: Which flow on the channel.
            location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
            retention: How much of each recording the archive keeps; by default everything. With hours, whole old
                recordings go, too.
            keys: Whether each message has an :class:`headrace.archive.Envelope`, with a key, a number and headers.

        Raises:
            ArchiveError: Another stream has this channel and stream id.
            ArchiveTimeoutError: The archive does not answer: Aeron's knows no named streams.
            ConfigError: The name, the channel or the retention is wrong.
        """
        self._run(calls.declare(name, channel, stream_id, location=location, retention=retention, keys=keys))

    def undeclare(self, name: str) -> bool:
        """End the recording of a stream; its recordings stay. False if it was not declared."""
        return self._run(calls.undeclare(name))

    def streams(self) -> list[NamedStream]:
        """The declared streams, by name."""
        return self._run(calls.streams())

    def stream_recordings(self, name: str) -> list[RecordingDescriptor]:
        """The recordings of a named stream, by their ids.

        Raises:
            ArchiveError: No stream has the name.
        """
        return self._run(calls.stream_recordings(name))

    def add_publication(
        self, name: str, *, publisher: str = "", timeout_s: float | None = 30.0
    ) -> StreamPublication:
        """Publish to a named stream, and go on where this publisher stopped, also in another life of its program.

        Blocks without the GIL until the archive records it. If the publication before has not ended yet, such as that
        of a program that was killed, this waits until its driver has given it up.

        ::

            with archive.add_publication("trades") as trades:
                first = 0 if trades.last_message is None else number_of(trades.last_message) + 1
                for number in itertools.count(first):
                    trades.publish(trade(number))

        Args:
            name: The name of the stream.
            publisher: Which of its publishers this is, if there are several; two of the same name cannot run at once.
            timeout_s: How long it may wait, in seconds; ``None`` for no limit.

        Raises:
            ArchiveError: No stream has the name.
            ArchiveTimeoutError: A publication of this publisher goes on elsewhere, or the archive does not record it.
        """
        return published_to(self, name, publisher, timeout_s)

    def consumer(
        self,
        name: str,
        group: str,
        *,
        share: Share = "recordings",
        member: str | None = None,
        commit_interval_s: float | None = 1.0,
    ) -> Consumer:
        """Read a named stream as a member of a group, which the archive remembers.

        ::

            with archive.consumer("trades", group="risk") as consumer:
                for record in consumer:
                    handle(record.payload)

        The first member begins with the first message. The members of a group share the stream; when one dies, or does
        not ask for records for ten seconds, the others go on where it had committed. Blocks until the archive has
        answered once.

        Args:
            name: The name of the stream.
            group: The name of the group: letters, digits, dots, hyphens and underscores.
            share: ``"recordings"``: each is read by one member, and so is each publisher. ``"keys"``: messages of one
                key are read by one member; the stream needs ``keys=True``, and each member receives all of it.
            member: Its name in the group; by default a unique one.
            commit_interval_s: How often what is done is committed, in seconds; ``None`` if the program does it.

        Raises:
            ArchiveError: No stream has the name.
            ConfigError: An argument is wrong.
        """
        return Consumer(self, self._named(name), group, member, share, commit_interval_s)

    def table(
        self,
        name: str,
        entry: Callable[[bytes], tuple[Any, Any]] = keyed_entry,
        *,
        on_change: Callable[[Any, Any], object] | None = None,
    ) -> Table[Any, Any]:
        """The latest value of each key of a named stream, as a dictionary that is kept current.

        ::

            with archive.table("prices") as prices:
                prices.wait_until_current()
                while True:
                    prices.refresh()
                    print(prices[b"ACME"])

        Args:
            name: The name of the stream.
            entry: Returns key and value of a message; a value of ``None`` takes the key away. By default those of the
                envelope, for a stream with ``keys=True``; an empty payload takes the key away.
            on_change: Called with key and value by :meth:`Table.refresh`.

        Raises:
            ArchiveError: No stream has the name.
            ConfigError: The stream has no keys, and there is no `entry`.
        """
        check_callable("entry", entry)
        check_callable("on_change", on_change)
        if entry is keyed_entry and not self._named(name).keys:
            raise wrong(
                "entry", "the default", f"needs keys: declare {name} with keys=True, or give an entry"
            )
        return Table(self.follow(name, start="earliest"), self.clock, entry, on_change)

    def groups(self, name: str) -> list[Group]:
        """The groups that read a named stream, with their members and how much they have not committed.

        Raises:
            ArchiveError: No stream has the name.
        """
        listed = self._run(steps.groups_listed(ListGroupsRequest(name=name)))
        return [Group(one.group, tuple(one.members.splitlines()), one.lag) for one in listed]

    def _named(self, name: str) -> NamedStream:
        stream = next((one for one in self.streams() if one.name == name), None)
        if stream is None:
            raise ArchiveError(f"no stream is declared as {name}: `headrace archive streams` lists them")
        return stream

    def read(self, name: str) -> StreamData:
        """Read all that a named stream has recorded, into memory: for Arrow, numpy, pandas and polars.

        Blocks without the GIL. Messages that are recorded meanwhile are not part of it.

        Args:
            name: The name of the stream.

        Raises:
            ArchiveError: No stream has the name, or a recording was deleted meanwhile.
            ArchiveTimeoutError: The archive does not answer.
        """
        return recorded_data(self, name)

    @overload
    def follow(
        self, recording_id: int, *, from_position: Begin = "start", **settings: Unpack[FollowSettings]
    ) -> Follow: ...

    @overload
    def follow(
        self,
        recording_id: str,
        *,
        start: Place | Literal["earliest", "latest"] = "latest",
        **settings: Unpack[StreamFollowSettings],
    ) -> StreamFollow: ...

    def follow(
        self,
        recording_id: int | str,
        *,
        from_position: Begin = "start",
        start: Place | str = "latest",
        **settings: Any,
    ) -> Follow | StreamFollow:
        """Read a recording or a named stream, and then live: each message once, in order, endlessly.

        ::

            with archive.follow("trades", start="earliest") as messages:
                for message in messages:
                    handle(message.payload)

        Returns to the archive when the live stream is lost or this program was too slow for it, and to the live stream
        when it has caught up, as often as that happens. Uses a separate session, with the settings of this one, and
        opens it again whenever it is lost. Never waits. By name it follows all publishers, also those that come later,
        and waits for whatever is missing; by id it follows one recording, also when it is extended.

        Args:
            recording_id: The name of a declared stream, or the id of a recording.
            from_position: With an id: a position where a message begins or ends, as :attr:`headrace.Message.position`
                is; ``"start"``; or ``"live"`` for messages published from now on.
            start: With a name: ``"earliest"``; ``"latest"`` for what is recorded from now on; or a place that
                :attr:`headrace.archive.StreamFollow.place` had.
            **settings: ``live_channel`` and ``live_stream_id``: where this program receives the publisher; by default
                those of the recording. ``replay_channel`` and ``replay_stream_id``: where the archive replays to:
                ``aeron:ipc``, an address of this machine, with port 0 for any, or a response channel as for
                :meth:`replay`; by default as the archive answers this session. With an id also ``live_destinations``:
                the paths of the stream, channels such as ``aeron:udp?endpoint=me:9000``, for a ``live_channel`` with
                ``control-mode=manual``: it stays live while one path does; ``timeout_s``: how long it may try without
                success before it raises; by default ``message_timeout_s`` of this session; ``on_live`` and
                ``on_left_live``: called with the position when it becomes live and when it falls back, on the thread
                that polls.

        Raises:
            ConfigError: An argument is wrong. Errors of the archive are raised when messages are taken.
        """
        if isinstance(recording_id, str):
            return follow_stream(self, recording_id, start, **settings)
        return follow(self, recording_id, from_position, **settings)
