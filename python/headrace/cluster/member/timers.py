"""The timers of a member's services. Each member has them; the leader lets them fire. Cluster specification 7.6."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Timers"]

_POLL_LIMIT = 20
# So many of the heap may be moved or cancelled beside those that are wanted, of which there may be as many again.
_UNWANTED_MAX = 64


@dataclass(slots=True)
class _Scheduled:
    deadline: int
    order: int
    correlation_id: int
    is_wanted: bool = True

    def __lt__(self, other: _Scheduled) -> bool:
        return (self.deadline, self.order) < (other.deadline, other.order)


class Timers:
    """Timers by id, which fire in the order of their deadlines. Deadlines are in units of the cluster's time."""

    def __init__(self) -> None:
        self._heap: list[_Scheduled] = []
        self._by_id: dict[int, _Scheduled] = {}
        self._orders = itertools.count()
        # Fired, in the order of the log positions at which that is committed.
        self._uncommitted: deque[tuple[int, _Scheduled]] = deque()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Ids and deadlines, by deadline."""
        return ((one.correlation_id, one.deadline) for one in sorted(self._by_id.values()))

    def schedule(self, correlation_id: int, deadline: int) -> None:
        """Have a timer fire at a deadline. An id that is scheduled already is moved."""
        self.cancel(correlation_id)
        timer = _Scheduled(deadline, next(self._orders), correlation_id)
        self._by_id[correlation_id] = timer
        heapq.heappush(self._heap, timer)
        # What is no longer wanted leaves the heap when it comes to its head, and in a replay that looks at no head.
        if len(self._heap) > 2 * len(self._by_id) + _UNWANTED_MAX:
            self._heap = list(self._by_id.values())
            heapq.heapify(self._heap)

    def cancel(self, correlation_id: int) -> bool:
        """Forget a timer; whether there was one."""
        timer = self._by_id.pop(correlation_id, None)
        if timer is None:
            return False
        timer.is_wanted = False
        return True

    def poll(self, now: int, fire: Callable[[int], int | None]) -> int:
        """Let what is due fire, twenty at most.

        Args:
            now: The cluster's time.
            fire: Appends the event of an id; gives the position after it, or ``None`` if the log has no room, which
                keeps the timer for later.
        """
        count = 0
        while self._heap and count < _POLL_LIMIT:
            timer = self._heap[0]
            if not timer.is_wanted:
                heapq.heappop(self._heap)
                continue
            if timer.deadline > now:
                break
            position = fire(timer.correlation_id)
            if position is None:
                break
            heapq.heappop(self._heap)
            del self._by_id[timer.correlation_id]
            self._uncommitted.append((position, timer))
            count += 1
        return count

    def fired(self, correlation_id: int, timestamp: int) -> None:
        """The log that is replayed says that a timer fired. All that services asked for before is known.

        A timer whose deadline is later was moved when its event was in the log already: the leader scheduled it anew.
        """
        timer = self._by_id.get(correlation_id)
        if timer is not None and timer.deadline <= timestamp:
            self.cancel(correlation_id)

    def committed(self, log_position: int) -> None:
        """The log is agreed upon up to a position."""
        while self._uncommitted and self._uncommitted[0][0] <= log_position:
            self._uncommitted.popleft()

    def restore_uncommitted(self) -> None:
        """Those that fired after the last committed position fire again.

        At once, as they were due; but a clock that was set back since then has them wait for their deadlines again: no
        service is to hear of a timer at a time before its deadline.
        """
        while self._uncommitted:
            _, timer = self._uncommitted.popleft()
            if timer.correlation_id not in self._by_id:
                self.schedule(timer.correlation_id, timer.deadline)
