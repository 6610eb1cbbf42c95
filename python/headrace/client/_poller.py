"""The public poller: the native one, or one whose subscriptions come back with the next driver."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace._base.exceptions import ClosedError, HeadraceError
from headrace.client._reconnecting_streams import ReconnectingSubscription
from headrace.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from typing import Self

    from headrace._core import Header, IdleStrategy, Message, Subscription

__all__ = ["Poller"]

# How long a wait goes on before it looks for subscriptions that have come back while others stayed.
_LOOK_S = 0.25


class _PollerType(type):
    """Makes the poller that the subscriptions need: the native one is faster, but follows no reconnecting client."""

    def __call__(cls, *subscriptions: Any, **keywords: Any) -> Any:
        if any(isinstance(one, ReconnectingSubscription) for one in subscriptions):
            return super().__call__(*subscriptions, **keywords)
        return _core.Poller(*subscriptions, **keywords)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _core.Poller) or super().__instancecheck__(instance)


class Poller(metaclass=_PollerType):
    """Receives from several subscriptions in turn, and says which subscription each message came from.

    ``Poller(first, second)``. Fair: a subscription with many messages does not delay one with few. The program may also
    poll the subscriptions directly. Skips a subscription that the program has closed. One thread at a time polls a
    subscription.

    With subscriptions of a reconnecting client it follows them to the next driver. While there is no driver, nothing
    arrives from them, and waiting calls wait for the next one.
    """

    def __init__(self, *subscriptions: Subscription | ReconnectingSubscription) -> None:
        # Refuses what is no subscription.
        _core.Poller(*(_native(one) for one in subscriptions))
        self._subscriptions = subscriptions
        self._next = 0

    @property
    def subscriptions(self) -> tuple[Subscription | ReconnectingSubscription, ...]:
        """The subscriptions, in the order of the arguments."""
        return self._subscriptions

    def poll(self, handler: Any, limit: int = 10, *, assemble: bool = True, view: bool = False) -> int:
        """As ``Poller.poll``."""
        count, closed_count, raised = 0, 0, False

        def named(payload: Any, header: Header) -> None:
            nonlocal raised
            try:
                handler(one, payload, header)
            except BaseException:
                raised = True
                raise

        for one in self._turns():
            if count >= limit > 0:
                break
            try:
                given = named if callable(handler) else handler
                count += one.poll(given, limit - count, assemble=assemble, view=view)
            except ClosedError:
                if raised:
                    raise
                closed_count += 1
        self._check_open(closed_count)
        return count

    def poll_message(self) -> tuple[Any, Message] | None:
        """As ``Poller.poll_message``."""
        closed_count = 0
        for one in self._turns():
            try:
                message = one.poll_message()
            except ClosedError:
                closed_count += 1
                continue
            if message is not None:
                return self._taken(one, message)
        self._check_open(closed_count)
        return None

    def receive(
        self, timeout_s: float | None = None, *, idle: str | IdleStrategy | None = None
    ) -> tuple[Any, Message] | None:
        """As ``Poller.receive``, waiting for a driver as well."""
        deadline = SYSTEM_CLOCK.deadline(timeout_s)
        while (found := self.poll_message()) is None and not deadline.is_over:
            left_s = deadline.left_s()
            look_s = _LOOK_S if left_s is None else min(left_s, _LOOK_S)
            live = self._live()
            if not live:
                lost = self._lost()
                lost._owner._await_connection(lost, lost._bound[0], look_s)
                continue
            try:
                arrived = _core.Poller(*live).receive(look_s, idle=idle)
            except HeadraceError:
                if not any(native.is_closed for native in live):
                    raise
                continue
            if arrived is not None:
                return self._taken(self._given(arrived[0]), arrived[1])
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Any, Message]:
        """As of a ``Poller``: waits, and ends when the program has closed all subscriptions."""
        try:
            found = self.receive()
        except ClosedError:
            raise StopIteration from None
        assert found is not None, "a wait without a time limit does not run out"
        return found

    def __aiter__(self) -> AsyncIterator[tuple[Any, Message]]:
        return _PolledMessages(self)

    def _turns(self) -> Iterator[Any]:
        """The subscriptions, beginning with the one whose turn it is; moves the turn on by one."""
        length = len(self._subscriptions)
        start = self._next % length if length else 0
        self._next = start + 1
        yield from self._subscriptions[start:]
        yield from self._subscriptions[:start]

    def _taken(self, one: Any, message: Message) -> tuple[Any, Message]:
        """A message with its subscription; the one after that has the next turn."""
        self._next = self._subscriptions.index(one) + 1 if one in self._subscriptions else 0
        return one, message

    def _check_open(self, closed_count: int) -> None:
        if closed_count == len(self._subscriptions):
            raise ClosedError("all subscriptions of the poller are closed")

    def _live(self) -> list[Subscription]:
        """The native subscriptions that have a driver now."""
        return [native for native in map(_native, self._subscriptions) if not native.is_closed]

    def _lost(self) -> ReconnectingSubscription:
        """Any subscription that waits for a driver, if all do."""
        for one in self._subscriptions:
            if isinstance(one, ReconnectingSubscription) and not one.is_closed:
                return one
        raise ClosedError("all subscriptions of the poller are closed")

    def _given(self, native: Subscription) -> Subscription | ReconnectingSubscription:
        return next((one for one in self._subscriptions if _native(one) is native), native)

    def __repr__(self) -> str:
        return f"Poller({', '.join(map(repr, self._subscriptions))})"


class _PolledMessages(AsyncIterator[tuple[Any, "Message"]]):
    """The messages of a poller, for ``async for``."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller

    async def __anext__(self) -> tuple[Any, Message]:
        import asyncio

        poller = self._poller
        try:
            while (found := poller.poll_message()) is None:
                live = poller._live()
                if not live:
                    lost = poller._lost()
                    await lost._owner._await_connection_async(lost, lost._bound[0], _LOOK_S)
                    continue
                try:
                    # A wait that is cancelled takes nothing.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            native, message = await anext(aiter(_core.Poller(*live)))
                            return poller._taken(poller._given(native), message)
                except (StopAsyncIteration, HeadraceError):
                    if not any(native.is_closed for native in live):
                        raise
        except ClosedError:
            raise StopAsyncIteration from None
        return found


def _native(subscription: Subscription | ReconnectingSubscription) -> Subscription:
    return subscription.current if isinstance(subscription, ReconnectingSubscription) else subscription
