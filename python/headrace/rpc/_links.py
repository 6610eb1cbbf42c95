"""The streams of a server or a requester at its driver, and at the next driver if its client reconnects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from headrace._base.exceptions import ClosedError, HeadraceError
from headrace.client import ReconnectingClient
from headrace.client._reconnecting_streams import Reconnecting

if TYPE_CHECKING:
    from headrace.client import Client

__all__ = ["Link", "link"]


class Held(Protocol):
    """Something that ends with the client of one driver."""

    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...


_Held = TypeVar("_Held", bound=Held)
_Value = TypeVar("_Value")


class Link(Protocol[_Held]):
    """Holds the streams at the present driver."""

    @property
    def current(self) -> _Held:
        """The streams at the present driver, or at the last one. Replaced at each driver."""

    @property
    def is_closed(self) -> bool:
        """True once no further driver will be used."""

    def is_lost(self, held: _Held) -> bool:
        """True for streams that ended with their driver, if another driver may follow."""

    def end_of(self, side: object) -> HeadraceError:
        """Why the server or the requester has ended: the program closed it or its client, or the driver ended."""

    def waiting(
        self, call: Callable[[_Held, float | None], _Value], timeout_s: float | None
    ) -> _Value | None:
        """Make a call that waits, again at the next driver if it failed because its driver ended.

        Returns:
            The result of the call; ``None`` when no driver came in time.
        """

    async def waiting_async(self, call: Callable[[_Held], Awaitable[_Value]]) -> _Value:
        """As :meth:`waiting`, without blocking the event loop and without a time limit."""

    def close(self) -> None:
        """Close it for good. Closing again does nothing."""


class _OneDriver(Generic[_Held]):
    """For a client that ends with its driver."""

    def __init__(self, client: Client, add: Callable[[Client], _Held]) -> None:
        self._client = client
        self._is_closed = False
        self.current = add(client)

    @property
    def is_closed(self) -> bool:
        return self.current.is_closed

    def is_lost(self, _: _Held) -> bool:
        return False

    def end_of(self, side: object) -> HeadraceError:
        if not self._is_closed:
            try:
                self._client.next_correlation_id()
            except HeadraceError as reason:
                return reason
        return ClosedError(f"{side!r} is closed")

    def waiting(
        self, call: Callable[[_Held, float | None], _Value], timeout_s: float | None
    ) -> _Value | None:
        return call(self.current, timeout_s)

    async def waiting_async(self, call: Callable[[_Held], Awaitable[_Value]]) -> _Value:
        return await call(self.current)

    def close(self) -> None:
        self._is_closed = True
        self.current.close()


class _EachDriver(Reconnecting[_Held]):
    """For a client that reconnects."""

    def is_lost(self, held: _Held) -> bool:
        return self._is_lost(held)

    def end_of(self, side: object) -> HeadraceError:
        # It outlives each driver, so only the program ends it: the last driver's client may tell of a driver's end.
        return ClosedError(f"{side!r} is closed")

    def waiting(
        self, call: Callable[[_Held, float | None], _Value], timeout_s: float | None
    ) -> _Value | None:
        return self._waiting(call, timeout_s)

    async def waiting_async(self, call: Callable[[_Held], Awaitable[_Value]]) -> _Value:
        value = await self._waiting_async(lambda held, _: call(held), None)
        assert value is not None, "a wait without a time limit does not run out"
        return value


def link(client: Client | ReconnectingClient, add: Callable[[Client], _Held]) -> Link[_Held]:
    """Add streams now, and again at each driver to which the client reconnects."""
    if isinstance(client, ReconnectingClient):
        return _EachDriver(client, add)
    return _OneDriver(client, add)
