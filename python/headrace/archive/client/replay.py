"""A replay to this program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace._closing import Closing
from headrace._exceptions import ArchiveError, ArchiveTimeoutError, HeadraceError
from headrace._fork import is_own

if TYPE_CHECKING:
    from headrace.archive.client.archive import Archive
    from headrace.client import Image, Message, Subscription
    from headrace.clock import Clock, Deadline

__all__ = ["Replay"]

_WAIT_S = 0.05
# The reason for an early end comes on another stream than the messages, and may come later.
_REASON_WAIT_S = 1.0


class Replay(Closing):
    """The messages of a recording, in order, each whole: an iterator and a context manager.

    Ends when everything asked for was delivered; for an active recording with no length, when it stops. A replay that
    ends before that raises. Faster ways to read are those of :attr:`subscription`.
    """

    def __init__(
        self,
        archive: Archive,
        recording_id: int,
        replay_id: int,
        correlation_id: int,
        subscription: Subscription,
        images: Sequence[Image],
        timeout_s: float,
    ) -> None:
        self._archive = archive
        self._correlation_id = correlation_id
        archive._notices.await_error(correlation_id)
        self._deadline = self.clock.deadline(timeout_s)
        self._timeout_s = timeout_s
        self._images = images
        self._is_closed = False
        self._pid = os.getpid()
        self._reason_deadline: Deadline | None = None
        self.recording_id = recording_id
        self.replay_id = replay_id
        self.subscription = subscription

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        """The next message.

        Raises:
            ArchiveError: The archive ended the replay early, with the reason it gave.
            ArchiveTimeoutError: The replay did not begin.
        """
        subscription = self.subscription
        while True:
            message = subscription.poll_message()
            if message is not None:
                return message
            if self.has_ended():
                self.confirm_end()
                raise StopIteration
            message = subscription.receive(timeout_s=_WAIT_S)
            if message is not None:
                return message

    def has_ended(self) -> bool:
        """True when nothing more will come. Never blocks. Raises as :meth:`__next__`."""
        if self._is_closed:
            return True
        image = self.image
        if image is None:
            if self._deadline.is_over:
                error = self._archive.late_error(self._correlation_id)
                raise error or ArchiveTimeoutError(
                    f"the replay did not begin within {self._timeout_s} s", recording_id=self.recording_id
                )
            return False
        if not (image.is_closed or image.is_end_of_stream):
            return False
        error = self._archive.late_error(self._correlation_id)
        if error is not None:
            raise error
        if image.is_publication_revoked:
            if self._reason_deadline is None:
                self._reason_deadline = self.clock.deadline(_REASON_WAIT_S)
            if not self._reason_deadline.is_over and self._archive.is_connected:
                return False
            text = f"the archive ended the replay early, at position={image.position}"
            if not self._archive.is_connected:
                text += ": the archive has stopped"
            raise ArchiveError(text, recording_id=self.recording_id)
        return True

    def confirm_end(self) -> None:
        """Make sure that the archive ended the replay: if the archive dies, the stream ends in the same way.

        Blocks until the archive has answered a request. When the session is closed no request can be sent, and the
        method returns without a check.

        Raises:
            ArchiveError: The archive does not answer.
        """
        if self._is_closed or self._archive.is_closed:
            return
        try:
            self._archive.find_recording(self.recording_id)
        except HeadraceError as silence:
            text = (
                f"the archive is gone; its replay ended at position={self.position}, perhaps early: {silence}"
            )
            raise ArchiveError(text, recording_id=self.recording_id) from silence

    @property
    def clock(self) -> Clock:
        """What it goes by: the clock of the session's client."""
        return self._archive.clock

    @property
    def image(self) -> Image | None:
        """The stream of the replay, which stays here after it has ended; ``None`` before it has begun."""
        return self._images[0] if self._images else None

    @property
    def position(self) -> int | None:
        """Position up to which messages were delivered; ``None`` before the first."""
        image = self.image
        return image.position if image is not None else None

    def close(self) -> None:
        """Stop the replay, if it has not ended. Closing again does nothing, nor does closing in a forked child."""
        if self._is_closed or not is_own(self._pid):
            return
        self._is_closed = True
        self._archive._notices.forget(self._correlation_id)
        image = self.image
        is_over = image is not None and (image.is_closed or image.is_end_of_stream)
        self.subscription.close()
        if not is_over and self._archive.is_connected:
            self._archive.stop_replay(self.replay_id)

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"Replay(recording_id={self.recording_id}, replay_id={self.replay_id}{state})"
