"""The requesters that a server answers, each with its own pair of streams."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, HeadraceError
from headrace._base.results import OfferResult
from headrace.rpc._layout import HEADER_LENGTH, Kind, header

if TYPE_CHECKING:
    from headrace.client import Image, Pending, Publication
    from headrace.clock import Clock, Deadline

__all__ = ["Losses", "Session"]

# Bytes of an error's text: it must fit into any term.
_ERROR_LENGTH_MAX = 4096


# The driver reports a new publication a moment before it links the reader.
_READER_TIMEOUT_S = 2.0

# How long a requester over a network may read no answers before it counts as gone. By then its driver has ended the
# response stream, and with it the calls in flight, unless images live longer there than by default.
_ABSENCE_MAX_S = 10.0


class Losses:
    """Counts lost answers. Some handlers finish after the session of their requester has ended."""

    count = 0


class Session:
    """One requester: the image of its requests, and the publication of the responses to it.

    Args:
        image: Its requests.
        asked: The request to the driver for the publication.
        losses: Counts answers that nothing reads.
        clock: The clock for waits.
        is_local: Both sides share a driver: the publication has its reader soon after it is made, or never.
    """

    def __init__(
        self, image: Image, asked: Pending[Publication], losses: Losses, *, clock: Clock, is_local: bool
    ) -> None:
        self.image = image
        self._losses = losses
        self._clock = clock
        self._is_local = is_local
        # While the publication exists, but has not had a reader yet.
        self._connects_by: Deadline | None = None
        # While the publication has no reader.
        self._returns_by: Deadline | None = None
        self._asked: Pending[Publication] | None = asked
        self._responses: Publication | None = None
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._is_closed = False
        self._is_ignored = False

    @property
    def is_ready(self) -> bool:
        """True when the requester reads its answers, and none waits for room."""
        responses = self._responses
        return (
            responses is not None
            and self._connects_by is None
            and not self._waiting
            and responses.is_connected
        )

    @property
    def is_ignored(self) -> bool:
        """True for a publisher that asks for no responses: its messages are read, so that it can go on, and dropped."""
        return self._is_ignored

    @property
    def has_left(self) -> bool:
        """True for a requester that no longer reads answers. It stays while it still has requests to read."""
        if self._responses is None or self._responses.is_connected:
            return False
        # Over a network a reader that was cut off may come back, while it has not ended its requests.
        is_gone = self._is_local and self._connects_by is None
        is_absent = self._returns_by is not None and self._returns_by.is_over
        return is_gone or is_absent or self.image.end_of_stream_position is not None

    @property
    def is_asked(self) -> bool:
        """True while the driver makes the publication."""
        return self._asked is not None and not self._is_closed

    @property
    def is_blocked(self) -> bool:
        """True while its requests must wait: the publication has no room, has no reader, or is not made yet."""
        return not (self._is_closed or self._is_ignored or self.is_ready or self.has_left)

    @property
    def blocked_responses(self) -> Publication | None:
        """The publication, if it waits for room or for its reader."""
        return self._responses if self.is_blocked else None

    def turn(self) -> int:
        """Continue with what had to wait; returns the work done.

        Raises:
            ConfigError: The requester has no subscription to the responses.
            HeadraceError: The driver refused the publication.
        """
        asked = self._asked
        if asked is not None:
            responses = asked.poll()
            if responses is None:
                return 0
            self._asked, self._responses = None, responses
            if self._is_closed:
                # Another thread closed this while it saw only one of the two.
                responses.close()
                return 1
            self._connects_by = self._clock.deadline(_READER_TIMEOUT_S if self._is_local else None)
        if self._responses is None:
            # Another thread has closed this since it was looked at.
            return 0
        if not self._responses.is_connected and self._returns_by is None:
            self._returns_by = self._clock.deadline(None if self._is_local else _ABSENCE_MAX_S)
        if self._connects_by is not None:
            if not self._responses.is_connected:
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
        """Note that the requester reads its answers."""
        self._returns_by = None

    def discard(self, limit: int) -> int:
        """Read and drop at most `limit` messages of a publisher that gets no answers; returns how many."""
        return self.image.poll(lambda *_: None, limit)

    def leave(self, unread_count: int) -> int:
        """Count the requests that stay unread and the answers that stay unsent as lost; returns how many."""
        self._losses.count += unread_count
        return unread_count + self._lose_waiting()

    def ignore(self) -> None:
        """Stop answering this publisher."""
        self.close()
        self._is_ignored = True

    def answer(self, correlation_id: int, body: bytes) -> None:
        """Send an answer, now or when there is room. One that is too long becomes an error."""
        try:
            self._send(header(Kind.ANSWER, correlation_id), body)
        except ConfigError:
            length_max = 0 if self._responses is None else self._responses.max_message_length - HEADER_LENGTH
            self.refuse(
                correlation_id,
                f"ConfigError: the answer of {len(body)} bytes is too long, it must have at most {length_max}",
            )

    def refuse(self, correlation_id: int, text: str) -> None:
        """Send a caller the reason why it gets no answer."""
        body = text.encode(errors="replace")[:_ERROR_LENGTH_MAX]
        self._send(header(Kind.ERROR, correlation_id), body)

    def _send(self, head: bytes, body: bytes) -> None:
        message = (head, body)
        if self._is_closed or self._responses is None:
            self._losses.count += 1
        elif self._waiting or not self._offer(message):
            # No request is read meanwhile, so as many wait as were read at once or are being handled.
            self._waiting.append(message)
            self._lose_if_closed()

    def _take_waiting(self) -> tuple[bytes, bytes] | None:
        """Take the next waiting message. Each is taken once: a thread that closes the server takes them too."""
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
        """Count a message as lost that began to wait after another thread had closed this."""
        if self._is_closed:
            self._lose_waiting()

    def _offer(self, message: tuple[bytes, bytes]) -> bool:
        """Offer a message; false when it must wait for room, or for the requester to connect."""
        assert self._responses is not None
        while (result := self._responses.offer(message)) == OfferResult.ADMIN_ACTION:
            pass
        if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
            self._losses.count += 1
            return True
        return bool(result)

    def close(self) -> None:
        """Close, because the requester is gone or the server closes: waiting answers are lost."""
        self._is_closed = True
        self._lose_waiting()
        asked, self._asked = self._asked, None
        if asked is not None:
            # Refused in a handler of the client and in a forked child. What was asked for then ends with the client.
            with suppress(HeadraceError):
                asked.cancel()
        if self._responses is not None:
            self._responses.close()
