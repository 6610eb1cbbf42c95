"""Idle strategies: how a loop waits after a turn without work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from headrace._core import IdleStrategy

if TYPE_CHECKING:
    from headrace._core import Publication, Subscription

__all__ = [
    "BackoffIdleStrategy",
    "BlockingIdleStrategy",
    "BusySpinIdleStrategy",
    "IdleStrategy",
    "NoOpIdleStrategy",
    "SleepingIdleStrategy",
    "YieldingIdleStrategy",
]


class BlockingIdleStrategy(IdleStrategy):
    """Spins a few turns, then yields, then sleeps until it is woken: within some 20 us, at next to no cost.

    A message for one of the subscriptions, or room in one of the publications, ends the sleep, if the message comes
    over the network or from a program that uses Headrace. For other programs, and for streams of a second driver, it
    looks every millisecond. Returns after 20 ms at the latest. The default of every call that waits.

    Args:
        awaited: The subscriptions and publications that the loop uses.
    """

    def __new__(cls, *awaited: Subscription | Publication) -> Self:
        return super().__new__(cls, "blocking", None, awaited)


class BackoffIdleStrategy(IdleStrategy):
    """Spins a few turns, then yields, then sleeps twice as long each time.

    Args:
        spins_max: Turns that spin.
        yields_max: Turns that yield the processor.
        park_min_ns: First sleep, in nanoseconds.
        park_max_ns: Longest sleep, in nanoseconds.
    """

    def __new__(
        cls,
        *,
        spins_max: int = 10,
        yields_max: int = 20,
        park_min_ns: int = 1_000,
        park_max_ns: int = 1_000_000,
    ) -> Self:
        return super().__new__(cls, "backoff", f"{spins_max}-{yields_max}-{park_min_ns}ns-{park_max_ns}ns")


class BusySpinIdleStrategy(IdleStrategy):
    """Spins. Takes a whole processor for the least latency."""

    def __new__(cls) -> Self:
        return super().__new__(cls, "spin")


class NoOpIdleStrategy(IdleStrategy):
    """Returns at once."""

    def __new__(cls) -> Self:
        return super().__new__(cls, "noop")


class SleepingIdleStrategy(IdleStrategy):
    """Sleeps a fixed time.

    Args:
        period_ns: How long, in nanoseconds.
    """

    def __new__(cls, period_ns: int = 1_000_000) -> Self:
        return super().__new__(cls, "sleep-ns", f"{period_ns}ns")


class YieldingIdleStrategy(IdleStrategy):
    """Yields the processor."""

    def __new__(cls) -> Self:
        return super().__new__(cls, "yield")
