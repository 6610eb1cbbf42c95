"""Records the declared streams of an archive, whenever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.archive.files.declarations import declared_streams, store_streams
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.named_stream import NamedStream
from headrace.archive.protocol.requests import StartRecordingRequest
from headrace.archive.server.errors import RequestError
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from headrace.archive.files.catalog import CatalogEntry
    from headrace.archive.protocol.codes import RecordingSignal
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.context import Context
    from headrace.archive.server.recordings import Recordings, RecordingSubscription

__all__ = ["NamedStreams"]

_RETRY_NS = 1_000_000_000


class _Asker:
    """Asks for the recording of a stream in place of a client."""

    session_id = -1

    def __init__(self, name: str, context: Context) -> None:
        self._name = name
        self._context = context

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """The stream is recorded from now on; the event log has it."""

    def send_error(self, correlation_id: int, code: ErrorCode, text: str) -> None:
        """Log why a publisher is not recorded, or not any more."""
        self._context.log.warning(f"the stream {self._name} lacks a recording: {code.name}", text)

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        """Nobody waits for it."""


class NamedStreams:
    """The streams that are declared, each with a subscription for recording.

    Raises:
        ArchiveFileError: The file of the declarations is damaged.
    """

    def __init__(self, context: Context, recordings: Recordings) -> None:
        self._context = context
        self._recordings = recordings
        self._streams = declared_streams(context.storage)
        self._recorded: dict[str, RecordingSubscription] = {}
        self._next_look_ns = context.clock.monotonic_ns()
        # The recordings of each stream, as far as the catalog was looked through.
        self._members: dict[str, list[int]] = {}
        self._looked_up_to: dict[str, int] = {}
        # What hinders a stream is said once, and again when it is something else.
        self._hindrances: dict[str, str] = {}

    def all(self) -> list[NamedStream]:
        """The streams, by name."""
        return [self._streams[name] for name in sorted(self._streams)]

    def has(self, name: str) -> bool:
        """Whether a stream is declared."""
        return name in self._streams

    def end(self, recording: RecordingDescriptor) -> int:
        """The position that a recording has reached."""
        active = self._recordings.active(recording.recording_id)
        return recording.stop_position if active is None else active.position

    def recordings(self, name: str, from_id: int, since_ms: int) -> list[CatalogEntry]:
        """Recordings of a stream from an id on, those that are active, and those that stopped since a time.

        Raises:
            RequestError: No stream has the name.
        """
        stream, catalog = self._streams.get(name), self._context.catalog
        if stream is None:
            raise RequestError(ErrorCode.GENERIC, f"no stream is declared as {name}")
        members = self._members.setdefault(name, [])
        for entry in catalog.valid_from(self._looked_up_to.get(name, 0)):
            self._looked_up_to[name] = entry.recording_id + 1
            if stream.has(entry.descriptor):
                members.append(entry.recording_id)
        found = [entry for entry in map(catalog.find_entry, members) if entry is not None and entry.is_valid]
        members[:] = [entry.recording_id for entry in found]
        return [
            entry
            for entry in found
            if entry.recording_id >= from_id
            or entry.descriptor.is_active
            or entry.descriptor.stop_timestamp >= since_ms
        ]

    def declare(self, stream: NamedStream) -> None:
        """Record a stream from now on. Declaring it again changes its channel, or what is kept of it.

        Raises:
            RequestError: Another name has its channel and stream.
            OSError: The disk refuses.
        """
        for other in self._streams.values():
            if other.name != stream.name and other.address.key == stream.address.key:
                text = f"channel={stream.channel} stream_id={stream.stream_id} is declared as {other.name}"
                raise RequestError(ErrorCode.GENERIC, text)
        before = self._streams.get(stream.name)
        if before is not None:
            stream = stream.moved(before)
            if stream == before:
                return
        self._store(self._streams | {stream.name: stream})
        if before is not None:
            self._follow_change(before, stream)
        self._next_look_ns = self._context.clock.monotonic_ns()

    def undeclare(self, name: str) -> bool:
        """Record a stream no longer; its recordings stay. False if it was not declared.

        Raises:
            OSError: The disk refuses.
        """
        if name not in self._streams:
            return False
        self._store({other: stream for other, stream in self._streams.items() if other != name})
        self._end(name, "it was undeclared")
        return True

    def do_work(self) -> int:
        """Begin to record what is declared and not recorded yet; returns how much there was to do."""
        now_ns = self._context.clock.monotonic_ns()
        if now_ns < self._next_look_ns:
            return 0
        self._next_look_ns = now_ns + _RETRY_NS
        return sum(self._begin(stream) for stream in list(self._streams.values()))

    def _begin(self, stream: NamedStream) -> int:
        recorded = self._recorded.get(stream.name)
        if recorded is not None and not recorded.has_ended:
            return 0
        request = StartRecordingRequest(
            stream_id=stream.stream_id,
            source_location=stream.location,
            channel=stream.keeping(stream.channel),
        )
        try:
            self._recorded[stream.name] = self._recordings.add_declared(
                _Asker(stream.name, self._context), request, stream.name
            )
        except RequestError as hindrance:
            if self._hindrances.get(stream.name) != str(hindrance):
                self._hindrances[stream.name] = str(hindrance)
                self._context.log.warning(f"the stream {stream.name} is not recorded yet", str(hindrance))
            return 0
        self._hindrances.pop(stream.name, None)
        return 1

    def _store(self, streams: dict[str, NamedStream]) -> None:
        store_streams(self._context.storage, streams.values())
        self._streams = streams
        self._members.clear()
        self._looked_up_to.clear()

    def _end(self, name: str, reason: str) -> None:
        recorded = self._recorded.pop(name, None)
        if recorded is not None:
            self._recordings.end(recorded, reason)

    def _follow_change(self, before: NamedStream, stream: NamedStream) -> None:
        """Record where the stream is now, and keep its recordings as is declared now."""
        if (before.channel, before.stream_id, before.location) != (
            stream.channel,
            stream.stream_id,
            stream.location,
        ):
            self._end(stream.name, "it was declared on another channel")
        recorded = self._recorded.get(stream.name)
        if recorded is not None:
            recorded.original_channel = stream.keeping(stream.channel)
        for entry in list(self._context.catalog.valid_from(0)):
            one = entry.descriptor
            channel = stream.keeping(one.original_channel)
            if channel != one.original_channel and stream.has(one):
                self._context.stored.replace_channel(
                    one.recording_id, channel, ChannelUri(channel).stripped()
                )
