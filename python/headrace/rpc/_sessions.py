"""The requesters that a server answers, each with its own pair of streams."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError, HeadraceError
from headrace._results import OfferResult
from headrace.rpc._layout import HEADER_LENGTH, Kind, header

if TYPE_CHECKING:
    from headrace.client import Image, Pending, Publication
    from headrace.clock import Clock, Deadline

__all__ = ["Losses", "Session"]

# Bytes of an error's text: it must fit into any term.
_ERROR_LENGTH_MAX = 4096


# The driver tells that it has made a publication a moment before it links the reader.
_READER_TIMEOUT_S = 2.0

# How long a requester over a network may read no answers before it is taken for gone. Its driver ends their stream
# no later, and with it the calls in flight, unless an image lives longer there than it does by default.
_ABSENCE_MAX_S = 10.0


class Losses:
    """What is not answered any more. Some handlers finish after the session of their requester has ended."""

    count = 0


class Session:
    """One requester: the image of its requests, and the publication of the answers to it.

    Args:
        image: Its requests.
        asked: The publication of the answers, which the driver has been asked for.
        losses: Where answers that no one reads are counted.
        clock: What the wait for a reader of the answers goes by.
        is_local: Both sides share a driver: the answers have their reader soon after they are made, or never.
    """

    def __init__(
        self, image: Image, asked: Pending[Publication], losses: Losses, *, clock: Clock, is_local: bool
    ) -> None:
        self.image = image
        self._losses = losses
        self._clock = clock
        self._is_local = is_local
        # While the answers are there, and have not had a reader yet.
        self._connects_by: Deadline | None = None
        # While the answers have no reader.
        self._returns_by: Deadline | None = None
        self._asked: Pending[Publication] | None = asked
        self._answers: Publication | None = None
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._is_closed = False
        self._is_ignored = False

    @property
    def is_ready(self) -> bool:
        """True when it can be answered, and reads its answers."""
        answers = self._answers
        return (
            answers is not None and self._connects_by is None and not self._waiting and answers.is_connected
        )

    @property
    def is_ignored(self) -> bool:
        """True for a publisher that asks for no answers: its messages are read, so that it goes on, and dropped."""
        return self._is_ignored

    @property
    def has_left(self) -> bool:
        """True for a requester that reads no answers any more. It stays as long as its requests are not read."""
        if self._answers is None or self._answers.is_connected:
            return False
        # Over a network a reader that was cut off may come back, while it has not ended its requests.
        is_gone = self._is_local and self._connects_by is None
        is_absent = self._returns_by is not None and self._returns_by.is_over
        return is_gone or is_absent or self.image.end_of_stream_position is not None

    @property
    def is_asked(self) -> bool:
        """True while the driver makes the publication of its answers."""
        return self._asked is not None and not self._is_closed

    @property
    def is_blocked(self) -> bool:
        """True while its requests must wait: its answers have no room, no reader, or no stream yet."""
        return not (self._is_closed or self._is_ignored or self.is_ready or self.has_left)

    @property
    def blocked_answers(self) -> Publication | None:
        """The publication that waits for room or for its reader."""
        return self._answers if self.is_blocked else None

    def turn(self) -> int:
        """Go on with what had to wait; returns how much was done.

        Raises:
            ConfigError: No reader waits for the answers.
            HeadraceError: The driver refused the publication of the answers.
        """
        asked = self._asked
        if asked is not None:
            answers = asked.poll()
            if answers is None:
                return 0
            self._asked, self._answers = None, answers
            if self._is_closed:
                # By another thread, which has seen one of the two only.
                answers.close()
                return 1
            self._connects_by = self._clock.deadline(_READER_TIMEOUT_S if self._is_local else None)
        if self._answers is None:
            # Another thread has closed this since it was looked at.
            return 0
        if not self._answers.is_connected and self._returns_by is None:
            self._returns_by = self._clock.deadline(None if self._is_local else _ABSENCE_MAX_S)
        if self._connects_by is not None:
            if not self._answers.is_connected:
                if self._connects_by.is_over:
                    raise ConfigError("it has no subscription with control-mode=response that reads answers")
                return 0
            self._connects_by = None
            return 1
        count = 0
        while (message := self._take_waiting()) is not None:
            if not self._offer(message):
                self._waiting.appendleft(message)
                self._lose_if_closed()
                break
            count += 1
        return count

    def note_reader(self) -> None:
        """It reads its answers."""
        self._returns_by = None

    def discard(self, limit: int) -> int:
        """Read so many messages, as those of a publisher that no one answers; returns how many came."""
        return self.image.poll(lambda *_: None, limit)

    def leave(self, unread_count: int) -> int:
        """Count what it has no answers to, or does not read; returns how much that is."""
        self._losses.count += unread_count
        return unread_count + self._lose_waiting()

    def ignore(self) -> None:
        """Answer it no more."""
        self.close()
        self._is_ignored = True

    def answer(self, correlation_id: int, body: bytes) -> None:
        """Send an answer, now or when there is room. One that is too long becomes an error."""
        try:
            self._send(header(Kind.ANSWER, correlation_id), body)
        except ConfigError:
            length_max = 0 if self._answers is None else self._answers.max_message_length - HEADER_LENGTH
            self.refuse(
                correlation_id,
                f"ConfigError: the answer of {len(body)} bytes is too long, it must have at most {length_max}",
            )

    def refuse(self, correlation_id: int, text: str) -> None:
        """Tell a caller why it has no answer."""
        body = text.encode(errors="replace")[:_ERROR_LENGTH_MAX]
        self._send(header(Kind.ERROR, correlation_id), body)

    def _send(self, head: bytes, body: bytes) -> None:
        message = (head, body)
        if self._is_closed or self._answers is None:
            self._losses.count += 1
        elif self._waiting or not self._offer(message):
            # No request is read meanwhile, so as many wait as were read at once or are being handled.
            self._waiting.append(message)
            self._lose_if_closed()

    def _take_waiting(self) -> tuple[bytes, bytes] | None:
        """The next message that waits. Each is taken once: a thread that closes the server takes them too."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def _lose_waiting(self) -> int:
        count = 0
        while self._take_waiting() is not None:
            count += 1
        self._losses.count += count
        return count

    def _lose_if_closed(self) -> None:
        """For a message that began to wait when another thread may have closed this already."""
        if self._is_closed:
            self._lose_waiting()

    def _offer(self, message: tuple[bytes, bytes]) -> bool:
        """False when it must wait for room, or for the requester to connect."""
        assert self._answers is not None
        while (result := self._answers.offer(message)) == OfferResult.ADMIN_ACTION:
            pass
        if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
            self._losses.count += 1
            return True
        return bool(result)

    def close(self) -> None:
        """The requester is gone, or the server closes: what still waits is lost."""
        self._is_closed = True
        self._lose_waiting()
        asked, self._asked = self._asked, None
        if asked is not None:
            # Refused in a handler of the client and in a forked child. What was asked for then ends with the client.
            with suppress(HeadraceError):
                asked.cancel()
        if self._answers is not None:
            self._answers.close()
