"""The requesters that a server answers, each with its own pair of streams."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

from headrace._exceptions import ClosedError, ConfigError
from headrace._results import OfferResult
from headrace.rpc._layout import HEADER_LENGTH, Kind, header

if TYPE_CHECKING:
    from headrace.client import Image, Pending, Publication

__all__ = ["Losses", "Session"]

# Bytes of an error's text: it must fit into any term.
_ERROR_LENGTH_MAX = 4096


class Losses:
    """Answers to requesters that were gone. Some handlers finish after the session of their requester has ended."""

    count = 0


class Session:
    """One requester: the image of its requests, and the publication of the answers to it.

    Args:
        image: Its requests.
        asked: The publication of the answers, which the driver has been asked for.
        losses: Where answers that no one reads are counted.
        connects_at_once: That publication has its reader when it is made or never, as over IPC.
    """

    def __init__(
        self, image: Image, asked: Pending[Publication], losses: Losses, *, connects_at_once: bool
    ) -> None:
        self.image = image
        self._losses = losses
        self._connects_at_once = connects_at_once
        self._asked: Pending[Publication] | None = asked
        self._answers: Publication | None = None
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._is_closed = False
        self._is_ignored = False

    @property
    def is_ready(self) -> bool:
        """True when it can be answered, and reads its answers."""
        return self._answers is not None and not self._waiting and self._answers.is_connected

    @property
    def is_ignored(self) -> bool:
        """True for a publisher that asks for no answers: its messages are read, so that it goes on, and dropped."""
        return self._is_ignored

    @property
    def is_asked(self) -> bool:
        """True while the driver makes the publication of its answers."""
        return self._asked is not None and not self._is_closed

    @property
    def is_blocked(self) -> bool:
        """True while its requests must wait: its answers have no room, no reader, or no stream yet."""
        return not (self._is_closed or self._is_ignored or self.is_ready)

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
        if self._asked is not None:
            answers = self._asked.poll()
            if answers is None:
                return 0
            self._asked, self._answers = None, answers
            if self._is_closed:
                # By another thread, which has seen one of the two only.
                answers.close()
                return 1
            if self._connects_at_once and not answers.is_connected:
                raise ConfigError("it has no subscription with control-mode=response that reads answers")
        count = len(self._waiting)
        while self._waiting and self._offer(self._waiting[0]):
            self._waiting.popleft()
        return count - len(self._waiting)

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

    def _offer(self, message: tuple[bytes, bytes]) -> bool:
        """False when it must wait for room, or for the requester to connect."""
        assert self._answers is not None
        while (result := self._answers.offer(message)) == OfferResult.ADMIN_ACTION:
            pass
        is_gone = self._connects_at_once and result == OfferResult.NOT_CONNECTED
        if is_gone or result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
            self._losses.count += 1
            return True
        return bool(result)

    def close(self) -> None:
        """The requester is gone, or the server closes: what still waits is lost."""
        self._is_closed = True
        self._losses.count += len(self._waiting)
        self._waiting.clear()
        if self._asked is not None:
            # Refused by a client that is closed, of which nothing is left.
            with contextlib.suppress(ClosedError):
                self._asked.cancel()
            self._asked = None
        if self._answers is not None:
            self._answers.close()
