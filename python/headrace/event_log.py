"""The event log: what changed its state in a driver, an archive or a cluster's member, when, and why.

Each of them keeps its newest events in a file of its directory. Reading it needs no running driver:
what a dead one left tells how it came to its end, until the next one starts in the same directory.

>>> from headrace import default_directory
>>> from headrace.event_log import EventReader
>>> with EventReader(default_directory()) as reader:  # doctest: +SKIP
...     for event in reader.poll():
...         print(event.kind, event.id, event.old, "->", event.new, event.reason)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace import _core
from headrace._base.checks import wrong
from headrace._base.closing import Closing
from headrace.clock import Clock
from headrace.cnc.faults import DriverFileMissingError, FileFormatError

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._base.states import Ids

__all__ = ["EVENT_FILE", "EVENT_KINDS", "Event", "EventFilter", "EventReader", "EventRecorder", "read_events"]

EVENT_FILE = "events.dat"
#: What a driver, an archive, a member of a cluster and a backup tell of.
EVENT_KINDS = (
    "driver",
    "client",
    "publication",
    "connection",
    "subscription",
    "image",
    "intake",
    "link",
    "channel",
    "archive",
    "control-session",
    "recording-subscription",
    "recording",
    "stored-recording",
    "segment-purge",
    "replay",
    "replication",
    "consensus-module",
    "election",
    "cluster-session",
    "cluster-backup",
)
_ADVICE = (
    "start a driver with `headrace driver`, or name a directory with --dir or AERON_DIR; a driver of another "
    "implementation has no event log, nor has one with aeron.headrace.event.limit=0"
)


@dataclass(frozen=True, slots=True)
class Event:
    """A thing went from one state to another. ``docs/reference/states.md`` lists kinds and states.

    Attributes:
        number: Counts the events of one driver or archive from 1.
        time_ns: When, epoch nanoseconds.
        kind: What sort of thing, such as ``image``.
        id: Which of them: the registration id, for a recording its recording id.
        parent_id: Id of what it belongs to, such as the client of a publication.
        stream_id: Its stream.
        session_id: Its session.
        old: State before; empty for a thing that begins.
        new: State it is in now.
        reason: Why.
        detail: What else tells it from others, such as its channel.
        is_fault: It is not the normal course of things, such as an image that timed out.
    """

    number: int
    time_ns: int
    kind: str
    id: int
    parent_id: int | None
    stream_id: int | None
    session_id: int | None
    old: str
    new: str
    reason: str
    detail: str
    is_fault: bool

    def __str__(self) -> str:
        return _text(self.kind, self.id, self.old, self.new, self.reason)


def _text(kind: str, id: int, old: str, new: str, reason: str) -> str:
    return f"{kind} {id}: {f'{old} -> {new}' if old else new}: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Conditions on events, all of which must hold; empty ones match all.

    Attributes:
        kinds: What sort of thing, each of :data:`EVENT_KINDS`.
        ids: Which thing, or what it belongs to.
        stream_ids: Its stream.
        session_ids: Its session.
        since_ns: Not before this time, epoch nanoseconds.
        faults_only: Only what is not the normal course of things.
    """

    kinds: Collection[str] = ()
    ids: Collection[int] = ()
    stream_ids: Collection[int] = ()
    session_ids: Collection[int] = ()
    since_ns: int = 0
    faults_only: bool = False

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in EVENT_KINDS:
                raise wrong("kinds", kind, f"must be of {', '.join(EVENT_KINDS)}")

    def matches(self, event: Event) -> bool:
        """Whether every condition holds for the event."""
        return (
            (not self.kinds or event.kind in self.kinds)
            and (not self.ids or event.id in self.ids or event.parent_id in self.ids)
            and (not self.stream_ids or event.stream_id in self.stream_ids)
            and (not self.session_ids or event.session_id in self.session_ids)
            and event.time_ns >= self.since_ns
            and (event.is_fault or not self.faults_only)
        )


class EventReader(Closing):
    """Reads the event log of one directory, from its oldest event on. Never blocks its writer. Thread-safe.

    When a new driver or archive takes the directory over, the reader goes on with the events of that one.

    Args:
        directory: Of a driver or an archive; a path of a file is taken as it is.

    Raises:
        DriverFileMissingError: The directory has no event log.
        FileFormatError: The file is of another version, or damaged.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        given = Path(directory)
        self.path = given if given.is_file() else given / EVENT_FILE
        self._lost_count = 0
        self._reader: _core.EventReader | None
        self._open()

    def _open(self) -> None:
        try:
            self._identity = self._identity_now()
            self._reader = _core.EventReader(self.path)
            # A file that is replaced between the two would be read twice.
            while self._identity_now() != self._identity:
                self._identity = self._identity_now()
                self._reader = _core.EventReader(self.path)
        except FileNotFoundError:
            raise DriverFileMissingError(self.path, _ADVICE) from None
        except OSError as wrong:
            raise FileFormatError(self.path, "it is not a readable event log", str(wrong)) from None

    def _identity_now(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_dev, status.st_ino

    @property
    def lost_count(self) -> int:
        """How many events this reader missed: overwritten before it looked, or left unfinished by a killed writer."""
        return self._lost_count

    @property
    def pid(self) -> int:
        """Process id of the driver or archive that writes the file."""
        return self._opened().pid

    @property
    def start_timestamp_ms(self) -> int:
        """When that driver or archive started, epoch milliseconds."""
        return self._opened().start_timestamp_ms

    @property
    def limit(self) -> int:
        """How many events the file keeps."""
        return self._opened().limit

    @property
    def dropped_count(self) -> int:
        """How many events their writer dropped, because another thread was still writing in their place."""
        return self._opened().dropped_count

    def poll(self, condition: EventFilter | None = None) -> list[Event]:
        """The events since the last call that meet the condition; at first, all that are still there.

        Raises:
            ValueError: The reader is closed.
            FileFormatError: Another program cut the file short, or a new one in the directory cannot be read.
        """
        events = self._drain()
        if self._is_replaced():
            # What the old one wrote to the end, then all of the new one.
            events += self._drain() + self._drain()
            self._open()
            events += self._drain()
        return events if condition is None else [event for event in events if condition.matches(event)]

    def _drain(self) -> list[Event]:
        try:
            found, lost_count = self._opened().drain()
        except OSError as wrong:
            raise FileFormatError(self.path, "it can no longer be read", str(wrong)) from None
        self._lost_count += lost_count
        return [Event(*fields) for fields in found]

    def _is_replaced(self) -> bool:
        try:
            return self._identity_now() != self._identity
        except FileNotFoundError:
            # Its driver has removed the directory, and the next has not begun.
            return False

    def _opened(self) -> _core.EventReader:
        if self._reader is None:
            raise ValueError(f"the reader of {self.path} is closed")
        return self._reader

    def close(self) -> None:
        """Let go of the file. Closing twice is allowed."""
        self._reader = None


class EventRecorder:
    """Writes the events of an archive, or of a member of a cluster. Thread-safe.

    Args:
        clock: Time.
        on_failure: Told of what `on_event` raises.
        on_event: Told of each change as text, before it is written.
    """

    def __init__(
        self,
        clock: Clock,
        on_failure: Callable[[str], object],
        on_event: Callable[[str], object] | None = None,
    ) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._on_event = on_event
        self._log: _core.EventLog | None = None

    def open(self, directory: str | os.PathLike[str], limit: int, start_timestamp_ms: int) -> None:
        """Begin to write, into a new file of the directory. Until then events are dropped.

        Raises:
            OSError: The file cannot be made.
        """
        self._log = _core.EventLog(directory, limit, start_timestamp_ms)

    def changed(
        self,
        kind: str,
        id: int,
        old: str,
        new: str,
        reason: str,
        *,
        is_fault: bool,
        **ids: Unpack[Ids],
    ) -> None:
        """See :class:`headrace._base.states.EventSink`."""
        if self._on_event is not None:
            try:
                self._on_event(_text(kind, id, old, new, reason))
            except Exception as failure:
                # What changed its state goes on: it is in the middle of that.
                self._on_failure(f"on_event raised {failure!r}")
        if self._log is not None:
            self._log.append(self._clock.epoch_ns(), kind, id, old, new, reason, is_fault=is_fault, **ids)


def read_events(directory: str | os.PathLike[str], condition: EventFilter | None = None) -> list[Event]:
    """The events that a driver or an archive keeps, or has left, the oldest first.

    Args:
        directory: Of a driver or an archive; a path of a file is taken as it is.
        condition: Which of them.

    Raises:
        DriverFileMissingError: The directory has no event log.
        FileFormatError: The file is of another version, or damaged.
    """
    with EventReader(directory) as reader:
        events = reader.poll()
        # An event that was being written at the first look is whole at the second, or never will be.
        events += reader.poll()
    return events if condition is None else [event for event in events if condition.matches(event)]
