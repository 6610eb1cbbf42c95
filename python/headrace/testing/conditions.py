"""What a bad network does to datagrams, decided by a seed and by the order in which they come.

No socket and no clock in here: time comes in, datagrams come out. So the same seed and the same order of
datagrams give the same network, in a test that never waits as well as in the relay.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

NANOSECONDS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The state of one direction of a network path. The default is a perfect one.

    Attributes:
        loss: chance that a datagram is dropped.
        duplicate: chance that a datagram that is not dropped arrives twice.
        reorder: chance that a datagram is held back until `reorder_depth` later ones have overtaken it.
        reorder_depth: how many overtake it.
        reorder_timeout_s: how long it is held at most, when nothing follows.
        delay_s: added to every datagram.
        jitter_s: up to this much more, uniformly; datagrams may overtake each other within it.
        affects: which datagrams the chances apply to; the others pass with the delay only. `None` is all. In a
            :class:`Relay` what it raises comes out of the relay's `close`.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_depth: int = 3
    reorder_timeout_s: float = 0.01
    delay_s: float = 0.0
    jitter_s: float = 0.0
    affects: Callable[[bytes], bool] | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            chance = getattr(self, name)
            if not 0.0 <= chance <= 1.0:
                raise ValueError(f"{name}={chance}; a chance must be between 0 and 1")
        for name in ("delay_s", "jitter_s", "reorder_timeout_s"):
            if getattr(self, name) < 0.0:
                raise ValueError(f"{name}={getattr(self, name)}; a time must not be negative")
        if self.reorder_depth < 1:
            raise ValueError(f"reorder_depth={self.reorder_depth}; at least one datagram must overtake")


PERFECT = Conditions()


@dataclass(slots=True)
class PathCounters:
    """What happened to the datagrams of one direction. `received` = `dropped` + `cut` + `passed`."""

    received: int = 0
    passed: int = 0
    dropped: int = 0
    cut: int = 0
    duplicated: int = 0
    reordered: int = 0
    delivered: int = 0
    delivered_bytes: int = 0


@dataclass(slots=True)
class _Held:
    datagram: bytes
    to_overtake: int
    deadline_ns: int


@dataclass(slots=True)
class NetworkPath:
    """One direction of a network, stepped by its caller. Not thread-safe.

    `receive` takes a datagram in, `deliveries` gives out what is due, `next_deadline_ns` says when to look
    again.
    """

    conditions: Conditions
    random: random.Random
    is_cut: bool = False
    counters: PathCounters = field(default_factory=PathCounters)
    _sequence: int = 0
    _due: list[tuple[int, int, bytes]] = field(default_factory=list)
    _held: deque[_Held] = field(default_factory=deque)

    def receive(self, datagram: bytes, now_ns: int) -> None:
        """Decide what becomes of a datagram that arrives now."""
        conditions, counters = self.conditions, self.counters
        # Always the same number of draws a datagram: what happens to one never shifts the fate of the next.
        loss, duplicate, reorder, jitter = (self.random.random() for _ in range(4))
        counters.received += 1
        if self.is_cut:
            counters.cut += 1
            return
        is_affected = conditions.affects is None or conditions.affects(datagram)
        if is_affected and loss < conditions.loss:
            counters.dropped += 1
            return
        counters.passed += 1
        at_ns = now_ns + _to_ns(conditions.delay_s + jitter * conditions.jitter_s)
        if is_affected and reorder < conditions.reorder:
            counters.reordered += 1
            deadline_ns = at_ns + _to_ns(conditions.reorder_timeout_s)
            self._held.append(_Held(datagram, conditions.reorder_depth, deadline_ns))
            return
        self._schedule(at_ns, datagram)
        if is_affected and duplicate < conditions.duplicate:
            counters.duplicated += 1
            self._schedule(at_ns, datagram)
        self._overtake(at_ns)

    def deliveries(self, now_ns: int) -> Iterator[bytes]:
        """The datagrams that are due, in order."""
        while self._held and self._held[0].deadline_ns <= now_ns:
            held = self._held.popleft()
            self._schedule(held.deadline_ns, held.datagram)
        while self._due and self._due[0][0] <= now_ns:
            datagram = heapq.heappop(self._due)[2]
            self.counters.delivered += 1
            self.counters.delivered_bytes += len(datagram)
            yield datagram

    def next_deadline_ns(self) -> int | None:
        """When `deliveries` next has something to give, if nothing arrives before."""
        deadlines = [self._due[0][0]] if self._due else []
        if self._held:
            deadlines.append(self._held[0].deadline_ns)
        return min(deadlines, default=None)

    def _overtake(self, at_ns: int) -> None:
        for held in self._held:
            held.to_overtake -= 1
        while self._held and self._held[0].to_overtake <= 0:
            self._schedule(at_ns, self._held.popleft().datagram)

    def _schedule(self, at_ns: int, datagram: bytes) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (at_ns, self._sequence, datagram))


def path_random(seed: int, name: str) -> random.Random:
    """Randomness for the named path: another stream for each name, the same one for the same seed."""
    return random.Random(f"{seed}/{name}")


def _to_ns(seconds: float) -> int:
    return round(seconds * NANOSECONDS_PER_SECOND)
