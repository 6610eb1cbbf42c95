"""Streams with names, as an archive knows them."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.checks import wrong
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.channel import ChannelUri, recording_key

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["NamedStream", "StreamAddress", "check_stream_name"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def check_stream_name(name: str) -> None:
    """Refuse a name that no stream can have.

    Raises:
        ConfigError: It has wrong characters, or too many.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong("name", name, "must be 1 to 100 letters, digits, dots, hyphens and underscores")


@dataclass(frozen=True, slots=True)
class StreamAddress:
    """A channel and a stream on it, whoever publishes there: what a name stands for.

    Attributes:
        channel: The channel, without a session and without what a publisher alone decides.
        stream_id: Which flow on the channel.
    """

    channel: str
    stream_id: int

    @classmethod
    def of(cls, channel: str, stream_id: int) -> StreamAddress:
        """The address of a channel of publishers, with whatever else it says."""
        anyone = ChannelUri(without_retention(channel)).with_parameters(session_id=None)
        return cls(ChannelUri(anyone).stripped(), stream_id)

    @classmethod
    def decode(cls, line: str) -> StreamAddress:
        """The address that :meth:`encode` wrote."""
        stream_id, _, channel = line.partition(" ")
        return cls(channel, int(stream_id))

    def encode(self) -> str:
        """The address as a line of text."""
        return f"{self.stream_id} {self.channel}"

    @property
    def key(self) -> str:
        """What two addresses must differ in."""
        return recording_key(self.channel, self.stream_id)

    def has(self, recording: RecordingDescriptor) -> bool:
        """Whether a recording is of this address."""
        if recording.stream_id != self.stream_id:
            return False
        return StreamAddress.of(recording.stripped_channel, recording.stream_id).key == self.key


@dataclass(frozen=True, slots=True)
class NamedStream:
    """A stream that an archive records whenever it runs.

    Attributes:
        name: Its name, for every program that reads or publishes.
        channel: Where its publishers send.
        stream_id: Which flow on the channel.
        location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
        retention: How much of each of its recordings the archive keeps; ``None`` for everything.
        keys: Whether its messages have an :class:`Envelope`, and with it keys.
        former: Addresses that it had before, whose recordings are its beginning.

    Raises:
        ConfigError: The name or the channel is wrong.
    """

    name: str
    channel: str
    stream_id: int
    location: SourceLocation = SourceLocation.LOCAL
    retention: Retention | None = None
    keys: bool = False
    former: tuple[StreamAddress, ...] = ()

    def __post_init__(self) -> None:
        check_stream_name(self.name)
        uri = ChannelUri(self.channel)
        if "session-id" in uri.parameters:
            raise wrong("channel", self.channel, "must be of every publisher, without session-id")

    @property
    def address(self) -> StreamAddress:
        """Where it is now."""
        return StreamAddress.of(self.channel, self.stream_id)

    def has(self, recording: RecordingDescriptor) -> bool:
        """Whether a recording is a part of the stream."""
        return any(one.has(recording) for one in (self.address, *self.former))

    @property
    def kept(self) -> Retention | None:
        """How long each recording keeps its files: where old files go, so does a recording that has no newer ones."""
        kept = self.retention
        if kept is not None and kept.hours is not None and kept.ended_hours is None:
            return dataclasses.replace(kept, ended_hours=kept.hours)
        return kept

    def keeping(self, channel: str) -> str:
        """The channel of a recording of the stream, saying how long it is kept."""
        return without_retention(channel) if self.kept is None else self.kept.in_channel(channel)

    def moved(self, before: NamedStream) -> NamedStream:
        """This declaration in place of an earlier one of its name, whose recordings stay a part of the stream."""
        former = [one for one in (*before.former, before.address) if one.key != self.address.key]
        return dataclasses.replace(self, former=tuple(dict.fromkeys(former)))
