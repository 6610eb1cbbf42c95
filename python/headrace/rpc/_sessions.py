"""The requesters that a server answers, each with its own pair of streams."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError
from headrace._results import OfferResult
from headrace.rpc._layout import HEADER_LENGTH, Kind, header

if TYPE_CHECKING:
    from headrace.client import Image, Pending, Publication

__all__ = ["Session"]

# Bytes of an error's text: it must fit into any term.
_ERROR_LENGTH_MAX = 4096


class Session:
    """One requester: the image of its requests, and the publication of the answers to it."""

    def __init__(self, image: Image, asked: Pending[Publication]) -> None:
        self.image = image
        self.lost_count = 0
        self._asked: Pending[Publication] | None = asked
        self._answers: Publication | None = None
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """True when it can be answered, and reads its answers."""
        return self._answers is not None and not self._waiting

    @property
    def is_blocked(self) -> bool:
        """True while its requests must wait: its answers have no room, or no stream yet."""
        return not self.is_ready and not self._is_closed

    def turn(self) -> int:
        """Go on with what had to wait; returns how much was done.

        Raises:
            HeadraceError: The driver refused the publication of the answers.
        """
        if self._asked is not None:
            self._answers = self._asked.poll()
            if self._answers is None:
                return 0
            self._asked = None
        count = len(self._waiting)
        while self._waiting and self._offer(self._waiting[0]):
            self._waiting.popleft()
        return count - len(self._waiting)

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
            self.lost_count += 1
        elif self._waiting or not self._offer(message):
            # No request is read meanwhile, so as many wait as were read at once or are being handled.
            self._waiting.append(message)

    def _offer(self, message: tuple[bytes, bytes]) -> bool:
        """False when it must wait for room, or for the requester to connect."""
        assert self._answers is not None
        while (result := self._answers.offer(message)) == OfferResult.ADMIN_ACTION:
            pass
        if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
            self.lost_count += 1
            return True
        return bool(result)

    def close(self) -> None:
        """The requester is gone, or the server closes: what still waits is lost."""
        self._is_closed = True
        self.lost_count += len(self._waiting)
        self._waiting.clear()
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None
        if self._answers is not None:
            self._answers.close()
