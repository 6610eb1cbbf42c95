"""A replay to this program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headrace._base.closing import Closing
from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, ClosedError, HeadraceError
from headrace._base.fork import is_own
from headrace.archive.protocol.requests import BoundedReplayRequest, ReplayRequest
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.client.session import ArchiveSession
    from headrace.client import ExclusivePublication, Image, Message, Subscription
    from headrace.clock import Clock, Deadline

__all__ = ["Replay", "ReplayRange", "Replayed"]

_LENGTH_MAX = (1 << 63) - 1
_WAIT_S = 0.05
# The reason for an early end comes on another stream than the messages, and may come later.
_REASON_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The range to replay: a recording from a position on, for a length, and not past a counter's value."""

    recording_id: int
    position: int | None = None
    length: int | None = None
    limit_counter_id: int | None = None
    file_io_max_length: int = NULL_VALUE

    def request(self, channel: str, stream_id: int) -> ReplayRequest:
        """The request to replay it to a channel and stream."""
        position = NULL_VALUE if self.position is None else self.position
        length = _LENGTH_MAX if self.length is None else self.length
        if self.limit_counter_id is None:
            return ReplayRequest(
                recording_id=self.recording_id,
                position=position,
                length=length,
                replay_stream_id=stream_id,
                replay_channel=channel,
                file_io_max_length=self.file_io_max_length,
            )
        return BoundedReplayRequest(
            recording_id=self.recording_id,
            position=position,
            length=length,
            limit_counter_id=self.limit_counter_id,
            replay_stream_id=stream_id,
            replay_channel=channel,
            file_io_max_length=self.file_io_max_length,
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay that the archive has begun: its ids, and its subscription.

    Attributes:
        recording_id: Which recording.
        replay_id: The archive's id of the replay.
        correlation_id: The request for it, which later errors name.
        subscription: The subscription on which the messages arrive.
        images: Gets its image, once there is one.
        over: The publication of the request, if the replay comes back through its connection.
    """

    recording_id: int
    replay_id: int
    correlation_id: int
    subscription: Subscription
    images: Sequence[Image]
    over: ExclusivePublication | None = None


class ReplayRequests(Protocol):
    """The requests that a replay makes to its archive."""

    def find_recording(self, recording_id: int) -> object:
        """See :meth:`headrace.Archive.find_recording`."""

    def stop_replay(self, replay_id: int) -> None:
        """See :meth:`headrace.Archive.stop_replay`."""


class Replay(Closing):
    """The whole messages of a recording, in order: an iterator and a context manager.

    Ends when the requested range was delivered; for an active recording without a length, when the recording stops. A
    replay that ends earlier raises.

    Attributes:
        recording_id: Which recording is replayed.
        replay_id: The archive's number for the replay.
        subscription: The subscription on which the messages arrive; it has faster ways to read them.
    """

    def __init__(self, session: ArchiveSession, requests: ReplayRequests, replayed: Replayed) -> None:
        self._session = session
        self._requests = requests
        self._correlation_id = replayed.correlation_id
        session._signals.await_error(replayed.correlation_id)
        self._timeout_s = session._timeout_s
        self._deadline = self.clock.deadline(self._timeout_s)
        self._images = replayed.images
        self._over = replayed.over
        self._is_closed = False
        self._pid = os.getpid()
        self._reason_deadline: Deadline | None = None
        self.recording_id = replayed.recording_id
        self.replay_id = replayed.replay_id
        self.subscription = replayed.subscription

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        """Wait for the next message. If another thread closes the replay meanwhile, the iteration ends.

        Raises:
            ArchiveError: The archive ended the replay early, with its reason, or the stream was lost.
            ArchiveTimeoutError: The replay did not begin.
        """
        try:
            message = self._next()
        except ClosedError:
            if not self._is_closed:
                raise
            message = None
        if message is None:
            raise StopIteration
        return message

    def _next(self) -> Message | None:
        """The next message; ``None`` after the last one."""
        subscription = self.subscription
        while True:
            message = subscription.poll_message()
            if message is not None:
                return message
            if self.has_ended:
                self.confirm_end()
                return None
            message = subscription.receive(timeout_s=_WAIT_S)
            if message is not None:
                return message

    @property
    def has_ended(self) -> bool:
        """True when nothing more will come. Never blocks. Raises as :meth:`__next__`."""
        if self._is_closed:
            return True
        image = self.image
        if image is None:
            if self._deadline.is_over:
                error = self._session.late_error(self._correlation_id)
                raise error or ArchiveTimeoutError(
                    f"the replay did not begin within {self._timeout_s} s", recording_id=self.recording_id
                )
            return False
        if not (image.is_closed or image.is_end_of_stream):
            return False
        error = self._session.late_error(self._correlation_id)
        if error is not None:
            raise error
        if image.is_publication_revoked:
            if self._reason_deadline is None:
                self._reason_deadline = self.clock.deadline(_REASON_WAIT_S)
            # That the archive is gone, too, may show later on the session's streams.
            loss = self._session._loss()
            if loss is None and not self._reason_deadline.is_over:
                return False
            text = f"the archive ended the replay early, at position={image.position}"
            if loss is not None:
                text += f": {loss}"
            raise ArchiveError(text, recording_id=self.recording_id)
        return image.is_end_of_stream or self._is_left(image)

    def _is_left(self, image: Image) -> bool:
        """Whether the stream is gone before its end because the program has closed the replay.

        False if it has closed the subscription or the client: then reading raises.

        Raises:
            ArchiveError: The program has closed nothing.
        """
        if self._is_closed:
            return True
        if self.subscription.is_closed or self._session.client.is_closed:
            return False
        text = (
            f"the replay was lost before its end, at position={image.position}: it timed out, was rejected, or held "
            "the stream back; `headrace events` tells why"
        )
        raise ArchiveError(text, recording_id=self.recording_id)

    def confirm_end(self) -> None:
        """Make sure that the archive ended the replay: if the archive dies, the stream ends in the same way.

        Blocks until the archive has answered a request. If the session is closed, the method cannot send a request, and
        returns without a check.

        Raises:
            ArchiveError: The archive does not answer.
        """
        if not self.may_confirm_end:
            return
        try:
            self._requests.find_recording(self.recording_id)
        except HeadraceError as silence:
            raise self.unconfirmed_end(silence) from silence

    @property
    def may_confirm_end(self) -> bool:
        """Whether the archive can still be asked."""
        return not (self._is_closed or self._session.is_closed)

    def unconfirmed_end(self, silence: HeadraceError) -> ArchiveError:
        """The error for a replay whose archive does not answer."""
        text = (
            f"the replay ended at position={self.position}, perhaps early: no archive confirms it: {silence}"
        )
        return ArchiveError(text, recording_id=self.recording_id)

    @property
    def clock(self) -> Clock:
        """The clock of the session's client."""
        return self._session.clock

    @property
    def is_closed(self) -> bool:
        """True once this program has closed it."""
        return self._is_closed

    @property
    def image(self) -> Image | None:
        """The image of the replay, also after it has ended; ``None`` before it has begun."""
        return self._images[0] if self._images else None

    @property
    def position(self) -> int | None:
        """Position up to which messages were delivered; ``None`` before the first."""
        image = self.image
        return image.position if image is not None else None

    def close(self) -> None:
        """Stop the replay, if it has not ended. Closing again does nothing, nor does closing in a forked child."""
        if self.leave():
            self._requests.stop_replay(self.replay_id)

    def leave(self) -> bool:
        """Close the subscription. Returns whether the archive still replays, and must be asked to stop."""
        if self._is_closed or not is_own(self._pid):
            return False
        self._is_closed = True
        self._session._signals.forget(self._correlation_id)
        image = self.image
        is_over = image is not None and (image.is_closed or image.is_end_of_stream)
        self.subscription.close()
        if self._over is not None:
            self._over.close()
        return not is_over and self._session.is_connected

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"Replay(recording_id={self.recording_id}, replay_id={self.replay_id}{state})"
