"""A publication on a named stream that goes on where the last one of its publisher stopped."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace._base.checks import wrong
from headrace._base.exceptions import ArchiveTimeoutError, RegistrationError
from headrace.archive.client import calls
from headrace.archive.client.durable import DurablePublication
from headrace.archive.client.extension import extension_channel
from headrace.archive.client.waits import POLL_INTERVAL_S
from headrace.archive.envelope import Envelope
from headrace.channel import ChannelUri
from headrace.positions import FRAME_ALIGNMENT, signed_32

if TYPE_CHECKING:
    from headrace.archive.client.named_streams import NamedStreamRequests
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.protocol.named_stream import NamedStream
    from headrace.client import ExclusivePublication
    from headrace.clock import Deadline

__all__ = ["StreamPublication", "published_to"]

_BATCH = 1 << 16
_CLASH = "clashing sessionId"


class StreamPublication(DurablePublication):
    """A publication on a named stream, which goes on where the last one of this publisher stopped.

    Made with :meth:`headrace.Archive.add_publication`. The rest as :class:`DurablePublication`.

    Attributes:
        stream: The stream.
        resumed_position: Where the publisher's recording stopped, and this publication begins; ``None`` if it is the
            first one of the publisher. All messages before were recorded, and none after it was.
        last_message: The payload of the last message before that; ``None`` if there is none.
    """

    def __init__(
        self,
        archive: NamedStreamRequests,
        stream: NamedStream,
        publication: ExclusivePublication,
        recording_id: int,
        resumed_position: int | None,
        last_message: bytes | None,
    ) -> None:
        super().__init__(archive, publication, recording_id)
        self.stream = stream
        self.resumed_position = resumed_position
        self.last_message = last_message
        self._next_number = 0
        if stream.keys and last_message is not None:
            self._next_number = Envelope.decode(last_message).number + 1

    @property
    def next_number(self) -> int:
        """The number that :meth:`send` gives the next message: of this publisher, since its first life."""
        return self._next_number

    def send(
        self,
        payload: bytes,
        *,
        key: bytes = b"",
        headers: Mapping[str, bytes] | None = None,
        copies: int | None = None,
        timeout_s: float | None = 5.0,
    ) -> int:
        """Publish one message in an envelope, under the next number, and wait until it is recorded.

        For a stream that was declared with ``keys=True``. A message that was sent and not confirmed keeps its number: a
        reader of the group passes the second of the same number over.

        Args:
            payload: The message.
            key: Its key; messages of one key are read by one member of a group, in order.
            headers: Names and values.
            copies: As for :meth:`publish`.
            timeout_s: As for :meth:`publish`.

        Returns:
            The stream position after the message.

        Raises:
            ConfigError: The stream has no envelopes, or the envelope cannot hold the key or a header.
            ArchiveTimeoutError: As :meth:`publish`, which also raises others.
        """
        if not self.stream.keys:
            raise wrong(
                "keys", False, f"declare {self.stream.name} with keys=True to send with keys and numbers"
            )
        data = Envelope(payload, key, self._next_number, headers or {}).encode()
        position = self.publish(data, copies=copies, timeout_s=timeout_s)
        self._next_number += 1
        return position


def published_to(
    archive: NamedStreamRequests, name: str, publisher: str, timeout_s: float | None
) -> StreamPublication:
    """See :meth:`headrace.Archive.add_publication`."""
    deadline = archive.clock.deadline(timeout_s)
    stream = archive._named(name)
    session_id = signed_32(zlib.crc32(f"{name}/{publisher}".encode()))
    opening = _Opening(archive, stream, session_id, publisher, deadline)
    before = opening.recording_before()
    last_message = None if before is None else _last_message(archive, before)
    publication = opening.added(before)
    try:
        recording_id = opening.recorded(publication)
    except BaseException:
        publication.close()
        raise
    resumed = None if before is None else before.stop_position
    return StreamPublication(archive, stream, publication, recording_id, resumed, last_message)


class _Opening:
    """The way to a publication that the archive records, within a time-out."""

    def __init__(
        self,
        archive: NamedStreamRequests,
        stream: NamedStream,
        session_id: int,
        publisher: str,
        deadline: Deadline,
    ) -> None:
        self._archive = archive
        self._stream = stream
        self._session_id = session_id
        self._who = f"publisher {publisher!r} of {stream.name}"
        self._deadline = deadline

    def _latest(self) -> RecordingDescriptor | None:
        listing = self._archive._run(calls.stream_recordings(self._stream.name))
        mine = [one for one in listing if one.session_id == self._session_id]
        return mine[-1] if mine else None

    def _pause(self, why: str) -> None:
        if self._deadline.is_over:
            raise ArchiveTimeoutError(f"{self._who}: {why}")
        self._archive.clock.sleep(POLL_INTERVAL_S)

    def recording_before(self) -> RecordingDescriptor | None:
        """The recording of the publisher, once it has stopped."""
        while (found := self._latest()) is not None and found.is_active:
            self._pause(
                f"recording {found.recording_id} of it goes on: the publisher runs, or has not timed out yet"
            )
        if found is not None and self._stream.address.has(found):
            return found
        return None

    def added(self, before: RecordingDescriptor | None) -> ExclusivePublication:
        """A publication where the recording stopped, once the one before is gone from the driver."""
        channel = ChannelUri(self._stream.channel).with_parameters(session_id=self._session_id)
        if before is not None:
            channel = extension_channel(channel, before)
        while True:
            try:
                return self._archive.client.add_exclusive_publication(channel, self._stream.stream_id)
            except RegistrationError as refusal:
                if _CLASH not in str(refusal):
                    raise
                self._pause(f"the driver has another publication of it: {refusal}")

    def recorded(self, publication: ExclusivePublication) -> int:
        """The recording of the publication, once it has begun."""
        while (found := self._latest()) is None or not (
            found.is_active and found.initial_term_id == publication.initial_term_id
        ):
            self._pause("the archive has not begun to record it; `headrace events` of the archive says why")
        return found.recording_id


def _last_message(archive: NamedStreamRequests, recording: RecordingDescriptor) -> bytes | None:
    """The last payload of a recording that has stopped: somewhere in its last term, where messages begin and end."""
    start, stop = recording.start_position, recording.stop_position
    if stop == start:
        return None
    term = (stop - FRAME_ALIGNMENT) // recording.term_buffer_length * recording.term_buffer_length
    begin = max(start, term)
    last = None
    with archive.replay(recording.recording_id, position=begin, length=stop - begin) as replay:  # type: ignore[attr-defined]
        while not replay.has_ended:
            batch = replay.subscription.poll_batch(_BATCH)
            if len(batch):
                last = bytes(batch[len(batch) - 1])
            else:
                archive.clock.sleep(POLL_INTERVAL_S)
    return last
