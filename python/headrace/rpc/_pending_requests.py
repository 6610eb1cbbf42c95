"""Requests that wait for their answers."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from typing import Protocol

from headrace._base.exceptions import RemoteError
from headrace.rpc._layout import HEADER_LENGTH, Kind, parse

__all__ = ["Calls", "Outcome"]


class Outcome(Protocol):
    """Receives the answer to a call. An :class:`asyncio.Future` is one."""

    @abstractmethod
    def done(self) -> bool: ...

    @abstractmethod
    def set_result(self, result: bytes, /) -> None: ...

    @abstractmethod
    def set_exception(self, exception: Exception, /) -> None: ...


class Calls:
    """The calls in flight, by correlation id. Any thread may add and remove calls; one at a time reads answers."""

    def __init__(self) -> None:
        # Each with the reader of its answers.
        self._outcomes: dict[int, tuple[Outcome, object]] = {}
        # Those of them whose requests are still to be sent: no server can lose them.
        self._unsent: set[int] = set()
        self._ids = itertools.count(1)
        self.unclaimed_count = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    def new_id(self) -> int:
        """Return a correlation id that no other call has."""
        return next(self._ids)

    def add(self, correlation_id: int, outcome: Outcome, reader: object, *, is_sent: bool = True) -> None:
        """Add the call that gets the answer with this correlation id."""
        if not is_sent:
            self._unsent.add(correlation_id)
        self._outcomes[correlation_id] = outcome, reader

    def note_sent(self, correlation_id: int) -> None:
        """Note that the request of a call was sent."""
        self._unsent.discard(correlation_id)

    def forget(self, correlation_id: int) -> None:
        """Remove a call; its answer will be dropped."""
        self._outcomes.pop(correlation_id, None)
        self._unsent.discard(correlation_id)

    def forget_all(self) -> None:
        """Remove all calls; their answers will be dropped."""
        self._outcomes.clear()
        self._unsent.clear()

    def settle(self, message: bytes, _: object) -> None:
        """Pass an answer to its call; count it if no call waits for it."""
        parsed = parse(message)
        outcome = None
        if parsed is not None and parsed[0] in (Kind.ANSWER, Kind.ERROR):
            outcome, _ = self._outcomes.pop(parsed[1], (None, None))
        if parsed is None or outcome is None or outcome.done():
            self.unclaimed_count += 1
        elif parsed[0] == Kind.ANSWER:
            outcome.set_result(message[HEADER_LENGTH:])
        else:
            outcome.set_exception(RemoteError(message[HEADER_LENGTH:].decode(errors="replace")))

    def fail(self, error: Exception, reader: object = None) -> None:
        """End the sent calls whose answers a reader reads, or all calls; each gets a copy of the error."""
        for correlation_id, (outcome, of) in list(self._outcomes.items()):
            if reader is None or (of is reader and correlation_id not in self._unsent):
                self.forget(correlation_id)
                if not outcome.done():
                    outcome.set_exception(_another(error))


def _another(error: Exception) -> Exception:
    """A copy of an error: a single one that several calls raise would collect the tracebacks of them all."""
    try:
        return copy.copy(error).with_traceback(error.__traceback__)
    except Exception:
        # Of a class that cannot be copied.
        return error
