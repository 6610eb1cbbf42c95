"""A request to an archive and its answers: bytes out, messages in. It owns no socket, thread or clock, and never waits.

A generator of ``steps.py`` makes the requests and uses the answers. It yields requests, and is sent the answers to the
last of them:

    yields a request         the request is sent; then its first answer is sent to the generator
    yields Beginning(...)    the same, for a request that begins something, which can be taken back
    yields Awaiting()        the next answer to the same request
    yields Unanswered(...)   the request is sent; the generator continues at once
    returns, or raises       the exchange is done

Unless the owner gets the result, the exchange undoes what a request began: a recording of unknown id could not be
stopped.

Its owner moves the bytes: it offers :attr:`Exchange.to_send` and calls :meth:`Exchange.sent`, passes in messages that
arrive, and calls :meth:`Exchange.check` when none do, until :attr:`Exchange.is_done`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from headrace._base.exceptions import ArchiveTimeoutError
from headrace.archive.protocol.answers import Answer, ControlResponse
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import encode
from headrace.archive.protocol.requests import AuthConnectRequest, Request
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication
    from headrace.clock import Clock

__all__ = ["Awaiting", "Beginning", "Exchange", "Steps", "Terms", "Unanswered"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A step: wait for the next answer to the last request."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A step: send a request that begins something, and wait for its first answer.

    Attributes:
        request: The request.
        undo: Makes the request that undoes it, from the number in the answer.
        over: The publication to send it over; ``None`` for the session's. The answer comes to the session anyway.
    """

    request: Request
    undo: Callable[[int], Request]
    over: ExclusivePublication | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A step: send a request that the archive does not answer."""

    request: Request


Step = AuthConnectRequest | Request | Beginning | Awaiting | Unanswered
Steps = Generator[Step, Answer, R]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the exchanges of a session have in common.

    Attributes:
        control_session_id: The id of the session.
        next_correlation_id: Makes the id of a request.
        clock: The clock for time-outs.
        timeout_s: How long an answer may take, from the request or from the answer before it.
    """

    control_session_id: int
    next_correlation_id: Callable[[], int]
    clock: Clock
    timeout_s: float


class Exchange(Generic[R]):
    """The requests that its steps make, one after the other, and their answers. Used by one thread at a time."""

    def __init__(self, steps: Steps[R], terms: Terms) -> None:
        self._steps = steps
        self._terms = terms
        self._begins: Callable[[int], Request] | None = None
        self._undo: Request | None = None
        self._is_unanswered = False
        self._error: Exception | None = None
        self._result: list[R] = []
        self.is_done = False
        """Whether :meth:`result` is there."""
        self.over: ExclusivePublication | None = None
        """What :attr:`to_send` is to be sent over; ``None`` for the session's publication."""
        self.to_send: bytes | None = None
        """What is to be sent now; nothing is awaited before it was."""
        self.correlation_id = NULL_VALUE
        """The id of the last request, which its answers carry."""
        self.deadline = terms.clock.deadline(terms.timeout_s)
        """When the time-out is over. It begins with the exchange: one that waits to be sent waits for its answer."""
        self._go_on(lambda: next(self._steps))

    def sent(self) -> None:
        """Note that :attr:`to_send` was sent; its answer is awaited from now on."""
        self.to_send = None
        if self._is_unanswered:
            self._go_on(lambda: next(self._steps))

    def awaits(self, answer: Answer) -> bool:
        """Whether an answer belongs to its request."""
        return not self.is_done and answer.correlation_id == self.correlation_id

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is still to come."""
        return not self.is_done and self.to_send is None

    @property
    def may_begin(self) -> bool:
        """Whether the awaited answer names something that the request began."""
        return self.is_waiting and self._begins is not None

    def take(self, answer: Answer) -> None:
        """Continue with an answer that it :meth:`awaits`."""
        self.restart_timeout()
        if self._begins is not None and isinstance(answer, ControlResponse):
            if answer.code is Response.OK:
                self._undo = self._begins(answer.relevant_id)
            self._begins = None
        self._go_on(lambda: self._steps.send(answer))

    def check(self) -> None:
        """Fail the exchange if its time-out is over."""
        if self.deadline.is_over:
            text = f"the archive did not answer within {self._terms.timeout_s} s"
            if self.to_send is not None:
                text += "; the request was not sent, because requests before it were not answered"
            elif self._begins is not None:
                text += "; it may still carry out the request later"
            self.fail(ArchiveTimeoutError(text, correlation_id=self.correlation_id))

    def fail(self, error: Exception) -> None:
        """End it with an error that its owner has found."""
        if not self.is_done:
            self._steps.close()
            self._end(error)

    def result(self) -> R:
        """The result, which from now on belongs to the owner: nothing is undone.

        Raises:
            ArchiveError: The archive refused, or is gone.
            ArchiveTimeoutError: It did not answer in time.
        """
        if self._error is not None:
            raise self._error
        self._undo = None
        return self._result[0]

    def undo(self) -> bytes | None:
        """The bytes of a request that undoes what was begun, if the owner has no result; nothing answers it.

        ``None`` if there is nothing to undo. Otherwise the exchange is done.
        """
        undo, self._undo = self._undo, None
        if undo is None:
            return None
        self._steps.close()
        self.is_done = True
        return encode(self._addressed(undo))

    def restart_timeout(self) -> None:
        """Restart the time-out, because the archive has answered this request or one before it."""
        self.deadline = self._terms.clock.deadline(self._terms.timeout_s)

    def _go_on(self, resume: Callable[[], Step]) -> None:
        self._is_unanswered, self.over = False, None
        try:
            step = resume()
        except StopIteration as end:
            self._result.append(end.value)
            self.is_done = True
        except Exception as error:
            self._end(error)
        else:
            self._take_step(step)

    def _end(self, error: Exception) -> None:
        self._error = error
        self.to_send = None
        self.is_done = True

    def _take_step(self, step: Step) -> None:
        if isinstance(step, Awaiting):
            return
        if isinstance(step, Unanswered):
            self._is_unanswered = True
            self.to_send = encode(self._addressed(step.request))
        else:
            if isinstance(step, Beginning):
                self._begins, self.over, step = step.undo, step.over, step.request
            self.correlation_id = self._terms.next_correlation_id()
            self.to_send = encode(self._stamped(step))

    def _stamped(self, request: AuthConnectRequest | Request) -> AuthConnectRequest | Request:
        if isinstance(request, Request):
            request = self._addressed(request)
        return dataclasses.replace(request, correlation_id=self.correlation_id)

    def _addressed(self, request: Request) -> Request:
        """The request with the session's id, unless the steps that open the session have set it."""
        if request.control_session_id != NULL_VALUE:
            return request
        return dataclasses.replace(request, control_session_id=self._terms.control_session_id)
