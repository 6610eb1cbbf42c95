"""Requests to the driver by a program that continues in the meantime."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace._base.exceptions import ClientError, RegistrationError

if TYPE_CHECKING:
    from headrace import _core
    from headrace.clock import Clock

__all__ = ["CLOSING_TIMEOUT_S", "TEMPORARILY_UNAVAILABLE", "Pending", "added", "removed"]

_Added = TypeVar("_Added")
_Found = TypeVar("_Found", covariant=True)

# The protocol's code for an endpoint that is being closed, and how long to ask again.
TEMPORARILY_UNAVAILABLE = 10
CLOSING_TIMEOUT_S = 1.0
# A driver answers within a turn of its conductor and of the client's, which may be asleep; so it is asked for the
# answer at once, then every few milliseconds.
_ANSWER_DELAYS_S = (0.0, 0.001, 0.002, 0.004)


class _Asked(Protocol[_Found]):
    """A request to the driver."""

    def poll(self) -> _Found | None: ...
    def cancel(self) -> None: ...


class Pending(Generic[_Added]):
    """A request for a publication, subscription or counter that the driver may not have answered yet.

    Made by ``Client.request_publication`` and its like. In asyncio, ``await`` it: cancelling the wait cancels the
    request. Elsewhere poll it until it returns the result, or cancel it. If the program does neither, the driver keeps
    the publication, subscription or counter until the client is closed.
    """

    def __init__(self, clock: Clock, ask: Callable[[], _core.Pending[_Added]]) -> None:
        self._ask = ask
        self._asked = ask()
        self._is_over = False
        self._deadline = clock.deadline(CLOSING_TIMEOUT_S)

    def poll(self) -> _Added | None:
        """Take the result, once; ``None`` while the driver has not answered. Never blocks.

        With ``use_invoker=True``, :meth:`headrace.Client.invoke` reads the answers.

        Raises:
            RegistrationError: The driver refused, with the reason.
            DriverTimeoutError: The driver did not answer within ``driver_timeout_ms``.
            ClosedError: The client is closed.
        """
        try:
            found = self._asked.poll()
        except RegistrationError as refusal:
            # The driver has no event for the moment at which an endpoint that a program just left is closed.
            if refusal.code != TEMPORARILY_UNAVAILABLE or self._deadline.is_over:
                self._is_over = True
                raise
        else:
            self._is_over = self._is_over or found is not None
            return found
        self._asked = self._ask()
        return None

    def __await__(self) -> Generator[Any, None, _Added]:
        """Wait for the result without blocking the event loop.

        Raises as :meth:`poll`, and :class:`headrace.ClientError` if the result was taken before, or the request was
        refused or cancelled.
        """
        return (yield from added(self, lambda: self._is_over).__await__())

    def cancel(self) -> None:
        """Cancel the request, and close its result if there is one already. Never blocks.

        Does nothing once the result was taken, or after the client has ended.
        """
        self._is_over = True
        self._asked.cancel()

    def __repr__(self) -> str:
        return repr(self._asked)


async def added(pending: _Asked[_Added], is_over: Callable[[], bool] = lambda: False) -> _Added:
    """Wait for the result of ``Client.request_publication`` and its like; ``await pending`` is short for it.

    Cancelling the wait cancels the request.

    Raises:
        RegistrationError: The driver refused, with the reason.
        DriverTimeoutError: The driver did not answer within ``driver_timeout_ms``.
        ClosedError: The client is closed.
    """
    # Loaded by programs that await something, and by no other.
    import asyncio

    delays = iter(_ANSWER_DELAYS_S)
    delay_s = 0.0
    try:
        while (found := pending.poll()) is None:
            if is_over():
                raise ClientError("the request was already taken, refused or cancelled: make it again")
            delay_s = next(delays, delay_s)
            await asyncio.sleep(delay_s)
    except asyncio.CancelledError:
        pending.cancel()
        raise
    return found


async def removed(pending: _Asked[int]) -> None:
    """Wait for the answer to a request to remove something. Raises as :func:`added`."""
    await added(pending)
